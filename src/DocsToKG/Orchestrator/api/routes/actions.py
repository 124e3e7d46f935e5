"""Decisions: for many jobs at once, with a preview; and the trail of all that were made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from DocsToKG.Orchestrator.api.routes.job_shapes import JobShown, shown
from DocsToKG.Orchestrator.api.routing import Context, Resource
from DocsToKG.Orchestrator.api.schemas import (
    BIG,
    Explained,
    Given,
    GivenMoment,
    Moment,
    Name,
    Page,
    PageSize,
    PageToken,
    Shown,
    Text,
    seconds,
)
from DocsToKG.Orchestrator.control.jobs.bulk import Done
from DocsToKG.Orchestrator.control.jobs.pages import JobQuery
from DocsToKG.Orchestrator.jobs.search import parse
from DocsToKG.Orchestrator.jobs.status import JobStatus

resource = Resource("actions")


class JobsMeant(Given):
    """Which jobs: the same words as those of `GET /jobs`. Without any, all that the action can touch."""

    status: Annotated[list[JobStatus], Field(max_length=7)] | None = None
    job_type: Name | None = None
    project: Text | None = None
    source: Text | None = None
    worker: Text | None = None
    correlation_id: Text | None = None
    created_from: GivenMoment | None = None
    created_to: GivenMoment | None = None
    updated_from: GivenMoment | None = None
    updated_to: GivenMoment | None = None
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


class PreviewRequest(Given):
    action: Literal["cancel", "retry"]
    filter: JobsMeant = JobsMeant()


class PreviewShown(Shown):
    """What an action would touch. `upTo` goes with the action, so that later jobs are left alone."""

    action: str
    count: int
    complete: bool = Field(description="False: there are more than were counted.")
    up_to: int
    sample: list[JobShown] = Field(description="The newest of them.")


class BulkRequest(Explained):
    """The jobs of a preview, and why."""

    filter: JobsMeant = JobsMeant()
    up_to: Annotated[int, Field(ge=0, le=BIG, description="As the preview gave it, or the call before.")]


class DoneShown(Shown):
    """What was changed. While `more`, the same call goes on with the rest; with `upTo` it passes over what is done."""

    action: str
    changed: int
    more: bool
    up_to: int | None = Field(description="For the next call, while there is more.")


class ActionShown(Shown):
    """One decision. `tenant` is `*` where it was one for all tenants."""

    seq: int
    tenant: str
    job_id: int | None
    at: Moment
    action: str
    actor: str
    scope: str | None
    reason: str | None
    ticket: str | None
    detail: dict[str, Any] | None


class ActionList(Page):
    """Decisions, newest first."""

    actions: list[ActionShown]


@resource.post("/bulk-actions/preview")
def preview_bulk_action(ctx: Context, body: PreviewRequest) -> PreviewShown:
    """Count the jobs that an action would touch; nothing is changed."""
    found = ctx.services.bulk.preview(ctx.tenant, body.action, body.filter.query())
    return PreviewShown(
        action=found.action,
        count=found.count,
        complete=found.complete,
        up_to=found.up_to,
        sample=[shown(job) for job in found.sample],
    )


@resource.post("/bulk-actions/cancel")
def bulk_cancel(ctx: Context, body: BulkRequest) -> DoneShown:
    """Call off the jobs of a preview, some hundred with each call."""
    return _shown(ctx.services.bulk.cancel(ctx.tenant, body.filter.query(), up_to=body.up_to, **ctx.decision))


@resource.post("/bulk-actions/retry")
def bulk_retry(ctx: Context, body: BulkRequest) -> DoneShown:
    """Queue the failed jobs of a preview again, some hundred with each call."""
    return _shown(ctx.services.bulk.retry(ctx.tenant, body.filter.query(), up_to=body.up_to, **ctx.decision))


@resource.get("/actions")
def list_actions(
    ctx: Context,
    actor: Annotated[Text | None, Query()] = None,
    action: Annotated[Name | None, Query()] = None,
    ticket: Annotated[Text | None, Query()] = None,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[PageToken, Query()] = None,
) -> ActionList:
    """List what people decided: who, when, why and by which ticket, newest first."""
    page = ctx.services.actions.list(
        ctx.tenant, actor=actor, action=action, ticket=ticket, page_size=page_size, page_token=page_token
    )
    shown_actions = [ActionShown.model_validate(each) for each in page.actions]
    return ActionList(actions=shown_actions, next_page_token=page.next_page_token)


def _shown(done: Done) -> DoneShown:
    return DoneShown.model_validate(done)
