"""What time is it?

Knows wall time (for records) and monotonic time (for waiting). Everything that waits or
stamps takes a `Clock`, so that tests move time by hand.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time. `now` is Unix seconds; `monotonic` never steps back."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


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


def utc_iso(timestamp: float) -> str:
    """ISO 8601 in UTC with milliseconds and `Z`, as every record of the project writes it."""
    moment = datetime.fromtimestamp(timestamp, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
