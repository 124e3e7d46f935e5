"""Workers: who works for a tenant, and what each of them holds."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from DocsToKG.Orchestrator.api.context import Context
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import Name, Paging, RequestBody, Text
from DocsToKG.Orchestrator.control.workers.registry import WorkerPage

resource = Resource("workers")


class WorkerReport(RequestBody):
    """What a worker reports of itself."""

    worker_id: Name
    node: Text | None = None
    kind: Text | None = None
    version: Text | None = None
    info: dict[str, Any] = Field(default_factory=dict, max_length=100)


@resource.get("/workers")
def list_workers(
    ctx: Context,
    paging: Paging,
    seen_within: Annotated[float | None, Query(alias="seenWithinSeconds", ge=0, le=31_536_000)] = None,
) -> WorkerPage:
    """List the tenant's workers by name, with the leases that each holds."""
    return ctx.services.workers.list(ctx.tenant, seen_within_s=seen_within, **paging)


@resource.post("/workers", status=204)
def report_worker(ctx: Context, body: WorkerReport) -> None:
    """Report a worker as alive."""
    ctx.services.workers.seen(ctx.tenant, **body.model_dump())
