"""Circuit breakers of a tenant: check a service, record how a request went, force a state, change the thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import Field

from DocsToKG.core.breaker import BreakerSettings
from DocsToKG.Orchestrator.api.context import Context
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import DecisionBody, RequestBody
from DocsToKG.Orchestrator.control.breakers import BreakerView, StateWord, TransitionView, key_of
from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.jobs.breakers import default_settings
from DocsToKG.Orchestrator.views import View

resource = Resource("circuit-breakers")
ServicePath = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$",
        description="Name of a service, or `host:`, `resolver:`, `jobtype:` and a name.",
    ),
]


@dataclass(frozen=True, slots=True)
class BreakerList(View):
    """The tenant's breakers, by key."""

    circuit_breakers: Sequence[BreakerView]


@dataclass(frozen=True, slots=True)
class BreakerCheck(View):
    """Whether a request may go out. In the half-open state a yes counts as one of the tests. `timeUntilRetry` is in
    seconds, null where it is not known."""

    is_allowed: bool
    state: StateWord
    failure_rate: float
    time_until_retry: float | None


@dataclass(frozen=True, slots=True)
class TransitionList(View):
    """The latest changes of state, the last one first."""

    transitions: Sequence[TransitionView]


class FailureRequest(RequestBody):
    failure_reason: Annotated[str, Field(max_length=500)] | None = None
    retry_after_seconds: Annotated[float, Field(ge=0, le=86_400)] | None = None


class ThresholdsIn(DecisionBody):
    """Settings of one breaker; those that are left out are as for others of its kind."""

    threshold: Annotated[float | None, Field(ge=0, le=1, alias="failureThreshold")] = None
    window_s: Annotated[float | None, Field(ge=1, le=86_400, alias="windowSeconds")] = None
    min_samples: Annotated[int | None, Field(ge=1, le=100_000, alias="minimumSamples")] = None
    open_s: Annotated[float | None, Field(ge=0.1, le=86_400, alias="openSeconds")] = None
    longest_open_s: Annotated[float | None, Field(ge=0.1, le=604_800, alias="longestOpenSeconds")] = None
    test_count: Annotated[int | None, Field(ge=1, le=1_000, alias="halfOpenTestCount")] = None

    def settings(self, service_id: str) -> BreakerSettings:
        given = self.model_dump(exclude=set(DecisionBody.model_fields), exclude_none=True)
        try:
            return replace(default_settings(key_of(service_id)), **given)
        except ValueError:
            raise BadJob("longestOpenSeconds must not be below openSeconds") from None


@resource.get("/circuit-breakers")
def list_breakers(
    ctx: Context, state: Annotated[Literal["Closed", "Open", "HalfOpen"] | None, Query()] = None
) -> BreakerList:
    """List the tenant's breakers."""
    return BreakerList(ctx.services.breakers.list(ctx.tenant, state))


@resource.get("/circuit-breakers/{service_id}")
def get_breaker(ctx: Context, service_id: ServicePath) -> BreakerView:
    """Show one breaker."""
    return ctx.services.breakers.get(ctx.tenant, service_id)


@resource.get("/circuit-breakers/{service_id}/check")
def check_breaker(ctx: Context, service_id: ServicePath) -> BreakerCheck:
    """Say whether a request may go out now."""
    found = ctx.services.breakers.check(ctx.tenant, service_id)
    return BreakerCheck(found.allowed, found.state, found.failure_rate, found.retry_in_s)


@resource.get("/circuit-breakers/{service_id}/transitions")
def breaker_transitions(ctx: Context, service_id: ServicePath) -> TransitionList:
    """Show how the breaker came to its state."""
    return TransitionList(ctx.services.breakers.transitions(ctx.tenant, service_id))


@resource.post("/circuit-breakers/{service_id}/success")
def record_success(ctx: Context, service_id: ServicePath) -> BreakerView:
    """Record a request that went well."""
    return ctx.services.breakers.record_success(ctx.tenant, service_id)


@resource.post("/circuit-breakers/{service_id}/failure")
def record_failure(ctx: Context, service_id: ServicePath, body: FailureRequest | None = None) -> BreakerView:
    """Record a request that failed."""
    given = body or FailureRequest()
    return ctx.services.breakers.record_failure(
        ctx.tenant, service_id, given.failure_reason, retry_after_s=given.retry_after_seconds
    )


@resource.post("/circuit-breakers/{service_id}/force-open")
def force_open(ctx: Context, service_id: ServicePath, body: DecisionBody | None = None) -> BreakerView:
    """Hold the breaker open until it is changed."""
    return ctx.services.breakers.force_open(ctx.tenant, service_id, **ctx.decision)


@resource.post("/circuit-breakers/{service_id}/force-close")
def force_close(ctx: Context, service_id: ServicePath, body: DecisionBody | None = None) -> BreakerView:
    """Hold the breaker closed until it is changed."""
    return ctx.services.breakers.force_close(ctx.tenant, service_id, **ctx.decision)


@resource.post("/circuit-breakers/{service_id}/unforce")
def unforce_breaker(ctx: Context, service_id: ServicePath, body: DecisionBody | None = None) -> BreakerView:
    """End a forced state: the recorded requests decide again."""
    return ctx.services.breakers.unforce(ctx.tenant, service_id, **ctx.decision)


@resource.put("/circuit-breakers/{service_id}/settings")
def configure_breaker(ctx: Context, service_id: ServicePath, body: ThresholdsIn) -> BreakerView:
    """Give the breaker settings of its own; they count from the next recorded request on."""
    settings = body.settings(service_id)
    return ctx.services.breakers.configure(ctx.tenant, service_id, settings, **ctx.decision)


@resource.delete("/circuit-breakers/{service_id}/settings", status=204)
def unconfigure_breaker(ctx: Context, service_id: ServicePath) -> None:
    """Bring back the settings of its kind; the reason comes in the headers."""
    ctx.services.breakers.configure(ctx.tenant, service_id, None, **ctx.decision)
