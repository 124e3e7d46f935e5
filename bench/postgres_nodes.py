"""Whole nodes whose jobs only wait: each a process with the orchestrator of a run, on one PostgreSQL queue.

Everything is real but the pipeline, which keeps its slot for some time and is done. Measured is from the first lease to
the last end, as the ledger has it in its history, so that start-up is left out.

    python -m bench.postgres_nodes URL SLOTS WAIT_S FOLDER     is one node; bench.postgres starts them
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from DocsToKG.ContentDownload.api.gates import Gate
from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.pipeline import JobContext
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.tasks import LoopThread

_SPAN = (
    "SELECT count(*) FILTER (WHERE event = 'finished'),"
    " max(at) FILTER (WHERE event = 'finished') - min(at) FILTER (WHERE event = 'leased') FROM orchestrator.job_history"
)


class Wait:
    """A pipeline that keeps its slot for so long."""

    def __init__(self, wait_s: float, slots: int) -> None:
        self.loop = LoopThread()
        limits = HostLimits(clock=SystemClock(), default_host=HostLimit(slots))
        self.gates = PermitQueues(limits, clock=SystemClock(), most=slots)
        self._wait_s = wait_s

    async def obtain(self, artifact: WorkArtifact, ctx: JobContext) -> DownloadOutcome:
        gate = Gate("https://bench.test/", "bench", "artifact")
        permit = await self.gates.permit(gate, Call(artifact.work_id, waits=ctx.waits))
        ctx.on_begin()
        await asyncio.sleep(self._wait_s)
        permit.release()
        return DownloadOutcome(True, "success", path=f"{artifact.work_id}.pdf", reason="ok", meta={"sha256": "a" * 64})


def run_node(url: str, slots: int, wait_s: float, folder: Path) -> None:
    """Work until the queue is empty; begins at a line on standard input."""
    cfg = load_config(None, {"orchestrator": {"max_workers": slots}}, environ={}, user_file=folder / "none")
    record = RunTelemetry(folder, run_id="bench", config_hash="", clock=SystemClock())
    pipeline: Any = Wait(wait_s, slots)
    with WorkQueue(folder / "queue", url=url) as queue, record:
        running = Orchestrator(cfg, queue, pipeline, record)
        print("ready", flush=True)
        sys.stdin.readline()
        running.start()
        running.wait_until_drained()
        running.stop()


def drain(url: str, *, count: int, slots: int, wait_s: float, jobs: int) -> dict[str, Any]:
    """So many nodes empty one queue; jobs a second."""
    with _database(url) as own, tempfile.TemporaryDirectory(prefix="bench-nodes") as place:
        folders = [Path(place) / str(number) for number in range(count)]
        for folder in folders:
            folder.mkdir()
        with WorkQueue(Path(place) / "queue", url=own) as queue:
            queue.bulk_import((f"bench:{number}", {}, None) for number in range(jobs))
        words = [sys.executable, "-m", "bench.postgres_nodes", own, str(slots), str(wait_s)]
        nodes = [
            subprocess.Popen([*words, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for folder in folders
        ]
        for node in nodes:
            assert node.stdout is not None
            assert node.stdout.readline() == "ready\n"
        for node in nodes:
            assert node.stdin is not None
            node.stdin.write("go\n")
            node.stdin.flush()
        codes = [node.communicate() and node.returncode for node in nodes]
        assert codes == [0] * count, "a node failed"
        with psycopg.connect(own) as connection:
            [(done, span_ms)] = connection.execute(_SPAN).fetchall()
    assert done == jobs, f"{done} ends of {jobs} jobs"
    rate = round(1000 * done / span_ms)
    return {"side": "whole nodes", "nodes": count, "slots": slots, "wait_s": wait_s, "jobs": done, "jobs_per_s": rate}


@contextmanager
def _database(url: str) -> Iterator[str]:
    name = f"bench_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


if __name__ == "__main__":
    run_node(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
