"""The bridge to workers: lease, renew, tell, complete. A worker names its lease in every word."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from time import time_ns
from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import Field

from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.long_polling import LongPolling
from DocsToKG.Orchestrator.api.observability import job_log
from DocsToKG.Orchestrator.api.routing import Context, Doors, RequestContext, Resource
from DocsToKG.Orchestrator.api.schemas import Digest, Given, Moment, Name, Shown, Signature, Text
from DocsToKG.Orchestrator.api.threads import in_thread
from DocsToKG.Orchestrator.control.workers.lease_rows import JobLease
from DocsToKG.Orchestrator.control.workers.leases import NextLease
from DocsToKG.Orchestrator.jobs.states import API_STATUS

resource = Resource("leases")
_ID = r"^lease_[0-9a-f]{32}(_[0-9]{1,19})?$"
LeasePath = Annotated[str, Path(pattern=_ID, description="Id of the lease.")]
LeaseId = Annotated[str, Field(pattern=_ID)]
Seconds = Annotated[float, Field(ge=1, le=86_400)]
_SHORT_S, _LONG_S = 0.05, 1.0


class LeaseRequest(Given):
    """Who asks for work, of which types, how much, for how long; and how long to wait where there is none."""

    worker_id: Name
    job_types: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    limit: Annotated[int, Field(ge=1, le=500)] = 1
    lease_seconds: Seconds = 600.0
    wait_seconds: Annotated[float, Field(ge=0, le=30)] = 0.0


class RetryShown(Shown):
    attempt: int
    max_attempts: int
    backoff_s: float = Field(serialization_alias="backoffSeconds")


class Provenance(Shown):
    tenant: str
    project: str | None
    correlation_id: str | None
    task_runner_id: str


class Tracing(Shown):
    """What the worker's spans go on from. `waitTold` says that the service tells of the wait for the lease itself."""

    traceparent: str | None
    wait_told: bool


class LeaseShown(Shown):
    """A job with the right to work on it until `leaseUntil`, unless renewed."""

    lease_id: str
    lease_until: Moment
    fence: int
    job_id: int
    artifact_id: str
    job_type: str
    payload: dict[str, Any]
    payload_digest: Digest
    idempotency_key: str
    priority: int
    source: str | None
    host_key: str | None
    resolver_hint: str | None
    replay_of: int | None
    renew_s: float = Field(serialization_alias="renewSeconds")
    waited_s: float = Field(serialization_alias="waitedSeconds")
    retry: RetryShown
    provenance: Provenance
    instrumentation: Tracing
    signatures: list[Signature] = Field(default=[], description="DSSE signatures, where the ledger signs.")


class LeaseList(Shown):
    """What was leased; nothing when there was nothing in time."""

    leases: list[LeaseShown]


class RenewRequest(Given):
    lease_seconds: Seconds = 600.0
    worker_id: Name | None = None


class RenewManyRequest(RenewRequest):
    lease_ids: Annotated[tuple[LeaseId, ...], Field(min_length=1, max_length=500)]


class RenewalShown(Shown):
    """What became of a lease. What is not `held` is to be dropped; `canceled` says why."""

    lease_id: str
    state: Literal["held", "lost", "canceled"]
    lease_until: Moment | None
    reason: str | None


class RenewalList(Shown):
    renewals: list[RenewalShown]


class ProgressRequest(Given):
    """Where the job is, and what there is of its result so far."""

    stage: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]+$")]
    result: dict[str, Any] | None = None


class NextRequest(Given):
    """What the worker wants next, in the same visit. Use an `Idempotency-Key`: a lost answer would lose the leases."""

    worker_id: Name
    job_types: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    limit: Annotated[int, Field(ge=1, le=500)] = 1
    lease_seconds: Seconds = 600.0


class CompleteRequest(Given):
    """How the work ended. A failure comes again by the retry policy unless it is not `retryable`."""

    status: Literal["succeeded", "failed", "canceled", "timed_out"]
    reason: Annotated[str, Field(max_length=2000)] | None = None
    retryable: bool | None = None
    retry_after_seconds: Annotated[float, Field(ge=0, le=86_400)] | None = None
    result: dict[str, Any] | None = None
    outcome: Text | None = None
    next: NextRequest | None = Field(default=None, description="Lease the next jobs along with the end of this one.")


class CompletionShown(Shown):
    """Where the job is now; one that comes again says when."""

    job_id: int
    status: str
    retried: bool
    next_eligible_at: Moment | None
    leases: list[LeaseShown] = Field(default=[], description="The next jobs, where `next` asked for some.")


class ReleaseRequest(Given):
    """Give the job back, to be leased again after a while."""

    delay_seconds: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    host_key: Text | None = None
    reason: Annotated[str, Field(max_length=500)] | None = None
    count_attempt: bool = False


