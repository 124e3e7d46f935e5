"""Throttles and sources: hold back jobs, and lift it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field, model_validator

from DocsToKG.Orchestrator.api.context import Context
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import DecisionBody, Name, RequestBody, Text
from DocsToKG.Orchestrator.control.throttles import SourceView, ThrottleView
from DocsToKG.Orchestrator.control.workers.hosts import MOST_ROWS, BreakerReport, HostReport, HostView, Orders
from DocsToKG.Orchestrator.views import View

resource = Resource("limits")
ThrottlePath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Count = Annotated[int, Field(ge=0, le=10**12)]
Wait = Annotated[float, Field(ge=0, le=31_622_400)]
SourcePath = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$")]


@dataclass(frozen=True, slots=True)
class ThrottleList(View):
    """Throttles, the last one first."""

    throttles: Sequence[ThrottleView]


@dataclass(frozen=True, slots=True)
class SourceList(View):
    sources: Sequence[SourceView]


class ThrottleRequest(DecisionBody):
    """Either `pause` or `maxActive`; for a job type, a source, both or everything of the tenant."""

    job_type: Name | None = None
    source: Text | None = None
    pause: bool = False
    max_active: Annotated[int, Field(ge=0, le=10**9)] | None = None
    expires_in_seconds: Annotated[float, Field(gt=0.001, le=31_536_000)] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> ThrottleRequest:
        if self.pause == (self.max_active is not None):
            raise ValueError("a throttle either pauses or has maxActive")
        return self


class SourceReport(RequestBody):
    """What a worker knows of a source's hosts."""

    state: dict[str, Any] = Field(max_length=1000)


@resource.post("/limits/throttle", status=201)
def apply_throttle(ctx: Context, body: ThrottleRequest) -> ThrottleView:
    """Hold back jobs of the tenant, everywhere, from the next lease on."""
    return ctx.services.throttles.apply(
        ctx.tenant,
        job_type=body.job_type,
        source=body.source,
        pause=body.pause,
        max_active=body.max_active,
        expires_in_s=body.expires_in_seconds,
        **ctx.decision,
    )


@resource.get("/throttles")
def list_throttles(
    ctx: Context, active: Annotated[bool, Query(description="Leave out those that are over.")] = True
) -> ThrottleList:
    """List the tenant's throttles, those of breakers too."""
    return ThrottleList(ctx.services.throttles.list(ctx.tenant, active))


@resource.get("/throttles/{throttle_id}")
def get_throttle(ctx: Context, throttle_id: ThrottlePath) -> ThrottleView:
    """Show one throttle."""
    return ctx.services.throttles.get(ctx.tenant, throttle_id)


@resource.post("/throttles/{throttle_id}/lift")
def lift_throttle(ctx: Context, throttle_id: ThrottlePath, body: DecisionBody | None = None) -> ThrottleView:
    """Lift a throttle; lifting one that a breaker set closes the breaker too."""
    return ctx.services.throttles.lift(ctx.tenant, throttle_id, **ctx.decision)


class HostIn(RequestBody):
    """What a worker reports of a host: what it counted since its last report, and the state of the host."""

    source: Name
    host: Annotated[str, Field(max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    requests: Count = 0
    answered: Count = 0
    refused: Count = 0
    failed: Count = 0
    works: Count = 0
    bytes: Annotated[int, Field(ge=0, le=10**15)] = 0
    last_status: Annotated[int, Field(ge=0, le=999)] | None = None
    next_allowed_in_s: Wait | None = None
    held_by: Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")] | None = None
    breaker: Literal["closed", "open", "half-open"] | None = None
    breaker_for_s: Wait | None = None
    limits: dict[str, Any] = Field(default_factory=dict, max_length=20)


class BreakerChangeIn(RequestBody):
    """A breaker of the worker became `state`, so many seconds ago; an open one for so long from then on."""

    key: Annotated[str, Field(max_length=300, pattern=r"^(host|resolver):[^\x00-\x1f\x7f]+$")]
    state: Literal["closed", "open", "half-open"]
    ago_s: Wait = 0.0
    for_s: Wait | None = None
    why: Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")] = ""


class WorkerHostsIn(RequestBody):
    worker_id: Name
    hosts: Annotated[tuple[HostIn, ...], Field(max_length=MOST_ROWS)] = ()
    breaker_steps: Annotated[tuple[BreakerChangeIn, ...], Field(max_length=MOST_ROWS)] = Field(
        default=(), description="How the worker's breakers changed since its last report, in order."
    )


@resource.get("/sources")
def list_sources(ctx: Context) -> SourceList:
    """List the sources that are known, with what is known of their hosts."""
    hosts = ctx.services.source_hosts.of_sources(ctx.tenant)
    known = {source.name: source for source in ctx.services.throttles.sources(ctx.tenant)}
    names = sorted(set(known) | set(hosts))
    return SourceList([_source(name, known.get(name), hosts.get(name, [])) for name in names])


@resource.get("/sources/{name}")
def get_source(ctx: Context, name: SourcePath) -> SourceView:
    """Show one source with all its hosts."""
    hosts = ctx.services.source_hosts.of_source(ctx.tenant, name)
    known = {source.name: source for source in ctx.services.throttles.sources(ctx.tenant)}.get(name)
    if known is None and not hosts:
        raise Problem(404, "NOT_FOUND", "no such source of this tenant")
    return _source(name, known, hosts)


@resource.post("/source-hosts")
def report_hosts(ctx: Context, body: WorkerHostsIn) -> Orders:
    """Add up what a worker reports of hosts; the response names the sources and breakers that operators hold."""
    hosts = [HostReport(**host.model_dump()) for host in body.hosts]
    steps = [BreakerReport(**step.model_dump()) for step in body.breaker_steps]
    return ctx.services.source_hosts.report(ctx.tenant, body.worker_id, hosts, steps)


@resource.put("/sources/{name}", status=204)
def report_source(ctx: Context, name: SourcePath, body: SourceReport) -> None:
    """Keep what a worker knows of a source."""
    ctx.services.throttles.source_seen(ctx.tenant, name, body.state)


@resource.post("/sources/{name}/pause", operation="pauseSource")
def pause_source(ctx: Context, name: SourcePath, body: DecisionBody | None = None) -> ThrottleView:
    """Stop leasing jobs of one source; the others go on."""
    return ctx.services.throttles.pause_source(ctx.tenant, name, **ctx.decision)


@resource.post("/sources/{name}/resume", operation="resumeSource")
def resume_source(ctx: Context, name: SourcePath, body: DecisionBody | None = None) -> ThrottleList:
    """Lease jobs of the source again; the pauses that were lifted."""
    return ThrottleList(ctx.services.throttles.resume_source(ctx.tenant, name, **ctx.decision))


def _source(name: str, known: SourceView | None, hosts: Sequence[HostView]) -> SourceView:
    found = known or SourceView(name, {}, False, (), None)
    return replace(
        found,
        hosts=hosts,
        requests=sum(host.requests for host in hosts),
        refused=sum(host.refused for host in hosts),
        works=sum(host.works for host in hosts),
        updated_at=max((at for at in (found.updated_at, *(host.updated_at for host in hosts)) if at), default=None),
    )
