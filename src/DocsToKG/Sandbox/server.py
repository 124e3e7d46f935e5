"""An HTTP/1.1 server on loopback, small and quick, that can also misbehave on purpose.

Knows sockets, keep-alive and the ways a body can go wrong. Does not know what it serves: `Switchboard` does.
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

from DocsToKG.Sandbox.exchange import (
    MAX_BODY_BYTES,
    MAX_HEAD_BYTES,
    BadRequest,
    Reply,
    Request,
    body_length,
    parse_head,
    render_head,
    text_reply,
)
from DocsToKG.Sandbox.switchboard import Switchboard, Visit

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
        self.visit: Visit | None = None
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
        elif self.visit is None:
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
        while self.visit is None and self._transport and not self._transport.is_closing():
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
        visit = self.visit = self._server.visit(request, late_s=self._late_s())
        self._written = 0
        if visit.reply.later is None and visit.reply.delivery.mode == "whole":
            self._send_whole(visit)
        else:
            self._task = asyncio.ensure_future(self._deliver(visit))

    def _send_whole(self, visit: Visit) -> None:
        self._server.board.begun(visit)
        self._write(self._head(visit) + (b"" if visit.request.method == "HEAD" else visit.reply.body))
        if self._drained.is_set():
            self._complete(visit)
        else:
            self._whole_after_drain = lambda: self._complete(visit)

    def _complete(self, visit: Visit) -> None:
        self._finish(whole=True)
        if not visit.request.keep_alive and self._transport:
            self._transport.close()
        elif self._buffer:
            self._server.soon(self._next)

    def _finish(self, *, whole: bool) -> None:
        visit, self.visit = self.visit, None
        if visit:
            self._server.board.ended(visit, sent=self._written, whole=whole)

    async def _deliver(self, visit: Visit) -> None:
        reply = visit.reply
        if reply.later:
            reply.body = await asyncio.get_running_loop().run_in_executor(None, reply.later)
        mode = "whole" if visit.request.method == "HEAD" else reply.delivery.mode
        if mode == "whole":
            return self._send_whole(visit)
        self._server.board.begun(visit)
        self._write(self._head(visit))
        cut = int(len(reply.body) * reply.delivery.share)
        match mode:
            case "slow":
                await self._send_slowly(reply)
            case "chunked":
                self._write(_chunked(reply.body) + b"0\r\n\r\n")
            case _:
                await self._send_and_fail(mode, reply, cut)
        await self._drained.wait()
        return self._complete(visit)

    async def _send_slowly(self, reply: Reply) -> None:
        step = max(1, -(-len(reply.body) // SLOW_PIECES))
        for start in range(0, len(reply.body), step):
            # After the last piece nothing is left to wait for: the client has it all and may ask again.
            if start:
                await asyncio.sleep(reply.delivery.seconds / SLOW_PIECES)
            self._write(reply.body[start : start + step])

    async def _send_and_fail(self, mode: str, reply: Reply, cut: int) -> None:
        part = reply.body[:cut]
        self._write(_chunked(part) if mode == "chunked-cut" else part)
        await self._drained.wait()
        if mode == "stall":
            await asyncio.sleep(reply.delivery.seconds)
        self._finish(whole=False)
        if self._transport and mode == "reset":
            # Lingering for zero seconds makes the kernel send RST instead of FIN.
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
        elif self._transport:
            self._transport.close()

    def _head(self, visit: Visit) -> bytes:
        return render_head(visit.reply, now=self._server.board.now(), keep_alive=visit.request.keep_alive)

    def _write(self, data: bytes) -> None:
        if self._transport and not self._transport.is_closing():
            self._transport.write(data)
            self._written += len(data)

    def _refuse(self, error: BadRequest) -> None:
        reply = text_reply(f"{error}\n", error.status)
        if self._transport:
            self._transport.write(render_head(reply, now=self._server.board.now(), keep_alive=False) + reply.body)
            self._transport.close()
        self._buffer.clear()


class Server:
    """Listens on loopback and hands each request to the switchboard. Lives in one event loop."""

    def __init__(self, board: Switchboard) -> None:
        self.board = board
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

    def visit(self, request: Request, *, late_s: float) -> Visit:
        return self.board.visit(request, own_address=f"127.0.0.1:{self.port}", settle=self._settle, late_s=late_s)

    def time(self) -> float:
        return asyncio.get_running_loop().time()

    def soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def _settle(self, lane: str) -> None:
        """End the exchanges of a lane whose client has gone."""
        busy = [each for each in self.connections if each.visit and each.visit.lane == lane]
        for connection in busy:
            if connection.hung_up():
                connection.abandon()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(5)
            oldest = self.time() - IDLE_S
            for connection in list(self.connections):
                if connection.visit is None and connection.last_used < oldest:
                    connection.close()


async def serve(board: Switchboard, *, port: int, ready: Callable[[int], None], stop: asyncio.Event) -> None:
    """Serve until `stop` is set; `ready` is told the port."""
    server = Server(board)
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