@resource.post("/leases", operation="LeaseJob")
async def lease_job(ctx: Context, body: LeaseRequest) -> LeaseList:
    """Lease jobs; where there are none, wait for some for up to `waitSeconds`."""
    loop = asyncio.get_running_loop()
    deadline, pause_s = loop.time() + body.wait_seconds, _SHORT_S
    doors: Doors = ctx.request.app.state.doors
    long_polling: LongPolling = ctx.request.app.state.long_polling
    while True:
        asked_ns = time_ns()
        found = await in_thread(partial(_lease, ctx, body), doors.admission.threads)
        left = deadline - loop.time()
        if found or left <= 0:
            for each in found:
                _tell_leased(ctx, each)
            return LeaseList(leases=[_shown(ctx, lease, asked_ns) for lease in found])
        if await long_polling.wait(left):
            # There is work, but it may be another's or held back: ask ever more seldom.
            await asyncio.sleep(min(pause_s * (0.5 + random.random()), max(0.0, deadline - loop.time())))
            pause_s = min(_LONG_S, pause_s * 2)
        if await ctx.request.is_disconnected() or ctx.request.app.state.streams.is_closed:
            return LeaseList(leases=[])  # nobody would work on what is leased now


@resource.post("/leases/renew")
def renew_leases(ctx: Context, body: RenewManyRequest) -> RenewalList:
    """Extend several leases; one answer for each, in order."""
    found = ctx.services.leases.renew(ctx.tenant, body.lease_ids, ttl_s=body.lease_seconds, worker_id=body.worker_id)
    ctx.metrics.extensions.inc(sum(each.state == "held" for each in found))
    return RenewalList(renewals=[RenewalShown.model_validate(each) for each in found])


@resource.post("/leases/{lease_id}/renew")
def renew_lease(ctx: Context, lease_id: LeasePath, body: RenewRequest | None = None) -> RenewalShown:
    """Extend a lease; a worker whose job was called off learns it here, with the reason."""
    given = body or RenewRequest()
    [found] = ctx.services.leases.renew(ctx.tenant, [lease_id], ttl_s=given.lease_seconds, worker_id=given.worker_id)
    if found.state == "lost":
        raise Problem(409, "LEASE_LOST", "the lease is lost; drop the work, the job has another owner or is over")
    ctx.metrics.extensions.inc(found.state == "held")
    return RenewalShown.model_validate(found)


@resource.post("/leases/{lease_id}/progress", status=204)
def progress_lease(ctx: Context, lease_id: LeasePath, body: ProgressRequest) -> None:
    """Tell where the job is."""
    ctx.services.leases.progress(ctx.tenant, lease_id, body.stage, result=body.result)


@resource.post("/leases/{lease_id}/complete")
def complete_lease(ctx: Context, lease_id: LeasePath, body: CompleteRequest) -> CompletionShown:
    """Say how the work ended, and lease the next jobs where asked; the same word again is no harm."""
    began_ns, wanted = time_ns(), body.next
    done = ctx.services.leases.complete(
        ctx.tenant,
        lease_id,
        body.status,
        reason=body.reason,
        retryable=body.retryable,
        retry_after_s=body.retry_after_seconds,
        result=body.result,
        outcome=body.outcome,
        then=None
        if wanted is None
        else NextLease(wanted.worker_id, wanted.job_types, wanted.limit, wanted.lease_seconds),
    )
    ctx.spans.complete(ctx.request.scope, ctx.services.ledger, done, began_ns)
    job_log.tell(ctx, "completed", done.job_id, leaseId=lease_id, said=body.status)
    if body.status in ("failed", "timed_out"):
        ctx.metrics.failures.labels(done.state.value if not done.retried else "retried").inc()
        ctx.metrics.retries.inc(done.retried)
    for each in done.leases:
        _tell_leased(ctx, each)
    return CompletionShown(
        job_id=done.job_id,
        status=API_STATUS[done.state],
        retried=done.retried,
        next_eligible_at=done.next_eligible_at,  # type: ignore[arg-type]  # written out by the form
        leases=[_shown(ctx, lease, began_ns) for lease in done.leases],
    )


@resource.post("/leases/{lease_id}/release", status=204)
def release_lease(ctx: Context, lease_id: LeasePath, body: ReleaseRequest | None = None) -> None:
    """Give a job back; counts no attempt unless asked."""
    given = body or ReleaseRequest()
    ctx.services.leases.release(
        ctx.tenant,
        lease_id,
        delay_s=given.delay_seconds,
        host_key=given.host_key,
        why=given.reason,
        count_attempt=given.count_attempt,
    )


def _lease(ctx: RequestContext, body: LeaseRequest) -> list[JobLease]:
    return list(
        ctx.services.leases.lease(
            ctx.tenant, body.worker_id, job_types=body.job_types, limit=body.limit, ttl_s=body.lease_seconds
        )
    )


def _tell_leased(ctx: RequestContext, lease: JobLease) -> None:
    job_log.say(
        "leased", jobId=lease.job_id, jobType=lease.job_type, tenant=ctx.tenant, workerId=lease.task_runner_id,
        leaseId=lease.lease_id, status="leased",
    )  # fmt: skip


def _shown(ctx: RequestContext, lease: JobLease, asked_ns: int) -> LeaseShown:
    nested = ("retry", "provenance", "instrumentation", "signatures", "payload")
    values = {name: getattr(lease, name) for name in LeaseShown.model_fields if name not in nested}
    return LeaseShown(
        **values,
        payload=dict(lease.payload),
        retry=RetryShown.model_validate(lease.retry),
        provenance=Provenance.model_validate(lease),
        instrumentation=Tracing(traceparent=ctx.spans.lease(lease, asked_ns), wait_told=ctx.spans.are_wanted),
    )
