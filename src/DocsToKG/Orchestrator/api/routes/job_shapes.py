"""How jobs look from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, get_args, get_type_hints

import orjson
from pydantic import Field, computed_field

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.api.routing import RawJson
from DocsToKG.Orchestrator.api.schemas import (
    Digest,
    Explained,
    Given,
    JobId,
    Moment,
    Name,
    Page,
    Shown,
    Signature,
    Text,
)
from DocsToKG.Orchestrator.audit.layout import job_digest
from DocsToKG.Orchestrator.control.jobs.views import JobDetail, JobPage, JobView
from DocsToKG.Orchestrator.jobs.eligibility import Why
from DocsToKG.Orchestrator.jobs.status import JobStatus
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, HistoryRow
from DocsToKG.Orchestrator.tracing import TRACEPARENT

MAX_BULK = 500
MAX_DEPENDENCIES = 100


class JobShown(Shown):
    """One job. `status` is one of seven words; `state` is the ledger's own."""

    job_id: int = Field(serialization_alias="id")
    artifact_id: str = Field(description="What the job is about; one job per tenant, type and artifact.")
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
    fence: int = Field(description="Grows with every lease; a worker with an older one is refused.")
    worker_id: str | None
    lease_until: Moment | None
    next_eligible_at: Moment = Field(description="When it may run, as far as is known.")
    last_error: str | None
    payload_digest: Digest
    idempotency_key: str | None
    correlation_id: str | None
    trace_context: str | None
    replay_of: int | None
    created_at: Moment
    updated_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    signatures: list[Signature] = Field(default=[], description="DSSE signatures, where the ledger signs.")

    @computed_field(description="Over what never changes of the job; the same in an audit bundle.")  # type: ignore[prop-decorator]
    @property
    def job_digest(self) -> Digest:
        fixed = {
            "jobId": self.job_id, "tenant": self.tenant, "project": self.project, "jobType": self.job_type,
            "artifactId": self.artifact_id, "payloadDigest": self.payload_digest, "replayOf": self.replay_of,
            "createdAt": self.created_at,
        }  # fmt: skip
        return job_digest(fixed)


class JobList(Page):
    """Jobs, newest first."""

    jobs: list[JobShown]


class LeaseSpanShown(Shown):
    worker_id: str
    fence: int
    leased_at: Moment
    ended_at: Moment | None
    ended_by: str | None
    reason: str | None


class JobMetricsShown(Shown):
    first_wait_s: float | None = Field(serialization_alias="firstWaitSeconds")
    working_s: float = Field(serialization_alias="workingSeconds")
    total_s: float | None = Field(serialization_alias="totalSeconds")
    leases: int
    crashes: int


class WhyShown(Shown):
    """What keeps a job from running, in a word and in a sentence; `at` is when it may, if that is known."""

    job_id: int
    state: str
    reason: str
    detail: str
    at: Moment | None
    host: str | None


class HistoryRowShown(Shown):
    """One link of the hash-chained history."""

    seq: int
    job_id: int | None
    at: Moment
    event: str
    from_state: str | None
    to_state: str | None
    fence: int | None
    attempts: int | None
    actor: str
    reason: str | None
    ticket: str | None
    shard: int
    link: int
    prev_hash: str
    hash: str


class JobDetailShown(JobShown):
    """All there is to say of one job."""

    payload: dict[str, Any]
    result: dict[str, Any] | None = Field(description="What the worker reported.")
    lease_history: list[LeaseSpanShown]
    metrics: JobMetricsShown
    history: list[HistoryRowShown] = Field(description="The last of what happened, oldest first.")
    replay_chain: list[int]
    replays: list[int]
    dependencies: list[int]
    why: WhyShown


class HistoryList(Page):
    """What happened, first to last."""

    events: list[HistoryRowShown]


