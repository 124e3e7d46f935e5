"""Live feeds (Server-Sent Events) and the history page by page."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import Header, Query
from fastapi.sse import format_sse_event
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from DocsToKG.Orchestrator.api.auth.bearer import bearer
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.routes.dashboard import DashboardShown, figures_of
from DocsToKG.Orchestrator.api.routing import Context, Doors, RequestContext, Resource
from DocsToKG.Orchestrator.api.schemas import Page, PageSize
from DocsToKG.Orchestrator.api.sse import EventStreams, Notice, StreamEvent
from DocsToKG.Orchestrator.control.history.feed import Cursor, parse_cursor
from DocsToKG.Orchestrator.events.envelope import envelopes

resource = Resource("streams")
LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=16_384, description="Go on after this event.")
]
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events as they happen", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_DASHBOARD_EVERY_S = 2.0
_CONNECTED = format_sse_event(comment="connected", retry=2000)


class EventList(Page):
    """Events of the history, oldest first. `next_page_token` is also the `Last-Event-ID` of a stream."""

    events: list[dict[str, Any]] = Field(description="Envelopes `orch.event.v1`.")


@resource.get("/history")
def read_history(
    ctx: Context,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[str | None, Query(max_length=16_384)] = None,
) -> EventList:
    """Read the tenant's history, oldest first; the last page says where later events will follow."""
    feed = ctx.services.feed
    place = feed.start(ctx.tenant) if page_token is None else parse_cursor(page_token)
    page = feed.after(place, ctx.tenant, page_size)
    told = envelopes(ctx.services.ledger, [event.row for event in page.events])
    return EventList(events=told, next_page_token=str(page.cursor) if page.more or page.events else None)


@resource.stream("/streams/jobs", responses=STREAM)
async def stream_jobs(ctx: Context, last_event_id: LastEventId = None) -> Response:
    """Follow what happens to the tenant's jobs."""
    return await _followed(ctx, last_event_id, lambda event: event["job"] is not None)


@resource.stream("/streams/runs", responses=STREAM)
async def stream_runs(ctx: Context, last_event_id: LastEventId = None) -> Response:
    """Follow what happens to the tenant's pack-runs."""
    return await _followed(ctx, last_event_id, lambda event: str(event["eventType"]).startswith("pack_run."))


@resource.stream("/streams/dashboard", responses=STREAM)
async def stream_dashboard(ctx: Context) -> Response:
    """Follow the figures of the dashboard; a new one when they have changed."""
    streams = streams_of(ctx.request)
    first: DashboardShown = await streams.threaded(lambda: figures_of(ctx.services, ctx.tenant))

    async def told() -> AsyncGenerator[bytes]:
        shown, silent_s = "", 0.0
        figures = first
        while not streams.is_closed:
            text = figures.model_dump_json(by_alias=True, exclude={"at"})
            silent_s += _DASHBOARD_EVERY_S
            if text != shown:
                shown, silent_s = text, 0.0
                whole = figures.model_dump_json(by_alias=True)
                yield format_sse_event(data_str=whole, event="dashboard.metrics", id=figures.at)
            elif silent_s >= streams.heartbeat_s:
                silent_s = 0.0
                if not await token_is_valid(ctx):
                    yield _notice(Notice("ending", "the token is no longer good"))
                    return
                yield format_sse_event(comment="alive")
            await streams.rest(_DASHBOARD_EVERY_S)
            figures = await streams.threaded(lambda: figures_of(ctx.services, ctx.tenant))
        yield _notice(Notice("ending", "the service ends"))

    return streamed(streams, told())


async def _followed(
    ctx: RequestContext, last_event_id: str | None, wanted: Callable[[dict[str, Any]], bool]
) -> Response:
    streams = streams_of(ctx.request)
    after: Cursor | None = None
    if last_event_id is not None:
        after = parse_cursor(last_event_id)
        # Judged before the answer begins, so that a wrong place is an error and no stream.
        await streams.threaded(lambda: ctx.services.feed.after(after, ctx.tenant, 1))

    async def told() -> AsyncGenerator[bytes]:
        async with aclosing(streams.follow(ctx.tenant, after, wanted)) as news:
            async for found in news:
                if isinstance(found, StreamEvent):
                    data = json.dumps(found.event, separators=(",", ":"))
                    yield format_sse_event(data_str=data, event=found.event["eventType"], id=found.cursor)
                elif isinstance(found, Notice):
                    yield _CONNECTED if found.word == "connected" else _notice(found)
                elif await token_is_valid(ctx):
                    yield format_sse_event(comment="alive")
                else:
                    yield _notice(Notice("ending", "the token is no longer good"))
                    return

    return streamed(streams, told())


def streamed(streams: EventStreams, chunks: AsyncGenerator[bytes]) -> Response:
    """Counted from its first chunk on, and closed with all that it holds when the reader is gone."""
    streams.refuse_if_full()

    async def bounded() -> AsyncIterator[bytes]:
        with streams.counted():
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk

    return StreamingResponse(bounded(), media_type="text/event-stream", headers=_HEADERS)


def streams_of(request: Request) -> EventStreams:
    streams: EventStreams = request.app.state.streams
    return streams


async def token_is_valid(ctx: RequestContext) -> bool:
    """Whether the token would be let in now: a stream must not outlive it."""
    doors: Doors = ctx.request.app.state.doors
    token = bearer(ctx.request.headers.get("authorization"))
    if token is None:
        return False
    try:
        return (await doors.admission.principal(f"Bearer {token}")).may_act_for(ctx.tenant)
    except Problem:
        return False


def _notice(notice: Notice) -> bytes:
    return format_sse_event(data_str=json.dumps({"notice": notice.word, "message": notice.text}), event="notice")
