"""Every metric, span and span event of a run, by name; and the gauges, which are read and never counted.

Knows names, kinds, labels and what a reading means; the three families overlap, and one event feeds all its names.
Does not know Prometheus or OpenTelemetry: `exposition` and `otel` carry what is said here to them. Promises: no label
is a URL or a work's name; a gauge is looked up at the moment somebody asks, so that it cannot drift.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

from DocsToKG.core.clock import Clock
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, JobFilter, Ledger

DISPATCH_SPAN = "orchestrator.dispatch"
JOB_SPAN = "job"
WAIT_EVENTS: Mapping[str, str] = {
    "resolver": "resolver_concurrency_wait_ms",
    "host": "host_concurrency_wait_ms",
}

# Upper bounds of the histograms; the last bucket is always +Inf.
_REQUEST_MS = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)
_WAIT_MS = (1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000)
_TTFP_MS = (250, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 7_500, 10_000, 15_000, 30_000, 60_000, 120_000)
_JOB_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600)


@dataclass(frozen=True, slots=True)
class Metric:
    """A name under which figures are exported, as it stands: no unit is added to it. An `is_sum` gauge is an up-down
    value in OpenTelemetry's words; `buckets` are the bounds of a histogram; `starts` are values of its one label that
    are shown from the start, because a reader does not see the first step of a series that was not there before."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    is_sum: bool = False
    starts: tuple[str, ...] = ()

    @property
    def first_series(self) -> tuple[tuple[str, ...], ...]:
        """The series that are there before anything was counted."""
        return tuple((value,) for value in self.starts) if self.labels else ((),)


# The first family: the queue and what its jobs did.
ATTEMPTS = Metric(
    "contentdownload_attempts_total",
    "counter",
    "Lines of the attempts record: every decision on the wire or in the cache.",
    ("resolver", "status", "reason", "verb"),
)
HTTP_LATENCY = Metric(
    "contentdownload_http_latency_ms",
    "histogram",
    "From sending a request to the head of its answer.",
    ("resolver", "verb"),
    _REQUEST_MS,
)
RETRIES = Metric("contentdownload_retries_total", "counter", "Exchanges tried again.", ("resolver", "reason"))
BYTES = Metric("contentdownload_bytes_total", "counter", "Bytes of bodies that were read.", ("resolver",))
OUTCOMES = Metric(
    "contentdownload_outcomes_total",
    "counter",
    "Works that ended, by the source that obtained them.",
    ("resolver", "outcome", "reason"),
)
QUEUE_DEPTH = Metric("contentdownload_queue_depth", "gauge", "Jobs that wait: queued and pending.", is_sum=True)
JOBS_COMPLETED = Metric("contentdownload_jobs_completed_total", "counter", "Jobs that ended well: done or skipped.")
JOBS_FAILED = Metric("contentdownload_jobs_failed_total", "counter", "Jobs that ended in error.")
JOBS_INFLIGHT = Metric("contentdownload_jobs_inflight", "gauge", "Jobs leased by any process.", is_sum=True)
RATE_SLEEP = Metric(
    "contentdownload_rate_sleep_ms", "histogram", "Waits for a rate, an interval or a pause.", (), _WAIT_MS
)

# The second family: the network and the yield.
HTTP_REQUESTS = Metric("content_http_requests_total", "counter", "Requests sent.", ("host", "status", "resolver"))
CONTENT_HTTP_LATENCY = Metric(
    "content_http_latency_ms",
    "histogram",
    "From sending a request to the head of its answer; answers of the cache are not in it.",
    ("host", "resolver"),
    _REQUEST_MS,
)
YIELD = Metric(
    "content_yield_ratio", "gauge", "Works obtained in this tier, of all that ended; their sum is the yield.", ("tier",)
)
BREAKER_OPEN = Metric("content_breaker_open_total", "counter", "Circuit breakers that opened.", ("host",))
CACHE_HIT = Metric("content_cache_hit_ratio", "gauge", "Answers the cache gave or confirmed, of all answers.")
CONTENT_QUEUE_DEPTH = Metric("content_queue_depth", "gauge", "contentdownload_queue_depth under its other name.")
WORKERS_ACTIVE = Metric("content_workers_active", "gauge", "Jobs in a thread right now.")

