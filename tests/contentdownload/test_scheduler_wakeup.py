"""From an enqueue to the first byte on the wire, while the process has nothing to do (ORC-02)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.stand_in import SUCCESS, Exchange, StandIn
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.pipeline import JobContext
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.core.clock import SystemClock

ROUNDS = 9
SOON_S = 0.5  # who only looked now and then would need a second each time
OTHER_PROCESS = """
import sys, time
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
with WorkQueue(sys.argv[1]) as queue:
    print("ready", flush=True)
    for line in sys.stdin:
        queue.enqueue(line.strip(), {})
        print(time.monotonic(), flush=True)
"""


class FirstBytes:
    """A server on the loopback that notes when the first byte of each connection came."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.at: list[float] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection:
                    if connection.recv(1):
                        self.at.append(time.monotonic())
                    connection.sendall(b".")

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


class Calls(StandIn):
    """A pipeline that sends one byte to the server and waits for its answer."""

    def __init__(self, port: int) -> None:
        super().__init__(self._call, HostLimits(clock=SystemClock(), default_host=HostLimit()), most=8)
        self._port = port

    async def _call(self, artifact: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        async with exchange(f"http://127.0.0.1:{self._port}/"):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(b"?")
            await reader.read(1)
            writer.close()
        return SUCCESS


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[tuple[WorkQueue, FirstBytes]]:
    """An orchestrator with nothing to do."""
    cfg = load_config(None, {}, environ={}, user_file=tmp_path / "none")
    server = FirstBytes()
    pipeline: Any = Calls(server.port)
    record = RunTelemetry(tmp_path, run_id="r", config_hash="c", clock=SystemClock())
    with contextlib.closing(server), WorkQueue(tmp_path / "q.sqlite") as queue, record:
        running = Orchestrator(cfg, queue, pipeline, record)
        running.start()
        try:
            yield queue, server
        finally:
            running.stop()
            pipeline.close()


def delays(server: FirstBytes, enqueue: Any) -> list[float]:
    """Seconds from each enqueue to its first byte; the process is idle before each."""
    found = []
    for n in range(ROUNDS):
        time.sleep(0.06)
        began = enqueue(f"test:{n}")
        eventually(lambda: len(server.at) > n, every_s=0.001)  # noqa: B023
        found.append(server.at[n] - began)
    return found


@pytest.mark.slow
def test_an_idle_process_sends_its_first_byte_soon_after_an_enqueue(idle):
    queue, server = idle

    def enqueue(name: str) -> float:
        queue.enqueue(name, {})
        return time.monotonic()

    assert statistics.median(delays(server, enqueue)) < SOON_S


@pytest.mark.slow
def test_an_idle_process_hears_of_an_enqueue_by_another_process_as_soon(idle, warm, tmp_path):
    _, server = idle
    with subprocess.Popen(
        [*warm.words("python"), "-c", OTHER_PROCESS, str(tmp_path / "q.sqlite")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"

        def enqueue(name: str) -> float:
            other.stdin.write(name + "\n")
            other.stdin.flush()
            return float(other.stdout.readline())

        found = delays(server, enqueue)
        other.stdin.close()
    assert statistics.median(found) < 0.05
