"""The figures that a console shows."""

from __future__ import annotations

from pydantic import Field

from DocsToKG.Orchestrator.api.routing import Context, Resource
from DocsToKG.Orchestrator.api.schemas import Moment, Shown
from DocsToKG.Orchestrator.api.services import Services

resource = Resource("dashboard")


class MinuteShown(Shown):
    at: Moment
    enqueued: int
    leased: int
    succeeded: int
    failed: int
    retried: int
    canceled: int


class ReasonShown(Shown):
    reason: str
    count: int


class HeldShown(Shown):
    """A job type that is held back, by what, and until when."""

    job_type: str
    by: str | None
    until: Moment | None


class LaneShown(Shown):
    """How far a job type is from its limits; `*` stands for all types together."""

    job_type: str
    tokens: float | None = Field(description="How many may start now.")
    at: Moment | None
    cap: float | None = Field(description="How many may start at once at most.")
    per_hour: int | None = Field(description="How many come to them in an hour.")
    active: int | None
    max_active: int | None


class BreakerState(Shown):
    key: str
    state: str


class DashboardShown(Shown):
    """All figures of one tenant at one moment of ledger time."""

    at: Moment
    counts: dict[str, int] = Field(description="Jobs by status.")
    queues: dict[str, dict[str, int]] = Field(description="Jobs by job type and status.")
    throughput: list[MinuteShown] = Field(description="The last hour by the minute.")
    errors: list[ReasonShown] = Field(description="Why jobs failed in the last hour, the most frequent first.")
    since: Moment = Field(description="From when on the last two are whole.")
    oldest_wait_seconds: float | None
    waiting: int = Field(description="Jobs that are pending or queued.")
    ends_per_minute: float = Field(description="The pace of the last ten minutes.")
    backlog_seconds: float | None = Field(description="How long what is not over will take at that pace.")
    workers: int = Field(description="Workers that reported in the last two minutes.")
    paused: bool
    maintenance: bool
    held: list[HeldShown]
    rate_limits: list[LaneShown]
    throttles: int
    open_breakers: list[BreakerState]
    open_incidents: int


@resource.get("/dashboard/metrics")
def dashboard_metrics(ctx: Context) -> DashboardShown:
    """Show the tenant's figures: counts, throughput, errors, what is held back."""
    return figures_of(ctx.services, ctx.tenant)


def figures_of(services: Services, tenant: str) -> DashboardShown:
    found = services.dashboard.metrics(tenant)
    return DashboardShown(
        at=found.at,  # type: ignore[arg-type]  # written out by the form
        counts=dict(found.counts),
        queues={name: dict(counts) for name, counts in found.queues.items()},
        throughput=[MinuteShown.model_validate(minute) for minute in found.rates.minutes],
        errors=[ReasonShown(reason=reason, count=count) for reason, count in found.rates.reasons],
        since=found.rates.since,  # type: ignore[arg-type]
        oldest_wait_seconds=found.oldest_wait_s,
        waiting=found.waiting,
        ends_per_minute=found.ends_per_minute,
        backlog_seconds=found.backlog_s,
        workers=found.workers,
        paused=found.paused,
        maintenance=found.maintenance,
        held=[HeldShown.model_validate(lane) for lane in found.held],
        rate_limits=[LaneShown.model_validate(lane) for lane in found.lanes],
        throttles=found.throttles,
        open_breakers=[BreakerState(key=key, state=state) for key, state in found.open_breakers],
        open_incidents=found.open_incidents,
    )
