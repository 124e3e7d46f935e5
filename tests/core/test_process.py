"""A process of our own, and that nothing of it is left behind."""

from __future__ import annotations

import gc
import sys
from functools import partial

import pytest

from DocsToKG.core.process import ours_alone


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the collector of cycles, which has half a million objects of the suite to look through."""
    calls: list[str] = []
    for name in ("collect", "freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, partial(calls.append, name))
    return calls


def settings() -> tuple[object, ...]:
    return gc.get_threshold(), sys.getswitchinterval()


def test_inside_cycles_are_looked_for_seldom_and_threads_take_turns_soon(asked: list[str]) -> None:
    before = settings()
    with ours_alone():
        assert gc.get_threshold()[0] > 10_000
        assert sys.getswitchinterval() <= 0.001 + 1e-9
        assert gc.isenabled()
        assert asked == ["collect", "freeze"]
    assert settings() == before
    assert asked == ["collect", "freeze", "unfreeze"]


def test_what_fails_inside_leaves_the_settings_as_they_were(asked: list[str]) -> None:
    before = settings()
    with pytest.raises(ZeroDivisionError), ours_alone():
        raise ZeroDivisionError
    assert settings() == before
    assert asked[-1] == "unfreeze"
