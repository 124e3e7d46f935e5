"""Jobs: submit, look, list, call off, run again."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from DocsToKG.core.ids import new_run_id
from DocsToKG.Orchestrator.control.jobs.pages import JobQuery
from DocsToKG.Orchestrator.control.jobs.service import REPLAY_PRIORITY
from DocsToKG.Orchestrator.control.jobs.views import JobView
from DocsToKG.Orchestrator.jobs.search import parse
from DocsToKG.Orchestrator.jobs.states import API_STATUS
from DocsToKG.Orchestrator.jobs.status import JobStatus
from DocsToKG.Orchestrator.ledger.base import Enqueued, NewJob
from DocsToKG.Orchestrator.web import job_log
from DocsToKG.Orchestrator.web.door import HOME
from DocsToKG.Orchestrator.web.envelope import Problem
from DocsToKG.Orchestrator.web.routes.job_shapes import (
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
from DocsToKG.Orchestrator.web.serving import Answer, Ask, Asked, Resource, Written
from DocsToKG.Orchestrator.web.shapes import BIG, Explained, GivenMoment, Name, PageSize, PageToken, Text, seconds

resource = Resource("jobs")
SEARCH = (
    "Words that must occur, and `status:`, `type:`, `source:`, `worker:`, `host:`, `project:`, `correlation:`,"
    " `artifact:`, `stage:`, `outcome:` or `error:` with a value."
)
JobPath = Annotated[int, Path(ge=1, le=BIG, description="Number of the job.")]


@resource.get("/jobs", response_model=JobList)
def list_jobs(
    ask: Asked,
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
) -> Written:
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
    return jobs_written(ask.rooms.jobs.list(ask.tenant, query, page_size=page_size, page_token=page_token))


@resource.post(
    "/jobs",
    status=201,
    response_model=SubmittedShown,
    responses={200: {"model": SubmittedShown, "description": "It was there already"}},
)
def submit_job(ask: Asked, body: JobRequest) -> Answer:
    """Put one job on the ledger; 200 instead of 201 when it was there already."""
    header = ask.request.headers.get("idempotency-key")
    with ask.spans.enqueue(ask.request.scope, **{"job.type": body.job_type, "tenant": ask.tenant}) as trace:
        [answer] = ask.rooms.jobs.submit(ask.tenant, [_new_job(ask, body, header, trace)], actor=ask.caller.actor)
    job_log.tell(ask, "enqueued" if answer.created else "known", answer.job_id)
    headers = {"Location": f"{HOME}/jobs/{answer.job_id}"}
    return Answer(_submitted(answer), status=201 if answer.created else 200, headers=headers)


@resource.post("/jobs/bulk", status=201)
def submit_jobs(ask: Asked, body: JobRequests) -> SubmittedList:
    """Put several jobs on the ledger: all of them are good, or none is taken."""
    with ask.spans.enqueue(ask.request.scope, jobs=len(body.jobs), tenant=ask.tenant) as trace:
        jobs = [_new_job(ask, job, None, trace) for job in body.jobs]
        answers = ask.rooms.jobs.submit(ask.tenant, jobs, actor=ask.caller.actor)
    return SubmittedList(jobs=[_submitted(answer) for answer in answers])


@resource.get("/jobs/summary", deprecated=True, response_model=JobCounts)
def job_summary(ask: Asked, job_type: Annotated[Name | None, Query(alias="jobType")] = None) -> Answer:
    """Count the tenant's jobs by status; use `/dashboard/metrics`."""
    counts = ask.rooms.jobs.counts(ask.tenant, job_type=job_type)
    return _deprecated(JobCounts(counts=counts, total=sum(counts.values())), f"{HOME}/dashboard/metrics")


@resource.get("/jobs/{job_id}")
def get_job(ask: Asked, job_id: JobPath) -> JobDetailShown:
    """Show one job: payload, attempts, worker, leases, result."""
    return detail_shown(ask.rooms.jobs.detail(ask.tenant, job_id))


@resource.get("/jobs/{job_id}/detail", deprecated=True, response_model=JobDetailShown)
def job_detail(ask: Asked, job_id: JobPath) -> Answer:
    """Show one job; use `/jobs/{id}`."""
    return _deprecated(get_job(ask, job_id), f"{HOME}/jobs/{job_id}")


