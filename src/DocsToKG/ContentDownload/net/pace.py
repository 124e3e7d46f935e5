"""When may the next request start? Three pure rules over monotonic numbers.

`Spacing` keeps an even flow with a bounded burst (GCRA), `Quota` counts a long window exactly,
`Bucket` is the shared token bucket. None of them waits, locks or reads a clock.
Promises: over any window at most rate x window + burst starts; with burst 1 no gap below the interval.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from DocsToKG.core.bucket import Rate, TokenBucket
from DocsToKG.core.clock import Clock

# An operator who writes "1000/day" means an allowance, not one request every 86 seconds.
_LONGEST_SPACING_S = 60.0
_MOST_REMEMBERED = 200_000

Undo: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class BucketSpec:
    """A token bucket as it is written in a source's settings."""

    capacity: float
    refill_per_sec: float
    burst: float = 0.0


class Pace(Protocol):
    """One rule of how often."""

    def ready_at(self, now: float) -> float:
        """The earliest time for the next start; `now` or before when it may go at once."""

    def take(self, now: float) -> Undo:
        """Count one start. The answer takes it back, when nothing was sent after all."""


class Spacing:
    """At most `burst` at once, then one per `interval_s` (generic cell rate algorithm)."""

    def __init__(self, interval_s: float, burst: float = 1.0) -> None:
        self.interval_s = interval_s
        self._tolerance = (max(1.0, burst) - 1.0) * interval_s
        self._arrival = -math.inf
        self._last: object | None = None

    def ready_at(self, now: float) -> float:
        return max(now, self._arrival - self._tolerance)

    def take(self, now: float) -> Undo:
        before, last, mine = self._arrival, self._last, object()
        self._arrival = max(now, before) + self.interval_s
        self._last = mine

        def undo() -> None:
            # With a later start on top, going back could let two starts come too close; the token is then lost.
            if self._last is mine:
                self._arrival, self._last = before, last

        return undo


class Quota:
    """At most `amount` in any `window_s`, counted exactly."""

    def __init__(self, amount: float, window_s: float) -> None:
        self._amount = max(1, min(_MOST_REMEMBERED, math.floor(amount)))
        self._window_s = window_s
        self._starts: deque[float] = deque()

    def ready_at(self, now: float) -> float:
        while self._starts and self._starts[0] <= now - self._window_s:
            self._starts.popleft()
        if len(self._starts) < self._amount:
            return now
        return self._starts[len(self._starts) - self._amount] + self._window_s

    def take(self, now: float) -> Undo:
        self._starts.append(now)
        return lambda: self._forget(now)

    def _forget(self, start: float) -> None:
        if start in self._starts:
            self._starts.remove(start)


class Bucket:
    """A token bucket seen as a pace."""

    def __init__(self, bucket: TokenBucket) -> None:
        self._bucket = bucket

    def ready_at(self, now: float) -> float:
        wait_s = self._bucket.consume()
        if wait_s == 0.0:
            self._bucket.refund()
        return now + wait_s

    def take(self, now: float) -> Undo:
        self._bucket.consume()
        return self._bucket.refund


def pace_of(rate: Rate, *, burst: float, factor: float) -> Pace:
    """A rate over at most a minute is a spacing; over a longer time it is a quota."""
    if rate.per_s > _LONGEST_SPACING_S:
        return Quota(rate.amount * factor, rate.per_s)
    return Spacing(1.0 / (rate.per_second * factor), burst)


def bucket_of(spec: BucketSpec, *, factor: float, clock: Clock) -> Pace:
    return Bucket(TokenBucket(spec.capacity, spec.refill_per_sec * factor, spec.burst, clock=clock))
