"""How many requests a second? The rule of a token bucket, the bucket itself, and the words rates are written in.

`Bucket` is the pure rule, by which the program limits its sources: it holds no state and reads no clock. `TokenBucket`
is one of them with both, for threads. A bucket never sleeps: it grants, or says how long until it could. Refund gives a
token back when the cache answered and no request was sent.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import TypeAlias

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


Memory: TypeAlias = list[float]  # what a rule must remember; its caller keeps it

# A hair of slack: the wait we named must be enough when it is over, whatever rounding did.
HAIR = 1e-9


class Taken(tuple[float, float]):
    """What one start changed: enough to take it back."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class BucketSpec:
    """A token bucket as it is written in a source's settings."""

    capacity: float
    refill_per_sec: float
    burst: float = 0.0


class Bucket:
    """Tokens up to `capacity + burst`, refilled evenly. Remembers the tokens and when they were counted."""

    def __init__(self, spec: BucketSpec, *, factor: float = 1.0, name: str = "b") -> None:
        if spec.capacity <= 0 or spec.refill_per_sec <= 0 or spec.burst < 0:
            raise ValueError("capacity and refill_per_sec must be above zero, burst must not be negative")
        self.name = name
        self._limit = spec.capacity + spec.burst
        self._refill = spec.refill_per_sec * factor

    def wait_s(self, memory: Memory, now: float, amount: float = 1.0) -> float:
        """Seconds until `amount` tokens are there; 0.0 when they are."""
        missing = amount - self._tokens(memory, now)
        return 0.0 if missing <= HAIR else missing / self._refill

    def ready_at(self, memory: Memory, now: float, scale: float = 1.0) -> float:
        return now + self.wait_s(memory, now)

    def take(self, memory: Memory, now: float, scale: float = 1.0, *, amount: float = 1.0) -> Taken:
        memory[:] = [self._tokens(memory, now) - amount, now]
        return Taken((now, now))

    def give_back(self, memory: Memory, taken: Taken, now: float, *, amount: float = 1.0) -> None:
        memory[:] = [min(self._limit, self._tokens(memory, now) + amount), now]

    def _tokens(self, memory: Memory, now: float) -> float:
        if not memory:
            return self._limit
        tokens, at = memory
        return min(self._limit, tokens + max(0.0, now - at) * self._refill)


class TokenBucket:
    """A `Bucket` with its memory and a clock; safe to share between threads."""

    def __init__(
        self, capacity: float, refill_per_sec: float, burst: float = 0.0, *, clock: Clock | None = None
    ) -> None:
        self._rule = Bucket(BucketSpec(capacity, refill_per_sec, burst))
        self._memory: Memory = []
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()

    def consume(self, amount: float = 1.0) -> float:
        """0.0 when granted; otherwise the seconds until it could be, and nothing is taken."""
        with self._lock:
            now = self._clock.monotonic()
            wait_s = self._rule.wait_s(self._memory, now, amount)
            if wait_s == 0.0:
                self._rule.take(self._memory, now, amount=amount)
            return wait_s

    def refund(self, amount: float = 1.0) -> None:
        with self._lock:
            now = self._clock.monotonic()
            self._rule.give_back(self._memory, Taken((now, now)), now, amount=amount)
