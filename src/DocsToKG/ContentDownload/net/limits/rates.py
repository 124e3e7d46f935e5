"""When may the next request start? Three pure rules over monotonic numbers.

`Spacing` keeps an even flow with a bounded burst (GCRA), `Quota` counts a long window, `Bucket` is the token bucket
of `core.bucket`.
A rule holds no state: what it must remember is a list of numbers that its caller keeps, in memory or in a file that
processes share. None of them waits, locks or reads a clock.
Promises: over any window at most rate x window + burst starts; with burst 1 no gap below the interval.
"""

from __future__ import annotations

import math
from typing import Protocol

from DocsToKG.core.bucket import Bucket, BucketSpec, Memory, Rate, Taken

__all__ = ["GCRA", "Bucket", "BucketSpec", "Memory", "Quota", "RateRule", "Taken", "rate_rule"]

# An operator who writes "1000/day" means an allowance, not one request every 86 seconds.
_LONGEST_SPACING_S = 60.0
# A larger allowance is remembered in this many grains of time, so that its memory stays small.
_GRAINS = 64


class RateRule(Protocol):
    """One rule of how often. `scale` below 1 slows it down."""

    @property
    def name(self) -> str:
        """Under which its memory is kept: the same for every process that knows the same rule."""

    def ready_at(self, memory: Memory, now: float, scale: float = 1.0) -> float:
        """The earliest time for the next start; `now` or before when it may go at once."""

    def take(self, memory: Memory, now: float, scale: float = 1.0) -> Taken:
        """Count one start."""

    def give_back(self, memory: Memory, taken: Taken, now: float) -> None:
        """Take a start back, when nothing was sent after all."""


class GCRA:
    """At most `burst` at once, then one per `interval_s` (generic cell rate algorithm). Remembers the next arrival."""

    def __init__(self, interval_s: float, burst: float = 1.0, *, name: str = "s") -> None:
        self.name = name
        self.interval_s = interval_s
        self.burst = burst
        self._tolerance = (max(1.0, burst) - 1.0) * interval_s

    def ready_at(self, memory: Memory, now: float, scale: float = 1.0) -> float:
        return max(now, memory[0] - self._tolerance / scale) if memory else now

    def take(self, memory: Memory, now: float, scale: float = 1.0) -> Taken:
        before = memory[0] if memory else -math.inf
        memory[:] = [max(now, before) + self.interval_s / scale]
        return Taken((before, memory[0]))

    def give_back(self, memory: Memory, taken: Taken, now: float) -> None:
        before, after = taken
        # With a later start on top, going back could let two starts come too close; the token is then lost.
        if memory and memory[0] == after:
            memory[:] = [before] if before > -math.inf else []


class Quota:
    """At most `amount` in any `window_s`. Remembers runs of starts: the first, the last and how many.

    A run counts until its last start has left the window, so the promise holds exactly; a large allowance only
    comes back in grains.
    """

    def __init__(self, amount: float, window_s: float, *, name: str = "q") -> None:
        self.name = f"{name}:{window_s:g}"
        self._amount = amount
        self._window_s = window_s
        self._grain_s = window_s / _GRAINS if amount > _GRAINS else 0.0

    def ready_at(self, memory: Memory, now: float, scale: float = 1.0) -> float:
        while memory and memory[1] <= now - self._window_s:
            del memory[:3]
        left = sum(memory[2::3]) - max(1, math.floor(self._amount * scale))
        if left < 0:
            return now
        for last, count in zip(memory[1::3], memory[2::3], strict=True):
            left -= count
            if left < 0:
                return last + self._window_s
        return now

    def take(self, memory: Memory, now: float, scale: float = 1.0) -> Taken:
        if memory and now - memory[-3] < self._grain_s:
            memory[-2] = now
            memory[-1] += 1
        else:
            memory += [now, now, 1]
        return Taken((now, now))

    def give_back(self, memory: Memory, taken: Taken, now: float) -> None:
        for at in range(len(memory) - 3, -1, -3):
            if memory[at] <= taken[0] <= memory[at + 1]:
                memory[at + 2] -= 1
                if memory[at + 2] <= 0:
                    del memory[at : at + 3]
                return


def rate_rule(rate: Rate | BucketSpec, *, burst: float, factor: float, name: str) -> RateRule:
    """A rate over at most a minute is a spacing; over a longer time it is a quota."""
    if isinstance(rate, BucketSpec):
        return Bucket(rate, factor=factor, name=f"b:{name}")
    if rate.per_s > _LONGEST_SPACING_S:
        return Quota(rate.amount * factor, rate.per_s, name=f"q:{name}")
    return GCRA(1.0 / (rate.per_second * factor), burst, name=f"s:{name}")
