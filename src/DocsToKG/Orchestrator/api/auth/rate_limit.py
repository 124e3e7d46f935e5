"""Rate limits of callers: one token bucket per bearer token, in this process.

Promises: callers do not share buckets, and memory is bounded however many callers there are.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass

from DocsToKG.core.clock import Clock, SystemClock

_MAX_CALLERS = 10_000


@dataclass(slots=True)
class _Level:
    tokens: float
    at: float


@dataclass(frozen=True, slots=True)
class RateLimitState:
    """The bucket of a caller. `wait_s` is 0 when the request may go on; `reset_at` is when the bucket is full."""

    limit: int
    remaining: int
    reset_at: int
    wait_s: float

    def headers(self) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset_at),
        }


class RateLimiter:
    """`per_second` requests steadily and `burst` at once, for each key."""

    def __init__(self, *, per_second: float, burst: int, clock: Clock | None = None) -> None:
        self._per_second, self._burst = per_second, burst
        self._clock = clock or SystemClock()
        self._levels: OrderedDict[str, _Level] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many keys are remembered."""
        return len(self._levels)

    def take(self, key: str) -> RateLimitState:
        now = self._clock.monotonic()
        with self._lock:
            level = self._levels.pop(key, None) or _Level(float(self._burst), now)
            level.tokens = min(float(self._burst), level.tokens + (now - level.at) * self._per_second)
            level.at = now
            wait_s = 0.0 if level.tokens >= 1 else (1 - level.tokens) / self._per_second
            if wait_s == 0.0:
                level.tokens -= 1
            self._levels[key] = level  # the one asked for last stands last
            if len(self._levels) > _MAX_CALLERS:
                self._levels.popitem(last=False)
            left = level.tokens
        full_in_s = (self._burst - left) / self._per_second
        return RateLimitState(self._burst, int(left), math.ceil(self._clock.now() + full_in_s), wait_s)
