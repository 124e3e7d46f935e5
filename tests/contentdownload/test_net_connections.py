"""No more connections than the process may have: in use, and idle ones with them, counted by the server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from DocsToKG.ContentDownload import way_out
from DocsToKG.ContentDownload.api.ports import Call, NullSink
from DocsToKG.ContentDownload.api.steps import Gate, Wait
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.net.connections import Connections
from DocsToKG.ContentDownload.net.limits import HostLimit, Limits
from DocsToKG.ContentDownload.net.permits import admission
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import ManualClock, SystemClock


class Crowd:
    """A server that keeps every connection, answers after a moment, and knows how many were open at once."""

    def __init__(self) -> None:
        self.most = self.requests = 0
        self._peers: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._peers = [known for known in self._peers if is_open(known)] + [peer]
                self.most = max(self.most, len(self._peers))
            thread = threading.Thread(target=self._serve, args=(peer,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: socket.socket) -> None:
        with peer:
            while peer.recv(65536):
                with self._lock:
                    self.requests += 1
                threading.Event().wait(0.02)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}")


def is_open(peer: socket.socket) -> bool:
    """As the kernel knows it, whether or not the thread of this connection has noticed."""
    try:
        return peer.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    crowd = Crowd()
    yield crowd
    crowd.close()


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.slow
def test_twelve_threads_on_twelve_hosts_share_few_connections(crowd: Crowd, tmp_path: Path, most: int) -> None:
    """http.max_connections. Every request is answered, although most of them have to wait."""
    settings = {
        "contact": "me@university.edu",
        "http": {
            "max_connections": most,
            "names": {"*": ["93.184.215.14"]},
            "connect_to": {"*": f"plain://127.0.0.1:{crowd.port}"},
        },
        "hishel": {"enabled": False},
        "robots": {"enabled": False},
        "limits": {"shared": False, "rate_factor": 1000},
        "orchestrator": {"max_workers": 12},
    }
    cfg = load_config(None, settings, environ={}, user_file=tmp_path / "none")
    store, clock = LocalStore(tmp_path), SystemClock()
    limits = way_out.open_limits(cfg, clock)
    with way_out.open_network(cfg, store=store, attempts=NullSink(), clock=clock, limits=limits) as network:
        client = network.clients["doi_redirect"]

        def ask(number: int) -> int:
            return client.request("GET", f"https://host{number}.example.org/", role=Role.LANDING).status  # type: ignore[attr-defined]

        with ThreadPoolExecutor(12) as threads:
            assert list(threads.map(ask, range(16))) == [200] * 16
    limits.close()
    assert crowd.requests == 16
    assert crowd.most <= most


def test_who_finds_no_connection_free_holds_nothing_while_it_waits() -> None:
    """LIM-18: neither a slot of the host nor a token."""
    clock = ManualClock()
    limits = Limits(clock=clock, default_host=HostLimit(1, {"*": (Rate(1, 100.0),)}))
    connections = Connections(1)
    about = ("https://a.org/x", "unpaywall", Role.METADATA)
    steps = admission(*about, clock=clock, call=Call("w"), attempts=NullSink(), connections=connections)
    asked = steps.send(None)
    assert isinstance(asked, Gate)
    assert connections.take()  # another was quicker
    waits = steps.send(limits.ask(asked))
    assert isinstance(waits, Wait)
    assert limits._ways.hosts["a.org"].busy == 0
    connections.give_back()
    clock.advance(waits.until - clock.monotonic())
    again = steps.send(None)
    assert isinstance(again, Gate)
    with pytest.raises(StopIteration) as done:
        steps.send(limits.ask(again))  # the one token of the host is there again
    permit = done.value.value
    assert connections.used == 1
    permit.release()
    permit.release()
    assert connections.used == 0
