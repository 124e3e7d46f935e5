"""Circuit breakers of a tenant: may a service be asked, how did it go, and an operator's word that overrules."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import Field

from DocsToKG.core.breaker import BreakerSettings, BreakerState
from DocsToKG.Orchestrator.api.routing import Context, Resource
from DocsToKG.Orchestrator.api.schemas import Explained, Given, Moment, Shown
from DocsToKG.Orchestrator.control.breakers import BreakerView, key_of
from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.jobs.breakers import default_settings

resource = Resource("circuit-breakers")
StateWord = Literal["Closed", "Open", "HalfOpen"]
_WORDS: dict[BreakerState, StateWord] = {
    BreakerState.CLOSED: "Closed",
    BreakerState.OPEN: "Open",
    BreakerState.HALF_OPEN: "HalfOpen",
}
_STATES = {word: state for state, word in _WORDS.items()}
ServicePath = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$",
        description="Name of a service, or `host:`, `resolver:`, `jobtype:` and a name.",
    ),
]


class Thresholds(Shown):
    threshold: float = Field(serialization_alias="failureThreshold")
    window_s: float = Field(serialization_alias="windowSeconds")
    min_samples: int = Field(serialization_alias="minimumSamples")
    open_s: float = Field(serialization_alias="openSeconds")
    longest_open_s: float = Field(serialization_alias="longestOpenSeconds")
    test_count: int = Field(serialization_alias="halfOpenTestCount")


class BreakerShown(Shown):
    service_id: str
    key: str
    tenant: str
    state: StateWord
    forced: bool
    failure_rate: float
    open_until: Moment | None
    settings: Thresholds
    version: int
    updated_at: Moment


class BreakerList(Shown):
    """The tenant's breakers, by key."""

    circuit_breakers: list[BreakerShown]


class CheckShown(Shown):
    """Whether a request may go out. In the half-open state a yes takes one of the places for tests."""

    is_allowed: bool
    state: StateWord
    failure_rate: float
    time_until_retry: float | None = Field(description="Seconds; null when nobody can say.")


class FailureRequest(Given):
    failure_reason: Annotated[str, Field(max_length=500)] | None = None
    retry_after_seconds: Annotated[float, Field(ge=0, le=86_400)] | None = None


class ThresholdsGiven(Explained):
    """Settings of one breaker; those that are left out are as for others of its kind."""

    threshold: Annotated[float | None, Field(ge=0, le=1, alias="failureThreshold")] = None
    window_s: Annotated[float | None, Field(ge=1, le=86_400, alias="windowSeconds")] = None
    min_samples: Annotated[int | None, Field(ge=1, le=100_000, alias="minimumSamples")] = None
    open_s: Annotated[float | None, Field(ge=0.1, le=86_400, alias="openSeconds")] = None
    longest_open_s: Annotated[float | None, Field(ge=0.1, le=604_800, alias="longestOpenSeconds")] = None
    test_count: Annotated[int | None, Field(ge=1, le=1_000, alias="halfOpenTestCount")] = None

    def settings(self, service_id: str) -> BreakerSettings:
        given = self.model_dump(exclude=set(Explained.model_fields), exclude_none=True)
        try:
            return replace(default_settings(key_of(service_id)), **given)
        except ValueError:
            raise BadJob("longestOpenSeconds must not be below openSeconds") from None


class TransitionShown(Shown):
    at: Moment
    old_state: str
    new_state: str
    why: str
    actor: str
    reset_s: float | None = Field(serialization_alias="resetSeconds")


class TransitionList(Shown):
    """The latest changes of state, the last one first."""

    transitions: list[TransitionShown]


@resource.get("/circuit-breakers")
def list_breakers(ctx: Context, state: Annotated[StateWord | None, Query()] = None) -> BreakerList:
    """List the tenant's breakers."""
    found = ctx.services.breakers.list(ctx.tenant, None if state is None else _STATES[state].value)
    return BreakerList(circuit_breakers=[breaker_shown(breaker) for breaker in found])


@resource.get("/circuit-breakers/{service_id}")
def get_breaker(ctx: Context, service_id: ServicePath) -> BreakerShown:
    """Show one breaker."""
    return breaker_shown(ctx.services.breakers.get(ctx.tenant, service_id))


@resource.get("/circuit-breakers/{service_id}/check")
def check_breaker(ctx: Context, service_id: ServicePath) -> CheckShown:
    """Say whether a request may go out now."""
    found = ctx.services.breakers.check(ctx.tenant, service_id)
    return CheckShown(
        is_allowed=found.allowed,
        state=_WORDS[found.state],
        failure_rate=found.failure_rate,
        time_until_retry=found.retry_in_s,
    )


@resource.get("/circuit-breakers/{service_id}/transitions")
def breaker_transitions(ctx: Context, service_id: ServicePath) -> TransitionList:
    """Show how the breaker came to its state."""
    found = ctx.services.breakers.transitions(ctx.tenant, service_id)
    return TransitionList(transitions=[TransitionShown.model_validate(each) for each in found])


@resource.post("/circuit-breakers/{service_id}/success")
def record_success(ctx: Context, service_id: ServicePath) -> BreakerShown:
    """Record a request that went well."""
    return breaker_shown(ctx.services.breakers.record_success(ctx.tenant, service_id))


@resource.post("/circuit-breakers/{service_id}/failure")
def record_failure(ctx: Context, service_id: ServicePath, body: FailureRequest | None = None) -> BreakerShown:
    """Record a request that failed."""
    given = body or FailureRequest()
    return breaker_shown(
        ctx.services.breakers.record_failure(
            ctx.tenant, service_id, given.failure_reason, retry_after_s=given.retry_after_seconds
        )
    )


@resource.post("/circuit-breakers/{service_id}/force-open")
def force_open(ctx: Context, service_id: ServicePath, body: Explained | None = None) -> BreakerShown:
    """Hold the breaker open until it is changed."""
    return breaker_shown(ctx.services.breakers.force_open(ctx.tenant, service_id, **ctx.decision))


@resource.post("/circuit-breakers/{service_id}/force-close")
def force_close(ctx: Context, service_id: ServicePath, body: Explained | None = None) -> BreakerShown:
    """Hold the breaker closed until it is changed."""
    return breaker_shown(ctx.services.breakers.force_close(ctx.tenant, service_id, **ctx.decision))


@resource.post("/circuit-breakers/{service_id}/unforce")
def unforce_breaker(ctx: Context, service_id: ServicePath, body: Explained | None = None) -> BreakerShown:
    """Let the breaker go by its answers again."""
    return breaker_shown(ctx.services.breakers.unforce(ctx.tenant, service_id, **ctx.decision))


@resource.put("/circuit-breakers/{service_id}/settings")
def configure_breaker(ctx: Context, service_id: ServicePath, body: ThresholdsGiven) -> BreakerShown:
    """Give the breaker settings of its own, which count from the next answer on."""
    settings = body.settings(service_id)
    return breaker_shown(ctx.services.breakers.configure(ctx.tenant, service_id, settings, **ctx.decision))


@resource.delete("/circuit-breakers/{service_id}/settings", status=204)
def unconfigure_breaker(ctx: Context, service_id: ServicePath) -> None:
    """Bring back the settings of its kind; the reason comes in the headers."""
    ctx.services.breakers.configure(ctx.tenant, service_id, None, **ctx.decision)


def breaker_shown(breaker: BreakerView) -> BreakerShown:
    values = {name: getattr(breaker, name) for name in BreakerShown.model_fields if name not in ("state", "settings")}
    return BreakerShown(**values, state=_WORDS[breaker.state], settings=Thresholds.model_validate(breaker.settings))
