"""Workers: who works for a tenant, and what each of them holds."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from DocsToKG.Orchestrator.api.routing import Context, Resource
from DocsToKG.Orchestrator.api.schemas import Given, Moment, Name, Page, PageSize, PageToken, Shown, Text

resource = Resource("workers")


class WorkerShown(Shown):
    worker_id: str
    tenant: str
    node: str | None
    kind: str | None
    version: str | None
    info: dict[str, Any]
    started_at: Moment
    last_seen_at: Moment
    leases: int


class WorkerList(Page):
    """Workers, by name."""

    workers: list[WorkerShown]


class WorkerReport(Given):
    """What a worker says of itself."""

    worker_id: Name
    node: Text | None = None
    kind: Text | None = None
    version: Text | None = None
    info: dict[str, Any] = Field(default_factory=dict, max_length=100)


@resource.get("/workers")
def list_workers(
    ctx: Context,
    seen_within: Annotated[float | None, Query(alias="seenWithinSeconds", ge=0, le=31_536_000)] = None,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[PageToken, Query()] = None,
) -> WorkerList:
    """List the tenant's workers by name, with the leases that each holds."""
    page = ctx.services.workers.list(ctx.tenant, seen_within_s=seen_within, page_size=page_size, page_token=page_token)
    workers = [WorkerShown.model_validate(worker) for worker in page.workers]
    return WorkerList(workers=workers, next_page_token=page.next_page_token)


@resource.post("/workers", status=204)
def report_worker(ctx: Context, body: WorkerReport) -> None:
    """Take note that a worker is there."""
    ctx.services.workers.seen(ctx.tenant, **body.model_dump())
