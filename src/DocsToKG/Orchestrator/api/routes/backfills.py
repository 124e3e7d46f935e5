"""Backfills: a historical range as jobs. Needs two scopes, and a reason and ticket of its own beside the operator's."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from DocsToKG.Orchestrator.api.routing import Context, Resource
from DocsToKG.Orchestrator.api.schemas import (
    Explained,
    GivenMoment,
    Moment,
    Name,
    Page,
    PageSize,
    PageToken,
    Reason,
    Shown,
    Text,
    Ticket,
)

resource = Resource("backfills")


class BackfillShown(Shown):
    backfill_id: str
    tenant: str
    job_type: str
    from_at: Moment
    to_at: Moment
    jobs: int
    actor: str
    reason: str
    ticket: str
    created_at: Moment


class BackfillList(Page):
    """Backfills, newest first."""

    backfills: list[BackfillShown]


class BackfillRequest(Explained):
    """A range of time, cut into steps: one job for each."""

    job_type: Name
    from_at: GivenMoment
    to_at: GivenMoment
    step_seconds: Annotated[float, Field(ge=1, le=31_536_000)]
    backfill_reason: Reason | None = None
    backfill_ticket: Ticket | None = None
    payload: dict[str, Any] = Field(default_factory=dict)
    source: Text | None = None
    project: Text | None = None
    backfill_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = Field(
        default=None, description="Of a backfill that was cut short, to go on with it."
    )


@resource.post("/backfills", status=201)
def start_backfill(ctx: Context, body: BackfillRequest) -> BackfillShown:
    """Enqueue a historical range, oldest first and behind other work."""
    started = ctx.services.backfills.start(
        ctx.tenant,
        job_type=body.job_type,
        from_at=body.from_at.timestamp(),
        to_at=body.to_at.timestamp(),
        step_s=body.step_seconds,
        actor=ctx.caller.actor,
        reason=ctx.caller.reason or "",
        ticket=ctx.caller.ticket or "",
        payload=body.payload,
        source=body.source,
        project=body.project,
        backfill_id=body.backfill_id,
        operator={"operatorReason": ctx.caller.operator_reason, "operatorTicket": ctx.caller.operator_ticket},
    )
    return BackfillShown.model_validate(started)


@resource.get("/backfills")
def list_backfills(
    ctx: Context,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[PageToken, Query()] = None,
) -> BackfillList:
    """List the tenant's backfills, newest first."""
    page = ctx.services.backfills.list(ctx.tenant, page_size=page_size, page_token=page_token)
    backfills = [BackfillShown.model_validate(each) for each in page.backfills]
    return BackfillList(backfills=backfills, next_page_token=page.next_page_token)


@resource.get("/backfills/{backfill_id}")
def get_backfill(ctx: Context, backfill_id: Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]) -> BackfillShown:
    """Show one backfill."""
    return BackfillShown.model_validate(ctx.services.backfills.get(ctx.tenant, backfill_id))
