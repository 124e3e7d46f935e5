"""Ctrl+C at a time when no module is read, and where somebody else has a say in it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from DocsToKG.core.interrupts import end_at_once_while_modules_are_read


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_it_is_a_keyboard_interrupt_where_no_module_is_read() -> None:
    end_at_once_while_modules_are_read()
    assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_who_wants_it_ignored_is_heard() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_at_once_while_modules_are_read()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
