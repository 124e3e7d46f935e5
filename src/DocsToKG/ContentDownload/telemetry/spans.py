"""Who watches jobs go by, and tells the figures, the traces and the log what was seen.

`JobWatch` is what the orchestrator tells; it is told after the fact and answers nothing. `NullWatch` forgets it all and
stands nowhere in between, `WatchedJobs` hands it on. Promises: nobody is kept waiting for a watcher, and what it cannot
tell stops no job.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

from DocsToKG.ContentDownload.api.ports import AttemptSink
from DocsToKG.ContentDownload.api.types import Attempt, DownloadOutcome, OutcomeClass
from DocsToKG.ContentDownload.telemetry import metrics
from DocsToKG.ContentDownload.telemetry.counting import CountedAttempts, count_outcome
from DocsToKG.ContentDownload.telemetry.job_log import JobLog
from DocsToKG.ContentDownload.telemetry.metrics import AllGauges, Gauges, Meters, QueueView
from DocsToKG.ContentDownload.telemetry.otel import figures_of, global_providers
from DocsToKG.ContentDownload.telemetry.traces import Download, JobTraces
from DocsToKG.core.clock import Clock
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import (
    DEFAULT_JOB_TYPE,
    Fail,
    Finish,
    JobFilter,
    LeasedJob,
    Ledger,
    Release,
)
from DocsToKG.Orchestrator.tracing import Tracing


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

    def on_stage(self, job: LeasedJob, stage: str) -> None:
        """The job has come to a stage, such as `resolve:direct_oa`."""

    def on_work_end(self, job: LeasedJob, outcome: DownloadOutcome) -> None:
        """The pipeline is through with the job."""

    def on_completing(self, job: LeasedJob, *, recorded: bool) -> None:
        """The ledger is being told how the job ended; before that it was `recorded`, or there was nothing to record."""

    def on_job_end(self, job: LeasedJob, end: JobEnd, reason: str | None = None) -> None: ...

    def on_heartbeat(self, leases: int) -> None:
        """So many leases were prolonged."""

    def on_wait(self, job: LeasedJob, kind: str, key: str, seconds: float) -> None:
        """The job waited for a place at a `resolver` or a `host`."""

    @property
    def hears_waits(self) -> bool:
        """Whether `on_wait` does anything."""
        ...

    def attempts(self, sink: AttemptSink) -> AttemptSink:
        """The sink to tell instead of this one."""

    def download(self, download: Download) -> Download:
        """The download to use instead of this one."""

    def enqueued(self, artifact_id: str) -> str | None:
        """A work is put on the ledger: the words by which its trace goes on in whoever works on it."""

    def on_robots(self, decisions: Mapping[str, int]) -> None:
        """At the end: how often robots.txt decided what."""


class NullWatch:
    """Forgets everything and stands nowhere in between."""

    def show(self, view: QueueView) -> Callable[[], None]:
        return lambda: None

    def on_lease(self, jobs: Sequence[LeasedJob], took_s: float) -> None:
        return None

    def on_job_start(self, job: LeasedJob) -> None:
        return None

    def on_stage(self, job: LeasedJob, stage: str) -> None:
        return None

    def on_work_end(self, job: LeasedJob, outcome: DownloadOutcome) -> None:
        return None

    def on_completing(self, job: LeasedJob, *, recorded: bool) -> None:
        return None

    def on_job_end(self, job: LeasedJob, end: JobEnd, reason: str | None = None) -> None:
        return None

    def on_heartbeat(self, leases: int) -> None:
        return None

    def on_wait(self, job: LeasedJob, kind: str, key: str, seconds: float) -> None:
        return None

    hears_waits = False

    def attempts(self, sink: AttemptSink) -> AttemptSink:
        return sink

    def download(self, download: Download) -> Download:
        return download

    def enqueued(self, artifact_id: str) -> str | None:
        return None

    def on_robots(self, decisions: Mapping[str, int]) -> None:
        return None


class WatchedJobs:
    """The figures of the jobs of one process, and where they are wanted their traces and their log."""

    def __init__(
        self,
        *,
        meters: Meters,
        gauges: Gauges | AllGauges,
        clock: Clock,
        traces: JobTraces | None = None,
        log: JobLog | None = None,
        on_hide: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_hide` is told when gauges are about to be read no more."""
        self._meters = meters
        self._counts = not isinstance(meters, metrics.NoMeters)
        self._gauges = gauges
        self._clock = clock
        self._traces = traces
        self._log = log
        self._on_hide = on_hide
        self._open: dict[str, _Try] = {}  # by lease
        self._lock = threading.Lock()

    def show(self, view: QueueView) -> Callable[[], None]:
        hide = self._gauges.show(view)
        if self._log is not None:
            self._log.started()

        def stop() -> None:
            self._on_hide()
            hide()
            if self._log is not None:
                self._log.shutdown()

        return stop

    def on_lease(self, jobs: Sequence[LeasedJob], took_s: float) -> None:
        if self._log is not None:
            self._log.leased(len(jobs))
        # Looking in vain is how an idle process waits; a span for each look would only be noise.
        if not jobs:
            return
        self._meters.add(metrics.JOBS_LEASED, len(jobs))
        self._meters.record(metrics.DISPATCH_MS, took_s * 1000)
        for job in jobs:
            self._meters.record(metrics.QUEUE_WAIT, job.waited_s * 1000)
        if self._traces is not None:
            self._traces.dispatch(len(jobs), took_s)

    def on_job_start(self, job: LeasedJob) -> None:
        with self._lock:
            self._open[job.lease_id] = _Try(self._clock.monotonic())
        if self._traces is not None:
            self._traces.job_start(job)
        if self._log is not None:
            self._log.job_start(job)

    def on_stage(self, job: LeasedJob, stage: str) -> None:
        tier = stage.removeprefix("resolve:")
        if tier == stage:
            return
        if self._traces is not None:
            self._traces.tier(job, tier)
        if self._log is not None:
            self._log.tier(job, tier)

    def on_work_end(self, job: LeasedJob, outcome: DownloadOutcome) -> None:
        tried = self._open.get(job.lease_id)
        if tried is not None:
            tried.outcome = outcome
        if self._traces is not None:
            self._traces.work_end(job, outcome)

    def on_completing(self, job: LeasedJob, *, recorded: bool) -> None:
        if self._traces is not None:
            self._traces.completing(job, recorded=recorded)

    def on_job_end(self, job: LeasedJob, end: JobEnd, reason: str | None = None) -> None:
        with self._lock:
            tried = self._open.pop(job.lease_id, None)
        if tried is None:
            return
        took_s = self._clock.monotonic() - tried.since
        self._count(end, token(reason))
        self._meters.record(metrics.JOB_DURATION, took_s * 1000, outcome=end.value)
        if end in _FINAL:
            self._meters.record(metrics.JOB_LATENCY, took_s + job.waited_s)
            count_outcome(self._meters, tried.outcome or _unknown(end, reason))
        if self._traces is not None:
            self._traces.job_end(job, end.value, reason)
        if self._log is not None:
            self._log.job_end(job, end.value, reason, tried.outcome)

    def on_heartbeat(self, leases: int) -> None:
        if leases:
            self._meters.add(metrics.LEASE_EXTENSIONS, leases)

    def on_wait(self, job: LeasedJob, kind: str, key: str, seconds: float) -> None:
        self._meters.record(metrics.SLOT_WAIT, seconds * 1000, kind=kind)
        if self._traces is not None:
            self._traces.wait(job, kind, key, seconds)

    @property
    def hears_waits(self) -> bool:
        return self._counts or self._traces is not None

    def attempts(self, sink: AttemptSink) -> AttemptSink:
        told = _ToldAttempts(sink, self._traces, self._log) if self._traces or self._log else sink
        return CountedAttempts(told, self._meters) if self._counts else told

    def download(self, download: Download) -> Download:
        return download if self._traces is None else self._traces.traced(download)

    def enqueued(self, artifact_id: str) -> str | None:
        return None if self._traces is None else self._traces.enqueue(artifact_id)

    def on_robots(self, decisions: Mapping[str, int]) -> None:
        if self._log is not None:
            self._log.robots_decisions(decisions)

    def _count(self, end: JobEnd, reason: str) -> None:
        match end:
            case JobEnd.DONE | JobEnd.SKIPPED:
                self._meters.add(metrics.JOBS_COMPLETED)
            case JobEnd.ERROR:
                self._meters.add(metrics.JOBS_FAILED)
                self._meters.add(metrics.JOB_FAILURES)
            case JobEnd.RETRIED:
                self._meters.add(metrics.JOB_RETRY)
                self._meters.add(metrics.JOBS_RETRIED, reason=reason)
            case JobEnd.RELEASED:
                self._meters.add(metrics.JOBS_RELEASED)
            case JobEnd.LOST:
                self._meters.add(metrics.LEASES_LOST)


