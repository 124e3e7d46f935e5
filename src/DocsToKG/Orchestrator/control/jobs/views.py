"""Views of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from DocsToKG.core.digest import sha256_hex
from DocsToKG.Orchestrator.jobs.eligibility import Why
from DocsToKG.Orchestrator.jobs.status import JobStatus
from DocsToKG.Orchestrator.ledger.base import HistoryRow
from DocsToKG.Orchestrator.views import Digest, SignedView, Timestamp, View, json_names


@dataclass(frozen=True, slots=True)
class JobView(SignedView):
    """One job. `status` is one of seven words, `state` is the ledger's own. There is one job per tenant, type and
    `artifactId`. `fence` grows with every lease; a worker with an older one is refused. `nextEligibleAt` is when the
    job may run, as far as is known. `jobDigest` covers what never changes of the job, as in an audit bundle."""

    __pydantic_config__ = json_names(job_id="id")

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
    lease_until: Timestamp | None
    next_eligible_at: Timestamp
    last_error: str | None
    payload_digest: Digest
    idempotency_key: str | None
    correlation_id: str | None
    trace_context: str | None
    replay_of: int | None
    created_at: Timestamp
    updated_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    job_digest: str


@dataclass(frozen=True, slots=True)
class JobPage(View):
    """Jobs, newest first. A page may be short, even empty, and still name a next one: reading is bounded."""

    jobs: Sequence[JobView]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class HistoryPage(View):
    """What happened to a job, oldest first."""

    events: Sequence[HistoryRow]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class LeaseSpan(View):
    """One lease of a job: who had it, from when to when, and how it ended. An open one has no end."""

    worker_id: str
    fence: int
    leased_at: Timestamp
    ended_at: Timestamp | None
    ended_by: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class JobMetrics(View):
    """How long the job waited before its first lease, how long it was worked on, how long it took in all, in seconds.

    What has not happened yet is None.
    """

    first_wait_s: float | None
    working_s: float
    total_s: float | None
    leases: int
    crashes: int


@dataclass(frozen=True, slots=True)
class JobDetail(JobView):
    """All there is to say of one job. `result` is what the worker reported. `replays` are the copies of the job,
    `replayChain` the jobs that it is a copy of, nearest first; `dependencies` the jobs that it waits for; `history`
    the last events of the job, oldest first."""

    payload: Mapping[str, Any]
    result: Mapping[str, Any] | None
    lease_history: Sequence[LeaseSpan]
    metrics: JobMetrics
    history: Sequence[HistoryRow]
    replay_chain: Sequence[int]
    replays: Sequence[int]
    dependencies: Sequence[int]
    why: Why


def job_digest(job: Mapping[str, Any]) -> str:
    """The digest over what never changes of a job, so that an API response and an audit bundle can be compared."""
    names = ("jobId", "tenant", "project", "jobType", "artifactId", "payloadDigest", "replayOf", "createdAt")
    return "sha256:" + sha256_hex(orjson.dumps({name: job[name] for name in names}, option=orjson.OPT_SORT_KEYS))


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
