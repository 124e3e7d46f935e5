"""What was asked of each host and how it answered, for whoever watches the run from outside.

Knows sources, hosts and counts; not where they are told. Promises:
a few additions for each request; a bounded number of hosts, beyond which new ones count for their source alone; the
changes of breakers are kept in their order until they are taken, the latest of them where there are too many.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from DocsToKG.ContentDownload.api.types import Attempt, DownloadOutcome
from DocsToKG.ContentDownload.telemetry.attempts import SENT
from DocsToKG.ContentDownload.telemetry.events import JobEnd, Listener
from DocsToKG.Orchestrator.ledger.base import LeasedJob

_MOST = 400
_MOST_CHANGES = 200
Place = tuple[str, str]  # source, host


@dataclass(slots=True)
class HostCounts:
    """Since they were last taken. `refused` are answers 429."""

    requests: int = 0
    answered: int = 0
    refused: int = 0
    failed: int = 0
    works: int = 0
    bytes: int = 0
    last_status: int | None = None


class BreakerChange(NamedTuple):
    """A breaker became `state` at a moment of the monotonic clock, for so long where that is known."""

    key: str
    state: str
    why: str
    for_s: float | None
    at: float


class HostTally(Listener):
    """Counts by source and host, from any thread."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._changes: deque[BreakerChange] = deque(maxlen=_MOST_CHANGES)
        self._lock = threading.Lock()
        self._counts: dict[Place, HostCounts] = {}

    def attempt(self, attempt: Attempt) -> None:
        sent, size = attempt.status in SENT, attempt.bytes_written or 0
        if not (sent or size) or (attempt.from_cache and not attempt.revalidated):
            return
        status = attempt.http_status
        with self._lock:
            place = (attempt.resolver, attempt.host or "")
            counts = self._counts.get(place) or self._of(*place)
            counts.bytes += size
            if sent:
                counts.requests += 1
                if status is None or status >= 500:
                    counts.failed += 1
                elif status == 429:
                    counts.refused += 1
                else:
                    counts.answered += 1
                counts.last_status = status if status is not None else counts.last_status

    def breaker_transition(self, key: str, old_state: str, new_state: str, **change: Any) -> None:
        """A source whose breaker changed is news, also where it has obtained nothing yet."""
        kind, _, source = key.partition(":")
        why, for_s = str(change.get("reason") or ""), change.get("reset_timeout_s")
        with self._lock:
            self._changes.append(BreakerChange(key, new_state, why, for_s, self.monotonic()))
            if kind == "resolver":
                self._of(source, "")

    def on_job_end(
        self, job: LeasedJob, end: JobEnd, reason: str | None = None, outcome: DownloadOutcome | None = None
    ) -> None:
        """A work ended; where it was obtained, its source has one more."""
        source = outcome.meta.get("resolver") if outcome is not None and outcome.ok and end.is_final else None
        if source:
            with self._lock:
                self._of(str(source), "").works += 1

    def take(self) -> dict[Place, HostCounts]:
        """What was counted since the last call."""
        with self._lock:
            taken, self._counts = self._counts, {}
            return taken

    def take_changes(self) -> list[BreakerChange]:
        """How breakers changed since the last call, in order."""
        with self._lock:
            taken = list(self._changes)
            self._changes.clear()
            return taken

    def put_back(self, changes: Sequence[BreakerChange]) -> None:
        """These were not told after all; they come before what has happened since."""
        with self._lock:
            room = _MOST_CHANGES - len(self._changes)
            self._changes.extendleft(reversed(changes[max(0, len(changes) - room) :]))

    def _of(self, source: str, host: str) -> HostCounts:
        counts = self._counts.get((source, host))
        if counts is None:
            place = (source, host if len(self._counts) < _MOST else "")
            counts = self._counts.setdefault(place, HostCounts())
        return counts
