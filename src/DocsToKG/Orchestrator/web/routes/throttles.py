"""Throttles and sources: hold back what fits, and let it go again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field, model_validator

from DocsToKG.Orchestrator.services.throttles import ThrottleView
from DocsToKG.Orchestrator.web.serving import Asked, Resource
from DocsToKG.Orchestrator.web.shapes import Explained, Given, Moment, Name, Shown, Text

resource = Resource("limits")
ThrottlePath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
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


class SourceShown(Shown):
    """A source, what workers know of its hosts, and what holds it now."""

    name: str
    state: dict[str, Any]
    paused: bool
    throttles: list[ThrottleShown]
    updated_at: Moment | None


class SourceList(Shown):
    sources: list[SourceShown]


class SourceReport(Given):
    """What a worker knows of a source's hosts."""

    state: dict[str, Any] = Field(max_length=1000)


@resource.post("/limits/throttle", status=201)
def apply_throttle(ask: Asked, body: ThrottleRequest) -> ThrottleShown:
    """Hold back jobs of the tenant, everywhere, from the next lease on."""
    applied = ask.rooms.throttles.apply(
        ask.tenant,
        job_type=body.job_type,
        source=body.source,
        pause=body.pause,
        max_active=body.max_active,
        expires_in_s=body.expires_in_seconds,
        **ask.decision,
    )
    return _shown(applied)


@resource.get("/throttles")
def list_throttles(
    ask: Asked, active: Annotated[bool, Query(description="Leave out those that are over.")] = True
) -> ThrottleList:
    """List the tenant's throttles, those of breakers too."""
    return ThrottleList(throttles=[_shown(throttle) for throttle in ask.rooms.throttles.list(ask.tenant, active)])


@resource.get("/throttles/{throttle_id}")
def get_throttle(ask: Asked, throttle_id: ThrottlePath) -> ThrottleShown:
    """Show one throttle."""
    return _shown(ask.rooms.throttles.get(ask.tenant, throttle_id))


@resource.post("/throttles/{throttle_id}/lift")
def lift_throttle(ask: Asked, throttle_id: ThrottlePath, body: Explained | None = None) -> ThrottleShown:
    """Let go what a throttle holds; one that a breaker set closes the breaker too."""
    return _shown(ask.rooms.throttles.lift(ask.tenant, throttle_id, **ask.decision))


@resource.get("/sources")
def list_sources(ask: Asked) -> SourceList:
    """List the sources that are known, with what is known of their hosts."""
    return SourceList(
        sources=[SourceShown.model_validate(source) for source in ask.rooms.throttles.sources(ask.tenant)]
    )


@resource.put("/sources/{name}", status=204)
def report_source(ask: Asked, name: SourcePath, body: SourceReport) -> None:
    """Keep what a worker knows of a source."""
    ask.rooms.throttles.source_seen(ask.tenant, name, body.state)


@resource.post("/sources/{name}/pause", operation="pauseSource")
def pause_source(ask: Asked, name: SourcePath, body: Explained | None = None) -> ThrottleShown:
    """Stop leasing jobs of one source; the others go on."""
    return _shown(ask.rooms.throttles.pause_source(ask.tenant, name, **ask.decision))


@resource.post("/sources/{name}/resume", operation="resumeSource")
def resume_source(ask: Asked, name: SourcePath, body: Explained | None = None) -> ThrottleList:
    """Lease jobs of the source again; the pauses that were lifted."""
    lifted = ask.rooms.throttles.resume_source(ask.tenant, name, **ask.decision)
    return ThrottleList(throttles=[_shown(throttle) for throttle in lifted])


def _shown(throttle: ThrottleView) -> ThrottleShown:
    return ThrottleShown.model_validate(throttle)
