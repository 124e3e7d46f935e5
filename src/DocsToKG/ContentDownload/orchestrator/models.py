"""The shapes of a queued job as this package's callers see them.

The states are the ledger's own. Times in these shapes are ISO 8601 in UTC, as in the `jobs_v1` view.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import JobRecord, LeasedJob

__all__ = ["Job", "JobState", "LeasedJobDict", "Result"]


@dataclass(frozen=True, slots=True)
class Job:
    """One job, with exactly the columns of `jobs_v1`."""

    id: int
    artifact_id: str
    artifact_json: str
    state: JobState
    attempts: int
    last_error: str | None
    resolver_hint: str | None
    created_at: str
    updated_at: str
    lease_expires_at: str | None
    worker_id: str | None

    @classmethod
    def from_record(cls, record: JobRecord) -> Job:
        return cls(
            id=record.job_id,
            artifact_id=record.artifact_id,
            artifact_json=record.artifact_json,
            state=record.state,
            attempts=record.attempts,
            last_error=record.last_error,
            resolver_hint=record.resolver_hint,
            created_at=utc_iso(record.created_at),
            updated_at=utc_iso(record.updated_at),
            lease_expires_at=None if record.lease_until is None else utc_iso(record.lease_until),
            worker_id=record.worker_id,
        )


@dataclass(frozen=True, slots=True)
class Result:
    """How a worker's try at a job ended: the state to acknowledge, or a failure to be tried again."""

    state: JobState
    last_error: str | None = None
    retryable: bool = False


class LeasedJobDict(TypedDict):
    """What `WorkQueue.lease` gives: the job, and the `fence` and `lease_id` that prove who owns it."""

    id: int
    artifact_id: str
    artifact_json: str
    state: str
    attempts: int
    max_attempts: int
    priority: int
    resolver_hint: str | None
    host_key: str | None
    worker_id: str
    lease_expires_at: str
    fence: int
    lease_id: str


def leased_job_dict(job: LeasedJob, worker_id: str) -> LeasedJobDict:
    return LeasedJobDict(
        id=job.job_id,
        artifact_id=job.artifact_id,
        artifact_json=job.artifact_json,
        state=JobState.IN_PROGRESS.value,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        priority=job.priority,
        resolver_hint=job.resolver_hint,
        host_key=job.host_key,
        worker_id=worker_id,
        lease_expires_at=utc_iso(job.lease_until),
        fence=job.fence,
        lease_id=job.lease_id,
    )
