"""How many requests a second? A token bucket, and the words rates are written in.

A bucket never sleeps: it grants, or says how long until it could. Refund gives a token back
when the cache answered and no request was sent.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass

from DocsToKG.core.clock import Clock, SystemClock

_UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_RATE = re.compile(
    r"\s*(?P<amount>\d+(?:\.\d+)?)\s*/\s*(?P<per>\d+(?:\.\d+)?)?\s*(?P<unit>second|minute|hour|day|sec|min|s|m|h|d)s?\s*"
)
_SHORT = {"s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "d": "day"}


@dataclass(frozen=True, slots=True)
class Rate:
    """`amount` requests in `per_s` seconds."""

    amount: float
    per_s: float

    @property
    def per_second(self) -> float:
        return self.amount / self.per_s

    @classmethod
    def parse(cls, text: str) -> Rate:
        """Read `"10/second"`, `"0.33/second"`, `"1/3 seconds"`, `"1000/day"`."""
        match = _RATE.fullmatch(text.lower())
        if match is None:
            raise ValueError(f"{text!r} is not a rate; write an amount per unit, like '10/second' or '1/3 seconds'")
        unit = match["unit"]
        amount, per = float(match["amount"]), float(match["per"] or 1.0)
        if amount <= 0 or per <= 0:
            raise ValueError(f"{text!r}: a rate must be above zero")
        return cls(amount, per * _UNITS[_SHORT.get(unit, unit)])


class TokenBucket:
    """Tokens up to `capacity + burst`, refilled at `refill_per_sec`; safe to share between threads."""

    def __init__(
        self, capacity: float, refill_per_sec: float, burst: float = 0.0, *, clock: Clock | None = None
    ) -> None:
        if capacity <= 0 or refill_per_sec <= 0 or burst < 0:
            raise ValueError("capacity and refill_per_sec must be above zero, burst must not be negative")
        self._clock = clock or SystemClock()
        self._limit = capacity + burst
        self._refill = refill_per_sec
        self._tokens = self._limit
        self._at = self._clock.monotonic()
        self._lock = threading.Lock()

    def consume(self, amount: float = 1.0) -> float:
        """0.0 when granted; otherwise the seconds until it could be, and nothing is taken."""
        with self._lock:
            self._tick()
            # A hair of slack: the wait we named must be enough when it is over, whatever rounding did.
            if self._tokens >= amount - 1e-9:
                self._tokens -= amount
                return 0.0
            return (amount - self._tokens) / self._refill

    def refund(self, amount: float = 1.0) -> None:
        with self._lock:
            self._tick()
            self._tokens = min(self._limit, self._tokens + amount)

    def _tick(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(self._limit, self._tokens + (now - self._at) * self._refill)
        self._at = now
