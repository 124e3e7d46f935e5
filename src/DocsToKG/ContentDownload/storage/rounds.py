"""Many small duties done together by whoever comes first.

A thread that brings a duty while others are at work waits, and finds it done in the next round, together with what else
had come in the meantime. Knows threads; does not know what is done. Promises: a duty that comes alone is done at once
by its own thread; nobody waits for duties that came after the round of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Duty = TypeVar("Duty")


class _Turn(Generic[Duty]):
    """One duty and the thread that brought it; `together` is the round that this thread has to do."""

    __slots__ = ("duty", "together", "wake")

    def __init__(self, duty: Duty) -> None:
        self.duty = duty
        self.together: list[_Turn[Duty]] | None = None
        self.wake = threading.Lock()


class Rounds(Generic[Duty]):
    """`work` does the duties of a round and keeps what became of each in it; at most `at_once` rounds run."""

    def __init__(self, work: Callable[[Sequence[Duty]], None], *, at_once: int = 4, most: int = 64) -> None:
        self._work = work
        self._at_once = at_once
        self._most = most
        self._lock = threading.Lock()
        self._running = 0
        self._waiting: list[_Turn[Duty]] = []  # empty unless as many rounds run as may

    def do(self, duty: Duty) -> None:
        """Return when `duty` is done."""
        turn = _Turn(duty)
        with self._lock:
            if self._running < self._at_once:
                self._running += 1
                turn.together = [turn]
            else:
                turn.wake.acquire()
                self._waiting.append(turn)
        if turn.together is None:
            turn.wake.acquire()
        if turn.together is not None:
            self._lead(turn, turn.together)

    def _lead(self, own: _Turn[Duty], together: list[_Turn[Duty]]) -> None:
        try:
            self._work([turn.duty for turn in together])
        finally:
            heir = self._heir()
            if heir is not None:
                heir.wake.release()
            for turn in together:
                if turn is not own:
                    turn.wake.release()

    def _heir(self) -> _Turn[Duty] | None:
        """Who does the next round, with everything that waits; None when nothing does."""
        with self._lock:
            if not self._waiting:
                self._running -= 1
                return None
            together, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            together[0].together = together
            return together[0]
