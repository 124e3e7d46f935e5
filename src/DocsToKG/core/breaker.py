"""When does a circuit breaker open, let tests through, and close?

Knows one thing that may fail (a host, a source, a service, a job type) as a stream of successes and failures. Does not
know what it guards, and never sleeps: it answers "go" or "not before". Promises: no opening below the minimum of
samples; while it is tested, no more tests than allowed, whoever asks at once; a forced state holds until it is changed;
memory does not grow with traffic.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from DocsToKG.core.clock import Clock
from DocsToKG.core.values import lean_dataclass

_BUCKETS = 12
# A server may ask for any time; a day later it is worth another look in any case.
_LONGEST_RETRY_AFTER_S = 86_400.0
_MOST_DOUBLINGS = 30


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """Opens when `threshold` of at least `min_samples` in the last `window_s` failed (at the threshold, too).

    It stays open for `open_s`, doubled each time the tests fail, up to `longest_open_s`; then `test_count` requests
    pass, and a test that is silent for `test_timeout_s` gives its place to another. The window moves in twelfths.
    """

    threshold: float = 0.5
    window_s: float = 60.0
    min_samples: int = 10
    open_s: float = 30.0
    longest_open_s: float = 600.0
    test_count: int = 3
    test_timeout_s: float = 120.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.threshold <= 1.0:
            raise ValueError("threshold must be between 0 and 1")
        if min(self.window_s, self.open_s, self.test_timeout_s) <= 0 or min(self.min_samples, self.test_count) < 1:
            raise ValueError("times must be above zero, min_samples and test_count at least 1")
        if self.longest_open_s < self.open_s:
            raise ValueError("longest_open_s must not be below open_s")


# A job type is judged over more jobs and a longer time than a host.
JOB_TYPE_SETTINGS = BreakerSettings(window_s=300.0, min_samples=20)


class Ticket(NamedTuple):
    """Who was let through, and in which period of the breaker; reports of an earlier period change nothing."""

    period: int
    number: int


@lean_dataclass(frozen=True, slots=True)
class CheckResult:
    """`retry_in_s` is the time until it is worth asking again: 0 when allowed, None when nobody can say.

    `tested` means that a test has failed since the breaker opened: the trouble is known to last.
    """

    allowed: bool
    state: BreakerState
    failure_rate: float
    retry_in_s: float | None
    ticket: Ticket | None = None
    tested: bool = False


class Transition(NamedTuple):
    """One change of state. `reset_s` is how long it will be open, where that is known."""

    key: str
    old: BreakerState
    new: BreakerState
    why: str
    reset_s: float | None


class Breaker:
    """The breaker of one thing, safe to share between threads.

    `on_transition` is called in the order of the changes, while the breaker is locked: keep it short.
    """

    def __init__(
        self,
        settings: BreakerSettings,
        clock: Clock,
        *,
        key: str = "",
        on_transition: Callable[[Transition], None] | None = None,
    ) -> None:
        self.key = key
        self._settings = settings
        self._clock = clock
        self._on_transition = on_transition
        self._lock = threading.RLock()
        self._window = _Window(settings.window_s)
        self._state = BreakerState.CLOSED
        self._forced = False
        self._period = 0
        self._numbers = 0
        self._reopenings = 0
        self._open_until = 0.0
        self._asked_until = 0.0  # the latest time a Retry-After named
        self._rate_when_opened = 0.0
        self._passed = 0
        self._tests: dict[int, float] = {}  # number of a running test -> when it began, oldest first
        # The answer to everyone while it is closed and no sample is a failure; whatever may change it forgets it.
        self._calm: CheckResult | None = None

    def check(self) -> CheckResult:
        """May a request go out now? A yes in the half-open state takes one of the places for tests."""
        if (calm := self._calm) is not None:
            return calm
        with self._lock:
            result = self.look()
            if not result.allowed or result.ticket is not None:
                return result
            self._numbers += 1
            if self._testing:
                self._tests[self._numbers] = self._clock.monotonic()
            ticket = Ticket(self._period, self._numbers)
            return CheckResult(True, result.state, result.failure_rate, 0.0, ticket)

    def look(self) -> CheckResult:
        """What `check` would say, without taking a place."""
        if (calm := self._calm) is not None:
            return calm
        with self._lock:
            now = self._tick()
            wait_s, rate = self._wait_s(now), self._failure_rate(now)
            tested = self._reopenings > 0 and not self._forced
            if self._state is BreakerState.CLOSED and not rate and not tested:
                # Only tests are told apart by their numbers.
                self._calm = CheckResult(True, self._state, rate, 0.0, Ticket(self._period, 0))
                return self._calm
            return CheckResult(wait_s == 0.0, self._state, rate, wait_s, tested=tested)

    def record_success(self, *, ticket: Ticket | None = None) -> None:
        with self._lock:
            now = self._tick()
            if self._state is BreakerState.CLOSED and self._is_current(ticket):
                self._window.add(now, failed=False)
                if self._calm is None:
                    self._open_if_failing(now)
            elif self._testing and self._finish_test(ticket):
                self._passed += 1
                if self._passed >= self._settings.test_count:
                    self._close(f"{self._passed} tests passed")

    def record_failure(self, *, retry_after_s: float | None = None, ticket: Ticket | None = None) -> None:
        """It failed, and perhaps the server said when to come back: the breaker will not close before that."""
        with self._lock:
            now = self._tick()
            self._note_retry_after(now, retry_after_s)
            if self._state is BreakerState.CLOSED and self._is_current(ticket):
                self._window.add(now, failed=True)
                self._calm = None
                self._open_if_failing(now)
            elif self._testing and self._finish_test(ticket):
                self._reopenings += 1
                self._open(now, "a test failed")

    def record_nothing(self, ticket: Ticket) -> None:
        """The request was not sent, or its end says nothing: a test gives its place back."""
        with self._lock:
            if self._testing:
                self._finish_test(ticket)

    def force_open(self, why: str) -> None:
        self._force(BreakerState.OPEN, f"forced open: {why}")

    def force_closed(self, why: str) -> None:
        self._force(BreakerState.CLOSED, f"forced closed: {why}")

    def unforce(self, why: str) -> None:
        """Go by the samples again: what was open is tested first, what was closed starts with none."""
        with self._lock:
            if not self._forced:
                return
            self._forced = False
            self._forget()
            state = BreakerState.HALF_OPEN if self._state is BreakerState.OPEN else BreakerState.CLOSED
            self._change(state, f"no longer forced: {why}")

    @property
    def state(self) -> BreakerState:
        with self._lock:
            self._tick()
            return self._state

    @property
    def forced(self) -> bool:
        return self._forced

    def is_idle(self) -> bool:
        """Closed by itself, without a sample left: forgetting it loses nothing."""
        with self._lock:
            now = self._tick()
            return self._state is BreakerState.CLOSED and not self._forced and not self._window.totals(now)[0]

    @property
    def _testing(self) -> bool:
        return self._state is BreakerState.HALF_OPEN

    def _tick(self) -> float:
        """Let time have its effect: an open breaker is tested when its time is over, a silent test is given up."""
        now = self._clock.monotonic()
        if self._state is BreakerState.OPEN and not self._forced and now >= self._open_until:
            self._change(BreakerState.HALF_OPEN, "the open time is over")
        if self._tests:
            self._free_silent_tests(now)
        return now

    def _wait_s(self, now: float) -> float | None:
        if self._state is BreakerState.CLOSED:
            return 0.0
        if self._state is BreakerState.OPEN:
            return None if self._forced else self._open_until - now
        if self._passed + len(self._tests) < self._settings.test_count:
            return 0.0
        oldest = next(iter(self._tests.values()))
        # Most tests end long before they are given up.
        return min(self._settings.open_s, oldest + self._settings.test_timeout_s - now)

    def _free_silent_tests(self, now: float) -> None:
        silent_since = now - self._settings.test_timeout_s
        self._tests = {number: began for number, began in self._tests.items() if began > silent_since}

    def _failure_rate(self, now: float) -> float:
        if self._state is not BreakerState.CLOSED and not self._forced:
            return self._rate_when_opened
        total, failed = self._window.totals(now)
        return failed / total if total else 0.0

    def _is_current(self, ticket: Ticket | None) -> bool:
        return ticket is None or ticket.period == self._period

    def _finish_test(self, ticket: Ticket | None) -> bool:
        """Take a running test off the list; without a ticket, the oldest. False when there is no such test."""
        if ticket is None:
            number = next(iter(self._tests), None)
        else:
            number = ticket.number if self._is_current(ticket) else None
        return number is not None and self._tests.pop(number, None) is not None

    def _note_retry_after(self, now: float, retry_after_s: float | None) -> None:
        if retry_after_s is None:
            return
        self._asked_until = max(self._asked_until, now + min(retry_after_s, _LONGEST_RETRY_AFTER_S))
        if self._state is BreakerState.OPEN:
            self._open_until = max(self._open_until, self._asked_until)

    def _open_if_failing(self, now: float) -> None:
        total, failed = self._window.totals(now)
        if self._forced or not failed or total < self._settings.min_samples:
            return
        if failed / total >= self._settings.threshold:
            self._open(now, f"{failed} of {total} failed")

    def _open(self, now: float, why: str) -> None:
        if self._state is BreakerState.CLOSED:
            self._rate_when_opened = self._failure_rate(now)
        doubled_s = self._settings.open_s * 2.0 ** min(self._reopenings, _MOST_DOUBLINGS)
        self._open_until = max(now + min(self._settings.longest_open_s, doubled_s), self._asked_until)
        self._change(BreakerState.OPEN, why, self._open_until - now)

    def _close(self, why: str) -> None:
        self._forget()
        self._change(BreakerState.CLOSED, why)

    def _force(self, state: BreakerState, why: str) -> None:
        with self._lock:
            if self._forced and self._state is state:
                return
            self._forced = True
            self._change(state, why)

    def _forget(self) -> None:
        self._window = _Window(self._settings.window_s)
        self._reopenings = 0
        self._asked_until = 0.0
        self._passed = 0
        self._tests = {}

    def _change(self, new: BreakerState, why: str, reset_s: float | None = None) -> None:
        old, self._state = self._state, new
        self._calm = None
        self._period += 1
        self._passed = 0
        self._tests = {}
        if self._on_transition is not None:
            self._on_transition(Transition(self.key, old, new, why, reset_s))


class _Window:
    """Successes and failures of the last `window_s`, in a ring of buckets."""

    __slots__ = ("_failed", "_numbers", "_total", "_width_s")

    def __init__(self, window_s: float) -> None:
        self._width_s = window_s / _BUCKETS
        self._numbers = [-1] * _BUCKETS
        self._total = [0] * _BUCKETS
        self._failed = [0] * _BUCKETS

    def add(self, now: float, *, failed: bool) -> None:
        number = int(now // self._width_s)
        place = number % _BUCKETS
        if self._numbers[place] != number:
            self._numbers[place], self._total[place], self._failed[place] = number, 0, 0
        self._total[place] += 1
        self._failed[place] += failed

    def totals(self, now: float) -> tuple[int, int]:
        """How many there were, and how many of them failed."""
        oldest = int(now // self._width_s) - _BUCKETS + 1
        live = [place for place in range(_BUCKETS) if self._numbers[place] >= oldest]
        return sum(self._total[place] for place in live), sum(self._failed[place] for place in live)
