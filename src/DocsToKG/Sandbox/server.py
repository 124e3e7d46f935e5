"""An HTTP/1.1 server on loopback, small and quick, that can also misbehave on purpose.

Knows sockets, keep-alive and the ways a body can go wrong. Does not know what it serves: `Router` does.
Promises: requests are bounded in size, idle connections are closed, and an exchange is over for the counters exactly
when its last byte was handed to the kernel or the connection went away.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import struct
import sys
from collections.abc import Callable

from DocsToKG.Sandbox.messages import (
    MAX_BODY_BYTES,
    MAX_HEAD_BYTES,
    BadRequest,
    Request,
    Response,
    body_length,
    parse_head,
    render_head,
    text_response,
)
from DocsToKG.Sandbox.router import Exchange, Router

IDLE_S = 75.0
SLOW_PIECES = 20
_HANGUP = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
# In Linux's struct tcp_info: the milliseconds since the last data came.
_TCP_INFO = getattr(socket, "TCP_INFO", 0) if sys.platform == "linux" else 0
_LAST_DATA_AT, _TCP_INFO_BYTES = 52, 56


class Connection(asyncio.Protocol):
    """One client. Requests are answered one after the other, in order."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._whole_after_drain: Callable[[], None] | None = None
        self.exchange: Exchange | None = None
        self._written = 0
        self.last_used = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        # With no room in the buffer, "resume" tells us that everything has gone to the kernel.
        transport.set_write_buffer_limits(high=0)
        self._transport = transport
        self._server.connections.add(self)
        self.last_used = self._server.time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._transport = None
        self._whole_after_drain = None
        self._finish(whole=False)
        self._drained.set()
        if self._task:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self.last_used = self._server.time()
        if len(self._buffer) > MAX_HEAD_BYTES + MAX_BODY_BYTES:
            self._refuse(BadRequest(413, "too much at once"))
        elif self.exchange is None:
            self._next()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()
        if self._whole_after_drain:
            done, self._whole_after_drain = self._whole_after_drain, None
            done()

    def hung_up(self) -> bool:
        """The client is gone, though its farewell may still wait in the socket to be read."""
        if self._transport is None:
            return True
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), _HANGUP)
        return bool(poll.poll(0))

    def _late_s(self) -> float:
        """How long the request lay in the kernel: a busy machine must not look like a client in haste."""
        if not _TCP_INFO or self._transport is None:
            return 0.0
        info = self._transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_BYTES)
        return int.from_bytes(info[_LAST_DATA_AT:_TCP_INFO_BYTES], sys.byteorder) / 1000

    def abandon(self) -> None:
        self._finish(whole=False)
        self.close()

    def close(self) -> None:
        if self._transport:
            self._transport.abort()

    def _next(self) -> None:
        while self.exchange is None and self._transport and not self._transport.is_closing():
            try:
                request = self._take_request()
            except BadRequest as error:
                return self._refuse(error)
            if request is None:
                return None
            self._answer(request)
        return None

    def _take_request(self) -> Request | None:
        """The next whole request of the buffer, or None while it is not complete."""
        end = self._buffer.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)
        if end < 0:
            if len(self._buffer) >= MAX_HEAD_BYTES:
                raise BadRequest(431, "headers too large")
            return None
        request = parse_head(bytes(self._buffer[:end]))
        length = body_length(request)
        if len(self._buffer) < end + 4 + length:
            return None
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        return _with_body(request, body) if body else request

    def _answer(self, request: Request) -> None:
        exchange = self.exchange = self._server.exchange(request, late_s=self._late_s())
        self._written = 0
        if exchange.response.later is None and exchange.response.delivery.mode == "whole":
            self._send_whole(exchange)
        else:
            self._task = asyncio.ensure_future(self._deliver(exchange))

    def _send_whole(self, exchange: Exchange) -> None:
        self._server.router.begun(exchange)
        self._write(self._head(exchange) + (b"" if exchange.request.method == "HEAD" else exchange.response.body))
        if self._drained.is_set():
            self._complete(exchange)
        else:
            self._whole_after_drain = lambda: self._complete(exchange)

    def _complete(self, exchange: Exchange) -> None:
        self._finish(whole=True)
        if not exchange.request.keep_alive and self._transport:
            self._transport.close()
        elif self._buffer:
            self._server.soon(self._next)

    def _finish(self, *, whole: bool) -> None:
        exchange, self.exchange = self.exchange, None
        if exchange:
            self._server.router.ended(exchange, sent=self._written, whole=whole)

    async def _deliver(self, exchange: Exchange) -> None:
        response = exchange.response
        if response.later:
            response.body = await asyncio.get_running_loop().run_in_executor(None, response.later)
        mode = "whole" if exchange.request.method == "HEAD" else response.delivery.mode
        if mode == "whole":
            return self._send_whole(exchange)
        self._server.router.begun(exchange)
        self._write(self._head(exchange))
        cut = int(len(response.body) * response.delivery.share)
        match mode:
            case "slow":
                await self._send_slowly(response)
            case "chunked":
                self._write(_chunked(response.body) + b"0\r\n\r\n")
            case _:
                await self._send_and_fail(mode, response, cut)
        await self._drained.wait()
        return self._complete(exchange)

    async def _send_slowly(self, response: Response) -> None:
        step = max(1, -(-len(response.body) // SLOW_PIECES))
        for start in range(0, len(response.body), step):
            # After the last piece nothing is left to wait for: the client has it all and may ask again.
            if start:
                await asyncio.sleep(response.delivery.seconds / SLOW_PIECES)
            self._write(response.body[start : start + step])

    async def _send_and_fail(self, mode: str, response: Response, cut: int) -> None:
        part = response.body[:cut]
        self._write(_chunked(part) if mode == "chunked-cut" else part)
        await self._drained.wait()
        if mode == "stall":
            await asyncio.sleep(response.delivery.seconds)
        self._finish(whole=False)
        if self._transport and mode == "reset":
            # Lingering for zero seconds makes the kernel send RST instead of FIN.
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
        elif self._transport:
            self._transport.close()

    def _head(self, exchange: Exchange) -> bytes:
        return render_head(exchange.response, now=self._server.router.now(), keep_alive=exchange.request.keep_alive)

    def _write(self, data: bytes) -> None:
        if self._transport and not self._transport.is_closing():
            self._transport.write(data)
            self._written += len(data)

    def _refuse(self, error: BadRequest) -> None:
        response = text_response(f"{error}\n", error.status)
        if self._transport:
            self._transport.write(
                render_head(response, now=self._server.router.now(), keep_alive=False) + response.body
            )
            self._transport.close()
        self._buffer.clear()


class Server:
    """Listens on loopback and hands each request to the router. Lives in one event loop."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self.port = 0
        self.connections: set[Connection] = set()
        self._listener: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self, port: int = 0) -> int:
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: Connection(self), "127.0.0.1", port, backlog=1024)
        self.port = self._listener.sockets[0].getsockname()[1]
        self._sweeper = asyncio.ensure_future(self._sweep())
        return self.port

    async def stop(self) -> None:
        if self._sweeper:
            self._sweeper.cancel()
        if self._listener:
            self._listener.close()
        for connection in list(self.connections):
            connection.close()
        # Aborted transports report their end in the next turn of the loop.
        await asyncio.sleep(0)
        if self._listener:
            await self._listener.wait_closed()

    def exchange(self, request: Request, *, late_s: float) -> Exchange:
        return self.router.exchange(request, own_address=f"127.0.0.1:{self.port}", settle=self._settle, late_s=late_s)

    def time(self) -> float:
        return asyncio.get_running_loop().time()

    def soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def _settle(self, limit_key: str) -> None:
        """End the exchanges of a limit whose client has disconnected."""
        busy = [each for each in self.connections if each.exchange and each.exchange.limit_key == limit_key]
        for connection in busy:
            if connection.hung_up():
                connection.abandon()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(5)
            oldest = self.time() - IDLE_S
            for connection in list(self.connections):
                if connection.exchange is None and connection.last_used < oldest:
                    connection.close()


async def serve(router: Router, *, port: int, ready: Callable[[int], None], stop: asyncio.Event) -> None:
    """Serve until `stop` is set; `ready` is told the port."""
    server = Server(router)
    ready(await server.start(port))
    try:
        await stop.wait()
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await server.stop()


def _with_body(request: Request, body: bytes) -> Request:
    fields = {name: getattr(request, name) for name in Request.__slots__ if name != "body"}
    return Request(**fields, body=body)


def _chunked(body: bytes) -> bytes:
    half = len(body) // 2
    pieces = [piece for piece in (body[:half], body[half:]) if piece]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
