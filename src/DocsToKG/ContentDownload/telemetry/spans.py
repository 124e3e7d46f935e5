"""Who watches jobs go by: spans `job` and `orchestrator.dispatch`, wait events, and the figures of the queue.

`JobWatch` is what the orchestrator tells; it is told after the fact and answers nothing. `NullWatch` forgets it all,
`TracedJobs` hands it on. Promises: a job's span ends with its lease, and nobody is kept waiting for a watcher.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from enum import StrEnum
from time import time_ns
from typing import Any, Protocol, TypeVar

from DocsToKG.ContentDownload.api.ports import AttemptSink
from DocsToKG.ContentDownload.api.steps import Gatekeeper, Steps
from DocsToKG.ContentDownload.api.types import Attempt
from DocsToKG.ContentDownload.telemetry import metrics
from DocsToKG.ContentDownload.telemetry.metrics import Gauges, Meters, QueueView
from DocsToKG.ContentDownload.telemetry.otel import Span, Tracer, figures, tracer
from DocsToKG.ContentDownload.telemetry.waits import SlotWaits
from DocsToKG.core.clock import Clock
from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, LeasedJob, Ledger, Release

T = TypeVar("T")


class JobEnd(StrEnum):
    """How a try at a job ended, once the ledger has answered."""

    DONE = "done"
    SKIPPED = "skipped"
    ERROR = "error"
    RETRIED = "retried"  # failed, and comes back
    RELEASED = "released"  # given back, no attempt counted
    LOST = "lost"  # the ledger refused: the lease was another's by then, or the job was canceled


class JobWatch(Protocol):
    """What the orchestrator tells of jobs, and the places where a watcher may stand in between."""

    def show(self, view: QueueView) -> Callable[[], None]:
        """The gauges are read there until the returned function is called."""

    def on_lease(self, jobs: Sequence[LeasedJob], took_s: float) -> None:
        """The ledger was asked for jobs, and took so long to grant these."""

    def on_job_start(self, job: LeasedJob) -> None: ...

    def on_job_end(self, job: LeasedJob, end: JobEnd, reason: str | None = None) -> None: ...

    def on_wait(self, job: LeasedJob, kind: str, key: str, seconds: float) -> None:
        """The job waited for a place at a `resolver` or a `host`."""

    def gate(self, gate: Gatekeeper) -> Gatekeeper:
        """The gatekeeper to use instead of this one."""

    def steps(self, job: LeasedJob, steps: Steps[T]) -> Steps[T]:
        """The steps to run instead of these."""

    def attempts(self, sink: AttemptSink) -> AttemptSink:
        """The sink to tell instead of this one."""


class NullWatch:
    """Forgets everything and stands nowhere in between."""

    def show(self, view: QueueView) -> Callable[[], None]:
        return lambda: None

    def on_lease(self, jobs: Sequence[LeasedJob], took_s: float) -> None:
        return None

    def on_job_start(self, job: LeasedJob) -> None:
        return None

    def on_job_end(self, job: LeasedJob, end: JobEnd, reason: str | None = None) -> None:
        return None

    def on_wait(self, job: LeasedJob, kind: str, key: str, seconds: float) -> None:
        return None

    def gate(self, gate: Gatekeeper) -> Gatekeeper:
        return gate

    def steps(self, job: LeasedJob, steps: Steps[T]) -> Steps[T]:
        return steps

    def attempts(self, sink: AttemptSink) -> AttemptSink:
        return sink


class TracedJobs:
    """Spans, events and figures of the jobs of one process."""

    def __init__(self, *, tracer: Tracer, meters: Meters, gauges: Gauges, clock: Clock) -> None:
        self._tracer = tracer
        self._meters = meters
        self._gauges = gauges
        self._clock = clock
        self._waits: SlotWaits | None = None
        self._open: dict[str, tuple[Span, float]] = {}
        self._lock = threading.Lock()

    def show(self, view: QueueView) -> Callable[[], None]:
        return self._gauges.show(view)

    def on_lease(self, jobs: Sequence[LeasedJob], took_s: float) -> None:
        # Looking in vain is how an idle process waits; a span for each look would only be noise.
        if not jobs:
            return
        self._meters.add(metrics.JOBS_LEASED, len(jobs))
        self._meters.record(metrics.DISPATCH_MS, took_s * 1000)
        now = time_ns()
        span = self._tracer.start_span(
            metrics.DISPATCH_SPAN, attributes={"leased": len(jobs)}, start_time=now - round(took_s * 1e9)
        )
        span.end(now)

    def on_job_start(self, job: LeasedJob) -> None:
        about = {"job.id": job.job_id, "artifact.id": job.artifact_id, "job.attempt": job.attempts + 1}
        span = self._tracer.start_span(metrics.JOB_SPAN, attributes=about)
        with self._lock:
            self._open[job.lease_id] = (span, self._clock.monotonic())

    def on_job_end(self, job: LeasedJob, end: JobEnd, reason: str | None = None) -> None:
        with self._lock:
            span, since = self._open.pop(job.lease_id, (None, 0.0))
        if span is None:
            return
        self._count(end, _token(reason))
        self._meters.record(metrics.JOB_DURATION, (self._clock.monotonic() - since) * 1000, outcome=end.value)
        span.set_attribute("job.outcome", end.value)
        if reason:
            span.set_attribute("job.reason", reason[:200])
        span.end()

    def on_wait(self, job: LeasedJob, kind: str, key: str, seconds: float) -> None:
        self._meters.record(metrics.SLOT_WAIT, seconds * 1000, kind=kind)
        with self._lock:
            span, _ = self._open.get(job.lease_id, (None, 0.0))
        if span is not None:
            span.add_event(metrics.WAIT_EVENTS[kind], {"ms": round(seconds * 1000), kind: key})

    def gate(self, gate: Gatekeeper) -> Gatekeeper:
        self._waits = SlotWaits(gate, self._clock)
        return self._waits

    def steps(self, job: LeasedJob, steps: Steps[T]) -> Steps[T]:
        if self._waits is None:
            return steps
        return self._waits.watched(steps, lambda kind, key, seconds: self.on_wait(job, kind, key, seconds))

    def attempts(self, sink: AttemptSink) -> AttemptSink:
        return _RateSleeps(sink, self._meters)

    def _count(self, end: JobEnd, reason: str) -> None:
        match end:
            case JobEnd.DONE | JobEnd.SKIPPED:
                self._meters.add(metrics.JOBS_COMPLETED, outcome=end.value)
            case JobEnd.ERROR:
                self._meters.add(metrics.JOBS_FAILED, reason=reason)
            case JobEnd.RETRIED:
                self._meters.add(metrics.JOBS_RETRIED, reason=reason)
            case JobEnd.RELEASED:
                self._meters.add(metrics.JOBS_RELEASED)
            case JobEnd.LOST:
                self._meters.add(metrics.LEASES_LOST)


class _RateSleeps:
    """Hands everything on, and feeds the rate-sleep histogram with the waits among it."""

    def __init__(self, sink: AttemptSink, meters: Meters) -> None:
        self._sink = sink
        self._meters = meters

    def attempt(self, attempt: Attempt) -> None:
        self._sink.attempt(attempt)

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **about: Any) -> None:
        if delay_ms > 0:
            self._meters.record(metrics.RATE_SLEEP, float(delay_ms), rule=why)
        self._sink.rate_wait(key, delay_ms, why=why, **about)

    def breaker_transition(self, key: str, old_state: str, new_state: str, **about: Any) -> None:
        self._sink.breaker_transition(key, old_state, new_state, **about)


def view_of(ledger: Ledger, *, held: Callable[[], int], active: Callable[[], int], clock: Clock) -> QueueView:
    """Where the gauges of an orchestrator on this ledger are read."""

    def oldest_s() -> float | None:
        oldest = ledger.list_jobs(JobState.QUEUED, limit=1)
        return clock.now() - oldest[0].created_at if oldest else None

    return QueueView(str(getattr(ledger, "path", id(ledger))), ledger.stats, oldest_s, held, active)


def tell_end(watch: JobWatch, job: LeasedJob, order: Finish | Fail | Release, answer: Future[Any]) -> Future[Any]:
    """Tell the watch how the job ended as soon as the ledger has answered to `order`; gives the answer back."""
    answer.add_done_callback(lambda done: watch.on_job_end(job, *_end_of(order, done)))
    return answer


def _end_of(order: Finish | Fail | Release, done: Future[Any]) -> tuple[JobEnd, str | None]:
    if done.exception() is not None:
        return JobEnd.LOST, str(done.exception())
    match order:
        case Release():
            return JobEnd.RELEASED, order.why
        case Fail():
            return (JobEnd.RETRIED if done.result() == JobState.QUEUED else JobEnd.ERROR), order.last_error
        case Finish():
            ended = {JobState.DONE: JobEnd.DONE, JobState.SKIPPED: JobEnd.SKIPPED}
            return ended.get(order.state, JobEnd.ERROR), order.last_error


def job_watch(clock: Clock) -> JobWatch:
    """The watch of this process: nothing is watched where OpenTelemetry is not installed."""
    found = figures()
    if found is None:
        return NullWatch()
    meters, gauges = found
    return TracedJobs(tracer=tracer(), meters=meters, gauges=gauges, clock=clock)


def _token(reason: str | None) -> str:
    """The word of a reason, without its sentence: labels are few."""
    return (reason or "unknown").partition(":")[0].partition(" ")[0][:40]
