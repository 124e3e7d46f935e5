"""Throttles and sources: hold back what fits, and let it go again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field, model_validator

from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.routing import Context, Resource
from DocsToKG.Orchestrator.api.schemas import Explained, Given, Moment, Name, Shown, Text
from DocsToKG.Orchestrator.control.throttles import SourceView, ThrottleView
from DocsToKG.Orchestrator.control.workers.hosts import MOST_ROWS, BreakerStep, HostView, HostWord

resource = Resource("limits")
ThrottlePath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Count = Annotated[int, Field(ge=0, le=10**12)]
Wait = Annotated[float, Field(ge=0, le=31_622_400)]
SourcePath = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$")]


class ThrottleShown(Shown):
    """What holds jobs back: wholly (`pause`), or beyond `maxActive` at once (`limit`)."""

    throttle_id: str
    tenant: str
    job_type: str | None
    source: str | None
    mode: Literal["pause", "limit"]
    max_active: int | None
    origin: Literal["operator", "breaker"]
    actor: str
    reason: str | None
    ticket: str | None
    created_at: Moment
    expires_at: Moment | None
    lifted_at: Moment | None
    lifted_by: str | None


class ThrottleList(Shown):
    """Throttles, the last one first."""

    throttles: list[ThrottleShown]


class ThrottleRequest(Explained):
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


class HostShown(Shown):
    """A host as workers know it; the one without a name is the source itself. `refused` counts answers 429."""

    host: str
    requests: int
    answered: int
    refused: int
    failed: int
    works: int = Field(description="Works that were obtained.")
    bytes: int
    last_status: int | None
    next_allowed_at: Moment | None = Field(description="When it may be asked again, where it may not now.")
    held_by: str | None
    breaker: str | None
    breaker_until: Moment | None
    limits: dict[str, Any]
    worker_id: str | None = Field(description="Who said it last.")
    updated_at: Moment


class SourceShown(Shown):
    """A source, what workers know of its hosts, and what holds it now."""

    name: str
    state: dict[str, Any]
    paused: bool
    throttles: list[ThrottleShown]
    hosts: list[HostShown] = Field(description="Those asked last first; the source itself has no name.")
    requests: int
    refused: int
    works: int
    updated_at: Moment | None


class SourceList(Shown):
    sources: list[SourceShown]


class SourceReport(Given):
    """What a worker knows of a source's hosts."""

    state: dict[str, Any] = Field(max_length=1000)


@resource.post("/limits/throttle", status=201)
def apply_throttle(ctx: Context, body: ThrottleRequest) -> ThrottleShown:
    """Hold back jobs of the tenant, everywhere, from the next lease on."""
    applied = ctx.services.throttles.apply(
        ctx.tenant,
        job_type=body.job_type,
        source=body.source,
        pause=body.pause,
        max_active=body.max_active,
        expires_in_s=body.expires_in_seconds,
        **ctx.decision,
    )
    return _shown(applied)


@resource.get("/throttles")
def list_throttles(
    ctx: Context, active: Annotated[bool, Query(description="Leave out those that are over.")] = True
) -> ThrottleList:
    """List the tenant's throttles, those of breakers too."""
    return ThrottleList(throttles=[_shown(throttle) for throttle in ctx.services.throttles.list(ctx.tenant, active)])


@resource.get("/throttles/{throttle_id}")
def get_throttle(ctx: Context, throttle_id: ThrottlePath) -> ThrottleShown:
    """Show one throttle."""
    return _shown(ctx.services.throttles.get(ctx.tenant, throttle_id))


@resource.post("/throttles/{throttle_id}/lift")
def lift_throttle(ctx: Context, throttle_id: ThrottlePath, body: Explained | None = None) -> ThrottleShown:
    """Let go what a throttle holds; one that a breaker set closes the breaker too."""
    return _shown(ctx.services.throttles.lift(ctx.tenant, throttle_id, **ctx.decision))


class HostSaid(Given):
    """What a worker says of a host: what it counted since its last word, and how the host stands."""

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


