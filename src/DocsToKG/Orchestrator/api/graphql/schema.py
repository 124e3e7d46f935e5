"""The GraphQL schema, read-only, over the same services and views as the REST API.

Promises: there are no mutations; every field is of the caller's tenant; lists continue from `pageInfo.endCursor`.
"""

# mypy: disallow-untyped-decorators=False
# The library types what its decorators make, not the decorators.

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import strawberry
from strawberry.scalars import JSON
from strawberry.types import Info

from DocsToKG.Orchestrator.api.schemas import json_value
from DocsToKG.Orchestrator.api.services import Services
from DocsToKG.Orchestrator.api.sse import EventStreams, StreamEvent
from DocsToKG.Orchestrator.control.history.feed import parse_cursor
from DocsToKG.Orchestrator.control.jobs.pages import JobQuery
from DocsToKG.Orchestrator.control.jobs.views import JobView
from DocsToKG.Orchestrator.errors import BadJob, NotFound
from DocsToKG.Orchestrator.jobs.search import parse
from DocsToKG.Orchestrator.jobs.status import JobStatus
from DocsToKG.Orchestrator.views import View, json_name


@dataclass(frozen=True, slots=True)
class GraphContext:
    """The services and the tenant of one query."""

    services: Services
    tenant: str
    streams: EventStreams


@strawberry.type
class PageInfo:
    has_next_page: bool
    end_cursor: str | None


@strawberry.type
class Job:
    id: strawberry.ID
    artifact_id: str
    tenant: str
    project: str | None
    job_type: str
    source: str | None
    priority: int
    status: str
    state: str
    stage: str | None
    outcome: str | None
    attempts: int
    max_attempts: int
    worker_id: str | None
    last_error: str | None
    payload_digest: str
    correlation_id: str | None
    next_eligible_at: str
    created_at: str
    updated_at: str
    finished_at: str | None

    @strawberry.field(description="Everything that the API tells of a job: payload, result, leases, metrics, why.")
    def detail(self, info: Info[GraphContext, None]) -> JSON:
        reading = info.context
        return _json(reading.services.jobs.detail(reading.tenant, int(self.id)))


@strawberry.type
class JobConnection:
    nodes: list[Job]
    page_info: PageInfo


@strawberry.type
class NodeConnection:
    nodes: list[JSON]
    page_info: PageInfo


@strawberry.type
class Query:
    @strawberry.field(description="Jobs, newest first.")
    def jobs(
        self,
        info: Info[GraphContext, None],
        first: int = 50,
        after: str | None = None,
        status: list[str] | None = None,
        job_type: str | None = None,
        search: str | None = None,
    ) -> JobConnection:
        words = [_status(word) for word in status or ()]
        query = JobQuery(statuses=words, job_type=job_type, search=parse((search or "")[:400]))
        page = info.context.services.jobs.list(info.context.tenant, query, page_size=_size(first), page_token=after)
        return JobConnection(nodes=[_job(view) for view in page.jobs], page_info=_info(page.next_page_token))

    @strawberry.field(description="One job.")
    def job(self, info: Info[GraphContext, None], id: strawberry.ID) -> Job | None:
        if not id.isascii() or not id.isdigit() or len(id) > 18:
            return None
        try:
            return _job(info.context.services.jobs.get(info.context.tenant, int(id)))
        except NotFound:
            return None

    @strawberry.field(description="Jobs that failed for good.")
    def dead_letters(self, info: Info[GraphContext, None], first: int = 50, after: str | None = None) -> JobConnection:
        jobs, tenant = info.context.services.jobs, info.context.tenant
        page = jobs.dead_letters(tenant, page_size=_size(first), page_token=after)
        return JobConnection(nodes=[_job(view) for view in page.jobs], page_info=_info(page.next_page_token))

    @strawberry.field(description="Counts, throughput, errors, what is held back.")
    def dashboard(self, info: Info[GraphContext, None]) -> JSON:
        return _json(info.context.services.dashboard.metrics(info.context.tenant))

    @strawberry.field(description="Incidents, the last one first.")
    def incidents(
        self, info: Info[GraphContext, None], first: int = 50, after: str | None = None, state: str | None = None
    ) -> NodeConnection:
        found = info.context.services.incidents
        page = found.list(info.context.tenant, state, page_size=_size(first), page_token=after)
        nodes = [_json(each) for each in page.incidents]
        return NodeConnection(nodes=nodes, page_info=_info(page.next_page_token))

    @strawberry.field(description="Pack-runs, newest first.")
    def pack_runs(self, info: Info[GraphContext, None], first: int = 50, after: str | None = None) -> NodeConnection:
        page = info.context.services.pack_runs.list(info.context.tenant, page_size=_size(first), page_token=after)
        nodes = [_json(each) for each in page.pack_runs]
        return NodeConnection(nodes=nodes, page_info=_info(page.next_page_token))

    @strawberry.field(description="Workers, by name.")
    def workers(self, info: Info[GraphContext, None], first: int = 50, after: str | None = None) -> NodeConnection:
        page = info.context.services.workers.list(info.context.tenant, page_size=_size(first), page_token=after)
        nodes = [_json(each) for each in page.workers]
        return NodeConnection(nodes=nodes, page_info=_info(page.next_page_token))

    @strawberry.field(description="Circuit breakers, by key.")
    def circuit_breakers(self, info: Info[GraphContext, None]) -> list[JSON]:
        found = info.context.services.breakers.list(info.context.tenant)
        return [_json(each) for each in found]

    @strawberry.field(description="The tenant's quotas.")
    def quotas(self, info: Info[GraphContext, None]) -> list[JSON]:
        found = info.context.services.quotas.list(info.context.tenant)
        return [_json(each) for each in found]


@strawberry.type
class Event:
    cursor: str
    event_type: str
    envelope: JSON


@strawberry.type
class Subscription:
    @strawberry.subscription(description="What happens to the tenant's jobs, from a cursor or from now on.")
    async def job_events(self, info: Info[GraphContext, None], after: str | None = None) -> AsyncIterator[Event]:
        reading = info.context
        start = None if after is None else parse_cursor(after)
        async for found in reading.streams.follow(reading.tenant, start, lambda event: event["job"] is not None):
            if isinstance(found, StreamEvent):
                yield Event(cursor=found.cursor, event_type=found.event["eventType"], envelope=JSON(found.event))


SCHEMA = strawberry.Schema(query=Query, subscription=Subscription)


def _job(view: JobView) -> Job:
    values = json_value(view)
    names = [field.name for field in Job.__strawberry_definition__.fields if field.name not in ("id", "detail")]  # type: ignore[attr-defined]
    return Job(id=strawberry.ID(str(view.job_id)), **{name: values[json_name(name)] for name in names})


def _json(view: View) -> JSON:
    return JSON(json_value(view))


def _status(word: str) -> JobStatus:
    try:
        return JobStatus(word)
    except ValueError:
        raise BadJob(f"status must be one of {', '.join(JobStatus)}") from None


def _size(first: int) -> int:
    if not 1 <= first <= 500:
        raise BadJob("first must be between 1 and 500")
    return first


def _info(token: str | None) -> PageInfo:
    return PageInfo(has_next_page=token is not None, end_cursor=token)
