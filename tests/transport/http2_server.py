"""An HTTP/2 server on loopback for the tests' own event loop, which counts connections and streams, and misbehaves
where a path says so."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

BODY = b"p" * 20_000


class Http2Server:
    def __init__(self) -> None:
        self.connections = 0
        self.requests: list[tuple[int, str]] = []  # the connection's number, and the path
        self.reset_came = asyncio.Event()
        self.most_at_once = 0
        self.most_streams = 100
        self.port = 0


class _Connection:
    def __init__(self, server: Http2Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server, self._reader, self._writer = server, reader, writer
        self._number = server.connections
        server.connections += 1
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self._open: set[int] = set()
        self._window = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        self._h2.initiate_connection()
        self._h2.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self._server.most_streams})
        self._flush()
        with contextlib.suppress(OSError, ssl.SSLError):
            while data := await self._reader.read(65536):
                for event in self._h2.receive_data(data):
                    self._take(event)
                self._flush()
        for task in self._tasks:
            task.cancel()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write(self._h2.data_to_send())

    def _take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            path = dict(event.headers)[":path"]
            self._server.requests.append((self._number, path))
            self._open.add(event.stream_id)
            self._server.most_at_once = max(self._server.most_at_once, len(self._open))
            task = asyncio.ensure_future(self._answer(event.stream_id, path))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif isinstance(event, h2.events.StreamReset):
            self._open.discard(event.stream_id)
            self._server.reset_came.set()
        elif isinstance(event, h2.events.WindowUpdated):
            self._window.set()

    async def _answer(self, stream: int, path: str) -> None:
        if path == "/goaway" and self._number == 0:
            self._h2.close_connection(last_stream_id=0)
            self._flush()
            return
        if path == "/refused" and self._number == 0:
            self._h2.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
            self._flush()
            return
        if path != "/now":
            await asyncio.sleep(0.01)
        length = [] if path == "/slow" else [("content-length", str(len(BODY)))]
        self._h2.send_headers(stream, [(":status", "200"), ("x-path", path), *length])
        self._flush()
        if path == "/reset":
            self._h2.send_data(stream, b"part")
            self._h2.reset_stream(stream, h2.errors.ErrorCodes.INTERNAL_ERROR)
            self._flush()
            return
        if path == "/slow":
            while stream in self._open:
                await self._send(stream, b"drop")
                await asyncio.sleep(0.01)
            return
        await self._send(stream, BODY)
        if stream in self._open:
            self._h2.end_stream(stream)
            self._open.discard(stream)
            self._flush()

    async def _send(self, stream: int, data: bytes) -> None:
        while data and stream in self._open:
            room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size, len(data))
            if room <= 0:
                self._window.clear()
                await self._window.wait()
                continue
            self._h2.send_data(stream, data[:room])
            self._flush()
            data = data[room:]


@contextlib.asynccontextmanager
async def serve_http2(context: ssl.SSLContext, most_streams: int = 100) -> AsyncIterator[Http2Server]:
    server = Http2Server()
    server.most_streams = most_streams

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _Connection(server, reader, writer).serve()

    listener = await asyncio.start_server(take, "127.0.0.1", 0, ssl=context)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
