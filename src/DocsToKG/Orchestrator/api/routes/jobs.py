"""Jobs: submit, look, list, call off, run again."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from DocsToKG.core.ids import new_run_id
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.api.observability import job_log
from DocsToKG.Orchestrator.api.routes.job_shapes import (
    HistoryList,
    JobCounts,
    JobDetailShown,
    JobList,
    JobRequest,
    JobRequests,
    JobShown,
    ReplayRequest,
    RetryRequest,
    SubmittedList,
    SubmittedShown,
    WhyShown,
    detail_shown,
    history_shown,
    jobs_written,
    shown,
    why_shown,
)
from DocsToKG.Orchestrator.api.routing import Answer, Context, RawJson, RequestContext, Resource
from DocsToKG.Orchestrator.api.schemas import BIG, Explained, GivenMoment, Name, PageSize, PageToken, Text, seconds
from DocsToKG.Orchestrator.control.jobs.pages import JobQuery
from DocsToKG.Orchestrator.control.jobs.service import REPLAY_PRIORITY
from DocsToKG.Orchestrator.control.jobs.views import JobView
from DocsToKG.Orchestrator.jobs.search import parse
from DocsToKG.Orchestrator.jobs.states import API_STATUS
from DocsToKG.Orchestrator.jobs.status import JobStatus
from DocsToKG.Orchestrator.ledger.base import Enqueued, NewJob

resource = Resource("jobs")
SEARCH = (
    "Words that must occur, and `status:`, `type:`, `source:`, `worker:`, `host:`, `project:`, `correlation:`,"
    " `artifact:`, `stage:`, `outcome:` or `error:` with a value."
)
JobPath = Annotated[int, Path(ge=1, le=BIG, description="Number of the job.")]


@resource.get("/jobs", response_model=JobList)
def list_jobs(
    ctx: Context,
    status: Annotated[list[JobStatus] | None, Query(max_length=7)] = None,
    job_type: Annotated[Name | None, Query(alias="jobType")] = None,
    project: Annotated[Text | None, Query()] = None,
    source: Annotated[Text | None, Query()] = None,
    worker: Annotated[Text | None, Query()] = None,
    correlation_id: Annotated[Text | None, Query(alias="correlationId")] = None,
    created_from: Annotated[GivenMoment | None, Query(alias="createdFrom")] = None,
    created_to: Annotated[GivenMoment | None, Query(alias="createdTo")] = None,
    updated_from: Annotated[GivenMoment | None, Query(alias="updatedFrom")] = None,
    updated_to: Annotated[GivenMoment | None, Query(alias="updatedTo")] = None,
    search: Annotated[str | None, Query(max_length=400, description=SEARCH)] = None,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[PageToken, Query()] = None,
) -> RawJson:
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
    return jobs_written(ctx.services.jobs.list(ctx.tenant, query, page_size=page_size, page_token=page_token))


@resource.post(
    "/jobs",
    status=201,
    response_model=SubmittedShown,
    responses={200: {"model": SubmittedShown, "description": "It was there already"}},
)
def submit_job(ctx: Context, body: JobRequest) -> Answer:
    """Put one job on the ledger; 200 instead of 201 when it was there already."""
    header = ctx.request.headers.get("idempotency-key")
    with ctx.spans.enqueue(ctx.request.scope, **{"job.type": body.job_type, "tenant": ctx.tenant}) as trace:
        [answer] = ctx.services.jobs.submit(ctx.tenant, [_new_job(ctx, body, header, trace)], actor=ctx.caller.actor)
    job_log.tell(ctx, "enqueued" if answer.created else "known", answer.job_id)
    headers = {"Location": f"{HOME}/jobs/{answer.job_id}"}
    return Answer(_submitted(answer), status=201 if answer.created else 200, headers=headers)


@resource.post("/jobs/bulk", status=201)
def submit_jobs(ctx: Context, body: JobRequests) -> SubmittedList:
    """Put several jobs on the ledger: all of them are good, or none is taken."""
    with ctx.spans.enqueue(ctx.request.scope, jobs=len(body.jobs), tenant=ctx.tenant) as trace:
        jobs = [_new_job(ctx, job, None, trace) for job in body.jobs]
        answers = ctx.services.jobs.submit(ctx.tenant, jobs, actor=ctx.caller.actor)
    return SubmittedList(jobs=[_submitted(answer) for answer in answers])


@resource.get("/jobs/summary", deprecated=True, response_model=JobCounts)
def job_summary(ctx: Context, job_type: Annotated[Name | None, Query(alias="jobType")] = None) -> Answer:
    """Count the tenant's jobs by status; use `/dashboard/metrics`."""
    counts = ctx.services.jobs.counts(ctx.tenant, job_type=job_type)
    return _deprecated(JobCounts(counts=counts, total=sum(counts.values())), f"{HOME}/dashboard/metrics")


