"""Every metric, span and span event of the work queue, by name; and the gauges, which are read and never counted.

Knows names, labels and what a reading means. Does not know OpenTelemetry: `otel` carries what is said here to it.
Promises: no label is a URL or a work's name, so that the number of series is bounded; a gauge is looked up in the
ledger or in the orchestrator at the moment somebody asks, so that it cannot drift.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

DISPATCH_SPAN = "orchestrator.dispatch"
JOB_SPAN = "job"
WAIT_EVENTS: Mapping[str, str] = {
    "resolver": "resolver_concurrency_wait_ms",
    "host": "host_concurrency_wait_ms",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """A name under which figures are exported, as it stands: no unit is added to it."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    text: str
    labels: tuple[str, ...] = ()


QUEUE_DEPTH = Metric("contentdownload_queue_depth", "gauge", "Jobs that wait: queued and pending.")
CONTENT_QUEUE_DEPTH = Metric("content_queue_depth", "gauge", "The same under its other name.")
QUEUE_JOBS = Metric("contentdownload_queue_jobs", "gauge", "Jobs in each state.", ("state",))
QUEUE_OLDEST = Metric("contentdownload_queue_oldest_seconds", "gauge", "Age of the queued job that was added first.")
JOBS_INFLIGHT = Metric("contentdownload_jobs_inflight", "gauge", "Jobs leased by any process.")
LEASES_HELD = Metric("contentdownload_leases_held", "gauge", "Leases this process holds, parked jobs included.")
WORKERS_ACTIVE = Metric("content_workers_active", "gauge", "Jobs in a thread of this process right now.")

JOBS_LEASED = Metric("contentdownload_jobs_leased_total", "counter", "Leases granted to this process.")
JOBS_COMPLETED = Metric(
    "contentdownload_jobs_completed_total", "counter", "Jobs that ended well: done or skipped.", ("outcome",)
)
JOBS_FAILED = Metric("contentdownload_jobs_failed_total", "counter", "Jobs that ended in error.", ("reason",))
JOBS_RETRIED = Metric("contentdownload_jobs_retried_total", "counter", "Tries that failed and come back.", ("reason",))
JOBS_RELEASED = Metric("contentdownload_jobs_released_total", "counter", "Leases given back without a try.")
LEASES_LOST = Metric("contentdownload_leases_lost_total", "counter", "Ends that the ledger refused.")

JOB_DURATION = Metric(
    "contentdownload_job_duration_ms", "histogram", "From the lease to the acknowledged end of a try.", ("outcome",)
)
DISPATCH_MS = Metric("contentdownload_dispatch_ms", "histogram", "Time the ledger took to grant leases.")
SLOT_WAIT = Metric(
    "contentdownload_concurrency_wait_ms", "histogram", "Waits for a free place at a resolver or a host.", ("kind",)
)
RATE_SLEEP = Metric(
    "contentdownload_rate_sleep_ms", "histogram", "Waits for a rate, an interval or a pause.", ("rule",)
)

METRICS: tuple[Metric, ...] = (
    *(QUEUE_DEPTH, CONTENT_QUEUE_DEPTH, QUEUE_JOBS, QUEUE_OLDEST, JOBS_INFLIGHT, LEASES_HELD, WORKERS_ACTIVE),
    *(JOBS_LEASED, JOBS_COMPLETED, JOBS_FAILED, JOBS_RETRIED, JOBS_RELEASED, LEASES_LOST),
    *(JOB_DURATION, DISPATCH_MS, SLOT_WAIT, RATE_SLEEP),
)

Reading = tuple[float, Mapping[str, str]]


class Meters(Protocol):
    """Takes figures. `observe` is told once per gauge how to read it."""

    def add(self, metric: Metric, amount: int = 1, **labels: str) -> None: ...

    def record(self, metric: Metric, value: float, **labels: str) -> None: ...

    def observe(self, metric: Metric, read: Callable[[], Iterable[Reading]]) -> None: ...


class NoMeters:
    """Forgets everything."""

    def add(self, metric: Metric, amount: int = 1, **labels: str) -> None:
        return None

    def record(self, metric: Metric, value: float, **labels: str) -> None:
        return None

    def observe(self, metric: Metric, read: Callable[[], Iterable[Reading]]) -> None:
        return None


@dataclass(frozen=True, slots=True)
class QueueView:
    """Where the gauges of one orchestrator are read. `ledger` names the ledger; the rest are looks at it."""

    ledger: str
    stats: Callable[[], Mapping[str, int]]  # jobs by state, as the ledger counts them
    oldest_s: Callable[[], float | None]  # age of the queued job that was added first; None when there is none
    held: Callable[[], int]
    active: Callable[[], int]


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
        }.items():
            meters.observe(metric, lambda look=look: self._of_ledgers(look))  # type: ignore[misc]
        meters.observe(LEASES_HELD, lambda: self._of_processes(lambda view: view.held()))
        meters.observe(WORKERS_ACTIVE, lambda: self._of_processes(lambda view: view.active()))

    def show(self, view: QueueView) -> Callable[[], None]:
        """Read the gauges there from now on, until the function that is returned is called."""
        with self._lock:
            self._views.append(view)
        return lambda: self._hide(view)

    def _hide(self, view: QueueView) -> None:
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


def _in_flight(view: QueueView) -> Iterator[Reading]:
    yield float(view.stats()["in_progress"]), {}


def _oldest(view: QueueView) -> Iterator[Reading]:
    age_s = view.oldest_s()
    yield (0.0 if age_s is None else max(0.0, age_s)), {}
