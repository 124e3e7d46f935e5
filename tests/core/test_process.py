"""A process of our own, and that nothing of it is left behind."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from DocsToKG.core.process import ours_alone


@pytest.fixture(autouse=True)
def nothing_frozen() -> Iterator[None]:
    """The suite froze what it collected."""
    gc.unfreeze()
    yield
    gc.freeze()


def settings() -> tuple[object, ...]:
    return gc.get_threshold(), sys.getswitchinterval(), gc.get_freeze_count() > 0


def test_inside_cycles_are_looked_for_seldom_and_threads_take_turns_soon() -> None:
    before = settings()
    with ours_alone():
        assert gc.get_threshold()[0] > 10_000
        assert sys.getswitchinterval() <= 0.001 + 1e-9
        assert gc.isenabled()
    assert settings() == before


def test_what_fails_inside_leaves_the_settings_as_they_were() -> None:
    before = settings()
    with pytest.raises(ZeroDivisionError), ours_alone():
        raise ZeroDivisionError
    assert settings() == before