# The third family: jobs of any type and tenant.
JOB_QUEUE_DEPTH = Metric("job_queue_depth", "gauge", "Jobs that wait, by type and tenant.", ("jobType", "tenant"))
JOB_LATENCY = Metric(
    "job_latency_seconds", "histogram", "From when a job could run to its acknowledged end.", (), _JOB_S
)
JOB_FAILURES = Metric("job_failures_total", "counter", "Jobs that ended in error.")
JOB_RETRY = Metric("job_retry_total", "counter", "Tries that failed and come back.")
LEASE_EXTENSIONS = Metric("lease_extensions_total", "counter", "Leases that a heartbeat prolonged.")
PACK_LAG = Metric("pack_run_logs_stream_lag_seconds", "gauge", "How far readers of a pack run's log are behind.")
PACK_HEARTBEATS = Metric("pack_run_heartbeats_total", "counter", "Heartbeats of pack runs.")
PACK_ARTIFACTS = Metric("pack_run_artifacts_total", "counter", "Artifacts that pack runs published.")

# Beyond the families.
QUEUE_JOBS = Metric("contentdownload_queue_jobs", "gauge", "Jobs in each state.", ("state",))
QUEUE_OLDEST = Metric("contentdownload_queue_oldest_seconds", "gauge", "Age of the queued job that was added first.")
LEASES_HELD = Metric("contentdownload_leases_held", "gauge", "Leases held, parked jobs included.")
PROCESSES = Metric("contentdownload_processes", "gauge", "Processes at work.")
JOBS_LEASED = Metric("contentdownload_jobs_leased_total", "counter", "Leases granted.")
JOBS_RETRIED = Metric("contentdownload_jobs_retried_total", "counter", "Tries that failed and come back.", ("reason",))
JOBS_RELEASED = Metric("contentdownload_jobs_released_total", "counter", "Leases given back without a try.")
LEASES_LOST = Metric("contentdownload_leases_lost_total", "counter", "Ends that the ledger refused.")
JOB_DURATION = Metric(
    "contentdownload_job_duration_ms",
    "histogram",
    "From the lease to the acknowledged end of a try.",
    ("outcome",),
    _WAIT_MS,
    starts=("done", "skipped", "error", "retried", "released"),
)
QUEUE_WAIT = Metric(
    "contentdownload_queue_wait_ms", "histogram", "From when a job could run to its lease.", (), _WAIT_MS
)
DISPATCH_MS = Metric(
    "contentdownload_dispatch_ms", "histogram", "Time the ledger took to grant leases.", (), _REQUEST_MS
)
SLOT_WAIT = Metric(
    "contentdownload_concurrency_wait_ms",
    "histogram",
    "Waits for a free place at a resolver or a host.",
    ("kind",),
    _WAIT_MS,
    starts=("resolver", "host"),
)
RATE_WAITS = Metric(
    "contentdownload_rate_waits_total",
    "counter",
    "Waits for a rule of ours.",
    ("rule",),
    starts=("rate", "interval", "hold"),
)
TTFP = Metric(
    "contentdownload_ttfp_ms",
    "histogram",
    "From the first request to the proved file, our own waits left out.",
    (),
    _TTFP_MS,
)
TIERS_ENDED = Metric(
    "contentdownload_works_ended_total",
    "counter",
    "Works that ended, by the tier that obtained them; none when none did.",
    ("tier",),
)
LABELS_FOLDED = Metric(
    "contentdownload_labels_folded_total", "counter", "Label values beyond the bound, counted as `other`.", ("label",)
)
SIGNAL_LISTENING = Metric(
    "orchestrator_signal_listening",
    "gauge",
    "Processes that the broker of queue.signal tells of work; those it does not find it by asking.",
)
SIGNAL_TROUBLES = Metric(
    "orchestrator_signal_troubles", "gauge", "How often the broker of queue.signal was lost, since the start."
)

FAMILIES: Mapping[str, tuple[Metric, ...]] = {
    "contentdownload": (
        *(ATTEMPTS, HTTP_LATENCY, RETRIES, BYTES, OUTCOMES),
        *(QUEUE_DEPTH, JOBS_COMPLETED, JOBS_FAILED, JOBS_INFLIGHT, RATE_SLEEP),
    ),
    "content": (
        *(HTTP_REQUESTS, CONTENT_HTTP_LATENCY, YIELD, BREAKER_OPEN),
        *(CACHE_HIT, CONTENT_QUEUE_DEPTH, WORKERS_ACTIVE),
    ),
    "job": (
        *(JOB_QUEUE_DEPTH, JOB_LATENCY, JOB_FAILURES, JOB_RETRY, LEASE_EXTENSIONS),
        *(PACK_LAG, PACK_HEARTBEATS, PACK_ARTIFACTS),
    ),
    "more": (
        *(QUEUE_JOBS, QUEUE_OLDEST, LEASES_HELD, PROCESSES, JOBS_LEASED, JOBS_RETRIED, JOBS_RELEASED, LEASES_LOST),
        *(JOB_DURATION, QUEUE_WAIT, DISPATCH_MS, SLOT_WAIT, RATE_WAITS, TTFP, TIERS_ENDED, LABELS_FOLDED),
        *(SIGNAL_LISTENING, SIGNAL_TROUBLES),
    ),
}
METRICS: tuple[Metric, ...] = tuple(metric for family in FAMILIES.values() for metric in family)

