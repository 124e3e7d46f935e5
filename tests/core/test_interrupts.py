"""Ctrl+C at a time when no module is read, and where somebody else has a say in it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from DocsToKG.core.interrupts import interruptible


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_it_is_a_keyboard_interrupt_where_no_module_is_read() -> None:
    with interruptible():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_one_that_nobody_sees_to_is_a_line_and_an_exit_code(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, interruptible():
        signal.raise_signal(signal.SIGINT)
    assert (end.value.code, capfd.readouterr().err) == (130, "Interrupted.\n")


def test_who_wants_it_ignored_is_heard() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interruptible():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
