"""Ledger time on a server: the database's clock, which never steps back for those who use the ledger.

Workers on many machines have clocks that differ, so none of theirs counts. A stored mark is the floor: when the
database's clock was set back, or another server took over whose clock is behind, time goes on from the mark at the pace
of this process's monotonic clock until the database has caught up.
"""

from __future__ import annotations

import threading

from DocsToKG.core.clock import Clock


class DatabaseTime:
    """What time it is for the ledger, as far as this process knows. Safe to share between threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._mark_ms = 0
        self._mark_at = clock.monotonic()

    def now_ms(self, stored_ms: int = 0, database_ms: int = 0) -> int:
        """Now, given the mark and the clock that were read from the database; without them, a reckoning."""
        with self._lock:
            monotonic = self._clock.monotonic()
            onward = self._mark_ms + int((monotonic - self._mark_at) * 1000)
            if not database_ms:
                return max(onward, stored_ms)
            # Our own pace counts only where the database is behind: else the faster of many clocks would win.
            now = database_ms if database_ms >= max(self._mark_ms, stored_ms) else max(onward, stored_ms)
            self._mark_ms, self._mark_at = now, monotonic
            return now

    def reckoning(self) -> tuple[int, int, int | None]:
        """What the database needs to tell the time by itself: our mark, how far we are from it, a time of our own."""
        with self._lock:
            return self._mark_ms, self._mark_ms + int((self._clock.monotonic() - self._mark_at) * 1000), None

    def local_s(self, moment_ms: int) -> float:
        """A moment of ledger time as this process's own clock will show it."""
        return self._clock.now() + (moment_ms - self.now_ms()) / 1000


class ClockTime(DatabaseTime):
    """Ledger time by a clock that the caller holds: for tests, where the database's cannot be moved."""

    def now_ms(self, stored_ms: int = 0, database_ms: int = 0) -> int:
        with self._lock:
            monotonic = self._clock.monotonic()
            onward = self._mark_ms + int((monotonic - self._mark_at) * 1000)
            now = max(stored_ms, onward, int(self._clock.now() * 1000))
            if now > onward:
                self._mark_ms, self._mark_at = now, monotonic
            return now

    def reckoning(self) -> tuple[int, int, int | None]:
        return 0, 0, self.now_ms()
