"""A process stays on one core while the core is its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection

import pytest
from tests import needs

from DocsToKG.core import one_core
from DocsToKG.core.one_core import Keeper, Use, on_one_core

has_cores = needs.system(
    hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1, "two cores that a process can choose from"
)


class Kept:
    """A keeper with a clock of its own, and where it sent the process."""

    def __init__(self) -> None:
        self.now = 0.0
        self.places: list[set[int]] = []
        self.worked_s = self.waited_s = 0.0
        self._keeper = Keeper({0, 1, 2, 3}, self._move, lambda: self.now)

    def _move(self, cores: Collection[int]) -> None:
        self.places.append(set(cores))

    def second(self, *, worked: float, waited: float, busiest: int = 2) -> float:
        self.now += 1.0
        self.worked_s += worked
        self.waited_s += waited
        return self._keeper.look(Use(self.worked_s, self.waited_s), lambda: busiest)


def test_a_process_that_has_its_core_stays() -> None:
    kept = Kept()
    for _ in range(5):
        kept.second(worked=0.6, waited=0.05)
    assert kept.places == []


def test_threads_that_only_wait_for_each_other_are_no_crowd() -> None:
    kept = Kept()
    for _ in range(5):
        kept.second(worked=0.99, waited=2.0)
    assert kept.places == []


def test_one_that_others_keep_waiting_is_let_go_and_settles_where_most_is_done() -> None:
    kept = Kept()
    kept.second(worked=0.5, waited=0.5)
    kept.second(worked=0.5, waited=0.5)
    assert kept.places == [{0, 1, 2, 3}]
    kept.second(worked=0.9, waited=0.1, busiest=3)
    assert kept.places[1:] == [{3}]


def test_the_more_often_it_is_crowded_the_longer_it_stays_free() -> None:
    kept, free_for_s = Kept(), []
    for _ in range(9):
        kept.second(worked=0.5, waited=0.5)
        free_for_s.append(kept.second(worked=0.5, waited=0.5))
        kept.second(worked=0.5, waited=0.5)
    assert free_for_s == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


def places() -> dict[int, set[int]]:
    return {int(thread): os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task")}


@has_cores
def test_all_threads_are_on_one_core_and_may_go_anywhere_afterwards() -> None:
    before, over = os.sched_getaffinity(0), threading.Event()
    threading.Thread(target=over.wait, daemon=True).start()
    try:
        with on_one_core():
            threading.Thread(target=over.wait, daemon=True).start()
            inside = list(places().values())
            assert len(inside) >= 4
            assert all(len(cores) == 1 and cores == inside[0] for cores in inside)
        assert all(cores == before for cores in places().values())
    finally:
        over.set()


@has_cores
@pytest.mark.slow
def test_one_who_shares_its_core_with_a_busy_process_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_core, "_LOOK_EVERY_S", 0.1)
    monkeypatch.setattr(one_core, "_FREE_FOR_S", 60.0)
    everywhere = os.sched_getaffinity(0)
    with on_one_core():
        [core] = os.sched_getaffinity(0)
        # Started inside, so bound to the same core, and stays there.
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
            try:
                assert os.sched_getaffinity(busy.pid) == {core}
                work_until(lambda: os.sched_getaffinity(0) == everywhere)
            finally:
                busy.kill()


def work_until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 30.0
    while not done():
        assert time.monotonic() < until, "it was not let go"


def test_where_nothing_is_known_of_cores_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_core, "_allowed", lambda: ())
    monkeypatch.setattr(one_core, "stay_on", lambda cores: pytest.fail("it was moved"))
    with on_one_core():
        pass
