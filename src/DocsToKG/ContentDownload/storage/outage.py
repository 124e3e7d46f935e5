"""A place that takes no files for a while: left alone, looked at now and then, by one thread at a time.

Knows when it failed and how long to leave it alone, twice as long each time it is looked at in vain, or looks well and
then takes no file all the same. Does not know what the place is. Promises: nobody is told to wait once somebody has
seen that it takes files again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import NamedTuple


class Hold(NamedTuple):
    """Do not come before so many seconds are over."""

    seconds: float
    why: str


class Outage:
    """`look` asks the place, and says what is still wrong with it, or None."""

    def __init__(
        self,
        look: Callable[[], str | None],
        *,
        first_s: float = 1.0,
        longest_s: float = 30.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._first_s = self._pause_s = first_s
        self._longest_s = longest_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._why: str | None = None
        self._until = 0.0
        self._well_at = -math.inf  # when it last looked well, and no file has been taken since

    def begin(self, why: str) -> bool:
        """It took no file; whether that is news."""
        with self._lock:
            is_new, self._why = self._why is None, why
            if is_new:
                now = self._monotonic()
                # Each file that is fetched for nothing has cost its host an answer.
                if now - self._well_at > 2 * self._longest_s:
                    self._pause_s = self._first_s
                self._until = now + self._pause_s
            return is_new

    def end(self) -> None:
        """It took one."""
        self._why, self._well_at = None, -math.inf

    def hold(self) -> Hold | None:
        """None when files are taken, as far as is known; asks the place when it was left alone for long enough."""
        if self._why is None:
            return None
        if self._until <= self._monotonic() and self._looking.acquire(blocking=False):
            try:
                self._ask()
            finally:
                self._looking.release()
        with self._lock:
            why = self._why
            return None if why is None else Hold(max(self._first_s / 2, self._until - self._monotonic()), why)

    def _ask(self) -> None:
        why = self._look()
        with self._lock:
            self._why = why
            if why is None:
                self._well_at = self._monotonic()
            self._pause_s = min(2 * self._pause_s, self._longest_s)
            self._until = self._monotonic() + self._pause_s
