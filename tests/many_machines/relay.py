"""The wire between one node and one server: a relay on loopback that can be cut and mended.

`refuse` resets what is connected and whatever comes; `hang` moves no byte and ends nothing, as a network does whose
packets are lost; `mend` lets everything flow again, what was held up first. One thread with a loop serves all relays.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine
from typing import Any, Literal, TypeVar

_T = TypeVar("_T")
_BLOCK = 64 * 1024
_MOST_CONNECTIONS = 400
_RESET = struct.pack("ii", 1, 0)

Cut = Literal["refuse", "hang"]


class Wires:
    """The loop that relays run in."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wires", daemon=True)
        self._relays: list[Relay] = []

    def __enter__(self) -> Wires:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        for relay in self._relays:
            self.do(relay.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    def lead_to(self, port: int) -> Relay:
        relay = Relay(self, port)
        self.do(relay.open())
        self._relays.append(relay)
        return relay

    def do(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)


class Relay:
    """`port` leads to `target` on loopback."""

    def __init__(self, wires: Wires, target: int) -> None:
        self._wires = wires
        self._target = target
        self._flows = asyncio.Event()
        self._flows.set()
        self._refuses = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.carried = 0  # connections, to show that somebody came this way

    def cut(self, how: Cut) -> None:
        self._wires.do(self._cut(how))

    def mend(self) -> None:
        self._wires.do(self._mend())

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._end_all()

    async def _cut(self, how: Cut) -> None:
        if how == "hang":
            self._flows.clear()
        else:
            self._refuses = True
            await self._end_all()

    async def _mend(self) -> None:
        self._refuses = False
        self._flows.set()

    async def _end_all(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if not self._refuses and len(self._tasks) <= _MOST_CONNECTIONS:
                self.carried += 1
                await self._carry(reader, writer)
        except (asyncio.CancelledError, OSError):
            pass  # cut, reset by one side, or the end: both sides are reset
        finally:
            _reset(writer)
            self._tasks.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flows.wait()
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            return
        ways = [
            asyncio.ensure_future(self._move(reader, far_writer)),
            asyncio.ensure_future(self._move(far_reader, writer)),
        ]
        try:
            await asyncio.gather(*ways)
            for side in (far_writer, writer):
                side.close()  # what is still on its way arrives first
                with contextlib.suppress(OSError):
                    await side.wait_closed()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            _reset(far_writer)

    async def _move(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Until the end; a reset of either side is raised, and resets the other."""
        while data := await source.read(_BLOCK):
            await self._flows.wait()
            sink.write(data)
            await sink.drain()
        await self._flows.wait()
        if sink.can_write_eof():
            sink.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    """An end that the other side notices at once, whatever was on its way."""
    if not writer.transport.is_closing():
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