@resource.get("/jobs/{job_id}/why")
def why_job(ask: Asked, job_id: JobPath) -> WhyShown:
    """Say what keeps a job from running, and when it may."""
    return why_shown(ask.rooms.jobs.why(ask.tenant, job_id))


@resource.get("/jobs/{job_id}/history")
def job_history(
    ask: Asked,
    job_id: JobPath,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[PageToken, Query()] = None,
) -> HistoryList:
    """Show what happened to a job, first to last."""
    page = ask.rooms.jobs.history(ask.tenant, job_id, page_size=page_size, page_token=page_token)
    return HistoryList(events=[history_shown(row) for row in page.rows], next_page_token=page.next_page_token)


@resource.post("/jobs/{job_id}/cancel")
def cancel_job(ask: Asked, job_id: JobPath, body: Explained | None = None) -> JobShown:
    """Call a job off; a worker that has it learns of it at its next renewal."""
    return _told(ask, "canceled", ask.rooms.jobs.cancel(ask.tenant, job_id, **ask.decision))


@resource.post("/jobs/{job_id}/replay", status=201)
def replay_job(ask: Asked, job_id: JobPath, body: ReplayRequest | None = None) -> JobShown:
    """Run an ended job once more, as a copy with the same payload and a high priority."""
    priority = REPLAY_PRIORITY if body is None or body.priority is None else body.priority
    with ask.spans.enqueue(ask.request.scope, **{"replay.of": job_id, "tenant": ask.tenant}) as trace:
        copy = ask.rooms.jobs.replay(ask.tenant, job_id, **ask.decision, priority=priority, trace_context=trace)
    return _told(ask, "replayed", copy)


@resource.post("/jobs/{job_id}/retry")
def retry_job(ask: Asked, job_id: JobPath, body: Explained | None = None) -> JobShown:
    """Queue a job that failed for good once more, as itself and with its attempts reset."""
    [job] = ask.rooms.jobs.retry_dead_letters(ask.tenant, [job_id], **ask.decision)
    return _told(ask, "retried", job)


@resource.post("/jobs/{job_id}/clear-lease")
def clear_lease(ask: Asked, job_id: JobPath, body: Explained | None = None) -> JobShown:
    """Take a stuck job from its worker, so that it may be leased again."""
    return _told(ask, "lease_cleared", ask.rooms.jobs.clear_lease(ask.tenant, job_id, **ask.decision))


@resource.get("/dead-letters")
def list_dead_letters(
    ask: Asked,
    job_type: Annotated[Name | None, Query(alias="jobType")] = None,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[PageToken, Query()] = None,
) -> JobList:
    """List jobs that failed for good, newest first."""
    page = ask.rooms.jobs.dead_letters(ask.tenant, job_type=job_type, page_size=page_size, page_token=page_token)
    return JobList(jobs=[shown(job) for job in page.jobs], next_page_token=page.next_page_token)


@resource.post("/dead-letters/retry")
def retry_dead_letters(ask: Asked, body: RetryRequest) -> JobList:
    """Queue dead letters again, with their attempts reset: all that are named, or none."""
    jobs = ask.rooms.jobs.retry_dead_letters(ask.tenant, body.job_ids, **ask.decision)
    return JobList(jobs=[shown(job) for job in jobs])


def _told(ask: Ask, event: str, job: JobView) -> JobShown:
    job_log.say(
        event, jobId=job.job_id, jobType=job.job_type, tenant=job.tenant, workerId=job.worker_id,
        status=job.status.value, actor=ask.caller.actor,
    )  # fmt: skip
    return shown(job)


def _new_job(ask: Ask, given: JobRequest, header_key: str | None, trace: str) -> NewJob:
    if given.tenant is not None and given.tenant != ask.tenant:
        raise Problem(403, "TENANT_FORBIDDEN", "the job names another tenant than the call")
    key = given.idempotency_key or header_key
    return NewJob(
        artifact_id=given.artifact_id or f"job:{key or new_run_id()}",
        payload=given.payload,
        priority=given.priority,
        max_attempts=given.max_attempts,
        delay_s=given.delay_seconds,
        tenant=ask.tenant,
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
