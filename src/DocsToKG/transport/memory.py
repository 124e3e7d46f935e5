"""An engine that asks a function instead of the network, for programs that run offline and for tests.

Keeps the promises that callers rely on: hooks, limits on sizes, one body read once, errors after what came. It has no
connections. Time passes only where the handler says so, on the clock and by the sleep it is given.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.transport.engine import Headers, Request, Response, Timings, check_sendable, read_all
from DocsToKG.transport.errors import BodyTooLarge, DeadlineExceeded, NotSent

_NO_BODY = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class Reply:
    """What the handler answers. A block of the body may be an error, which is raised where it stands, or a number of
    seconds that pass before the next block; `delay_s` passes before the head."""

    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | Sequence[bytes | float | Exception] = b""
    delay_s: float = 0.0
    reason: str = ""
    http_version: str = "HTTP/1.1"
    peer: str = "192.0.2.1"


Handler = Callable[[Request], Reply | Awaitable[Reply]]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class MemoryEngine:
    """`handler` is called for each request; an error it raises is raised to the caller of `fetch`."""

    handler: Handler
    clock: Clock = field(default_factory=SystemClock)
    sleep: Sleep = asyncio.sleep
    requests: list[Request] = field(default_factory=list)
    closed: bool = False

    async def fetch(self, request: Request) -> Response:
        if self.closed:
            raise RuntimeError("the engine is closed")
        check_sendable(request.method, request.headers)
        self._check_deadline(request)
        if request.before_send is not None and not request.before_send():
            raise NotSent("the request was taken back before it was sent")
        self.requests.append(request)
        if request.on_sent is not None:
            request.on_sent()
        answer = self.handler(request)
        reply = await answer if inspect.isawaitable(answer) else answer
        await self._pass(request, reply.delay_s)
        return _MemoryResponse(self, request, reply)

    async def aclose(self) -> None:
        self.closed = True

    async def _pass(self, request: Request, seconds: float) -> None:
        if seconds > 0:
            await self.sleep(seconds)
        self._check_deadline(request)

    def _check_deadline(self, request: Request) -> None:
        deadline = request.limits.deadline
        if deadline is not None and self.clock.monotonic() >= deadline:
            raise DeadlineExceeded("the time given to this request is over")


class _MemoryResponse:
    def __init__(self, engine: MemoryEngine, request: Request, reply: Reply) -> None:
        self.status, self.reason, self.http_version = reply.status, reply.reason, reply.http_version
        self.headers = Headers(list(reply.headers))
        self.url, self.peer, self.timings = request.url, reply.peer, Timings()
        self._engine, self._request = engine, request
        empty = request.method == "HEAD" or reply.status in _NO_BODY
        body = (reply.body,) if isinstance(reply.body, bytes) else tuple(reply.body)
        self._blocks = iter(() if empty else body)
        self._received = 0
        announced, most = self.headers.get("content-length", ""), request.limits.max_announced
        if not empty and most is not None and announced.isdecimal() and int(announced) > most:
            raise BodyTooLarge(limit=most, announced=int(announced))

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        for block in self._blocks:
            if isinstance(block, Exception):
                raise block
            if isinstance(block, (int, float)):
                await self._engine._pass(self._request, block)
            elif block:
                return self._counted(block)
        raise StopAsyncIteration

    def _counted(self, block: bytes) -> bytes:
        self._received += len(block)
        most = self._request.limits.max_bytes
        if most is not None and self._received > most:
            raise BodyTooLarge(limit=most)
        return block

    async def read(self, max_bytes: int | None = None) -> bytes:
        try:
            return await read_all(self, max_bytes)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        self._blocks = iter(())
