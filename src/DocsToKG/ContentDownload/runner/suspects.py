"""The side of a process that tries suspects alone: what it leases, and how many at a time.

Knows the ledger's suspects; does not know who watches this process. Promises: one job at a time and no other kind; it
says so when there has been none for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, LeasedJob
from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger

_IDLE_S = 2.0


class Suspects:
    """Leases the suspects of a ledger. `when_idle` is told once none has been due for a while."""

    def __init__(
        self,
        ledger: DatabaseLedger,
        worker_id: str,
        cfg: ContentDownloadConfig,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.when_idle: Callable[[], None] = lambda: None
        self._ledger = ledger
        self._worker_id = worker_id
        self._ttl_s = float(cfg.orchestrator.lease_ttl_seconds)
        self._monotonic = monotonic
        self._last_at = monotonic()

    def lease(self, room: int) -> list[LeasedJob]:
        """At most one job, however much room there is."""
        jobs = self._ledger.lease_suspect(self._worker_id, self._ttl_s, job_type=DEFAULT_JOB_TYPE)
        if jobs:
            self._last_at = self._monotonic()
        elif self._monotonic() - self._last_at > _IDLE_S:
            self.when_idle()
        return jobs


def one_at_a_time(cfg: ContentDownloadConfig) -> ContentDownloadConfig:
    """The settings for a process that holds one lease and works on nothing beside."""
    alone = {"processes": 1, "max_workers": 1, "lookahead": 1}
    return cfg.model_copy(update={"orchestrator": cfg.orchestrator.model_copy(update=alone)})
