"""Ledger time: milliseconds that never step back, for all processes that share a ledger.

The mark stored in the ledger is the floor. A process whose clock was set back goes on from the mark at the pace of its
monotonic clock, so that leases still run out and delays still pass. On a server the clock is the database's, since
workers on many machines have clocks that differ.
"""

from __future__ import annotations

import threading

from DocsToKG.core.clock import Clock


class LedgerTime:
    """What time it is for the ledger, as far as this process knows, by its own clock. Safe to share between threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._mark_ms = 0
        self._mark_at = clock.monotonic()

    def now_ms(self, stored_ms: int = 0, database_ms: int = 0) -> int:
        """Now, given the mark and the clock that were read from the database."""
        with self._lock:
            return self._now(stored_ms, database_ms)

    def _now(self, stored_ms: int, database_ms: int) -> int:
        monotonic, onward = self._onward()
        now = max(stored_ms, onward, int(self._clock.now() * 1000))
        if now > onward:
            self._mark_ms, self._mark_at = now, monotonic
        return now

    def _onward(self) -> tuple[float, int]:
        """The monotonic clock, and the time that it makes of our mark."""
        monotonic = self._clock.monotonic()
        return monotonic, self._mark_ms + int((monotonic - self._mark_at) * 1000)

    def reckoning(self) -> tuple[int, int, int | None]:
        """What the database needs to tell the time by itself: our mark, how far we are from it, a time of our own."""
        return 0, 0, self.now_ms()

    def local_s(self, moment_ms: int) -> float:
        """A moment of ledger time as this process's own clock will show it."""
        return self._clock.now() + (moment_ms - self.now_ms()) / 1000


class DatabaseTime(LedgerTime):
    """Ledger time by the database's clock.

    When that was set back, or another server took over whose clock is behind, time goes on from the mark at the pace of
    this process's monotonic clock until the database has caught up.
    """

    def _now(self, stored_ms: int, database_ms: int) -> int:
        monotonic, onward = self._onward()
        if not database_ms:
            return max(onward, stored_ms)
        # Our own pace counts only where the database is behind: else the faster of many clocks would win.
        now = database_ms if database_ms >= max(self._mark_ms, stored_ms) else max(onward, stored_ms)
        self._mark_ms, self._mark_at = now, monotonic
        return now

    def reckoning(self) -> tuple[int, int, int | None]:
        with self._lock:
            return self._mark_ms, self._onward()[1], None