class BreakerSaid(Given):
    """A breaker of the worker became `state`, so many seconds ago; an open one for so long from then on."""

    key: Annotated[str, Field(max_length=300, pattern=r"^(host|resolver):[^\x00-\x1f\x7f]+$")]
    state: Literal["closed", "open", "half-open"]
    ago_s: Wait = 0.0
    for_s: Wait | None = None
    why: Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")] = ""


class HostReport(Given):
    worker_id: Name
    hosts: Annotated[tuple[HostSaid, ...], Field(max_length=MOST_ROWS)] = ()
    breaker_steps: Annotated[tuple[BreakerSaid, ...], Field(max_length=MOST_ROWS)] = Field(
        default=(), description="How the worker's breakers changed since its last word, in order."
    )


class OrdersShown(Shown):
    """What operators want of every worker, each with the reason."""

    paused: dict[str, str] = Field(description="Sources that are not to be asked.")
    forced_open: dict[str, str] = Field(description="Breakers that are held open, by key.")
    forced_closed: dict[str, str]


@resource.get("/sources")
def list_sources(ctx: Context) -> SourceList:
    """List the sources that are known, with what is known of their hosts."""
    hosts = ctx.services.source_hosts.of_sources(ctx.tenant)
    known = {source.name: source for source in ctx.services.throttles.sources(ctx.tenant)}
    names = sorted(set(known) | set(hosts))
    return SourceList(sources=[_source(name, known.get(name), hosts.get(name, [])) for name in names])


@resource.get("/sources/{name}")
def get_source(ctx: Context, name: SourcePath) -> SourceShown:
    """Show one source with all its hosts."""
    hosts = ctx.services.source_hosts.of_source(ctx.tenant, name)
    known = {source.name: source for source in ctx.services.throttles.sources(ctx.tenant)}.get(name)
    if known is None and not hosts:
        raise Problem(404, "NOT_FOUND", "no such source of this tenant")
    return _source(name, known, hosts)


@resource.post("/source-hosts")
def report_hosts(ctx: Context, body: HostReport) -> OrdersShown:
    """Add up what a worker knows of hosts, and tell it which sources and breakers operators hold."""
    words = [HostWord(**said.model_dump()) for said in body.hosts]
    steps = [BreakerStep(**said.model_dump()) for said in body.breaker_steps]
    return OrdersShown.model_validate(ctx.services.source_hosts.report(ctx.tenant, body.worker_id, words, steps))


@resource.put("/sources/{name}", status=204)
def report_source(ctx: Context, name: SourcePath, body: SourceReport) -> None:
    """Keep what a worker knows of a source."""
    ctx.services.throttles.source_seen(ctx.tenant, name, body.state)


@resource.post("/sources/{name}/pause", operation="pauseSource")
def pause_source(ctx: Context, name: SourcePath, body: Explained | None = None) -> ThrottleShown:
    """Stop leasing jobs of one source; the others go on."""
    return _shown(ctx.services.throttles.pause_source(ctx.tenant, name, **ctx.decision))


@resource.post("/sources/{name}/resume", operation="resumeSource")
def resume_source(ctx: Context, name: SourcePath, body: Explained | None = None) -> ThrottleList:
    """Lease jobs of the source again; the pauses that were lifted."""
    lifted = ctx.services.throttles.resume_source(ctx.tenant, name, **ctx.decision)
    return ThrottleList(throttles=[_shown(throttle) for throttle in lifted])


def _shown(throttle: ThrottleView) -> ThrottleShown:
    return ThrottleShown.model_validate(throttle)


def _source(name: str, known: SourceView | None, hosts: Sequence[HostView]) -> SourceShown:
    seen = [at for at in (known.updated_at if known else None, *(host.updated_at for host in hosts)) if at is not None]
    return SourceShown(
        name=name,
        state=dict(known.state) if known else {},
        paused=known is not None and known.paused,
        throttles=[_shown(throttle) for throttle in known.throttles] if known else [],
        hosts=[HostShown.model_validate(host) for host in hosts],
        requests=sum(host.requests for host in hosts),
        refused=sum(host.refused for host in hosts),
        works=sum(host.works for host in hosts),
        updated_at=max(seen, default=None),  # type: ignore[arg-type]  # written out by the form
    )
