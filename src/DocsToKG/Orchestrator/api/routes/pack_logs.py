"""A pack-run's log as it grows: by Server-Sent Events and by WebSocket, with the same lines.

Promises: a reader that returns with the number of its last line misses none; the stream ends when the run has ended and
its last line was sent; both transports need the same scope and tenant.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.sse import format_sse_event
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from DocsToKG.Orchestrator.api.auth.permissions import PERMISSIONS
from DocsToKG.Orchestrator.api.context import Context, state_of
from DocsToKG.Orchestrator.api.errors import Problem, problem_of, problem_response
from DocsToKG.Orchestrator.api.routes.pack_runs import ProjectQuery, RunPath
from DocsToKG.Orchestrator.api.routes.streams import STREAM, streamed, token_is_valid
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import BIG, json_bytes
from DocsToKG.Orchestrator.api.services import Services
from DocsToKG.Orchestrator.api.sse import EventStreams, LogReader
from DocsToKG.Orchestrator.control.pack_run_rows import LogLine, LogPage
from DocsToKG.Orchestrator.errors import LedgerError

resource = Resource("pack-runs")
sockets = APIRouter()
PROTOCOL = "docstokg"
_BEARER = "bearer."
_LINES = 500
_POLL_S = 0.25


@resource.stream("/pack-runs/{pack_run_id}/logs/follow", responses=STREAM)
async def follow_pack_run_logs(
    ctx: Context,
    pack_run_id: RunPath,
    after: Annotated[int, Query(ge=0, le=BIG)] = 0,
    project: ProjectQuery = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", pattern=r"^\d{1,15}$")] = None,
) -> Response:
    """Follow the run's log; the id of an event is the number of its line."""
    streams = ctx.streams
    start = after if last_event_id is None else int(last_event_id)
    # Checked before the response begins, so that an unknown run is an error and not a stream.
    await streams.threaded(lambda: ctx.services.pack_runs.get(ctx.tenant, pack_run_id, project=project))

    async def events() -> AsyncGenerator[bytes]:
        async with aclosing(log_lines(streams, ctx.services, ctx.tenant, pack_run_id, project, start)) as lines:
            async for line in lines:
                if line is not None:
                    yield format_sse_event(data_str=_text(line), event="pack_run.log", id=str(line.seq))
                elif await token_is_valid(ctx):
                    yield format_sse_event(comment="alive")
                else:
                    return
        yield format_sse_event(data_str="{}", event="pack_run.end")

    return streamed(streams, events())


async def log_lines(
    streams: EventStreams, services: Services, tenant: str, run_id: str, project: str | None, after: int
) -> AsyncGenerator[LogLine | None]:
    """Lines after a number as they come, None where a heartbeat is due; ends with the run, or with the service."""
    reader = LogReader()
    streams.log_readers.add(reader)
    try:
        async for line in _lines(streams, services, tenant, run_id, project, after, reader):
            yield line
    finally:
        streams.log_readers.discard(reader)


async def _lines(
    streams: EventStreams,
    services: Services,
    tenant: str,
    run_id: str,
    project: str | None,
    after: int,
    reader: LogReader,
) -> AsyncIterator[LogLine | None]:
    silent_s = 0.0
    while not streams.is_closed:
        read = partial(services.pack_runs.logs, tenant, run_id, after=after, limit=_LINES, project=project)
        page: LogPage = await streams.threaded(read)
        for line in page.lines:
            after, silent_s, reader.sending_from = line.seq, 0.0, line.at
            yield line
        if len(page.lines) == _LINES:
            continue
        reader.sending_from = None
        if page.ended:
            return
        await streams.sleep(_POLL_S)
        silent_s += _POLL_S
        if silent_s >= streams.heartbeat_s:
            silent_s = 0.0
            yield None


@sockets.websocket("/pack-runs/{pack_run_id}/logs/ws")
async def pack_run_log_socket(socket: WebSocket, pack_run_id: str, after: int = 0, project: str | None = None) -> None:
    """The same lines, one message each, and `{"end": true}` at the end. Browsers, which cannot send an Authorization
    header, offer the protocols `docstokg` and `bearer.TOKEN`."""
    state = state_of(socket)
    streams = state.streams
    headers = _admission_headers(socket)
    try:
        caller = await state.admission.caller(headers, PERMISSIONS["followPackRunLogs"])
        if not 0 <= after <= BIG or len(pack_run_id) > 64 or "\x00" in pack_run_id + (project or ""):
            raise Problem(422, "VALIDATION_FAILED", "the request does not fit the interface")
        await streams.threaded(lambda: state.services.pack_runs.get(caller.tenant, pack_run_id, project=project))
        streams.refuse_if_full()
        with streams.counted():
            await socket.accept(subprotocol=PROTOCOL if PROTOCOL in socket.scope.get("subprotocols", ()) else None)
            async with aclosing(
                log_lines(streams, state.services, caller.tenant, pack_run_id, project, after)
            ) as lines:
                async for line in lines:
                    if line is None:
                        await state.admission.principal(headers.get("authorization"))
                    else:
                        await socket.send_text(_text(line))
            await socket.send_text('{"end":true}')
            await socket.close()
    except WebSocketDisconnect:
        return
    except (Problem, LedgerError) as error:
        await _refuse(socket, problem_of(error) or Problem(500, "INTERNAL", "internal error"))


async def _refuse(socket: WebSocket, problem: Problem) -> None:
    if socket.application_state.name == "CONNECTED":
        await socket.close(code=1008, reason=problem.code)
        return
    scope = {**socket.scope, "type": "http", "method": "GET"}
    await socket.send_denial_response(problem_response(Request(scope), problem))


def _admission_headers(socket: WebSocket) -> Mapping[str, str]:
    headers = {name.lower(): value for name, value in socket.headers.items()}
    offered = [word for word in socket.scope.get("subprotocols", ()) if word.startswith(_BEARER)]
    if "authorization" not in headers and offered:
        headers["authorization"] = f"Bearer {offered[0].removeprefix(_BEARER)}"
    return headers


def _text(line: LogLine) -> str:
    return json_bytes(line).decode()