@resource.get("/jobs/{job_id}")
def get_job(ctx: Context, job_id: JobPath) -> JobDetailShown:
    """Show one job: payload, attempts, worker, leases, result."""
    return detail_shown(ctx.services.jobs.detail(ctx.tenant, job_id))


@resource.get("/jobs/{job_id}/detail", deprecated=True, response_model=JobDetailShown)
def job_detail(ctx: Context, job_id: JobPath) -> Answer:
    """Show one job; use `/jobs/{id}`."""
    return _deprecated(get_job(ctx, job_id), f"{HOME}/jobs/{job_id}")


@resource.get("/jobs/{job_id}/why")
def why_job(ctx: Context, job_id: JobPath) -> WhyShown:
    """Say what keeps a job from running, and when it may."""
    return why_shown(ctx.services.jobs.why(ctx.tenant, job_id))


@resource.get("/jobs/{job_id}/history")
def job_history(
    ctx: Context,
    job_id: JobPath,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[PageToken, Query()] = None,
) -> HistoryList:
    """Show what happened to a job, first to last."""
    page = ctx.services.jobs.history(ctx.tenant, job_id, page_size=page_size, page_token=page_token)
    return HistoryList(events=[history_shown(row) for row in page.rows], next_page_token=page.next_page_token)


@resource.post("/jobs/{job_id}/cancel")
def cancel_job(ctx: Context, job_id: JobPath, body: Explained | None = None) -> JobShown:
    """Call a job off; a worker that has it learns of it at its next renewal."""
    return _told(ctx, "canceled", ctx.services.jobs.cancel(ctx.tenant, job_id, **ctx.decision))


@resource.post("/jobs/{job_id}/replay", status=201)
def replay_job(ctx: Context, job_id: JobPath, body: ReplayRequest | None = None) -> JobShown:
    """Run an ended job once more, as a copy with the same payload and a high priority."""
    priority = REPLAY_PRIORITY if body is None or body.priority is None else body.priority
    with ctx.spans.enqueue(ctx.request.scope, **{"replay.of": job_id, "tenant": ctx.tenant}) as trace:
        copy = ctx.services.jobs.replay(ctx.tenant, job_id, **ctx.decision, priority=priority, trace_context=trace)
    return _told(ctx, "replayed", copy)


@resource.post("/jobs/{job_id}/retry")
def retry_job(ctx: Context, job_id: JobPath, body: Explained | None = None) -> JobShown:
    """Queue a job that failed for good once more, as itself and with its attempts reset."""
    [job] = ctx.services.jobs.retry_dead_letters(ctx.tenant, [job_id], **ctx.decision)
    return _told(ctx, "retried", job)


@resource.post("/jobs/{job_id}/clear-lease")
def clear_lease(ctx: Context, job_id: JobPath, body: Explained | None = None) -> JobShown:
    """Take a stuck job from its worker, so that it may be leased again."""
    return _told(ctx, "lease_cleared", ctx.services.jobs.clear_lease(ctx.tenant, job_id, **ctx.decision))


@resource.get("/dead-letters")
def list_dead_letters(
    ctx: Context,
    job_type: Annotated[Name | None, Query(alias="jobType")] = None,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[PageToken, Query()] = None,
) -> JobList:
    """List jobs that failed for good, newest first."""
    page = ctx.services.jobs.dead_letters(ctx.tenant, job_type=job_type, page_size=page_size, page_token=page_token)
    return JobList(jobs=[shown(job) for job in page.jobs], next_page_token=page.next_page_token)


@resource.post("/dead-letters/retry")
def retry_dead_letters(ctx: Context, body: RetryRequest) -> JobList:
    """Queue dead letters again, with their attempts reset: all that are named, or none."""
    jobs = ctx.services.jobs.retry_dead_letters(ctx.tenant, body.job_ids, **ctx.decision)
    return JobList(jobs=[shown(job) for job in jobs])


def _told(ctx: RequestContext, event: str, job: JobView) -> JobShown:
    job_log.say(
        event, jobId=job.job_id, jobType=job.job_type, tenant=job.tenant, workerId=job.worker_id,
        status=job.status.value, actor=ctx.caller.actor,
    )  # fmt: skip
    return shown(job)


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


def _submitted(answer: Enqueued) -> SubmittedShown:
    return SubmittedShown(
        job_id=answer.job_id,
        artifact_id=answer.artifact_id,
        created=answer.created,
        status=API_STATUS[answer.state],
    )


def _deprecated(body: JobDetailShown | JobCounts, successor: str) -> Answer:
    # RFC 9745 and RFC 8288: since when, and what to use instead.
    return Answer(body, headers={"Deprecation": "@1767225600", "Link": f'<{successor}>; rel="successor-version"'})
