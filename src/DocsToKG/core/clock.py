"""What time is it?

Knows wall time (for records) and monotonic time (for waiting). Everything that waits or
stamps takes a `Clock`, so that tests move time by hand.
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    """A source of time. `now` is Unix seconds; `monotonic` never steps back."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    # The functions themselves: one paper asks for the time some eighty times.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start: float = 1_750_000_000.0) -> None:
        self._now = start
        self._monotonic = 1_000.0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._now += seconds
        self._monotonic += seconds

    def step(self, seconds: float) -> None:
        """Set the wall time alone, as an administrator or a time server does."""
        self._now += seconds


def utc_iso(timestamp: float) -> str:
    """ISO 8601 in UTC with milliseconds and `Z`, as every record of the project writes it."""
    second = math.floor(timestamp)
    # Rounded to the microsecond as `datetime` does, then cut to the millisecond.
    millis = round((timestamp - second) * 1e6) // 1000
    if millis == 1000:
        second, millis = second + 1, 0
    return f"{_second(second)}.{millis:03d}Z"


@lru_cache(maxsize=256)
def _second(timestamp: int) -> str:
    """Many records are stamped within one second, and writing it out is slow."""
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%S")
