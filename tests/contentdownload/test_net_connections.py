"""No more connections than the process may have: in use, and idle ones with them, counted by the server."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload import way_out
from DocsToKG.ContentDownload.api.ports import Call, NullSink
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.tasks import LoopThread


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
def test_sixteen_tasks_on_sixteen_hosts_share_few_connections(crowd: Crowd, tmp_path: Path, most: int) -> None:
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
    parts: dict[str, Any] = {"store": store, "attempts": NullSink(), "clock": clock, "limits": limits}
    with LoopThread() as loop, way_out.open_network(cfg, loop=loop, **parts) as network:
        client = network.clients["doi_redirect"]

        async def ask() -> list[int]:
            urls = [f"https://host{number}.example.org/" for number in range(16)]
            pages = await asyncio.gather(*(client.fetch(url, Role.LANDING, Call("w")) for url in urls))
            return [page.status for page in pages]

        assert loop.run(ask()) == [200] * 16
    limits.close()
    assert crowd.requests == 16
    assert crowd.most <= most
