"""httpx2's interfaces over an engine, for code that speaks httpx2.

`AsyncEngineTransport` is used on the engine's own loop. `EngineTransport` is for threads: one loop in a thread of its
own serves them all, so that they share connections, limits and promises with no second implementation. Both read from
`request.extensions`: `timeout` (httpx2's, and `silence` in it), `deadline` (monotonic seconds for the whole exchange),
`sent` (called when the request goes out); the synchronous one also `cancel` (a `CancelToken`). They put `peer` into
`response.extensions`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import httpx2

from DocsToKG.core.cancel import CancelToken
from DocsToKG.transport.engine import Engine, Limits, Request, Response

_T = TypeVar("_T")
_FRAMING = frozenset({"content-length", "transfer-encoding"})


class AsyncEngineTransport(httpx2.AsyncBaseTransport):
    """Closing it closes the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not isinstance(request.stream, httpx2.AsyncByteStream):
            raise httpx2.LocalProtocolError("the request's body is not asynchronous; this transport is")
        body = b"".join([block async for block in request.stream])
        return _answer(await self._engine.fetch(_asked(request, body)), _AsyncBody)

    async def aclose(self) -> None:
        await self._engine.aclose()


class EngineTransport(httpx2.BaseTransport):
    """`open_engine` is called once, on the loop that the engine will live on. Safe to share between threads."""

    def __init__(self, open_engine: Callable[[], Engine]) -> None:
        self._open_engine = open_engine
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response with its body unread. Read it to the end, or close it."""
        if not isinstance(request.stream, httpx2.SyncByteStream):
            raise httpx2.LocalProtocolError("the request's body is asynchronous; this transport is not")
        cancel: CancelToken | None = request.extensions.get("cancel")
        if cancel is not None:
            cancel.raise_if_cancelled()
        asked = _asked(request, b"".join(request.stream))
        engine = self._running_engine()
        response = self._call(engine.fetch(asked), cancel)
        return _answer(response, lambda answer: _SyncBody(self, answer, cancel))

    def close(self) -> None:
        """End every exchange and close every connection."""
        with self._lock:
            self._closed = True
            loop, thread, engine = self._loop, self._thread, self._engine
            self._loop = self._thread = self._engine = None
        if loop is None or thread is None:
            return
        if engine is not None:
            with contextlib.suppress(httpx2.HTTPError):
                asyncio.run_coroutine_threadsafe(engine.aclose(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)

    def _running_engine(self) -> Engine:
        with self._lock:
            if self._closed:
                raise httpx2.TransportError("the transport is closed")
            if self._engine is None:
                self._loop = loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(loop,), name="http-engine", daemon=True)
                self._thread.start()
                self._engine = self._open_engine()
            return self._engine

    def _call(self, work: Coroutine[Any, Any, _T], cancel: CancelToken | None) -> _T:
        """Run on the engine's loop, and wait. Cancelling the token cancels the task."""
        loop = self._loop
        if loop is None:
            work.close()
            raise httpx2.TransportError("the transport is closed")
        future = asyncio.run_coroutine_threadsafe(work, loop)
        forget = cancel.on_cancel(lambda: _cancel(future)) if cancel is not None else None
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            if cancel is not None:
                cancel.raise_if_cancelled()
            raise httpx2.TransportError("the transport is closed") from None
        except BaseException:
            future.cancel()
            raise
        finally:
            if forget is not None:
                forget()


def _cancel(future: concurrent.futures.Future[Any]) -> None:
    future.cancel()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


class _AsyncBody(httpx2.AsyncByteStream):
    def __init__(self, response: Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for block in self._response:
            yield block

    async def aclose(self) -> None:
        await self._response.aclose()


class _SyncBody(httpx2.SyncByteStream):
    def __init__(self, transport: EngineTransport, response: Response, cancel: CancelToken | None) -> None:
        self._transport = transport
        self._response = response
        self._cancel = cancel
        self._blocks = response.__aiter__()
        self._over = False

    def __iter__(self) -> Iterator[bytes]:
        while (block := self._transport._call(self._next(), self._cancel)) is not None:
            yield block
        self._over = True

    async def _next(self) -> bytes | None:
        return await anext(self._blocks, None)

    def close(self) -> None:
        if not self._over:
            self._over = True
            with contextlib.suppress(httpx2.TransportError):  # closed meanwhile
                self._transport._call(self._response.aclose(), None)


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


def _answer(response: Response, body: Callable[[Response], Any]) -> httpx2.Response:
    raw = [(name.encode("utf-8"), value.encode("utf-8")) for name, value in response.headers.raw]
    extensions = {
        "http_version": response.http_version.encode("ascii"),
        "reason_phrase": response.reason.encode("latin-1", "replace"),
        "peer": response.peer,
    }
    return httpx2.Response(response.status, headers=raw, stream=body(response), extensions=extensions)
