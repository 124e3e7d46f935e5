"""Views and SQL of leases for workers without a database.

The functions that take a transaction run inside one of the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from DocsToKG.Orchestrator.jobs.retry import job_backoff_s
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import LeasedJob
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.views import Digest, SignedView, Timestamp, View

RETRY_BASE_S = 60.0
_LEASE_ID = re.compile(r"lease_[0-9a-f]{32}_([1-9][0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class RetryHints(View):
    """How a try that fails comes again: this is the try of that number out of so many, and the next one waits."""

    attempt: int
    max_attempts: int
    backoff_s: float


@dataclass(frozen=True, slots=True)
class Provenance(View):
    tenant: str
    project: str | None
    correlation_id: str | None
    task_runner_id: str


@dataclass(frozen=True, slots=True)
class Instrumentation(View):
    """The trace context for the worker's spans. `waitTold` is true where the service records the span of the wait."""

    traceparent: str | None
    wait_told: bool = False


@dataclass(frozen=True, slots=True)
class JobLease(SignedView):
    """A job with the right to work on it until `leaseUntil`, unless renewed; `renewSeconds` is how often to renew."""

    lease_id: str
    lease_until: Timestamp
    fence: int
    job_id: int
    artifact_id: str
    job_type: str
    payload: Mapping[str, Any]
    payload_digest: Digest
    idempotency_key: str
    priority: int
    source: str | None
    host_key: str | None
    resolver_hint: str | None
    replay_of: int | None
    renew_s: float
    waited_s: float
    retry: RetryHints
    provenance: Provenance
    instrumentation: Instrumentation


@dataclass(frozen=True, slots=True)
class Renewal(View):
    """What became of a lease. A worker drops the job of one that is not `held`; `canceled` comes with the reason."""

    lease_id: str
    state: Literal["held", "lost", "canceled"]
    lease_until: Timestamp | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Completion(View):
    """Where the job is now; one that comes again says when. `tookSeconds` is from when the job could run to its end.
    `leases` are the next jobs, where some were asked for."""

    job_id: int
    state: JobState
    status: str
    retried: bool
    next_eligible_at: Timestamp | None
    took_s: float | None
    leases: Sequence[JobLease] = ()


def job_id_of(lease_id: str) -> int:
    """The job that a lease is for: its number ends the id."""
    found = _LEASE_ID.fullmatch(lease_id)
    return min(int(found[1]), 2**62) if found else 0


def renew(tx: ControlTx, tenant: str, lease_ids: Sequence[str], ttl_ms: int, worker_id: str | None) -> list[Renewal]:
    until = tx.now_ms + ttl_ms
    told: dict[str, Renewal] = {}
    for lease_id in dict.fromkeys(lease_ids):
        values = {"id": job_id_of(lease_id), "lease": lease_id, "tenant": tenant, "until": until, "now": tx.now_ms}
        rows = tx.execute(
            "UPDATE jobs SET lease_until = CASE WHEN lease_until > :until THEN lease_until ELSE :until END,"
            " updated_at = :now WHERE id = :id AND lease_id = :lease AND tenant = :tenant AND state = 'in_progress'"
            " AND lease_until > :now RETURNING lease_until, worker_id",
            values,
        )
        if rows:
            told[lease_id] = Renewal(lease_id, "held", rows[0][0] / 1000)
            worker_id = worker_id or rows[0][1]
        else:
            told[lease_id] = _ended(tx, tenant, lease_id)
    held = sum(renewal.state == "held" for renewal in told.values())
    if held:
        tx.note(tenant, event="renewed", actor=worker_id or "worker", detail={"leases": held})
    return [told[lease_id] for lease_id in lease_ids]


def _ended(tx: ControlTx, tenant: str, lease_id: str) -> Renewal:
    """A canceled job has no lease any more; its former worker is told so, and why."""
    rows = tx.execute(
        "SELECT last_error FROM jobs WHERE id = :id AND tenant = :tenant AND state = 'canceled' AND lease_id IS NULL",
        {"id": job_id_of(lease_id), "tenant": tenant},
    )
    return Renewal(lease_id, "canceled", reason=rows[0][0]) if rows else Renewal(lease_id, "lost")


def write_progress(tx: ControlTx, values: Mapping[str, Any]) -> bool:
    return bool(
        tx.execute(
            "UPDATE jobs SET stage = :stage, result_json = :result, updated_at = :now,"
            " started_at = coalesce(started_at, :now)"
            " WHERE id = :id AND lease_id = :lease AND state = 'in_progress' RETURNING id",
            {**values, "now": tx.now_ms},
        )
    )


def shown(job: LeasedJob, worker: str, ttl_s: float) -> JobLease:
    attempt = job.attempts + 1
    return JobLease(
        lease_id=job.lease_id,
        lease_until=job.lease_until,
        fence=job.fence,
        job_id=job.job_id,
        artifact_id=job.artifact_id,
        job_type=job.job_type,
        payload=job.payload,
        payload_digest=job.payload_digest,
        idempotency_key=job.idempotency_key or f"job-{job.job_id}-{job.payload_digest[:16]}",
        priority=job.priority,
        retry=RetryHints(
            attempt, job.max_attempts, job_backoff_s(attempt, base_s=RETRY_BASE_S, jitter_s=0, random=_zero)
        ),
        renew_s=round(ttl_s / 10, 3),
        source=job.source,
        host_key=job.host_key,
        resolver_hint=job.resolver_hint,
        replay_of=job.replay_of,
        waited_s=round(job.waited_s, 3),
        provenance=Provenance(job.tenant, job.project, job.correlation_id, worker),
        instrumentation=Instrumentation(job.trace_context),
    )


def _zero() -> float:
    return 0.0
