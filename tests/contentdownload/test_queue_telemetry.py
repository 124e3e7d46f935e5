"""What the queue tells its watchers (TEST-05): spans, wait events, counters, and gauges that are read.

Every claim about figures is tried on the run's own tally, as Prometheus reads it, and on OpenTelemetry's in-memory
exporters (MET-27).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families
from tests.contentdownload.stand_in import Act, Exchange, StandIn, until

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, DownloadOutcome, Verb, WorkArtifact
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.pipeline import JobContext
from DocsToKG.ContentDownload.telemetry import RunTelemetry, otel
from DocsToKG.ContentDownload.telemetry.events import Events, JobEnd, Listener
from DocsToKG.ContentDownload.telemetry.exposition import registry_of, text_of
from DocsToKG.ContentDownload.telemetry.job_metrics import JobMetrics, token
from DocsToKG.ContentDownload.telemetry.metrics import METRICS, Gauges, QueueView, view_of
from DocsToKG.ContentDownload.telemetry.observability import Observability, events_of_process
from DocsToKG.ContentDownload.telemetry.tally import Tally
from DocsToKG.ContentDownload.telemetry.traces import SPANS, JobTraces
from DocsToKG.core.clock import Clock, ManualClock, SystemClock
from DocsToKG.Orchestrator.ledger.base import LeasedJob, NewJob
from DocsToKG.Orchestrator.tracing import Tracing


@dataclass
class Seen:
    """A finished span, as far as these tests look."""

    name: str
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    seconds: float = 0.0


class RealLibrary:
    """OpenTelemetry's SDK with its in-memory exporters."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider(metric_readers=[self.reader], shutdown_on_exit=False)

    def spans(self) -> list[Seen]:
        return [
            Seen(
                span.name,
                dict(span.attributes or {}),
                [(event.name, dict(event.attributes or {})) for event in span.events],
                ((span.end_time or 0) - (span.start_time or 0)) / 1e9,
            )
            for span in self.exporter.get_finished_spans()
        ]

    def named(self, name: str) -> list[Seen]:
        return [span for span in self.spans() if span.name == name]

    def metric(self, name: str) -> dict[tuple[str, ...], float]:
        data = self.reader.get_metrics_data()
        found = [] if data is None else [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        points: list[Any] = [point for metric in found if metric.name == name for point in metric.data.data_points]
        return {tuple(p.attributes.values()): p.sum if hasattr(p, "sum") else p.value for p in points}

    def figures(self) -> tuple[Any, Any]:
        return otel.figures_of(self.meters.get_meter("test"), Observation)

    def watch(self, clock: Clock, *more: Listener) -> Events:
        meters, gauges = self.figures()
        traces = JobTraces(Tracing(self.tracers.get_tracer("test")), worker_id="w")
        return Events(*more, traces, JobMetrics(meters, gauges, clock))

    def close(self) -> None:
        self.tracers.shutdown()
        self.meters.shutdown()


class OwnFigures(RealLibrary):
    """The run's own tally in place of OpenTelemetry's meters, read as Prometheus reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.tally = Tally()
        self.gauges = Gauges(self.tally)

    def figures(self) -> tuple[Any, Any]:
        return self.tally, self.gauges

    def metric(self, name: str) -> dict[tuple[str, ...], float]:
        [metric] = [metric for metric in METRICS if metric.name == name]
        wanted = f"{name}_sum" if metric.kind == "histogram" else name
        found = {
            tuple(sample.labels[label] for label in metric.labels): sample.value
            for family in text_string_to_metric_families(text_of(registry_of(self.tally)).decode())
            for sample in family.samples
            if sample.name == wanted
        }
        # A counter is there from the start, so that its first step shows.
        return found if metric.kind == "gauge" else {labels: value for labels, value in found.items() if value}


@pytest.fixture(params=[OwnFigures, RealLibrary])
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = request.param()
    yield made
    made.close()


@pytest.fixture
def queue(tmp_path: Path, clock: ManualClock) -> Iterator[WorkQueue]:
    with WorkQueue(tmp_path / "q.sqlite", clock=clock) as opened:
        yield opened


def leased(queue: WorkQueue, count: int = 1) -> list[LeasedJob]:
    queue.bulk_import((f"local:{n}", {}, None) for n in range(count))
    return queue.ledger.lease("w", count, 600)


def view(queue: WorkQueue, *, held: int = 0, active: int = 0) -> QueueView:
    kinds = {("content.download", "default"): 1}
    return QueueView(str(queue.ledger.path), queue.stats, lambda: 12.5, lambda: held, lambda: active, lambda: kinds)


# spans and counters


def test_a_job_is_a_span_from_its_lease_to_its_acknowledged_end(library, queue, clock):
    watch, [job] = library.watch(clock), leased(queue)
    watch.on_job_start(job)
    assert library.named("job") == []
    clock.advance(2.5)
    missed = DownloadOutcome(False, "error", reason="timeout")
    watch.on_job_end(job, JobEnd.ERROR, "timeout (dns): files.example.org did not answer", missed)
    [span] = library.named("job")
    assert span.attributes == {
        "job.id": 1,
        "artifact.id": "local:0",
        "job.attempt": 1,
        "job.outcome": "error",
        "job.reason": "timeout (dns): files.example.org did not answer",
    }
    assert library.metric("contentdownload_jobs_failed_total") == {(): 1}
    assert library.metric("job_failures_total") == {(): 1}
    assert library.metric("contentdownload_job_duration_ms") == {("error",): 2500}
    assert library.metric("contentdownload_outcomes_total") == {("none", "error", "timeout"): 1}


def test_the_wait_in_the_queue_is_counted_from_when_the_job_could_run(library, queue, clock):
    queue.bulk_import([("local:0", {}, None)])
    clock.advance(4.0)
    watch, jobs = library.watch(clock), queue.ledger.lease("w", 1, 600)
    watch.on_lease(jobs, 0.1)
    watch.on_job_start(jobs[0])
    clock.advance(1.0)
    watch.on_job_end(jobs[0], JobEnd.DONE)
    assert library.metric("contentdownload_queue_wait_ms") == {(): pytest.approx(4000)}
    assert library.metric("job_latency_seconds") == {(): pytest.approx(5.0)}


def test_a_heartbeat_counts_the_leases_it_prolonged(library, clock):
    watch = library.watch(clock)
    watch.on_heartbeat(0)
    watch.on_heartbeat(3)
    watch.on_heartbeat(2)
    assert library.metric("lease_extensions_total") == {(): 5}


def test_a_dispatch_that_leased_is_a_span_and_an_idle_look_is_none(library, queue, clock):
    watch, jobs = library.watch(clock), leased(queue, 3)
    watch.on_lease([], 0.5)
    watch.on_lease(jobs, 0.25)
    [span] = library.spans()
    assert (span.name, span.attributes) == ("orchestrator.dispatch", {"leased": 3})
    assert span.seconds == pytest.approx(0.25, abs=1e-3)
    assert library.metric("contentdownload_jobs_leased_total") == {(): 3}
    assert library.metric("contentdownload_dispatch_ms") == {(): 250}


@pytest.mark.parametrize(
    ("end", "name", "labels"),
    [
        (JobEnd.DONE, "contentdownload_jobs_completed_total", ()),
        (JobEnd.SKIPPED, "contentdownload_jobs_completed_total", ()),
        (JobEnd.RETRIED, "job_retry_total", ()),
        (JobEnd.RETRIED, "contentdownload_jobs_retried_total", ("retry-after",)),
        (JobEnd.RELEASED, "contentdownload_jobs_released_total", ()),
        (JobEnd.LOST, "contentdownload_leases_lost_total", ()),
    ],
)
def test_every_end_is_counted_once_under_its_name(end, name, labels, library, queue, clock):
    watch, [job] = library.watch(clock), leased(queue)
    watch.on_job_start(job)
    watch.on_job_end(job, end, "retry-after: later")
    watch.on_job_end(job, end, "retry-after: later")
    assert library.metric(name) == {labels: 1}
    assert len(library.named("job")) == 1


@pytest.mark.parametrize("kind", ["resolver", "host"])
def test_a_wait_for_a_place_is_an_event_of_the_job(kind, library, queue, clock):
    """LIM-19."""
    watch, [job] = library.watch(clock), leased(queue)
    watch.on_job_start(job)
    watch.on_wait(job, kind, "unpaywall", 0.75)
    watch.on_job_end(job, JobEnd.DONE)
    watch.on_wait(job, kind, "unpaywall", 0.25)  # a loser of a race that is told late
    [span] = library.named("job")
    assert span.events == [(f"{kind}_concurrency_wait_ms", {"ms": 750, kind: "unpaywall"})]
    assert library.metric("contentdownload_concurrency_wait_ms") == {(kind,): 1000}


def test_a_wait_for_a_rate_feeds_the_rate_sleep_histogram_and_goes_on_to_the_record(library, clock):
    """LIM-12."""
    told: list[Any] = []

    class Record(Listener):
        def rate_wait(self, key: str, delay_ms: int, **about: Any) -> None:
            told.append((key, delay_ms, about))

        def attempt(self, attempt: Any) -> None:
            told.append(attempt.url)

        def breaker_transition(self, *words: Any, **about: Any) -> None:
            told.append((*words, about))

    sink = library.watch(clock, Record())
    sink.rate_wait("host:a.org", 1500, why="interval", work_id="w")
    sink.rate_wait("host:a.org", 0, why="rate")
    sink.attempt(Attempt(0.0, "arxiv", "an attempt", Verb.GET, AttemptStatus.HTTP_GET))
    sink.breaker_transition("host:a.org", "closed", "open", reason="x")
    assert library.metric("contentdownload_rate_sleep_ms") == {(): 1500}
    assert library.metric("contentdownload_rate_waits_total") == {("interval",): 1}
    assert library.metric("content_breaker_open_total") == {("a.org",): 1}
    assert told == [
        ("host:a.org", 1500, {"why": "interval", "work_id": "w"}),
        ("host:a.org", 0, {"why": "rate"}),
        "an attempt",
        ("host:a.org", "closed", "open", {"reason": "x"}),
    ]


# gauges


def test_gauges_are_read_from_the_ledger_at_the_moment_of_asking(library, queue, clock):
    """MET-06, MET-16: whoever changed the queue, and however often it is asked, the figure is the ledger's."""
    watch, shown = library.watch(clock), view(queue, held=7, active=2)
    watch.on_start(shown)
    job, *_ = leased(queue, 5)
    queue.ack(job.job_id, "done", fence=job.fence, lease_id=job.lease_id)
    queue.bulk_import([("local:new", {}, None)])
    for _ in range(3):
        assert library.metric("contentdownload_queue_depth") == {(): 1}
    assert library.metric("content_queue_depth") == {(): 1}
    by_state = library.metric("contentdownload_queue_jobs")
    assert {state: n for (state,), n in by_state.items() if n} == {"queued": 1, "in_progress": 4, "done": 1}
    assert library.metric("contentdownload_jobs_inflight") == {(): 4}
    assert library.metric("contentdownload_leases_held") == {(): 7}
    assert library.metric("content_workers_active") == {(): 2}
    assert library.metric("job_queue_depth") == {("content.download", "default"): 1}
    assert library.metric("contentdownload_queue_oldest_seconds") == {(): 12.5}
    watch.on_stop(shown)
    assert library.metric("contentdownload_queue_depth") == {}
    assert library.metric("contentdownload_leases_held") == {}


def test_in_opentelemetry_depth_and_jobs_in_flight_are_up_down_values(queue, clock):
    """As the first family has them; they are still read and never counted."""
    library = RealLibrary()
    library.watch(clock).on_start(view(queue))
    data: Any = library.reader.get_metrics_data()
    kinds = {m.name: type(m.data).__name__ for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics}
    library.close()
    assert kinds["contentdownload_queue_depth"] == kinds["contentdownload_jobs_inflight"] == "Sum"
    assert kinds["content_queue_depth"] == kinds["content_workers_active"] == "Gauge"


def test_waiting_jobs_are_told_apart_by_type_and_tenant(library, queue, clock):
    """MET-18."""
    queue.ledger.enqueue_many(
        [NewJob("a", {}), NewJob("b", {}, tenant="lab"), NewJob("c", {}, tenant="lab"), NewJob("d", {}, job_type="x.y")]
    )
    library.watch(clock).on_start(view_of(queue.ledger, held=lambda: 0, active=lambda: 0, clock=clock))
    depths = library.metric("job_queue_depth")
    assert depths == {("content.download", "default"): 1, ("content.download", "lab"): 2, ("x.y", "default"): 1}
    assert library.metric("contentdownload_queue_depth") == {(): 3}, "downloads only"


def test_a_second_run_of_the_process_is_seen_too(library, queue, clock):
    """A meter keeps the first gauge of a name; what it reads is another's from then on."""
    watch, shown = library.watch(clock), view(queue, held=1)
    watch.on_start(shown)
    watch.on_stop(shown)
    leased(queue, 2)
    library.watch(clock).on_start(view(queue, held=3))
    library.watch(clock).on_start(view(queue, held=4))
    assert library.metric("contentdownload_leases_held") == {(): 7}
    assert library.metric("contentdownload_jobs_inflight") == {(): 2}  # one ledger, read once


def test_a_ledger_that_cannot_be_read_gives_no_figure_and_no_failure(library, queue, clock):
    library.watch(clock).on_start(view(queue, held=3))
    queue.close()
    assert library.metric("contentdownload_queue_depth") == {}
    assert library.metric("contentdownload_leases_held") == {(): 3}


# unwatched


def test_where_nobody_set_a_provider_nobody_listens_and_nothing_is_in_between(queue, clock):
    """TRC-09: the library is installed and even loaded here, and still nothing is spent on it."""
    events, [job] = events_of_process(clock), leased(queue)
    names = [name for name, of in vars(Listener).items() if callable(of) and name != "hears"]
    assert len(names) > 10
    assert not any(events.hears(name) for name in names)
    download = object()
    nobody = Observability()
    assert nobody.traced(download) is download  # type: ignore[arg-type, comparison-overlap]
    assert nobody.trace_of("local:0") is None
    events.on_start(view(queue))
    events.on_lease([job], 1.0)
    events.on_job_start(job)
    events.on_stage(job, "resolve:archive")
    events.on_wait(job, "host", "a.org", 1.0)
    events.on_work_end(job, DownloadOutcome(False, "error"))
    events.on_completing(job, recorded=True)
    events.on_job_end(job, JobEnd.DONE)
    events.on_heartbeat(1)
    events.on_robots({})
    events.on_stop(view(queue))


def test_an_event_that_one_listener_hears_is_its_method_and_several_hear_it_in_order():
    told: list[str] = []

    class First(Listener):
        def on_heartbeat(self, leases: int) -> None:
            told.append(f"first {leases}")

    class Second(Listener):
        def on_heartbeat(self, leases: int) -> None:
            told.append(f"second {leases}")

        def on_robots(self, decisions: Any) -> None:
            told.append("robots")

    first, second = First(), Second()
    events = Events(Listener(), first, second)
    events.on_heartbeat(2)
    events.on_robots({})
    assert told == ["first 2", "second 2", "robots"]
    assert events.on_robots == second.on_robots
    assert not events.hears("attempt")
    assert Events(events).on_robots == second.on_robots


@pytest.mark.slow
def test_the_library_is_not_loaded_for_a_run_that_nobody_watches():
    code = (
        "import sys; from DocsToKG.ContentDownload.telemetry.observability import Exports, open_observability\n"
        "from DocsToKG.core.clock import SystemClock\n"
        "with open_observability(Exports(), clock=SystemClock(), run_id='r', worker_id='w') as it:\n"
        "    assert it.listeners == ()\n"
        "sys.exit(bool({'opentelemetry', 'structlog', 'prometheus_client'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=60)
    assert done.returncode == 0


@pytest.mark.slow
def test_providers_that_were_set_for_the_whole_process_are_used():
    """In a process of its own, because they are set once and for all."""
    code = (
        "from opentelemetry import metrics, trace\n"
        "from opentelemetry.sdk.metrics import MeterProvider\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from DocsToKG.ContentDownload.telemetry import observability, otel\n"
        "from DocsToKG.core.clock import SystemClock\n"
        "assert not otel.global_providers()\n"
        "trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))\n"
        "metrics.set_meter_provider(MeterProvider(shutdown_on_exit=False))\n"
        "found = otel.global_providers()\n"
        "assert found.tracer is not None and found.meter is not None\n"
        "events = observability.events_of_process(SystemClock())\n"
        "assert events.hears('on_job_end') and events.hears('on_completing')"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


# names


def test_names_are_unique_and_carry_no_unit_of_the_library():
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z_]+", name) for name in names)
    assert all(metric.name.endswith("_total") == (metric.kind == "counter") for metric in METRICS)
    assert all(bool(metric.buckets) == (metric.kind == "histogram") for metric in METRICS)


def test_the_word_of_a_reason_is_short():
    assert len(token("x" * 500 + ": y")) <= 40


# at work


@contextlib.contextmanager
def orchestrated(
    root: Path, library: Any, act: Act, works: list[str], **settings: Any
) -> Iterator[tuple[Orchestrator, WorkQueue]]:
    cfg = load_config(None, {}, environ={}, user_file=root / "none")
    chosen = {"retry_backoff_seconds": 0, "jitter_seconds": 0, "max_workers": 4, **settings}
    cfg = cfg.model_copy(update={"orchestrator": cfg.orchestrator.model_copy(update=chosen)})
    clock = SystemClock()
    limits = HostLimits(clock=clock, default_host=HostLimit(max_concurrent=1), default_resolver_slots=9)
    record = RunTelemetry(root, run_id="r", config_hash="c", clock=clock, batch_window_s=0.005)
    with WorkQueue(root / "q.sqlite") as queue, record:
        queue.bulk_import((name, {}, None) for name in works)
        pipeline: Any = StandIn(act, limits, most=cfg.orchestrator.max_workers)
        orchestrator = Orchestrator(cfg, queue, pipeline, record, events=library.watch(clock))
        orchestrator.start()
        try:
            yield orchestrator, queue
        finally:
            orchestrator.stop(grace_s=0.0)
            pipeline.close()


@pytest.mark.slow
def test_an_orchestrator_at_work_shows_dispatch_jobs_waits_depth_and_throughput(library, tmp_path):
    """TEST-05, LIM-19: with the real ledger, record, limits and threads."""
    tries: Counter[str] = Counter()

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        ctx.on_begin()
        async with exchange("https://files.example.org/x.pdf", "test"):
            await asyncio.sleep(0.03)
        tries[work.work_id] += 1
        match work.work_id:
            case "test:skip":
                return DownloadOutcome(False, "skip", reason="robots")
            case "test:broken":
                return DownloadOutcome(False, "error", reason="not-found", meta={"retryable": False})
            case "test:flaky" if tries[work.work_id] == 1:
                return DownloadOutcome(False, "error", reason="timeout", meta={"retryable": True})
        return DownloadOutcome(True, "success", path="x.pdf", reason="ok", meta={"sha256": "a" * 64})

    works = ["test:1", "test:2", "test:skip", "test:broken", "test:flaky"]
    with orchestrated(tmp_path, library, act, works) as (orchestrator, queue):
        orchestrator.wait_until_drained()
        assert library.metric("contentdownload_queue_depth") == {(): 0}
        by_state = library.metric("contentdownload_queue_jobs")
        assert {state: n for (state,), n in by_state.items() if n} == {"done": 3, "skipped": 1, "error": 1}
        assert library.metric("contentdownload_leases_held") == {(): 0}
        assert queue.stats()["total"] == 5
    assert library.metric("contentdownload_queue_depth") == {}
    jobs = library.named("job")
    ends = sorted((span.attributes["artifact.id"], span.attributes["job.outcome"]) for span in jobs)
    assert ends == [
        ("test:1", "done"),
        ("test:2", "done"),
        ("test:broken", "error"),
        ("test:flaky", "done"),
        ("test:flaky", "retried"),
        ("test:skip", "skipped"),
    ]
    waits = [event for span in jobs for event in span.events]
    assert len(waits) >= 3  # one place for five works
    assert {(name, about["host"]) for name, about in waits} == {("host_concurrency_wait_ms", "files.example.org")}
    dispatches = [span.attributes["leased"] for span in library.spans() if span.name == "orchestrator.dispatch"]
    assert sum(dispatches) == 6
    assert library.metric("contentdownload_jobs_leased_total") == {(): 6}
    assert library.metric("contentdownload_jobs_completed_total") == {(): 4}
    assert library.metric("contentdownload_jobs_failed_total") == {(): 1}
    assert library.metric("contentdownload_outcomes_total") == {
        ("none", "success", "ok"): 3,
        ("none", "skip", "robots"): 1,
        ("none", "error", "not-found"): 1,
    }
    assert library.metric("contentdownload_jobs_retried_total") == {("timeout",): 1}


def test_jobs_given_back_at_the_stop_end_their_spans(library, tmp_path):
    begun = threading.Event()

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        begun.set()
        await asyncio.sleep(60.0)
        raise AssertionError("never comes")

    with orchestrated(tmp_path, library, act, ["test:1", "test:2"]):
        assert begun.wait(20)
        assert library.metric("contentdownload_jobs_inflight") == {(): 2}
        assert library.metric("contentdownload_leases_held") == {(): 2}
    assert [span.attributes["job.outcome"] for span in library.named("job")] == ["released"] * 2
    assert {span.name for span in library.spans()} <= SPANS.keys()
    assert library.metric("contentdownload_jobs_released_total") == {(): 2}


def test_an_end_that_the_ledger_refuses_is_told_as_lost(library, tmp_path):
    go_on = threading.Event()
    begun = threading.Event()

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        begun.set()
        await until(go_on.is_set)
        return DownloadOutcome(True, "success", path="x.pdf", reason="ok", meta={"sha256": "a" * 64})

    with orchestrated(tmp_path, library, act, ["test:1"]) as (orchestrator, queue):
        assert begun.wait(20)
        assert queue.ledger.cancel(1, "withdrawn")
        go_on.set()
        orchestrator.wait_until_drained()
    assert library.metric("contentdownload_leases_lost_total") == {(): 1}
    assert library.metric("contentdownload_jobs_completed_total") == {}