class JobRequest(Given):
    """A job to put on the ledger. The same artifact, or the same key, is never put there twice."""

    payload: dict[str, Any] = Field(examples=[{"doi": "10.1371/journal.pone.0000217"}])
    job_type: Name = DEFAULT_JOB_TYPE
    artifact_id: Text | None = Field(default=None, description="Default: the idempotency key, or a new name.")
    tenant: Name | None = Field(default=None, description="Must be the tenant of the call, where it is given.")
    project: Text | None = None
    source: Text | None = None
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 3
    delay_seconds: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    payload_digest: Annotated[str, Field(pattern=r"^(sha256:)?[0-9a-f]{64}$")] | None = None
    dependencies: Annotated[tuple[JobId, ...], Field(max_length=MAX_DEPENDENCIES)] = ()
    idempotency_key: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")] | None = None
    correlation_id: Text | None = None
    traceparent: Annotated[str, Field(pattern=TRACEPARENT)] | None = Field(
        default=None, description="The trace that the job goes on with (W3C Trace Context); default: that of the call."
    )


class JobRequests(Given):
    """Several jobs: all of them are good, or none is taken."""

    jobs: Annotated[list[JobRequest], Field(min_length=1, max_length=MAX_BULK)]


class SubmittedShown(Shown):
    """The job that now stands for what was submitted; `created` is false when it was known before."""

    job_id: int = Field(serialization_alias="id")
    artifact_id: str
    created: bool
    status: str


class SubmittedList(Shown):
    jobs: list[SubmittedShown]


class ReplayRequest(Explained):
    """Why, and how soon."""

    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] | None = None


class RetryRequest(Explained):
    """Which dead letters, and why."""

    job_ids: Annotated[tuple[JobId, ...], Field(min_length=1, max_length=MAX_BULK)]


class JobCounts(Shown):
    """How many jobs of each status, from counters."""

    counts: dict[str, int]
    total: int


def shown(job: JobView) -> JobShown:
    return JobShown.model_validate(job)


def _ways() -> list[tuple[str, str, Callable[[Any], Any] | None]]:
    """For each field of a job: its name here, its name outside, and how it is written where it is not as it is."""
    special: tuple[tuple[Any, Callable[[Any], Any]], ...] = ((Moment, utc_iso), (Digest, "sha256:{}".format))
    hints = get_type_hints(JobShown, include_extras=True)
    ways = []
    for name, field in JobShown.model_fields.items():
        kinds = (hints[name], *get_args(hints[name]))
        write = next((how for kind, how in special if any(each == kind for each in kinds)), None)
        ways.append((name, field.serialization_alias or name, write))
    return [way for way in ways if way[0] != "signatures"]


_WAYS = _ways()


def jobs_written(page: JobPage) -> RawJson:
    """A `JobList` of the page, word for word."""
    jobs = [_job_words(job) for job in page.jobs]
    return RawJson(orjson.dumps({"next_page_token": page.next_page_token, "jobs": jobs}))


def _job_words(job: JobView) -> dict[str, Any]:
    words: dict[str, Any] = {}
    for name, alias, write in _WAYS:
        value = getattr(job, name)
        words[alias] = value if write is None or value is None else write(value)
    words["signatures"] = []
    words["jobDigest"] = job_digest({**words, "jobId": words["id"]})
    return words


def detail_shown(detail: JobDetail) -> JobDetailShown:
    values = {name: getattr(detail.job, name) for name in JobShown.model_fields if name != "signatures"}
    return JobDetailShown(
        **values,
        payload=dict(detail.payload),
        result=None if detail.result is None else dict(detail.result),
        lease_history=[LeaseSpanShown.model_validate(span) for span in detail.leases],
        metrics=JobMetricsShown.model_validate(detail.metrics),
        history=[history_shown(row) for row in detail.history],
        replay_chain=list(detail.replay_chain),
        replays=list(detail.replays),
        dependencies=list(detail.needs),
        why=why_shown(detail.why),
    )


def why_shown(why: Why) -> WhyShown:
    # A job that is due has no moment to wait for; the moment of asking would make equal answers differ.
    return WhyShown.model_validate(replace(why, at=None) if why.reason == "queued" else why)


def history_shown(row: HistoryRow) -> HistoryRowShown:
    return HistoryRowShown.model_validate(row)
