"""The spans of jobs: their tree, their attributes, one trace from the enqueueing to the end, across processes (TRC)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.contentdownload.collector import Collector

from DocsToKG.ContentDownload.api.types import DownloadOutcome
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.workers import JobRetry, Worker
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.ContentDownload.telemetry import RunTelemetry, observability
from DocsToKG.ContentDownload.telemetry.events import Events, JobEnd
from DocsToKG.ContentDownload.telemetry.otel import Providers
from DocsToKG.ContentDownload.telemetry.traces import SPANS, JobTraces
from DocsToKG.core.clock import SystemClock
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.tracing import Tracing
from DocsToKG.Sandbox.profile import SandboxServer

MakeConfig = Callable[..., ContentDownloadConfig]

PARENTS = {
    "schedule": {"enqueue"},
    "lease": {"enqueue"},
    "worker_execute": {"enqueue"},
    "job": {"worker_execute"},
    "artifact": {"job"},
    "content.process_work": {"artifact"},
    "resolve.tier": {"content.process_work"},
    "download": {"resolve.tier"},
    "prepare": {"download"},
    "stream": {"download"},
    "finalize": {"download"},
    "verify": {"finalize"},
    "http.request": {"content.process_work", "resolve.tier", "download"},
    "catalog.write": {"job"},
    "complete": {"job"},
}


class Seen:
    """Finished spans, by name and by kinship."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def parent(self, span: ReadableSpan) -> str | None:
        ids = {each.context.span_id: each.name for each in self.spans if each.context is not None}
        return None if span.parent is None else ids.get(span.parent.span_id, "remote")


@pytest.fixture
def provider() -> Iterator[tuple[TracerProvider, Seen]]:
    exporter = InMemorySpanExporter()
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(SimpleSpanProcessor(exporter))
    yield made, Seen(exporter)
    made.shutdown()


