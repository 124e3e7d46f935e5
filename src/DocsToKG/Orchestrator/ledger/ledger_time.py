"""Ledger time: milliseconds that never step back, for all processes that share a ledger.

The mark stored in the ledger is the floor. A process whose clock was set back goes on from the
mark at the pace of its monotonic clock, so that leases still run out and delays still pass.
"""

from __future__ import annotations

import threading

from DocsToKG.core.clock import Clock


class LedgerTime:
    """What time it is for the ledger, as far as this process knows."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._mark_ms = 0
        self._mark_at = clock.monotonic()

    def now_ms(self, stored_ms: int = 0) -> int:
        """Now, given the mark that was read from the ledger."""
        with self._lock:
            monotonic = self._clock.monotonic()
            onward = self._mark_ms + int((monotonic - self._mark_at) * 1000)
            now = max(stored_ms, onward, int(self._clock.now() * 1000))
            if now > onward:
                self._mark_ms, self._mark_at = now, monotonic
            return now

    def local_s(self, moment_ms: int) -> float:
        """A moment of ledger time as this process's own clock will show it."""
        return self._clock.now() + (moment_ms - self.now_ms()) / 1000
