"""Jobs for tests of a ledger, whichever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from DocsToKG.Orchestrator.ledger.base import LeasedJob, NewJob
from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger


@pytest.fixture
def enqueue(ledger: DatabaseLedger) -> Callable[..., list[int]]:
    """Enqueue so many jobs; their ids."""

    def enqueue_jobs(count: int = 1, **fields: Any) -> list[int]:
        start = ledger.stats()["total"]
        jobs = [NewJob(f"doi:10.1/{start + n}", {"n": n}, **fields) for n in range(count)]
        return [answer.job_id for answer in ledger.enqueue_many(jobs)]

    return enqueue_jobs


@pytest.fixture
def lease_one(ledger: DatabaseLedger, enqueue: Callable[..., list[int]]) -> Callable[..., LeasedJob]:
    """A new job, leased to a worker."""

    def lease(worker: str = "first", ttl_s: float = 600, **fields: Any) -> LeasedJob:
        enqueue(1, **fields)
        [job] = ledger.lease(worker, 1, ttl_s)
        return job

    return lease
