"""Jobs: submit, list, show, cancel, replay, retry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from DocsToKG.core.ids import new_run_id
from DocsToKG.Orchestrator.api.context import Context, RequestContext, Responses
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.api.observability import job_log
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import (
    BIG,
    DecisionBody,
    JobId,
    Name,
    Paging,
    RequestBody,
    Text,
    ZonedTime,
    seconds,
)
from DocsToKG.Orchestrator.control.jobs.pages import JobQuery
from DocsToKG.Orchestrator.control.jobs.service import REPLAY_PRIORITY
from DocsToKG.Orchestrator.control.jobs.views import HistoryPage, JobDetail, JobPage, JobView
from DocsToKG.Orchestrator.jobs.eligibility import Why
from DocsToKG.Orchestrator.jobs.search import parse
from DocsToKG.Orchestrator.jobs.states import API_STATUS
from DocsToKG.Orchestrator.jobs.status import JobStatus
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, Enqueued, NewJob
from DocsToKG.Orchestrator.tracing import TRACEPARENT
from DocsToKG.Orchestrator.views import View, json_names

resource = Resource("jobs")
SEARCH = (
    "Words that must occur, and `status:`, `type:`, `source:`, `worker:`, `host:`, `project:`, `correlation:`,"
    " `artifact:`, `stage:`, `outcome:` or `error:` with a value."
)
JobPath = Annotated[int, Path(ge=1, le=BIG, description="Number of the job.")]
_KNOWN_JOB: Responses = {
    200: {
        "description": "The job was there already",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Submitted"}}},
    }
}
MAX_BULK = 500
MAX_DEPENDENCIES = 100


class JobRequest(RequestBody):
    """A job to submit. The same artifact, or the same key, never makes a second job."""

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


class JobRequests(RequestBody):
    """Several jobs: all of them are taken, or none."""

    jobs: Annotated[list[JobRequest], Field(min_length=1, max_length=MAX_BULK)]


class ReplayRequest(DecisionBody):
    """Why, and how soon."""

    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] | None = None


class RetryRequest(DecisionBody):
    """Which dead letters, and why."""

    job_ids: Annotated[tuple[JobId, ...], Field(min_length=1, max_length=MAX_BULK)]


@dataclass(frozen=True, slots=True)
class Submitted(View):
    """The job that now stands for what was submitted; `created` is false when it was known before."""

    __pydantic_config__ = json_names(job_id="id")

    job_id: int
    artifact_id: str
    created: bool
    status: str


@dataclass(frozen=True, slots=True)
class SubmittedList(View):
    jobs: Sequence[Submitted]


@dataclass(frozen=True, slots=True)
class JobCounts(View):
    """How many jobs of each status, from counters."""

    counts: Mapping[str, int]
    total: int


@resource.get("/jobs")
def list_jobs(
    ctx: Context,
    paging: Paging,
    status: Annotated[list[JobStatus] | None, Query(max_length=7)] = None,
    job_type: Annotated[Name | None, Query(alias="jobType")] = None,
    project: Annotated[Text | None, Query()] = None,
    source: Annotated[Text | None, Query()] = None,
    worker: Annotated[Text | None, Query()] = None,
    correlation_id: Annotated[Text | None, Query(alias="correlationId")] = None,
    created_from: Annotated[ZonedTime | None, Query(alias="createdFrom")] = None,
    created_to: Annotated[ZonedTime | None, Query(alias="createdTo")] = None,
    updated_from: Annotated[ZonedTime | None, Query(alias="updatedFrom")] = None,
    updated_to: Annotated[ZonedTime | None, Query(alias="updatedTo")] = None,
    search: Annotated[str | None, Query(max_length=400, description=SEARCH)] = None,
) -> JobPage:
    """List the tenant's jobs, newest first."""
    query = JobQuery(
        statuses=tuple(status or ()),
        job_type=job_type,
        project=project,
        source=source,
        worker_id=worker,
        correlation_id=correlation_id,
        created_from=seconds(created_from),
        created_to=seconds(created_to),
        updated_from=seconds(updated_from),
        updated_to=seconds(updated_to),
        search=parse(search or ""),
    )
    return ctx.services.jobs.list(ctx.tenant, query, **paging)


@resource.post("/jobs", status=201, responses=_KNOWN_JOB)
def submit_job(ctx: Context, body: JobRequest) -> Submitted:
    """Submit one job; the status is 200 instead of 201 when it was there already."""
    header = ctx.request.headers.get("idempotency-key")
    with ctx.spans.enqueue(ctx.request.scope, **{"job.type": body.job_type, "tenant": ctx.tenant}) as trace:
        [answer] = ctx.services.jobs.submit(ctx.tenant, [_new_job(ctx, body, header, trace)], actor=ctx.caller.actor)
    job_log.log_job(ctx, "enqueued" if answer.created else "known", answer.job_id)
    ctx.status = 201 if answer.created else 200
    ctx.headers["Location"] = f"{HOME}/jobs/{answer.job_id}"
    return _submitted(answer)


@resource.post("/jobs/bulk", status=201)
def submit_jobs(ctx: Context, body: JobRequests) -> SubmittedList:
    """Submit several jobs: all of them, or none where one is refused."""
    with ctx.spans.enqueue(ctx.request.scope, jobs=len(body.jobs), tenant=ctx.tenant) as trace:
        jobs = [_new_job(ctx, job, None, trace) for job in body.jobs]
        answers = ctx.services.jobs.submit(ctx.tenant, jobs, actor=ctx.caller.actor)
    return SubmittedList([_submitted(answer) for answer in answers])


