"""What time is it?

Knows wall time (for records) and monotonic time (for waiting). Everything that waits or
stamps takes a `Clock`, so that tests move time by hand.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    """A source of time. `now` is Unix seconds; `monotonic` never steps back."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...

    async def sleep_until(self, moment: float) -> None:
        """Return once `monotonic` has reached `moment`."""
        ...


class SystemClock:
    """The machine's clock."""

    # The functions themselves: one paper asks for the time some eighty times.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    async def sleep_until(self, moment: float) -> None:
        left_s = moment - time.monotonic()
        if left_s > 0:
            await asyncio.sleep(left_s)


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start: float = 1_750_000_000.0) -> None:
        self._now = start
        self._monotonic = 1_000.0
        self._lock = threading.Lock()
        self._sleepers: list[tuple[float, asyncio.AbstractEventLoop, asyncio.Event]] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Move the time; from any thread."""
        with self._lock:
            self._now += seconds
            self._monotonic += seconds
            due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self._monotonic]
            self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self._monotonic]
        for _, loop, woken in due:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody sleeps there any more
                loop.call_soon_threadsafe(woken.set)

    async def sleep_until(self, moment: float) -> None:
        woken = asyncio.Event()
        with self._lock:
            if moment <= self._monotonic:
                return
            self._sleepers.append((moment, asyncio.get_running_loop(), woken))
        await woken.wait()

    @property
    def next_wake(self) -> float | None:
        """The earliest moment that somebody sleeps until."""
        with self._lock:
            return min((moment for moment, _, _ in self._sleepers), default=None)

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
