"""Keep a process on one core for as long as that core is its own.

Threads of one interpreter hand it to each other dozens of times for every paper. Spread over cores, each time wakes a
core that had begun to sleep, which costs more than what is handed over. Knows what Linux tells of threads; elsewhere it
does nothing. Promises: a process that others keep from its core is let go, and stays free the longer the more
often that happens; in the end every thread may run where it could before.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

_LOOK_EVERY_S = 1.0
_FREE_FOR_S = 0.5
_LONGEST_FREE_S = 60.0
# Kept waiting for a quarter of the time, and at work for less than four fifths of it: others are on this core. Threads
# of our own keep each other waiting too, but then the process as a whole is at work all the time.
_WAITED = 0.25
_WORKED = 0.8
_THREADS = Path("/proc/self/task")
_PLACE_OF_CORE = 36  # in what follows the name, in /proc/*/stat


class Use(NamedTuple):
    """Seconds since the process began: at work, and ready to work but kept waiting; over all threads."""

    worked_s: float
    waited_s: float


class _Thread(NamedTuple):
    id: int
    worked_s: float
    waited_s: float


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    """For the block. Processes that are started inside inherit the one core."""
    allowed = _allowed()
    if len(allowed) < 2:
        yield
        return
    over = threading.Event()
    keeper = Keeper(allowed, stay_on, time.monotonic)
    stay_on({_core_of(threading.get_native_id())})
    watch = threading.Thread(target=_watch, args=(keeper, over), name="one-core", daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()
        stay_on(allowed)


def _watch(keeper: Keeper, over: threading.Event) -> None:
    pause_s, before = _LOOK_EVERY_S, _threads()
    while not over.wait(pause_s):
        threads = _threads()
        pause_s, before = keeper.look(_sum(threads), partial(_busiest_core, threads, before)), threads


class Keeper:
    """Decides when to let go of a core and when to stay on one again. `move` is told where to stay."""

    def __init__(self, allowed: Collection[int], move: Callable[[Collection[int]], None], now: Callable[[], float]):
        self._allowed = allowed
        self._move = move
        self._now = now
        self._seen: tuple[float, Use] | None = None
        self._is_free = False
        self._free_for_s = _FREE_FOR_S

    def look(self, use: Use, busiest: Callable[[], int]) -> float:
        """Seconds until the next look. `busiest` tells on which core most is done."""
        if self._is_free:
            self._is_free, self._seen = False, None
            self._move({busiest()})
            return _LOOK_EVERY_S
        now = self._now()
        seen, self._seen = self._seen, (now, use)
        if seen is None or not self._is_crowded(use, seen[1], now - seen[0]):
            return _LOOK_EVERY_S
        self._is_free = True
        self._move(self._allowed)
        free_for_s, self._free_for_s = self._free_for_s, min(2 * self._free_for_s, _LONGEST_FREE_S)
        return free_for_s

    @staticmethod
    def _is_crowded(use: Use, before: Use, passed_s: float) -> bool:
        waited_s, worked_s = use.waited_s - before.waited_s, use.worked_s - before.worked_s
        return waited_s > _WAITED * passed_s and worked_s < _WORKED * passed_s


def stay_on(cores: Collection[int]) -> None:
    """Every thread of this process, and those that they start. One that has just ended needs no place."""
    for thread in os.listdir(_THREADS):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(thread), cores)


def _allowed() -> Collection[int]:
    """Empty where nobody could tell what happens to us on a core."""
    try:
        return os.sched_getaffinity(0) if _threads() else ()
    except (AttributeError, OSError):
        return ()


def _threads() -> list[_Thread]:
    found = []
    with contextlib.suppress(FileNotFoundError):
        for thread in os.listdir(_THREADS):
            with contextlib.suppress(OSError, ValueError):
                worked, waited, _ = (_THREADS / thread / "schedstat").read_text().split()
                found.append(_Thread(int(thread), int(worked) / 1e9, int(waited) / 1e9))
    return found


def _sum(threads: list[_Thread]) -> Use:
    return Use(sum(one.worked_s for one in threads), sum(one.waited_s for one in threads))


def _busiest_core(threads: list[_Thread], before: list[_Thread]) -> int:
    """Where the one ran that has worked most since `before`."""
    had_s = {one.id: one.worked_s for one in before}
    return _core_of(max(threads, key=lambda one: one.worked_s - had_s.get(one.id, 0.0)).id)


def _core_of(thread: int) -> int:
    """Where it ran last."""
    with contextlib.suppress(OSError):
        return int((_THREADS / str(thread) / "stat").read_text().rpartition(")")[2].split()[_PLACE_OF_CORE])
    return min(os.sched_getaffinity(0))