@resource.get("/jobs/summary", deprecated=True)
def job_summary(ctx: Context, job_type: Annotated[Name | None, Query(alias="jobType")] = None) -> JobCounts:
    """Count the tenant's jobs by status; use `/dashboard/metrics`."""
    counts = ctx.services.jobs.counts(ctx.tenant, job_type=job_type)
    ctx.deprecate(f"{HOME}/dashboard/metrics")
    return JobCounts(counts, sum(counts.values()))


@resource.get("/jobs/{job_id}")
def get_job(ctx: Context, job_id: JobPath) -> JobDetail:
    """Show one job: payload, attempts, worker, leases, result."""
    return ctx.services.jobs.detail(ctx.tenant, job_id)


@resource.get("/jobs/{job_id}/detail", deprecated=True)
def job_detail(ctx: Context, job_id: JobPath) -> JobDetail:
    """Show one job; use `/jobs/{id}`."""
    ctx.deprecate(f"{HOME}/jobs/{job_id}")
    return get_job(ctx, job_id)


@resource.get("/jobs/{job_id}/why")
def why_job(ctx: Context, job_id: JobPath) -> Why:
    """Say what keeps a job from running, and when it may."""
    return ctx.services.jobs.why(ctx.tenant, job_id)


@resource.get("/jobs/{job_id}/history")
def job_history(ctx: Context, job_id: JobPath, paging: Paging) -> HistoryPage:
    """Show what happened to a job, first to last."""
    return ctx.services.jobs.history(ctx.tenant, job_id, **paging)


@resource.post("/jobs/{job_id}/cancel")
def cancel_job(ctx: Context, job_id: JobPath, body: DecisionBody | None = None) -> JobView:
    """Cancel a job; a worker that has it learns so at its next renewal."""
    return _logged(ctx, "canceled", ctx.services.jobs.cancel(ctx.tenant, job_id, **ctx.decision))


@resource.post("/jobs/{job_id}/replay", status=201)
def replay_job(ctx: Context, job_id: JobPath, body: ReplayRequest | None = None) -> JobView:
    """Run an ended job once more, as a copy with the same payload and a high priority."""
    priority = REPLAY_PRIORITY if body is None or body.priority is None else body.priority
    with ctx.spans.enqueue(ctx.request.scope, **{"replay.of": job_id, "tenant": ctx.tenant}) as trace:
        copy = ctx.services.jobs.replay(ctx.tenant, job_id, **ctx.decision, priority=priority, trace_context=trace)
    return _logged(ctx, "replayed", copy)


@resource.post("/jobs/{job_id}/retry")
def retry_job(ctx: Context, job_id: JobPath, body: DecisionBody | None = None) -> JobView:
    """Queue a job that failed for good once more, as itself and with its attempts reset."""
    [job] = ctx.services.jobs.retry_dead_letters(ctx.tenant, [job_id], **ctx.decision)
    return _logged(ctx, "retried", job)


@resource.post("/jobs/{job_id}/clear-lease")
def clear_lease(ctx: Context, job_id: JobPath, body: DecisionBody | None = None) -> JobView:
    """Take a stuck job from its worker, so that it may be leased again."""
    return _logged(ctx, "lease_cleared", ctx.services.jobs.clear_lease(ctx.tenant, job_id, **ctx.decision))


@resource.get("/dead-letters")
def list_dead_letters(
    ctx: Context, paging: Paging, job_type: Annotated[Name | None, Query(alias="jobType")] = None
) -> JobPage:
    """List jobs that failed for good, newest first."""
    return ctx.services.jobs.dead_letters(ctx.tenant, job_type=job_type, **paging)


@resource.post("/dead-letters/retry")
def retry_dead_letters(ctx: Context, body: RetryRequest) -> JobPage:
    """Queue dead letters again, with their attempts reset: all that are named, or none."""
    jobs = ctx.services.jobs.retry_dead_letters(ctx.tenant, body.job_ids, **ctx.decision)
    return JobPage(jobs, None)


def _logged(ctx: RequestContext, event: str, job: JobView) -> JobView:
    job_log.log(
        event, jobId=job.job_id, jobType=job.job_type, tenant=job.tenant, workerId=job.worker_id,
        status=job.status.value, actor=ctx.caller.actor,
    )  # fmt: skip
    return job


def _new_job(ctx: RequestContext, given: JobRequest, header_key: str | None, trace: str) -> NewJob:
    if given.tenant is not None and given.tenant != ctx.tenant:
        raise Problem(403, "TENANT_FORBIDDEN", "the job names another tenant than the call")
    key = given.idempotency_key or header_key
    return NewJob(
        artifact_id=given.artifact_id or f"job:{key or new_run_id()}",
        payload=given.payload,
        priority=given.priority,
        max_attempts=given.max_attempts,
        delay_s=given.delay_seconds,
        tenant=ctx.tenant,
        project=given.project,
        job_type=given.job_type,
        source=given.source,
        payload_digest=given.payload_digest,
        idempotency_key=key,
        correlation_id=given.correlation_id,
        trace_context=given.traceparent or trace,
        depends_on=tuple(given.dependencies),
    )


def _submitted(answer: Enqueued) -> Submitted:
    return Submitted(answer.job_id, answer.artifact_id, answer.created, API_STATUS[answer.state])