_FINAL = (JobEnd.DONE, JobEnd.SKIPPED, JobEnd.ERROR)


class _Try:
    """One try at a job: since when, and what came of it."""

    __slots__ = ("outcome", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.outcome: DownloadOutcome | None = None


class _ToldAttempts:
    """Hands everything on, and tells the traces and the log."""

    def __init__(self, sink: AttemptSink, traces: JobTraces | None, log: JobLog | None) -> None:
        self._sink = sink
        self._traces = traces
        self._log = log

    def attempt(self, attempt: Attempt) -> None:
        self._sink.attempt(attempt)
        if self._traces is not None:
            self._traces.attempt(attempt)
        if self._log is not None:
            self._log.attempt(attempt)

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **about: Any) -> None:
        self._sink.rate_wait(key, delay_ms, why=why, **about)
        if self._log is not None and delay_ms > 0:
            self._log.rate_wait(key, delay_ms, why, about.get("work_id"))

    def breaker_transition(self, key: str, old_state: str, new_state: str, **about: Any) -> None:
        self._sink.breaker_transition(key, old_state, new_state, **about)
        if self._log is not None:
            self._log.breaker(key, old_state, new_state, about.get("reason"))


def _unknown(end: JobEnd, reason: str | None) -> DownloadOutcome:
    """The outcome of a job whose work gave none, because it raised."""
    kind = OutcomeClass.SKIP if end is JobEnd.SKIPPED else OutcomeClass.ERROR
    if end is JobEnd.DONE:
        kind = OutcomeClass.SUCCESS
    return DownloadOutcome(kind is OutcomeClass.SUCCESS, kind, reason=token(reason))


