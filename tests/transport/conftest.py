"""A loopback server that plays scripted bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.raw_server import RawServer, Side

PUBLIC = "93.184.216.34"


class Conversation(Side):
    """The server's side of one connection, which remembers what was read too far."""

    def __init__(self, sock: socket.socket, server: ScriptedServer) -> None:
        super().__init__(sock, server)
        self.server = server
        self._buffer = b""

    def read_request(self) -> bytes:
        """The head of the next request, or empty bytes when the client has gone."""
        while b"\r\n\r\n" not in self._buffer:
            data = self.sock.recv(65536)
            if not data:
                return b""
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        self.server.requests.append(head)
        return head

    def read_bytes(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = self.sock.recv(65536)
            if not data:
                break
            self._buffer += data
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def wait_until_client_leaves(self) -> None:
        with contextlib.suppress(OSError):
            while self.sock.recv(65536):
                pass
        self.server.client_left.set()


Script = Callable[[Conversation], None]


class ScriptedServer(RawServer):
    """The n-th connection is played by the n-th script; the last script plays all further ones."""

    def __init__(self, *scripts: Script) -> None:
        self.client_left = threading.Event()
        super().__init__(lambda sock: Conversation(sock, self), lambda number: scripts[min(number, len(scripts) - 1)])


@pytest.fixture
def serve() -> Iterator[Callable[..., ScriptedServer]]:
    with contextlib.ExitStack() as stack:

        def start(*scripts: Script) -> ScriptedServer:
            server = ScriptedServer(*scripts)
            stack.callback(server.close)
            return server

        yield start


@pytest.fixture
def answering(serve: Callable[..., ScriptedServer]) -> Callable[..., ScriptedServer]:
    """A server that gives the same bytes to the first request of every connection, then ends or stays."""

    def start(answer: bytes, *, stay: bool = False) -> ScriptedServer:
        def script(talk: Conversation) -> None:
            talk.read_request()
            talk.send(answer)
            if stay:
                talk.wait_until_client_leaves()

        return serve(script)

    return start
