"""httpx2's interfaces over an engine, for code that speaks httpx2.

`AsyncEngineTransport` is used on the engine's own loop. `EngineTransport` is for threads: one loop, which those that
wait run by turns, serves them all, so that they share connections, limits and promises with no second implementation.
Both read from
`request.extensions`: `timeout` (httpx2's, and `silence` in it), `deadline` (monotonic seconds for the whole exchange),
`sent` (called when the request goes out); the synchronous one also `cancel` (a `CancelToken`). They put `peer` into
`response.extensions`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

import httpx2

from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.transport.engine import Engine, Limits, Request, Response
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.names import AsyncNameResolver, SystemNames
from DocsToKG.transport.shared_loop import LoopClosed, SharedLoop

_T = TypeVar("_T")
_FRAMING = frozenset({"content-length", "transfer-encoding"})
_SMALL_BYTES = 64 * 1024


class AsyncEngineTransport(httpx2.AsyncBaseTransport):
    """Closing it closes the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not isinstance(request.stream, httpx2.AsyncByteStream):
            raise httpx2.LocalProtocolError("the request's body is not asynchronous; this transport is")
        body = b"".join([block async for block in request.stream])
        response = await self._engine.fetch(_asked(request, body))
        return _answer(response, _AsyncBody(response))

    async def aclose(self) -> None:
        await self._engine.aclose()


class EngineTransport(httpx2.BaseTransport):
    """`open_engine` is called once, on the loop that the engine will live on. Safe to share between threads.

    A body that is announced with at most 64 KiB is read in the same call; what goes wrong in it is raised where it is
    read. A longer one comes as far as it is asked for."""

    def __init__(self, open_engine: Callable[[], Engine]) -> None:
        self._open_engine = open_engine
        self._engine: Engine | None = None
        self._loop = SharedLoop()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response with its body unread. Read it to the end, or close it."""
        if not isinstance(request.stream, httpx2.SyncByteStream):
            raise httpx2.LocalProtocolError("the request's body is asynchronous; this transport is not")
        cancel: CancelToken | None = request.extensions.get("cancel")
        if cancel is not None:
            cancel.raise_if_cancelled()
        asked = _asked(request, b"".join(request.stream))
        body = self._run(self._exchange(asked, cancel), cancel)
        return _answer(body.response, body)

    def close(self) -> None:
        """End every exchange and close every connection."""
        self._loop.close(self._end())

    async def _exchange(self, asked: Request, cancel: CancelToken | None) -> _SyncBody:
        if self._engine is None:
            self._engine = self._open_engine()
        body = _SyncBody(self, await self._engine.fetch(asked), cancel)
        if body.is_small:
            await body.take_all()
        return body

    async def _end(self) -> None:
        if self._engine is not None:
            await self._engine.aclose()

    def _run(self, work: Coroutine[Any, Any, _T], cancel: CancelToken | None) -> _T:
        try:
            return self._loop.run(work, cancel)
        except LoopClosed:
            raise httpx2.TransportError("the transport is closed") from None
        except asyncio.CancelledError:
            if cancel is not None:
                cancel.raise_if_cancelled()
            raise httpx2.TransportError("the transport is closed") from None


def guarded_transport(
    *, allow_hosts: Iterable[str] = (), names: AsyncNameResolver | None = None, clock: Clock | None = None
) -> EngineTransport:
    """For threads, over libcurl: to public addresses and to these hosts, without a proxy. libcurl is loaded with the
    first request."""
    guard = AddressGuard(allow_hosts=allow_hosts)

    def open_engine() -> Engine:
        from DocsToKG.transport.curl import CurlEngine

        return CurlEngine(guard=guard, names=names or SystemNames(), clock=clock)

    return EngineTransport(open_engine)


class _AsyncBody(httpx2.AsyncByteStream):
    def __init__(self, response: Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for block in self._response:
            yield block

    async def aclose(self) -> None:
        await self._response.aclose()


class _SyncBody(httpx2.SyncByteStream):
    """What came with the head, then what is asked for."""

    def __init__(self, transport: EngineTransport, response: Response, cancel: CancelToken | None) -> None:
        self.response = response
        self._transport = transport
        self._cancel = cancel
        self._blocks = response.__aiter__()
        self._taken: list[bytes] = []
        self._error: Exception | None = None
        self._over = False

    @property
    def is_small(self) -> bool:
        length = self.response.headers.get("content-length", "")
        return len(length) < 6 and length.isdecimal() and int(length) <= _SMALL_BYTES

    async def take_all(self) -> None:
        try:
            async for block in self._blocks:
                self._taken.append(block)
        except httpx2.RequestError as error:
            self._error = error
        self._over = True

    def __iter__(self) -> Iterator[bytes]:
        yield from self._taken
        if self._error is not None:
            raise self._error
        while not self._over:
            block = self._transport._run(self._next(), self._cancel)
            if block is None:
                self._over = True
            else:
                yield block

    async def _next(self) -> bytes | None:
        return await anext(self._blocks, None)

    def close(self) -> None:
        if not self._over:
            self._over = True
            with contextlib.suppress(httpx2.TransportError):  # closed meanwhile
                self._transport._run(self.response.aclose(), None)


def _asked(request: httpx2.Request, body: bytes) -> Request:
    asked: dict[str, Any] = request.extensions
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
    names = {name.lower() for name, _ in headers}
    announced = request.headers.get("content-length")
    if announced is not None and announced != str(len(body)):
        raise httpx2.LocalProtocolError("the request's body is not as long as its Content-Length")
    has_body = bool(body) or not names.isdisjoint(_FRAMING)
    return Request(
        request.method,
        str(request.url),
        headers,
        body if has_body else None,
        _limits(asked),
        on_sent=asked.get("sent"),
    )


def _limits(asked: dict[str, Any]) -> Limits:
    timeouts = asked.get("timeout") or {}
    read_s, silence_s = timeouts.get("read"), timeouts.get("silence")
    waits = [wait for wait in (read_s, silence_s) if wait is not None]
    return Limits(
        connect_s=timeouts.get("connect"),
        first_byte_s=read_s,
        silence_s=min(waits) if waits else None,
        deadline=asked.get("deadline"),
    )


def _answer(response: Response, body: httpx2.SyncByteStream | httpx2.AsyncByteStream) -> httpx2.Response:
    raw = [(name.encode("utf-8"), value.encode("utf-8")) for name, value in response.headers.raw]
    extensions = {
        "http_version": response.http_version.encode("ascii"),
        "reason_phrase": response.reason.encode("latin-1", "replace"),
        "peer": response.peer,
    }
    return httpx2.Response(response.status, headers=raw, stream=body, extensions=extensions)
