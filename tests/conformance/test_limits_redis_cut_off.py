"""A node that is cut off from the server of the shared limits ends its transfers before others may take its place."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.conformance.conftest import PASSWORD, Server
from tests.contentdownload.test_net_connections import is_open
from tests.many_machines.relay import Cut, Wires
from tests.waiting import eventually

from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.net.limits.stores import redis as redis_store
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.Sandbox.pdf import Paper, make_pdf

LEASE_S = 6.0  # a third of what it is else
PDF = make_pdf(Paper(title="On cuts", doi=None, year=2020, authors=("A. Author",)), size_bytes=60_000, key="k")
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: {}\r\nConnection: close\r\n\r\n"
NOBODY = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class SlowHost:
    """Every host of the test. The first body of `/a.pdf` flows slowly for as long as its reader stays; whatever is
    asked for after it comes at once."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self.over = threading.Event()
        self._slow: socket.socket | None = None
        self.streams = threading.Event()
        self.asked: list[tuple[str, bool]] = []  # each file, and whether the slow body was still open then
        self._threads[0].start()

    def close(self) -> None:
        self.over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(60)

    def count(self, path: str) -> int:
        return [asked for asked, _ in self.asked].count(path)

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(peer,)))
            self._threads[-1].start()

    def _serve(self, peer: socket.socket) -> None:
        with peer:
            try:
                path = peer.recv(65536).split(b" ")[1].decode()
                self._answer(peer, path)
            except (OSError, IndexError):
                return

    def _answer(self, peer: socket.socket, path: str) -> None:
        if not path.endswith(".pdf"):
            return peer.sendall(NOBODY)
        is_first = path == "/a.pdf" and not self.count(path)
        self.asked.append((path, self._slow is not None and is_open(self._slow)))
        if not is_first:
            return peer.sendall(HEAD.format(len(PDF)).encode() + PDF)
        self._slow = peer.dup()
        with self._slow:
            peer.sendall(HEAD.format(50_000_000).encode() + PDF)
            while not self.over.wait(0.02) and is_open(peer):
                peer.sendall(b"x" * 2000)
                self.streams.set()
        return None


@pytest.fixture
def host() -> Iterator[SlowHost]:
    host = SlowHost()
    yield host
    host.close()


def pulled(host: SlowHost, root: Path, redis_url: str, file: str) -> tuple[int, int]:
    """How many files a node in `root` got, and how many it failed to get."""
    settings = {
        "contact": "me@university.edu",
        "http": {"names": {"*": ["93.184.215.14"]}, "connect_to": {"*": f"plain://127.0.0.1:{host.port}"}},
        "hishel": {"enabled": False},
        "robots": {"enabled": False},
        "limits": {"rate_factor": 1000, "hosts": {"files.example.org": {"max_concurrent": 1}}},
        "rate_limit": {"backend": "redis", "redis_url": redis_url},
        # A try that counted would be the last one.
        "orchestrator": {"max_workers": 2, "max_job_attempts": 1, "retry_backoff_seconds": 1, "jitter_seconds": 0},
        "telemetry": {"manifest_path": str(root / "manifest.jsonl")},
        "storage": {"root_dir": str(root), "min_free_bytes": 0},
        "queue": {"path": str(root / "state" / "ledger.sqlite")},
    }
    config = load_config(None, settings, environ={}, user_file=root / "none")
    with DownloadRun(config) as run:
        result = run.process_artifacts([f"https://files.example.org{file}"])
    return result.successful, result.failed


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", ["hang", "refuse"])
def test_a_node_that_is_cut_off_ends_its_transfer_before_another_takes_its_slot(
    host: SlowHost, own_valkey: tuple[Server, str], tmp_path: Path, how: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIM-13 across nodes. The cut costs the work no try, leaves nothing behind, and is made good by itself."""
    server, url = own_valkey
    monkeypatch.setattr(redis_store, "RedisLimitStore", partial(redis_store.RedisLimitStore, lease_s=LEASE_S))
    with Wires() as wires, ThreadPoolExecutor(2) as nodes:
        wire = wires.lead_to(server.port)
        relayed = urlsplit(url)._replace(netloc=f":{PASSWORD}@127.0.0.1:{wire.port}").geturl()
        try:
            cut_off = nodes.submit(pulled, host, tmp_path / "a", relayed, "/a.pdf")
            eventually(lambda: host.streams.is_set() or cut_off.done())
            assert not cut_off.done(), cut_off.result()
            wire.cut(how)
            other = nodes.submit(pulled, host, tmp_path / "b", url, "/b.pdf")
            eventually(lambda: host.count("/b.pdf") == 1)
            assert host.asked == [("/a.pdf", False), ("/b.pdf", False)]
            eventually(lambda: not list((tmp_path / "a" / ".tmp").iterdir()))
            assert other.result(60) == (1, 0)
            assert not cut_off.done()
        finally:
            host.over.set()
            wire.mend()
        assert cut_off.result(90) == (1, 0)
    assert [path for path, _ in host.asked] == ["/a.pdf", "/b.pdf", "/a.pdf"]
