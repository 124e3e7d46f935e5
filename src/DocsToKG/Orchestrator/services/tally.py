"""Counters and timings of one instance, for whoever scrapes it.

Knows names and numbers; does not know what they mean, nor HTTP. Promises: safe from any thread, cheap, and of bounded
size: the names are ours, and none has a label that a caller could choose.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter

BUCKETS_S = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)

LATENCY = "job_latency_seconds"
FAILURES = "job_failures_total"
RETRIES = "job_retry_total"
EXTENSIONS = "lease_extensions_total"
HEARTBEATS = "pack_run_heartbeats_total"
ARTIFACTS = "pack_run_artifacts_total"
_COUNTERS = (FAILURES, RETRIES, EXTENSIONS, HEARTBEATS, ARTIFACTS)


class Tally:
    """What has happened in this process since it began."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._buckets = [0] * (len(BUCKETS_S) + 1)
        self._seconds = 0.0

    def add(self, name: str, n: int = 1) -> None:
        with self._lock:
            self._counts[name] += n

    def took(self, seconds: float) -> None:
        """A job took so long, from when it could run to its end."""
        with self._lock:
            self._buckets[bisect_left(BUCKETS_S, max(0.0, seconds))] += 1
            self._seconds += max(0.0, seconds)

    def counts(self) -> dict[str, int]:
        with self._lock:
            return {name: self._counts[name] for name in _COUNTERS}

    def latency(self) -> tuple[list[tuple[float, int]], int, float]:
        """How many jobs took at most so long, for each bound; how many there were; how long they took in all."""
        with self._lock:
            buckets, seconds = list(self._buckets), self._seconds
        upto = [(bound, sum(buckets[: place + 1])) for place, bound in enumerate(BUCKETS_S)]
        return upto, sum(buckets), seconds