Reading = tuple[float, Mapping[str, str]]


class Meters(Protocol):
    """Takes figures. `observe` is told once per gauge how to read it."""

    def add(self, metric: Metric, amount: int = 1, **labels: str) -> None: ...

    def record(self, metric: Metric, value: float, **labels: str) -> None: ...

    def observe(self, metric: Metric, read: Callable[[], Iterable[Reading]]) -> None: ...


@dataclass(frozen=True, slots=True)
class QueueView:
    """Where the gauges of one orchestrator are read. `ledger` names the ledger; the rest are looks at it."""

    ledger: str
    stats: Callable[[], Mapping[str, int]]  # jobs by state, as the ledger counts them
    oldest_s: Callable[[], float | None]  # age of the queued job that was added first; None when there is none
    held: Callable[[], int]
    active: Callable[[], int]
    depths: Callable[[], Mapping[tuple[str, str], int]] | None = None  # waiting jobs by type and tenant
    processes: Callable[[], int] = lambda: 1
    signal: object = None  # how this process hears of work; one without a broker has no troubles


class Gauges:
    """The gauges of all orchestrators of a process. Two on one ledger read it once; what they hold is added up."""

    def __init__(self, meters: Meters) -> None:
        self._views: list[QueueView] = []
        self._lock = threading.Lock()
        for metric, look in {
            QUEUE_DEPTH: _waiting,
            CONTENT_QUEUE_DEPTH: _waiting,
            QUEUE_JOBS: _by_state,
            QUEUE_OLDEST: _oldest,
            JOBS_INFLIGHT: _in_flight,
            JOB_QUEUE_DEPTH: _by_type,
        }.items():
            meters.observe(metric, lambda look=look: self._of_ledgers(look))  # type: ignore[misc]
        meters.observe(LEASES_HELD, lambda: self._of_processes(lambda view: view.held()))
        meters.observe(WORKERS_ACTIVE, lambda: self._of_processes(lambda view: view.active()))
        meters.observe(PROCESSES, lambda: self._of_processes(lambda view: view.processes()))
        for metric, name in ((SIGNAL_LISTENING, "is_listening"), (SIGNAL_TROUBLES, "troubles")):
            meters.observe(metric, lambda name=name: self._of_processes(lambda view: getattr(view.signal, name, 0)))  # type: ignore[misc]

    def show(self, view: QueueView) -> None:
        """Read the gauges there from now on."""
        with self._lock:
            self._views.append(view)

    def hide(self, view: QueueView) -> None:
        with self._lock:
            self._views = [shown for shown in self._views if shown is not view]

    def _shown(self) -> list[QueueView]:
        with self._lock:
            return list(self._views)

    def _of_ledgers(self, look: Callable[[QueueView], Iterable[Reading]]) -> list[Reading]:
        sums: dict[tuple[tuple[str, str], ...], float] = {}
        for view in {view.ledger: view for view in self._shown()}.values():
            for value, labels in _readings(view, look):
                key = tuple(labels.items())
                sums[key] = max(sums.get(key, 0.0), value) if look is _oldest else sums.get(key, 0.0) + value
        return [(value, dict(key)) for key, value in sums.items()]

    def _of_processes(self, count: Callable[[QueueView], int]) -> list[Reading]:
        views = self._shown()
        return [(float(sum(count(view) for view in views)), {})] if views else []


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


def _readings(view: QueueView, look: Callable[[QueueView], Iterable[Reading]]) -> list[Reading]:
    """A ledger that cannot be read now gives no figure; whoever exports figures must not fail over it."""
    try:
        return list(look(view))
    except Exception:
        return []


def _waiting(view: QueueView) -> Iterator[Reading]:
    stats = view.stats()
    yield float(stats["queued"] + stats["pending"]), {}


def _by_state(view: QueueView) -> Iterator[Reading]:
    yield from ((float(n), {"state": state}) for state, n in view.stats().items() if state not in ("leased", "total"))


def _by_type(view: QueueView) -> Iterator[Reading]:
    for (job_type, tenant), n in (view.depths() if view.depths is not None else {}).items():
        yield float(n), {"jobType": job_type, "tenant": tenant}


def _in_flight(view: QueueView) -> Iterator[Reading]:
    yield float(view.stats()["in_progress"]), {}


def _oldest(view: QueueView) -> Iterator[Reading]:
    age_s = view.oldest_s()
    yield (0.0 if age_s is None else max(0.0, age_s)), {}
