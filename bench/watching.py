"""What it costs to watch a run: the processor's time per job with figures, log or spans, against none of them.

A job here is small on purpose: leased, six exchanges told, recorded, acknowledged, with the real orchestrator, ledger
and record, and no network. The ways take turns, so that what else the machine does hits all of them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.facts import report
from DocsToKG.ContentDownload.api.ports import AttemptSink
from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, DownloadOutcome, Verb, WorkArtifact
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.pipeline import JobContext
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.ContentDownload.telemetry.events import Events, JobEnd, Listener
from DocsToKG.ContentDownload.telemetry.observability import Exports, open_observability
from DocsToKG.ContentDownload.telemetry.traces import JobTraces
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.tasks import LoopThread
from DocsToKG.Orchestrator.tracing import Tracing

EXCHANGES = 6
_TIERS = ("resolve:direct_oa", "resolve:doi_follow")


class ToldPipeline:
    """Does nothing but tell what a pipeline tells."""

    def __init__(self, sink: AttemptSink) -> None:
        self.loop = LoopThread()
        self.gates = PermitQueues(HostLimits(clock=SystemClock(), default_host=HostLimit()), clock=SystemClock())
        self._sink = sink

    async def obtain(self, artifact: WorkArtifact, ctx: JobContext) -> DownloadOutcome:
        for tier in _TIERS:
            ctx.on_stage(tier, None)
        for _ in range(EXCHANGES):
            self._sink.attempt(_line(artifact.work_id))
        return DownloadOutcome(True, "success", "x.pdf", "ok", {"sha256": "a" * 64, "tier": "direct_oa"})


def _line(work_id: str) -> Attempt:
    return Attempt(
        *(0.0, "arxiv", "https://arxiv.org/pdf/1", Verb.GET, AttemptStatus.HTTP_GET, 200, "application/pdf", 40),
        work_id=work_id,
        host="arxiv.org",
    )


def cpu_us_per_job(root: Path, listeners: Sequence[Listener], jobs: int) -> float:
    cfg = load_config(None, {}, environ={}, user_file=root / "none")
    record = RunTelemetry(root, run_id="r", config_hash="c", clock=SystemClock())
    events = Events(record, *listeners)
    with WorkQueue(root / "q.sqlite") as queue, record:
        queue.bulk_import((f"local:{n}", {}, None) for n in range(jobs))
        pipeline: Any = ToldPipeline(events)
        orchestrator = Orchestrator(cfg, queue, pipeline, record, events=events)
        began = time.process_time()
        orchestrator.start()
        orchestrator.wait_until_drained()
        orchestrator.stop()
        pipeline.loop.close()
        return (time.process_time() - began) / jobs * 1e6


@contextmanager
def _nothing(root: Path) -> Iterator[tuple[Listener, ...]]:
    yield ()


@contextmanager
def _exported(exports: Exports) -> Iterator[tuple[Listener, ...]]:
    with open_observability(exports, clock=SystemClock(), run_id="r", worker_id="w") as opened:
        yield opened.listeners


def _figures(root: Path) -> Any:
    return _exported(Exports(metrics_port=0))


def _log(root: Path) -> Any:
    return _exported(Exports(log_level="info", log_file=root / "run.log"))


@contextmanager
def _spans(root: Path) -> Iterator[tuple[Listener, ...]]:
    """Recorded and dropped: what an exporter costs is its own."""
    from opentelemetry.sdk.trace import TracerProvider

    provider = TracerProvider(shutdown_on_exit=False)
    yield (JobTraces(Tracing(provider.get_tracer("bench"))),)
    provider.shutdown()


WAYS: dict[str, Callable[[Path], Any]] = {"none": _nothing, "figures": _figures, "log": _log, "spans": _spans}


def unwatched_us(times: int = 20_000) -> float:
    """The calls of a job's events where nobody listens, by themselves."""
    events, job = Events(), None
    began = time.process_time()
    for _ in range(times):
        events.on_job_start(job)  # type: ignore[arg-type]
        events.on_stage(job, _TIERS[0])  # type: ignore[arg-type]
        events.on_stage(job, _TIERS[1])  # type: ignore[arg-type]
        events.on_completing(job, recorded=True)  # type: ignore[arg-type]
        events.on_job_end(job, JobEnd.DONE)  # type: ignore[arg-type]
    return (time.process_time() - began) / times * 1e6


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.watching", description=__doc__)
    words.add_argument("--jobs", type=int, default=1500)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(given.rounds):
        for way, opened in WAYS.items():
            with ExitStack() as stack:
                root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                listeners = stack.enter_context(opened(root))
                taken[way].append(cpu_us_per_job(root, listeners, given.jobs))
    base, own_us = statistics.median(taken["none"]), unwatched_us()
    rows = [
        {
            "watched": way,
            "cpu_us": round(statistics.median(all_us), 1),
            "ratio": round(statistics.median(us / none for us, none in zip(all_us, taken["none"], strict=True)), 3),
        }
        for way, all_us in taken.items()
    ]
    rows[0]["calls_us"], rows[0]["calls_share"] = round(own_us, 2), round(own_us / base, 5)
    report("Watching a run: the processor's time per job", rows, out=given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
