"""Live event streams (Server-Sent Events), the history page by page, and the dashboard."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import Header, Query
from fastapi.sse import format_sse_event
from starlette.responses import Response, StreamingResponse

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.api.auth.bearer import bearer
from DocsToKG.Orchestrator.api.context import Context, RequestContext, Responses
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import EventPage, PageSize, json_bytes
from DocsToKG.Orchestrator.api.sse import EventStreams, Notice, StreamEvent
from DocsToKG.Orchestrator.control.dashboard import Dashboard
from DocsToKG.Orchestrator.control.history.feed import Cursor, parse_cursor
from DocsToKG.Orchestrator.events.envelope import envelopes

resource = Resource("streams")
dashboard = Resource("dashboard")
LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=16_384, description="Go on after this event.")
]
STREAM: Responses = {
    200: {"description": "Events as they happen", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_DASHBOARD_EVERY_S = 2.0
_CONNECTED = format_sse_event(comment="connected", retry=2000)


@dashboard.get("/dashboard/metrics")
def dashboard_metrics(ctx: Context) -> Dashboard:
    """Show the tenant's figures: counts, throughput, errors, what is held back."""
    return ctx.services.dashboard.metrics(ctx.tenant)


@resource.get("/history")
def read_history(
    ctx: Context,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[str | None, Query(max_length=16_384)] = None,
) -> EventPage:
    """Read the tenant's history, oldest first; the last page says where later events will follow."""
    feed = ctx.services.feed
    place = feed.start(ctx.tenant) if page_token is None else parse_cursor(page_token)
    page = feed.after(place, ctx.tenant, page_size)
    told = envelopes(ctx.services.ledger, [event.row for event in page.events])
    return EventPage(told, str(page.cursor) if page.more or page.events else None)


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
    streams = ctx.streams
    read = partial(ctx.services.dashboard.metrics, ctx.tenant)
    first: Dashboard = await streams.threaded(read)

    async def events() -> AsyncGenerator[bytes]:
        sent: Dashboard | None = None
        figures, silent_s = first, 0.0
        while not streams.is_closed:
            silent_s += _DASHBOARD_EVERY_S
            if sent is None or replace(sent, at=figures.at) != figures:
                sent, silent_s = figures, 0.0
                data = json_bytes(figures).decode()
                yield format_sse_event(data_str=data, event="dashboard.metrics", id=utc_iso(figures.at))
            elif silent_s >= streams.heartbeat_s:
                silent_s = 0.0
                if not await token_is_valid(ctx):
                    yield _notice(Notice("ending", "the token is no longer good"))
                    return
                yield format_sse_event(comment="alive")
            await streams.sleep(_DASHBOARD_EVERY_S)
            figures = await streams.threaded(read)
        yield _notice(Notice("ending", "the service ends"))

    return streamed(streams, events())


async def _followed(
    ctx: RequestContext, last_event_id: str | None, wanted: Callable[[dict[str, Any]], bool]
) -> Response:
    streams = ctx.streams
    after: Cursor | None = None
    if last_event_id is not None:
        after = parse_cursor(last_event_id)
        # Checked before the response begins, so that a wrong cursor is an error and not a stream.
        await streams.threaded(lambda: ctx.services.feed.after(after, ctx.tenant, 1))

    async def events() -> AsyncGenerator[bytes]:
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

    return streamed(streams, events())


def streamed(streams: EventStreams, chunks: AsyncGenerator[bytes]) -> Response:
    """A streaming response that is counted while it is open, and closed when the reader is gone."""
    streams.refuse_if_full()

    async def bounded() -> AsyncIterator[bytes]:
        with streams.counted():
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk

    return StreamingResponse(bounded(), media_type="text/event-stream", headers=_HEADERS)


async def token_is_valid(ctx: RequestContext) -> bool:
    """Whether the token is still valid: a stream must not outlive it."""
    token = bearer(ctx.request.headers.get("authorization"))
    if token is None:
        return False
    try:
        return (await ctx.state.admission.principal(f"Bearer {token}")).may_act_for(ctx.tenant)
    except Problem:
        return False


def _notice(notice: Notice) -> bytes:
    return format_sse_event(data_str=json.dumps({"notice": notice.word, "message": notice.text}), event="notice")
