"""A web of many hosts in one process: every paper is a small valid PDF, sent a fixed time after it was asked for.

Told apart by the Host header. Counts what it was asked and the most requests that one host had at once, so that a
run can be shown to keep its caps. Start it with `Origin(...)`; by hand it prints its port.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import subprocess
import sys
import time
from collections import Counter
from types import TracebackType
from typing import Any

from DocsToKG.Sandbox.pdf import Paper, make_pdf

CONTROL = "control.bench.test"
_NUMBER = b"NUMBER-0000000000"


class Papers:
    """PDFs of one size that differ in one number, so that making one costs next to nothing."""

    def __init__(self, size_bytes: int) -> None:
        paper = Paper(title="A measured paper", authors=("A. Author",), year=2020, doi=None)
        whole = bytearray(make_pdf(paper, size_bytes=size_bytes, key="bench"))
        # The noise of the second page is the longest stream and the last but one object.
        at = whole.rindex(b"stream\n", 0, whole.rindex(b"endstream")) + len(b"stream\n")
        self._head, self._tail = bytes(whole[:at]), bytes(whole[at + len(_NUMBER) :])

    def paper(self, number: int) -> bytes:
        return self._head + b"NUMBER-%010d" % number + self._tail


class Counts:
    """What the origin saw."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.papers = 0
        self.others = 0
        self.connections = 0
        self.first_at = self.last_at = 0.0

    def begin(self, host: str) -> None:
        self.first_at = self.first_at or time.monotonic()
        self.now[host] += 1
        self.most[host] = max(self.most[host], self.now[host])

    def end(self, host: str) -> None:
        self.now[host] -= 1
        self.papers += 1
        self.last_at = time.monotonic()

    def shown(self) -> dict[str, Any]:
        return {
            "papers": self.papers,
            "others": self.others,
            "connections": self.connections,
            "most_at_once": max(self.most.values(), default=0),
            "first_at": self.first_at,
            "last_at": self.last_at,
        }


class Exchange(asyncio.Protocol):
    """One connection; its requests come one after another."""

    def __init__(self, papers: Papers, counts: Counts, delay_s: float) -> None:
        self._papers = papers
        self._counts = counts
        self._delay_s = delay_s
        self._pending = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._counts.connections += 1

    def data_received(self, data: bytes) -> None:
        self._pending += data
        while b"\r\n\r\n" in self._pending:
            head, _, self._pending = self._pending.partition(b"\r\n\r\n")
            self._answer(head)

    def _answer(self, head: bytes) -> None:
        request, *fields = head.split(b"\r\n")
        path = request.split(b" ")[1]
        host = next((line[5:].strip() for line in fields if line[:5].lower() == b"host:"), b"").decode("latin-1")
        name, _, form = path.rpartition(b"/")[2].partition(b".")
        if form == b"pdf" and name.isdigit():
            self._counts.begin(host)
            asyncio.get_running_loop().call_later(self._delay_s, self._send_paper, host, int(name))
        elif host == CONTROL:
            self._send(200, b"application/json", json.dumps(self._counts.shown()).encode())
        else:
            self._counts.others += 1
            self._send(404, b"text/plain", b"nothing here\n")

    def _send_paper(self, host: str, number: int) -> None:
        # Counted before it is sent: whoever has the last byte may come back at once.
        self._counts.end(host)
        self._send(200, b"application/pdf", self._papers.paper(number))

    def _send(self, status: int, kind: bytes, body: bytes) -> None:
        if self._transport.is_closing():
            return
        head = b"HTTP/1.1 %d OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (status, kind, len(body))
        self._transport.write(head + body)


class Origin:
    """`with Origin(delay_s=0.05, size_bytes=20_000) as origin:` serves on `origin.port`, in a process of its own."""

    def __init__(self, *, delay_s: float, size_bytes: int) -> None:
        self._words = [f"--delay={delay_s}", f"--size={size_bytes}"]
        self.port = 0

    def __enter__(self) -> Origin:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.origin", *self._words], stdout=subprocess.PIPE, stdin=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline() or 0)
        if not self.port:
            raise RuntimeError("the origin did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.communicate()

    def counts(self) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", "/counts", headers={"Host": CONTROL})
            return dict(json.loads(connection.getresponse().read()))
        finally:
            connection.close()


async def serve(*, delay_s: float, size_bytes: int) -> None:
    papers, counts = Papers(size_bytes), Counts()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Exchange(papers, counts, delay_s), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Whoever started us holds the other end of our input: when they are gone, so are we.
    gone = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 1) else gone.set())
    await gone.wait()
    server.close()


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--delay", type=float, default=0.05)
    words.add_argument("--size", type=int, default=20_000)
    given = words.parse_args()
    asyncio.run(serve(delay_s=given.delay, size_bytes=given.size))


if __name__ == "__main__":
    main()
