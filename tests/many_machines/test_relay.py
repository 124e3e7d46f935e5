"""The wire that the fleet is cut with does what it says."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from tests.many_machines.relay import _RESET, Relay, Wires


class Echo:
    """Sends back what it gets."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.clients: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.clients.append(client)
            threading.Thread(target=self._echo, args=(client,), daemon=True).start()

    def _echo(self, client: socket.socket) -> None:
        try:
            while data := client.recv(65536):
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        for end in (self.listener, *self.clients):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    yield made
    made.close()


@pytest.fixture
def wire(echo: Echo) -> Iterator[Relay]:
    with Wires() as wires:
        yield wires.lead_to(echo.port)


def called(wire: Relay) -> socket.socket:
    return socket.create_connection(("127.0.0.1", wire.port), timeout=30)


def received(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := client.recv(65536)):
        data += more
    return data


def test_everything_arrives_and_the_end_too(wire: Relay) -> None:
    with called(wire) as client:
        data = b"x" * 1_000_000
        threading.Thread(target=lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR))).start()
        assert received(client, len(data) + 1) == data
    assert wire.carried == 1


def test_a_hung_wire_moves_nothing_and_forgets_nothing(wire: Relay) -> None:
    with called(wire) as client:
        client.sendall(b"before")
        assert received(client, 6) == b"before"
        wire.cut("hang")
        client.sendall(b"meanwhile")
        with called(wire) as other:
            other.sendall(b"new")
            client.settimeout(0.3)
            with pytest.raises(TimeoutError):
                client.recv(1)
            wire.mend()
            client.settimeout(30)
            assert received(client, 9) == b"meanwhile"
            assert received(other, 3) == b"new"


def test_a_wire_that_refuses_resets_who_is_there_and_who_comes(wire: Relay) -> None:
    with called(wire) as client:
        client.sendall(b"before")
        assert received(client, 6) == b"before"
        wire.cut("refuse")
        with pytest.raises(ConnectionError):
            client.recv(1)
        with pytest.raises(ConnectionError), called(wire) as other:  # at the call, or right after it
            other.recv(1)
        wire.mend()
        with called(wire) as again:
            again.sendall(b"after")
            assert received(again, 5) == b"after"


def test_a_server_that_dies_is_noticed_through_the_wire() -> None:
    with (
        Wires() as wires,
        socket.create_server(("127.0.0.1", 0)) as listener,
        called(wires.lead_to(listener.getsockname()[1])) as client,
    ):
        server, _ = listener.accept()
        server.sendall(b"before")
        assert received(client, 6) == b"before"
        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        server.close()
        with pytest.raises(ConnectionError):
            client.recv(1)
