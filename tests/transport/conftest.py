"""A loopback server that plays scripted bytes, and clients that reach it under public host names."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import httpx2
import pytest
from tests.raw_server import RawServer, Side

from DocsToKG.transport.client import build_client
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.http1 import LeanTransport
from DocsToKG.transport.names import StaticNames

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


@pytest.fixture
def reach() -> Iterator[Callable[..., httpx2.Client]]:
    """A client for which every host name is public and leads to the given server."""
    with contextlib.ExitStack() as stack:

        def build(server: ScriptedServer | None = None, *, tls: bool = False, **options: object) -> httpx2.Client:
            scheme = "tls" if tls else "plain"
            if server is not None:
                options.setdefault("connect_to", ConnectTo({"*": f"{scheme}://127.0.0.1:{server.port}"}))
            options.setdefault("guard", AddressGuard())
            options.setdefault("names", StaticNames({"*": [PUBLIC]}))
            transport = LeanTransport(**options)  # type: ignore[arg-type]
            client = build_client(
                transport, user_agent="test/1 (mailto:ops@example.org)", timeout_connect_s=5, timeout_read_s=5
            )
            return stack.enter_context(client)

        yield build


@pytest.fixture
def packets(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every connect is written down and refused below the guard, so that a guard that fails sends no packet."""
    tried: list[tuple[str, int]] = []

    def refuse(_sock: socket.socket, address: tuple[str, int]) -> None:
        tried.append(address)
        raise ConnectionRefusedError(111, "blocked by the test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return tried
