"""Decisions of operators: for many jobs at once, with a preview; and the list of all that were made."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field

from DocsToKG.Orchestrator.api.context import Context
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import BIG, DecisionBody, Name, Paging, RequestBody, Text, ZonedTime, seconds
from DocsToKG.Orchestrator.control.history.decisions import ActionPage
from DocsToKG.Orchestrator.control.jobs.bulk import BulkResult, Preview
from DocsToKG.Orchestrator.control.jobs.pages import JobQuery
from DocsToKG.Orchestrator.jobs.search import parse
from DocsToKG.Orchestrator.jobs.status import JobStatus

resource = Resource("actions")


class JobFilterIn(RequestBody):
    """Which jobs: the filters of `GET /jobs`. Without any, all that the action can touch."""

    status: Annotated[list[JobStatus], Field(max_length=7)] | None = None
    job_type: Name | None = None
    project: Text | None = None
    source: Text | None = None
    worker: Text | None = None
    correlation_id: Text | None = None
    created_from: ZonedTime | None = None
    created_to: ZonedTime | None = None
    updated_from: ZonedTime | None = None
    updated_to: ZonedTime | None = None
    search: Annotated[str, Field(max_length=400)] | None = None

    def query(self) -> JobQuery:
        return JobQuery(
            statuses=tuple(self.status or ()),
            job_type=self.job_type,
            project=self.project,
            source=self.source,
            worker_id=self.worker,
            correlation_id=self.correlation_id,
            created_from=seconds(self.created_from),
            created_to=seconds(self.created_to),
            updated_from=seconds(self.updated_from),
            updated_to=seconds(self.updated_to),
            search=parse(self.search or ""),
        )


class PreviewRequest(RequestBody):
    action: Literal["cancel", "retry"]
    filter: JobFilterIn = JobFilterIn()


class BulkRequest(DecisionBody):
    """The jobs of a preview, and why."""

    filter: JobFilterIn = JobFilterIn()
    up_to: Annotated[int, Field(ge=0, le=BIG, description="As the preview gave it, or the call before.")]


@resource.post("/bulk-actions/preview")
def preview_bulk_action(ctx: Context, body: PreviewRequest) -> Preview:
    """Count the jobs that an action would touch; nothing is changed."""
    return ctx.services.bulk.preview(ctx.tenant, body.action, body.filter.query())


@resource.post("/bulk-actions/cancel")
def bulk_cancel(ctx: Context, body: BulkRequest) -> BulkResult:
    """Cancel the jobs of a preview, some hundred with each call."""
    return ctx.services.bulk.cancel(ctx.tenant, body.filter.query(), up_to=body.up_to, **ctx.decision)


@resource.post("/bulk-actions/retry")
def bulk_retry(ctx: Context, body: BulkRequest) -> BulkResult:
    """Queue the failed jobs of a preview again, some hundred with each call."""
    return ctx.services.bulk.retry(ctx.tenant, body.filter.query(), up_to=body.up_to, **ctx.decision)


@resource.get("/actions")
def list_actions(
    ctx: Context,
    paging: Paging,
    actor: Annotated[Text | None, Query()] = None,
    action: Annotated[Name | None, Query()] = None,
    ticket: Annotated[Text | None, Query()] = None,
) -> ActionPage:
    """List the decisions of operators: who, when, why and by which ticket, newest first."""
    return ctx.services.actions.list(ctx.tenant, actor=actor, action=action, ticket=ticket, **paging)
