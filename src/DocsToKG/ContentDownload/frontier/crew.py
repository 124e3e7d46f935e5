"""The threads of a frontier: many may wait for the network, few run at once.

A thread runs while it has a turn. It gives the turn away while it waits for somebody else (`core.turns`) and while it
rests. The last one to rest is on the lookout: it sleeps where answers arrive, so that who sees one goes on with it.
Another keeps watch: it wakes for the next timer, and when those who run have not come by for a while (a disk that does
not answer, a wait that nobody told us of) it lets as many more run. Knows no tasks; its owner says whether there is
work. Everything but `leave` and `take` is called with the owner's lock held.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

_STUCK_S = 0.01


class Outlook(Protocol):
    """Where answers arrive."""

    @property
    def is_open(self) -> bool: ...

    def __len__(self) -> int:
        """How many are awaited."""

    def look(self, sleep_s: float | None) -> None:
        """Sleep until one comes, until woken, or for so long."""

    def wake(self) -> None: ...


class Crew:
    """Turns, and who waits for one. Each thread has a bell: a lock that it sleeps on."""

    def __init__(
        self, lock: threading.Lock, *, most_running: int, has_work: Callable[[], bool], outlook: Outlook
    ) -> None:
        self._lock = lock
        self._has_work = has_work
        self._outlook = outlook
        self._lookout: threading.Lock | None = None  # the bell of the thread that sleeps where answers arrive
        self._turns = max(1, most_running)
        self._more = 0  # turns for as long as those who have one are stuck
        self._running = 0
        self._resting: list[threading.Lock] = []
        self._returning: deque[threading.Lock] = deque()  # their wait is over, and they have no turn
        self._watch: threading.Lock | None = None  # the bell of the thread that keeps watch
        self._is_close = False  # it looks soon whether others are stuck
        self._passes = self._passes_seen = 0  # how often a turn changed its owner or its work

    @property
    def may_take_work(self) -> bool:
        """Whether the calling thread, which has a turn, may use it for new work."""
        return not self._returning and self._running <= self._turns + self._more

    def begin(self) -> None:
        """A thread joins; it has a turn."""
        self._running += 1

    def end(self) -> None:
        """A thread that has a turn leaves for good."""
        self._running -= 1
        self.call()  # one that lost a race may still wait to come back

    def found_work(self) -> None:
        self._passes += 1
        if self._watch is None:
            if self._resting:
                self._give_turn(self._resting.pop())  # it will find nothing for it, and keep watch
        elif self._is_close and self._running >= self._turns + self._more:
            return
        self.call()

    def call(self) -> None:
        """There may be work: let as many run as may."""
        self._give_turns()
        # Nobody runs who would see what arrives: one is woken, finds nothing to do, and is on the lookout.
        if not self._running and self._lookout is None and len(self._outlook):
            self._wake_one()

    def _give_turns(self) -> None:
        while self._running < self._turns + self._more:
            if self._returning:
                self._give_turn(self._returning.popleft())
            elif not (self._has_work() and self._wake_one()):
                return
        self._bring_watch_closer()

    def _bring_watch_closer(self) -> None:
        if self._watch is not None and not self._is_close:
            self._wake_watch()

    def call_watch(self) -> None:
        """There is a timer sooner than the one that keeps watch knows."""
        if not (self._wake_lookout() or self._wake_watch()):
            self.call()

    def call_all(self) -> None:
        """Everyone is to look whether it is over."""
        while self._wake_one():
            pass

    def leave(self) -> None:
        with self._lock:
            self._passes += 1
            self._running -= 1
            self.call()

    def take(self, bell: threading.Lock) -> None:
        with self._lock:
            if self._running < self._turns + self._more:
                self._running += 1
                return
            self._returning.append(bell)
        bell.acquire()

    def rest(self, bell: threading.Lock, wait_s: float | None) -> None:
        """Give the turn away and sleep until called; the one that keeps watch at most `wait_s`."""
        self._running -= 1
        self._give_turns()
        if not self._running and self._lookout is None and self._outlook.is_open:
            self._look_out(bell, wait_s)
        elif self._watch is None:
            self._keep_watch(bell, wait_s)
        else:
            self._resting.append(bell)
            self._sleep(bell, None)

    def _look_out(self, bell: threading.Lock, wait_s: float | None) -> None:
        self._lookout = bell
        self._lock.release()
        try:
            self._outlook.look(wait_s)
        finally:
            self._lock.acquire()
            if self._lookout is bell:  # else it was given a turn, and woken for that
                self._lookout = None
                self._running += 1

    def _keep_watch(self, bell: threading.Lock, wait_s: float | None) -> None:
        self._watch, passes = bell, self._passes
        self._is_close = self._running > 0 or passes != self._passes_seen
        self._passes_seen = passes
        if self._is_close:
            wait_s = _STUCK_S if wait_s is None else min(wait_s, _STUCK_S)
        rung = self._sleep(bell, wait_s)
        if self._watch is not bell:
            if not rung:
                bell.acquire()  # called at the last moment
            return
        self._watch = None
        are_stuck = self._passes == passes and self._running > 0 and (self._returning or self._has_work())
        self._more = self._running if are_stuck else self._more // 2
        self._running += 1

    def _sleep(self, bell: threading.Lock, wait_s: float | None) -> bool:
        self._lock.release()
        try:
            return bell.acquire(timeout=-1 if wait_s is None else max(0.0, wait_s))
        finally:
            self._lock.acquire()

    def _wake_one(self) -> bool:
        if self._wake_lookout():
            return True
        if self._resting:
            self._give_turn(self._resting.pop())
            return True
        return self._wake_watch()

    def _wake_lookout(self) -> bool:
        if self._lookout is None:
            return False
        self._lookout = None
        self._running += 1
        self._outlook.wake()
        return True

    def _wake_watch(self) -> bool:
        bell, self._watch = self._watch, None
        if bell is not None:
            self._give_turn(bell)
        return bell is not None

    def _give_turn(self, bell: threading.Lock) -> None:
        self._running += 1
        bell.release()


class CrewTurn:
    """The turn of one thread of a crew."""

    __slots__ = ("_crew", "bell", "leave")

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self.bell = threading.Lock()
        self.bell.acquire()
        self.leave = crew.leave

    def take(self) -> None:
        self._crew.take(self.bell)
