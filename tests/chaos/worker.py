"""A worker process for the fault suite: everything is real but the pipeline, whose only effect is a line in a file.

`python worker.py` is a member of a crew; its order is a JSON object. `python worker.py zygote FOLDER` reads `go` lines,
and for each forks a process that works in the folder until it is killed, so that a thousand of them can be had in a
minute.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.api.gates import Gate
from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.types import DownloadOutcome, Role, WorkArtifact
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.errors import RunError
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.orchestrator.member import own_output, serve
from DocsToKG.ContentDownload.orchestrator.processes import Boss
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.pipeline import JobContext
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.ids import new_worker_id
from DocsToKG.core.tasks import LoopThread
from DocsToKG.Orchestrator.control.workers.liveness import Presence
from DocsToKG.Orchestrator.errors import LedgerError

EFFECTS, LEDGER, RECORD = "effects.txt", "q.sqlite", "manifest.sqlite"


class Effect:
    """A pipeline whose works take `seconds`, `workers` of them at once, and then leave one line: the work, and who did
    it."""

    def __init__(self, folder: Path, worker_id: str, workers: int) -> None:
        self.loop = LoopThread("content")
        limits = HostLimits(clock=SystemClock(), default_host=HostLimit(workers))
        self.gates = PermitQueues(limits, clock=SystemClock(), most=workers)
        self._worker_id = worker_id
        self._file = os.open(folder / EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    async def obtain(self, artifact: WorkArtifact, ctx: JobContext) -> DownloadOutcome:
        assert ctx.waits is not None
        with ctx.waits.branch():
            gate = Gate("https://effects.test/", "test", Role.ARTIFACT)
            permit = await self.gates.permit(gate, Call(artifact.work_id, ctx.cancel, waits=ctx.waits))
            try:
                ctx.on_begin()
                await asyncio.sleep(artifact.metadata.get("seconds", 0.0))
                os.write(self._file, f"{artifact.work_id} {self._worker_id}\n".encode())
            finally:
                permit.release()
        return DownloadOutcome(True, "success", path=f"{artifact.work_id}.pdf", reason="ok", meta={"sha256": "a" * 64})

    def close(self) -> None:
        self.loop.close()
        os.close(self._file)


class SteppingClock(SystemClock):
    """The machine's clock, until somebody sets it back by an hour."""

    def __init__(self, sign: Path) -> None:
        self._sign = sign

    def now(self) -> float:
        return time.time() - (3600.0 if self._sign.exists() else 0.0)


@contextmanager
def working(
    folder: Path,
    *,
    share: Any = "guest",
    ttl_s: float = 600.0,
    heartbeat_s: float = 30.0,
    clock: str | None = None,
    largest_file: int | None = None,
    deaf: bool = False,
    workers: int = 4,
) -> Iterator[Orchestrator]:
    """An orchestrator on the folder, not yet started. `deaf` ones never come to their heartbeat."""
    cfg = load_config(None, {}, environ={}, user_file=folder / "none")
    # Copied past the bounds of a configuration file, so that a lease need not take half a minute.
    chosen = {"lease_ttl_seconds": ttl_s, "heartbeat_seconds": heartbeat_s, "max_job_attempts": 90, "lookahead": 64}
    chosen |= {"max_workers": workers, "retry_backoff_seconds": 0, "jitter_seconds": 0}
    cfg = cfg.model_copy(update={"orchestrator": cfg.orchestrator.model_copy(update=chosen)})
    worker_id = new_worker_id()
    time_of = SteppingClock(folder / clock) if clock else SystemClock()
    with ExitStack() as stack:
        queue = stack.enter_context(WorkQueue(folder / LEDGER, clock=time_of))
        stack.enter_context(Presence(folder / LEDGER, worker_id))
        record = RunTelemetry(folder, run_id="r", config_hash="c", clock=time_of, worker_id=worker_id, share=share)
        stack.enter_context(record)
        pipeline: Any = Effect(folder, worker_id, workers)
        stack.callback(pipeline.close)
        if largest_file is not None:
            # A write beyond this fails as on a full disk, for this process alone and without a disk of its own.
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        if deaf:
            queue.ledger.heartbeat = lambda *_: threading.Event().wait()
        yield Orchestrator(cfg, queue, pipeline, record, worker_id=worker_id)


def member() -> int:
    boss = Boss(sys.stdin.buffer, own_output())
    order = json.loads(boss.order())
    try:
        with working(Path(order.pop("folder")), **order) as orchestrator:
            serve(orchestrator, boss)
    except (RunError, LedgerError) as error:
        boss.say({"failed": {"kind": type(error).__name__, "text": str(error)}})
        return 1
    return 0


def zygote(folder: Path) -> int:
    for line in sys.stdin:
        if line.strip() != "go":
            break
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            with working(folder, share=None) as orchestrator:
                orchestrator.start()
                threading.Event().wait()
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(zygote(Path(sys.argv[2])) if sys.argv[1:2] == ["zygote"] else member())
