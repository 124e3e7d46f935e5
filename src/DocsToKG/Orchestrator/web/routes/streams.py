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

from DocsToKG.Orchestrator.control.history.feed import Cursor, parse_cursor
from DocsToKG.Orchestrator.events.envelope import envelopes
from DocsToKG.Orchestrator.web.auth import bearer
from DocsToKG.Orchestrator.web.envelope import Problem
from DocsToKG.Orchestrator.web.feeds import Feeds, News, Notice
from DocsToKG.Orchestrator.web.routes.dashboard import DashboardShown, figures_of
from DocsToKG.Orchestrator.web.serving import Ask, Asked, Doors, Resource
from DocsToKG.Orchestrator.web.shapes import Page, PageSize

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
    ask: Asked,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[str | None, Query(max_length=16_384)] = None,
) -> EventList:
    """Read the tenant's history, oldest first; the last page says where later events will follow."""
    feed = ask.rooms.feed
    place = feed.start(ask.tenant) if page_token is None else parse_cursor(page_token)
    page = feed.after(place, ask.tenant, page_size)
    told = envelopes(ask.rooms.ledger, [event.row for event in page.events])
    return EventList(events=told, next_page_token=str(page.cursor) if page.more or page.events else None)


@resource.stream("/streams/jobs", responses=STREAM)
async def stream_jobs(ask: Asked, last_event_id: LastEventId = None) -> Response:
    """Follow what happens to the tenant's jobs."""
    return await _followed(ask, last_event_id, lambda event: event["job"] is not None)


@resource.stream("/streams/runs", responses=STREAM)
async def stream_runs(ask: Asked, last_event_id: LastEventId = None) -> Response:
    """Follow what happens to the tenant's pack-runs."""
    return await _followed(ask, last_event_id, lambda event: str(event["eventType"]).startswith("pack_run."))


@resource.stream("/streams/dashboard", responses=STREAM)
async def stream_dashboard(ask: Asked) -> Response:
    """Follow the figures of the dashboard; a new one when they have changed."""
    feeds = feeds_of(ask.request)
    first: DashboardShown = await feeds.threaded(lambda: figures_of(ask.rooms, ask.tenant))

    async def told() -> AsyncGenerator[bytes]:
        shown, silent_s = "", 0.0
        figures = first
        while not feeds.is_closed:
            text = figures.model_dump_json(by_alias=True, exclude={"at"})
            silent_s += _DASHBOARD_EVERY_S
            if text != shown:
                shown, silent_s = text, 0.0
                whole = figures.model_dump_json(by_alias=True)
                yield format_sse_event(data_str=whole, event="dashboard.metrics", id=figures.at)
            elif silent_s >= feeds.heartbeat_s:
                silent_s = 0.0
                if not await still_good(ask):
                    yield _notice(Notice("ending", "the token is no longer good"))
                    return
                yield format_sse_event(comment="alive")
            await feeds.rest(_DASHBOARD_EVERY_S)
            figures = await feeds.threaded(lambda: figures_of(ask.rooms, ask.tenant))
        yield _notice(Notice("ending", "the service ends"))

    return streamed(feeds, told())


async def _followed(ask: Ask, last_event_id: str | None, wanted: Callable[[dict[str, Any]], bool]) -> Response:
    feeds = feeds_of(ask.request)
    after: Cursor | None = None
    if last_event_id is not None:
        after = parse_cursor(last_event_id)
        # Judged before the answer begins, so that a wrong place is an error and no stream.
        await feeds.threaded(lambda: ask.rooms.feed.after(after, ask.tenant, 1))

    async def told() -> AsyncGenerator[bytes]:
        async with aclosing(feeds.follow(ask.tenant, after, wanted)) as news:
            async for found in news:
                if isinstance(found, News):
                    data = json.dumps(found.event, separators=(",", ":"))
                    yield format_sse_event(data_str=data, event=found.event["eventType"], id=found.cursor)
                elif isinstance(found, Notice):
                    yield _CONNECTED if found.word == "connected" else _notice(found)
                elif await still_good(ask):
                    yield format_sse_event(comment="alive")
                else:
                    yield _notice(Notice("ending", "the token is no longer good"))
                    return

    return streamed(feeds, told())


def streamed(feeds: Feeds, chunks: AsyncGenerator[bytes]) -> Response:
    """Counted from its first chunk on, and closed with all that it holds when the reader is gone."""
    feeds.refuse_if_full()

    async def bounded() -> AsyncIterator[bytes]:
        with feeds.counted():
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk

    return StreamingResponse(bounded(), media_type="text/event-stream", headers=_HEADERS)


def feeds_of(request: Request) -> Feeds:
    feeds: Feeds = request.app.state.feeds
    return feeds


async def still_good(ask: Ask) -> bool:
    """Whether the token would be let in now: a stream must not outlive it."""
    doors: Doors = ask.request.app.state.doors
    token = bearer(ask.request.headers.get("authorization"))
    if token is None:
        return False
    try:
        return (await doors.admission.principal(f"Bearer {token}")).may_act_for(ask.tenant)
    except Problem:
        return False


def _notice(notice: Notice) -> bytes:
    return format_sse_event(data_str=json.dumps({"notice": notice.word, "message": notice.text}), event="notice")
