"""What the control plane shows of a job. Values only.

Times are Unix seconds of ledger time, so that the same answer is given at any moment and by any instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from DocsToKG.Orchestrator.jobs.eligibility import Why
from DocsToKG.Orchestrator.jobs.status import JobStatus
from DocsToKG.Orchestrator.ledger.base import HistoryRow


@dataclass(frozen=True, slots=True)
class JobView:
    """One job as a list shows it. `state` is the ledger's own word, `status` that of the API.

    `next_eligible_at` is when the job may run: for one whose lane is held back, when the lane opens.
    """

    job_id: int
    artifact_id: str
    tenant: str
    project: str | None
    job_type: str
    source: str | None
    host_key: str | None
    priority: int
    status: JobStatus
    state: str
    stage: str | None
    outcome: str | None
    attempts: int
    max_attempts: int
    fence: int
    worker_id: str | None
    lease_until: float | None
    next_eligible_at: float
    last_error: str | None
    payload_digest: str
    idempotency_key: str | None
    correlation_id: str | None
    trace_context: str | None
    replay_of: int | None
    created_at: float
    updated_at: float
    started_at: float | None
    finished_at: float | None


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some jobs, newest first. A page may be short, even empty, and still name a next one: reading is bounded."""

    jobs: Sequence[JobView]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """What happened to a job, oldest first."""

    rows: Sequence[HistoryRow]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class LeaseSpan:
    """One lease of a job: who had it, from when to when, and how it ended. An open one has no end."""

    worker_id: str
    fence: int
    leased_at: float
    ended_at: float | None
    ended_by: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """How long the job waited before its first lease, how long it was worked on, how long it took in all, in seconds.

    What has not happened yet is None.
    """

    first_wait_s: float | None
    working_s: float
    total_s: float | None
    leases: int
    crashes: int


@dataclass(frozen=True, slots=True)
class JobDetail:
    """All there is to say of one job. `replays` are the copies of it, `replay_chain` what it is a copy of, nearest
    first; `needs` the jobs that it waits for; `history` the last of what happened to it, oldest first."""

    job: JobView
    payload: Mapping[str, Any]
    result: Mapping[str, Any] | None
    leases: Sequence[LeaseSpan]
    metrics: JobMetrics
    history: Sequence[HistoryRow]
    replay_chain: Sequence[int]
    replays: Sequence[int]
    needs: Sequence[int]
    why: Why


def lease_spans(history: Sequence[HistoryRow]) -> list[LeaseSpan]:
    """The leases that a job had, from its history, oldest first."""
    spans: list[LeaseSpan] = []
    for row in history:
        if row.to_state == "in_progress" and row.fence is not None:
            spans.append(LeaseSpan(row.actor, row.fence, row.at, None, None, None))
        elif row.from_state == "in_progress" and spans and spans[-1].ended_at is None:
            last = spans[-1]
            spans[-1] = LeaseSpan(last.worker_id, last.fence, last.leased_at, row.at, row.event, row.reason)
    return spans


def metrics_of(job: JobView, spans: Sequence[LeaseSpan], crashes: int) -> JobMetrics:
    worked = sum(span.ended_at - span.leased_at for span in spans if span.ended_at is not None)
    return JobMetrics(
        first_wait_s=round(spans[0].leased_at - job.created_at, 3) if spans else None,
        working_s=round(worked, 3),
        total_s=None if job.finished_at is None else round(job.finished_at - job.created_at, 3),
        leases=len(spans),
        crashes=crashes,
    )