def about(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.fixture
def traced(provider, monkeypatch) -> Seen:
    """Runs of this test find a provider that was set for the whole process."""
    found = Providers(tracer=provider[0].get_tracer("test"))
    monkeypatch.setattr(observability, "global_providers", lambda: found)
    seen: Seen = provider[1]
    return seen


@pytest.mark.slow
def test_a_run_leaves_the_whole_tree_of_each_work(traced, sandbox: SandboxServer, make_config: MakeConfig, tmp_path):
    """TRC-01..TRC-08 on the sandbox web with its faults."""
    works = 12
    with DownloadRun(make_config(sandbox, tmp_path)) as run:
        result = run.process_artifacts(sandbox.identifiers(works, mix=False))
        run_id = run.run_id
    assert result.successful
    assert run_id
    names = Counter(span.name for span in traced.spans)
    assert names.keys() == SPANS.keys()
    assert names["enqueue"] == works
    assert names["job"] == names["worker_execute"] == names["artifact"] == names["content.process_work"] >= works
    for span in traced.spans:
        assert span.end_time is not None
        assert span.start_time is not None
        assert span.start_time <= span.end_time
        allowed = PARENTS.get(span.name)
        assert (traced.parent(span) in allowed) if allowed else span.parent is None, span.name
        assert about(span).keys() <= set(SPANS[span.name][1]), span.name
    # One trace per work, from the enqueueing to the end; dispatching is nobody's.
    traces = {span.context.trace_id for span in traced.named("enqueue") if span.context is not None}
    rest = {span.context.trace_id for span in traced.spans if span.context and span.name not in SPANS_APART}
    assert len(traces) == works
    assert rest == traces


SPANS_APART = ("orchestrator.dispatch",)


def test_the_attributes_say_what_happened(traced, calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path):
    """TRC-04, TRC-05, TRC-06."""
    shared = {"storage": {"root_dir": str(tmp_path)}, "hishel": {"base_path": str(tmp_path / "cache")}}
    for name in ("first", "second"):
        with DownloadRun(make_config(calm_sandbox, tmp_path / name, **shared)) as run:
            run.process_artifacts(calm_sandbox.identifiers(3, mix=False))
    works = [about(span) for span in traced.named("content.process_work")]
    assert all(work["doc_id"].startswith("doi:") for work in works)
    assert any(work.get("tier") and work.get("resolver") for work in works)
    assert {work.get("cache.hit") for work in works} >= {True, False}
    requests = [about(span) for span in traced.named("http.request")]
    assert all(
        {"resolver", "host", "hishel.from_cache", "hishel.revalidated", "duration_ms"} <= r.keys() for r in requests
    )
    assert {r.get("http.status_code") for r in requests} >= {200}
    assert {r["hishel.from_cache"] for r in requests} == {True, False}
    downloads = [about(span) for span in traced.named("download")]
    assert all(download["url"].startswith("https://") and download["resolver"] for download in downloads)
    assert all(about(span)["bytes"] > 0 for span in traced.named("stream") if "bytes" in about(span))
    assert {about(span)["tier"] for span in traced.named("resolve.tier")} >= {"direct_oa"}


def test_a_trace_that_a_producer_began_goes_on_in_the_worker(provider, tmp_path):
    """TRC-08."""
    made, seen = provider
    traces = JobTraces(Tracing(made.get_tracer("test")), worker_id="w")
    theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with WorkQueue(tmp_path / "q.sqlite") as queue:
        queue.ledger.enqueue_many(
            [NewJob("local:1", {}, trace_context=theirs), NewJob("local:2", {}, trace_context="??")]
        )
        first, second = queue.ledger.lease("w", 2, 600)
    for job in (first, second):
        traces.on_job_start(job)
        traces.on_stage(job, "resolve:archive")
        traces.on_completing(job, recorded=True)
        traces.on_job_end(job, JobEnd.DONE, "ok: https://x.org/?token=hunter2")
    by_work = {about(span)["artifact.id"]: span for span in seen.named("job")}
    assert f"{by_work['local:1'].context.trace_id:032x}" == theirs.split("-")[1]
    assert by_work["local:2"].context.trace_id != by_work["local:1"].context.trace_id
    assert "hunter2" not in about(by_work["local:1"])["job.reason"]


def test_whatever_is_open_ends_with_the_job_and_what_comes_late_is_ignored(provider, tmp_path):
    made, seen = provider
    traces = JobTraces(Tracing(made.get_tracer("test")))
    with WorkQueue(tmp_path / "q.sqlite") as queue:
        queue.bulk_import([("local:1", {}, None)])
        [job] = queue.ledger.lease("w", 1, 600)
    traces.on_job_start(job)
    traces.on_stage(job, "resolve:direct_oa")
    traces.on_job_end(job, JobEnd.RELEASED)
    told = Counter(span.name for span in seen.spans)
    names = ("schedule", "lease", "worker_execute", "job", "artifact", "content.process_work", "resolve.tier")
    assert told == dict.fromkeys(names, 1)
    traces.on_stage(job, "resolve:archive")
    traces.on_wait(job, "host", "a.org", 1.0)
    traces.on_work_end(job, DownloadOutcome(False, "error"))
    traces.on_completing(job, recorded=True)
    traces.on_job_end(job, JobEnd.DONE)
    assert Counter(span.name for span in seen.spans) == told
    assert traces.under_way == 0


def test_a_job_that_is_run_while_the_caller_waits_has_its_spans(provider, tmp_path):
    """TRC-02: `Worker.run_one` opens them itself."""
    made, seen = provider
    events = Events(JobTraces(Tracing(made.get_tracer("test")), worker_id="w"))

    class Pipeline:
        def process(self, artifact: Any, ctx: Any) -> DownloadOutcome:
            ctx.on_stage("resolve:direct_oa", None)
            return DownloadOutcome(True, "success", "x.pdf", "ok", {"sha256": "a" * 64, "tier": "direct_oa"})

    record = RunTelemetry(tmp_path, run_id="r", config_hash="c", clock=SystemClock())
    with WorkQueue(tmp_path / "q.sqlite") as queue, record:
        queue.bulk_import([("local:1", {}, None)])
        [job] = queue.ledger.lease("w", 1, 600)
        pipeline: Any = Pipeline()
        worker = Worker("w", ledger=queue.ledger, pipeline=pipeline, telemetry=record, retry=JobRetry(), events=events)
        assert worker.run_one(job) is not None
        record.flush()
        queue.ledger.job(job.job_id)
    told = Counter(span.name for span in seen.spans)
    names = (
        "schedule",
        "lease",
        "worker_execute",
        "job",
        "artifact",
        "content.process_work",
        "resolve.tier",
        "catalog.write",
        "complete",
    )
    assert told == dict.fromkeys(names, 1)
    assert about(seen.named("job")[0])["job.outcome"] == "done"


# by OTLP


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.mark.slow
def test_every_process_of_a_run_sends_its_spans_and_one_trace_spans_them(
    collector: Collector, calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
):
    """TRC-08 with real processes: enqueued here, worked on there."""
    cfg = make_config(
        calm_sandbox,
        tmp_path,
        orchestrator={"processes": 2, "lookahead": 2},
        telemetry={"otlp_endpoint": collector.address, "metrics_every_seconds": 1},
    )
    with DownloadRun(cfg) as run:
        result = run.process_artifacts(calm_sandbox.identifiers(12))
    assert result.successful == 12
    senders = {name: {sender for sender, span in collector.spans if span.name == name} for name in ("enqueue", "job")}
    assert len(senders["enqueue"]) == 1
    assert len(senders["job"]) >= 1
    assert not senders["enqueue"] & senders["job"]
    begun = {span.trace_id for _, span in collector.spans if span.name == "enqueue"}
    ended = {span.trace_id for _, span in collector.spans if span.name == "complete"}
    assert len(begun) == 12
    assert begun == ended
    told = set().union(*collector.figures.values())
    assert {"contentdownload_jobs_completed_total", "contentdownload_attempts_total", "content_queue_depth"} <= told


@pytest.mark.slow
def test_a_collector_that_is_away_costs_nothing_but_its_figures(calm_sandbox, make_config, tmp_path, capfd):
    cfg = make_config(calm_sandbox, tmp_path, telemetry={"otlp_endpoint": "http://127.0.0.1:9"})
    with DownloadRun(cfg) as run:
        assert run.process_artifacts(calm_sandbox.identifiers(2)).successful == 2
    assert "opentelemetry" not in capfd.readouterr().err.lower()


def test_every_span_is_in_the_reference():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in SPANS)