def view_of(
    ledger: Ledger,
    *,
    held: Callable[[], int],
    active: Callable[[], int],
    clock: Clock,
    processes: Callable[[], int] = lambda: 1,
) -> QueueView:
    """Where the gauges of an orchestrator on this ledger are read."""

    def oldest_s() -> float | None:
        oldest = ledger.list_jobs(JobState.QUEUED, limit=1, wanted=JobFilter(job_type=DEFAULT_JOB_TYPE))
        return clock.now() - oldest[0].created_at if oldest else None

    path = str(getattr(ledger, "path", id(ledger)))
    signal = getattr(ledger, "signal", None)
    return QueueView(
        path, partial(ledger.stats, DEFAULT_JOB_TYPE), oldest_s, held, active, ledger.depths, processes, signal
    )


def end_of(order: Finish | Fail | Release, answer: Any) -> tuple[JobEnd, str | None]:
    """How a job ended by what the ledger has answered to `order`; an exception is a refusal."""
    if isinstance(answer, Exception):
        return JobEnd.LOST, str(answer)
    match order:
        case Release():
            return JobEnd.RELEASED, order.why
        case Fail():
            return (JobEnd.RETRIED if answer == JobState.QUEUED else JobEnd.ERROR), order.last_error
        case Finish():
            ended = {JobState.DONE: JobEnd.DONE, JobState.SKIPPED: JobEnd.SKIPPED}
            return ended.get(order.state, JobEnd.ERROR), order.last_error


def job_watch(clock: Clock) -> JobWatch:
    """The watch of a process that set OpenTelemetry's providers by itself; where it set none, nothing is watched."""
    found = global_providers()
    if not found:
        return NullWatch()
    meters, gauges = figures_of(found.meter, found.observation) if found.meter is not None else _nowhere()
    traces = JobTraces(Tracing(found.tracer)) if found.tracer is not None else None
    return WatchedJobs(meters=meters, gauges=gauges, clock=clock, traces=traces)


def _nowhere() -> tuple[Meters, Gauges]:
    meters = metrics.NoMeters()
    return meters, Gauges(meters)


def token(reason: str | None) -> str:
    """The word of a reason, without its sentence: labels are few."""
    return (reason or "unknown").partition(":")[0].partition(" ")[0][:40]
