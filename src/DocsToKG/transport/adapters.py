"""httpx2's interfaces over an engine, for code that speaks httpx2.

`AsyncEngineTransport` is used on the engine's own loop. `EngineTransport` is for threads: one loop, which those that
wait run by turns, serves them all, so that they share connections, limits and promises with no second implementation.
Both read from
`request.extensions`: `timeout` (httpx2's, and `silence` in it), `deadline` (monotonic seconds for the whole exchange),
`sent` (called when the request goes out); the synchronous one also `cancel` (a `CancelToken`), the other `goes_out`
(asked right before sending: for how many seconds to hold the request back). They put `peer` into `response.extensions`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

import httpx2

from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.transport.engine import Engine, Limits, Request, Response
from DocsToKG.transport.errors import DeadlineExceeded, NotSent
from DocsToKG.transport.fields import Fields
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.messages import NO_BODY, LightResponse
from DocsToKG.transport.names import NameResolver, SystemNames
from DocsToKG.transport.shared_loop import LoopClosed, SharedLoop

_T = TypeVar("_T")
_SMALL_BYTES = 64 * 1024


class AsyncEngineTransport(httpx2.AsyncBaseTransport):
    """Closing it closes the engine."""

    def __init__(self, engine: Engine, *, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock or SystemClock()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        stream = request.stream
        if stream is NO_BODY:
            body = b""
        elif isinstance(stream, httpx2.AsyncByteStream):
            body = b"".join([block async for block in stream])
        else:
            raise httpx2.LocalProtocolError("the request's body is not asynchronous; this transport is")
        goes_out = request.extensions.get("goes_out")
        if goes_out is None:
            response = await self._engine.fetch(_asked(request, body))
        else:
            response = await self._fetch_when(goes_out, request, body)
        return _answer(response, _AsyncBody(response))

    async def _fetch_when(self, goes_out: Callable[[], float], request: httpx2.Request, body: bytes) -> Response:
        """Connecting may have taken so long that others have gone ahead; whoever spaces requests says so right before
        the first byte, and then the request is held back."""
        rest_s = 0.0

        def may_go() -> bool:
            nonlocal rest_s
            rest_s = goes_out()
            return rest_s <= 0

        asked = _asked(request, body, may_go)
        while True:
            try:
                return await self._engine.fetch(asked)
            except NotSent:
                await self._rest(rest_s, asked.limits.deadline)

    async def _rest(self, seconds: float, deadline: float | None) -> None:
        until = self._clock.monotonic() + seconds
        if deadline is None or until < deadline:
            await self._clock.sleep_until(until)
            return
        await self._clock.sleep_until(deadline)
        raise DeadlineExceeded("the time given to this request is over")

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
    *, allow_hosts: Iterable[str] = (), names: NameResolver | None = None, clock: Clock | None = None
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

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.__aiter__()

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


def _asked(request: httpx2.Request, body: bytes, before_send: Callable[[], bool] | None = None) -> Request:
    asked: dict[str, Any] = request.extensions
    headers = request.headers.pairs if isinstance(request.headers, Fields) else _pairs(request.headers)
    announced = request.headers.get("content-length")
    if announced is not None and announced != str(len(body)):
        raise httpx2.LocalProtocolError("the request's body is not as long as its Content-Length")
    has_body = bool(body) or announced is not None or "transfer-encoding" in request.headers
    return Request(
        request.method,
        str(request.url),
        headers,
        body if has_body else None,
        _limits(asked),
        before_send,
        asked.get("sent"),
    )


def _pairs(headers: httpx2.Headers) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.raw]


def _limits(asked: dict[str, Any]) -> Limits:
    timeouts = asked.get("timeout") or {}
    read_s, silence_s = timeouts.get("read"), timeouts.get("silence")
    if silence_s is None or (read_s is not None and read_s < silence_s):
        silence_s = read_s
    return Limits(timeouts.get("connect"), read_s, silence_s, asked.get("deadline"))


def _answer(response: Response, body: httpx2.SyncByteStream | httpx2.AsyncByteStream) -> httpx2.Response:
    extensions = {
        "http_version": response.http_version.encode("ascii"),
        "reason_phrase": response.reason.encode("latin-1", "replace"),
        "peer": response.peer,
    }
    return LightResponse(response.status, Fields.of(response.headers), body, extensions)
