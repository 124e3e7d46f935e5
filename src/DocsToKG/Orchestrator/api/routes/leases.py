"""Leases of workers without a database: lease, renew, progress, complete, release."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import time_ns
from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import Field

from DocsToKG.Orchestrator.api.context import Context, RequestContext
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.observability import job_log
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import Name, RequestBody, Text
from DocsToKG.Orchestrator.api.threads import in_thread
from DocsToKG.Orchestrator.control.workers.lease_rows import Completion, Instrumentation, JobLease, Renewal
from DocsToKG.Orchestrator.control.workers.leases import NextLease
from DocsToKG.Orchestrator.views import View

resource = Resource("leases")
_ID = r"^lease_[0-9a-f]{32}(_[0-9]{1,19})?$"
LeasePath = Annotated[str, Path(pattern=_ID, description="Id of the lease.")]
LeaseId = Annotated[str, Field(pattern=_ID)]
Seconds = Annotated[float, Field(ge=1, le=86_400)]
_SHORT_S, _LONG_S = 0.05, 1.0


class LeaseRequest(RequestBody):
    """Who asks for work, of which types, how much, for how long; and how long to wait where there is none."""

    worker_id: Name
    job_types: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    limit: Annotated[int, Field(ge=1, le=500)] = 1
    lease_seconds: Seconds = 600.0
    wait_seconds: Annotated[float, Field(ge=0, le=30)] = 0.0


@dataclass(frozen=True, slots=True)
class LeaseList(View):
    """What was leased; nothing when there was nothing in time."""

    leases: Sequence[JobLease]


@dataclass(frozen=True, slots=True)
class RenewalList(View):
    renewals: Sequence[Renewal]


class RenewRequest(RequestBody):
    lease_seconds: Seconds = 600.0
    worker_id: Name | None = None


class RenewManyRequest(RenewRequest):
    lease_ids: Annotated[tuple[LeaseId, ...], Field(min_length=1, max_length=500)]


class ProgressRequest(RequestBody):
    """Where the job is, and what there is of its result so far."""

    stage: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]+$")]
    result: dict[str, Any] | None = None


class NextRequest(RequestBody):
    """What the worker wants next, in the same visit. Use an `Idempotency-Key`: a lost answer would lose the leases."""

    worker_id: Name
    job_types: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    limit: Annotated[int, Field(ge=1, le=500)] = 1
    lease_seconds: Seconds = 600.0


class CompleteRequest(RequestBody):
    """How the work ended. A failure comes again by the retry policy unless it is not `retryable`."""

    status: Literal["succeeded", "failed", "canceled", "timed_out"]
    reason: Annotated[str, Field(max_length=2000)] | None = None
    retryable: bool | None = None
    retry_after_seconds: Annotated[float, Field(ge=0, le=86_400)] | None = None
    result: dict[str, Any] | None = None
    outcome: Text | None = None
    next: NextRequest | None = Field(default=None, description="Lease the next jobs along with the end of this one.")


class ReleaseRequest(RequestBody):
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
    state = ctx.state
    while True:
        asked_ns = time_ns()
        found = await in_thread(partial(_lease, ctx, body), state.admission.threads)
        left = deadline - loop.time()
        if found or left <= 0:
            for each in found:
                _log_leased(ctx, each)
            return LeaseList(leases=[_described(ctx, lease, asked_ns) for lease in found])
        if await state.long_polling.wait(left):
            # There is work, but it may be another's or held back: ask ever more seldom.
            await asyncio.sleep(min(pause_s * (0.5 + random.random()), max(0.0, deadline - loop.time())))
            pause_s = min(_LONG_S, pause_s * 2)
        if await ctx.request.is_disconnected() or state.streams.is_closed:
            return LeaseList(leases=[])  # nobody would work on what is leased now


@resource.post("/leases/renew")
def renew_leases(ctx: Context, body: RenewManyRequest) -> RenewalList:
    """Extend several leases; one answer for each, in order."""
    found = ctx.services.leases.renew(ctx.tenant, body.lease_ids, ttl_s=body.lease_seconds, worker_id=body.worker_id)
    ctx.metrics.extensions.inc(sum(each.state == "held" for each in found))
    return RenewalList(found)


@resource.post("/leases/{lease_id}/renew")
def renew_lease(ctx: Context, lease_id: LeasePath, body: RenewRequest | None = None) -> Renewal:
    """Extend a lease; a worker whose job was called off learns it here, with the reason."""
    given = body or RenewRequest()
    [found] = ctx.services.leases.renew(ctx.tenant, [lease_id], ttl_s=given.lease_seconds, worker_id=given.worker_id)
    if found.state == "lost":
        raise Problem(409, "LEASE_LOST", "the lease is lost; drop the work, the job has another owner or is over")
    ctx.metrics.extensions.inc(found.state == "held")
    return found


@resource.post("/leases/{lease_id}/progress", status=204)
def progress_lease(ctx: Context, lease_id: LeasePath, body: ProgressRequest) -> None:
    """Tell where the job is."""
    ctx.services.leases.progress(ctx.tenant, lease_id, body.stage, result=body.result)


@resource.post("/leases/{lease_id}/complete")
def complete_lease(ctx: Context, lease_id: LeasePath, body: CompleteRequest) -> Completion:
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
    job_log.log_job(ctx, "completed", done.job_id, leaseId=lease_id, said=body.status)
    if done.took_s is not None:
        ctx.metrics.latency.observe(done.took_s)
    if body.status in ("failed", "timed_out"):
        ctx.metrics.failures.labels(done.state.value if not done.retried else "retried").inc()
        ctx.metrics.retries.inc(done.retried)
    for each in done.leases:
        _log_leased(ctx, each)
    return replace(done, leases=[_described(ctx, lease, began_ns) for lease in done.leases])


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


def _log_leased(ctx: RequestContext, lease: JobLease) -> None:
    job_log.log(
        "leased", jobId=lease.job_id, jobType=lease.job_type, tenant=ctx.tenant,
        workerId=lease.provenance.task_runner_id, leaseId=lease.lease_id, status="leased",
    )  # fmt: skip


def _described(ctx: RequestContext, lease: JobLease, asked_ns: int) -> JobLease:
    """The lease with what the worker's spans go on from."""
    instrumentation = Instrumentation(ctx.spans.lease(lease, asked_ns), ctx.spans.are_wanted)
    return replace(lease, instrumentation=instrumentation)
