"""Backfills: a historical range as jobs. Needs two scopes, and a reason and ticket of its own beside the operator's."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import Field

from DocsToKG.Orchestrator.api.context import Context
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import DecisionBody, Name, Paging, Reason, Text, Ticket, ZonedTime
from DocsToKG.Orchestrator.control.backfills import Backfill, BackfillPage

resource = Resource("backfills")


class BackfillRequest(DecisionBody):
    """A range of time, cut into steps: one job for each."""

    job_type: Name
    from_at: ZonedTime
    to_at: ZonedTime
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
def start_backfill(ctx: Context, body: BackfillRequest) -> Backfill:
    """Enqueue a historical range, oldest first and behind other work."""
    return ctx.services.backfills.start(
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


@resource.get("/backfills")
def list_backfills(ctx: Context, paging: Paging) -> BackfillPage:
    """List the tenant's backfills, newest first."""
    return ctx.services.backfills.list(ctx.tenant, **paging)


@resource.get("/backfills/{backfill_id}")
def get_backfill(ctx: Context, backfill_id: Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]) -> Backfill:
    """Show one backfill."""
    return ctx.services.backfills.get(ctx.tenant, backfill_id)
