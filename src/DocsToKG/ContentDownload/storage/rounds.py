"""Many small duties done together by whoever comes first.

A thread that brings a duty while others are at work waits, and finds it done in the next round, together with what else
had come in the meantime. Knows threads; does not know what is done. Promises: a duty that comes alone is done at once
by its own thread; nobody waits for duties that came after the round of their own. Who does not want to wait leaves its
duty with `begin`, and a thread that lives while there are such duties does them, many in a round; more threads come
where it falls behind.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

log = logging.getLogger(__name__)

Duty = TypeVar("Duty")

LINGER_S = 1.0  # a thread that did what was left stays so long for more
_WORTH_A_THREAD = 16
_LIVELY_ROUNDS = 4


_Left: TypeAlias = tuple[Duty, Callable[[], None]]  # a duty, and who is told when it is done


class _Turn(Generic[Duty]):
    """One duty and the thread that brought it; `together` is the round that this thread has to do."""

    __slots__ = ("duty", "together", "wake")

    def __init__(self, duty: Duty) -> None:
        self.duty = duty
        self.together: list[_Turn[Duty]] | None = None
        self.wake = threading.Lock()


class Rounds(Generic[Duty]):
    """`work` does the duties of a round and keeps what became of each in it; at most `at_once` rounds run. While rounds
    follow one another, those who left a duty wait `lively_s` for more to go with it.

    `in_halves(fresh, begun)` is for duties that were left: it ends those that are begun, and either does the fresh ones
    wholly or, returning True, begins them, so that the end of one round and the beginning of the next are one deed.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Duty]], None],
        *,
        in_halves: Callable[[Sequence[Duty], Sequence[Duty]], bool] | None = None,
        at_once: int = 4,
        most: int = 64,
        lively_s: float = 0.0,
        linger_s: float = LINGER_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._work = work
        self._in_halves = in_halves
        self._lively_s = lively_s
        self._linger_s = linger_s
        self._sleep = sleep
        self._lively_until = float("-inf")
        self._at_once = at_once
        self._most = most
        self._lock = threading.Lock()
        self._running = 0
        self._waiting: list[_Turn[Duty]] = []  # empty unless as many rounds run as may
        self._left: list[_Left[Duty]] = []  # with `begin`
        self._come = threading.Condition(self._lock)
        self._doers = self._idle = self._gathering = 0

    @property
    def left(self) -> int:
        """How many duties have been left with `begin` and are not in a round yet."""
        return len(self._left)

    @property
    def waiting(self) -> int:
        """How many threads wait in `do` for a round that takes their duty."""
        return len(self._waiting)

    @property
    def threads(self) -> int:
        """How many threads there are for the duties that were left."""
        return self._doers

    def begin(self, duty: Duty, on_done: Callable[[], None]) -> None:
        """Leave `duty` to be done; `on_done` is called afterwards, from another thread."""
        with self._lock:
            self._left.append((duty, on_done))
            # One that gathers takes it along, and one in its round comes back for it; more are of use where much waits.
            busy = self._doers - self._idle
            if self._gathering or len(self._left) <= busy * _WORTH_A_THREAD:
                return
            if self._idle:
                self._come.notify()
                return
            if self._doers >= self._at_once:
                return
            self._doers += 1
        try:
            threading.Thread(target=self._do_left, name="rounds", daemon=True).start()
        except RuntimeError:  # the system gives no more threads; others rely on this one already
            self._do_left(lingers=False)

    def _do_left(self, *, lingers: bool = True) -> None:
        begun: list[_Left[Duty]] = []
        while (left := self._take_left(begun, lingers)) or begun:
            is_half = self._do_round(left, begun)
            for _, on_done in begun if is_half else begun + left:
                on_done()
            begun = left if is_half else []

    def _do_round(self, left: list[_Left[Duty]], begun: list[_Left[Duty]]) -> bool:
        """Whether those that were left are only begun."""
        duties = [duty for duty, _ in left]
        try:
            if self._in_halves is not None:
                return self._in_halves(duties, [duty for duty, _ in begun])
            self._work(duties)
        except Exception:
            log.exception("a round was not done")  # whoever left a duty sees that nothing became of it
        return False

    def _take_left(self, begun: list[_Left[Duty]], lingers: bool) -> list[_Left[Duty]]:
        """What this thread does next; nothing when it may go, once those that are `begun` are done. Where one gathers,
        all that comes is for that one."""
        with self._lock:
            if lingers and not begun and (self._gathering or not self._left):
                self._idle += 1
                self._come.wait(self._linger_s)
                self._idle -= 1
            gathers = lingers and not self._gathering and time.monotonic() < self._lively_until
            self._gathering += gathers
        if gathers:
            self._sleep(self._lively_s)
        with self._lock:
            self._gathering -= gathers
            left: list[_Left[Duty]] = []
            if not self._gathering:
                left, self._left = self._left[: self._most], self._left[self._most :]
            if left:
                self._lively_until = time.monotonic() + _LIVELY_ROUNDS * self._lively_s
            elif not begun:
                self._doers -= 1
            return left

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
