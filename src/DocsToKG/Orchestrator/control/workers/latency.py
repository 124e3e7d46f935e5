"""How long jobs took in this instance, for whoever scrapes it.

Knows seconds; does not know jobs, nor HTTP. Promises: safe from any thread, cheap, and of bounded size.
"""

from __future__ import annotations

import threading
from bisect import bisect_left

BUCKETS_S = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)


class Latency:
    """What has ended in this process since it began."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buckets = [0] * (len(BUCKETS_S) + 1)
        self._seconds = 0.0

    def observe(self, seconds: float) -> None:
        """A job took so long, from when it could run to its end."""
        with self._lock:
            self._buckets[bisect_left(BUCKETS_S, max(0.0, seconds))] += 1
            self._seconds += max(0.0, seconds)

    def histogram(self) -> tuple[list[tuple[float, int]], int, float]:
        """How many jobs took at most so long, for each bound; how many there were; how long they took in all."""
        with self._lock:
            buckets, seconds = list(self._buckets), self._seconds
        upto = [(bound, sum(buckets[: place + 1])) for place, bound in enumerate(BUCKETS_S)]
        return upto, sum(buckets), seconds
