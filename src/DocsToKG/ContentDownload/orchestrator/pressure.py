"""How hard the disk finds it to keep up, and how many leases that allows.

Knows seconds per stored file and per recorded end, as moving averages; knows nothing of files. Promises: while things
are kept in good time nothing is held back; however slow the disk, one lease is always allowed, so that it is noticed
when the disk is fast again.
"""

from __future__ import annotations

import threading

_WEIGHT = 0.25  # of the newest in the average: a single slow one is no trouble, four in a row are
SLOW_S = 0.5


class Pressure:
    """`took(kind, seconds)` from any thread."""

    def __init__(self, *, slow_s: float = SLOW_S) -> None:
        self._slow_s = slow_s
        self._lock = threading.Lock()
        self._averages: dict[str, float] = {}

    def took(self, kind: str, seconds: float) -> None:
        with self._lock:
            before = self._averages.get(kind, 0.0)
            self._averages[kind] = before + _WEIGHT * (seconds - before)

    @property
    def seconds(self) -> float:
        """What keeping one thing takes, by the slowest kind."""
        with self._lock:
            return max(self._averages.values(), default=0.0)

    def allowed(self, most: int, *, workers: int) -> int:
        """How many of `most` leases may be held. On a slow disk as many as `workers` need, and fewer the slower."""
        seconds = self.seconds
        if seconds <= self._slow_s:
            return most
        return min(most, max(1, int(2 * workers * self._slow_s / seconds)))

    def words(self) -> str | None:
        """For people who look; None while all is well."""
        with self._lock:
            kind = max(self._averages, key=lambda name: self._averages[name], default=None)
            if kind is None or self._averages[kind] <= self._slow_s:
                return None
            return f"{kind} is slow ({self._averages[kind]:.1f} s each)"
