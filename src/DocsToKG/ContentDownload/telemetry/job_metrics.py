"""From events to metrics: which names each event feeds.

Knows which metrics an attempt, a wait, a breaker and the end of a job feed. Knows no exporter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, DownloadOutcome, OutcomeClass, Reason, Verb
from DocsToKG.ContentDownload.telemetry import metrics
from DocsToKG.ContentDownload.telemetry.attempts import SENT
from DocsToKG.ContentDownload.telemetry.events import JobEnd, Listener
from DocsToKG.ContentDownload.telemetry.metrics import Gauges, Meters, Metric, QueueView
from DocsToKG.ContentDownload.telemetry.tally import NONE
from DocsToKG.core.clock import Clock
from DocsToKG.Orchestrator.ledger.base import LeasedJob

# Works that were there already or are not wanted are not attempted, as in the summary of a run.
_NOT_ATTEMPTED = frozenset({Reason.ALREADY_PRESENT, Reason.NOT_MODIFIED, Reason.FILTERED, Reason.TAKEN_DOWN})
_ENDS: dict[JobEnd, tuple[Metric, ...]] = {
    JobEnd.DONE: (metrics.JOBS_COMPLETED,),
    JobEnd.SKIPPED: (metrics.JOBS_COMPLETED,),
    JobEnd.ERROR: (metrics.JOBS_FAILED, metrics.JOB_FAILURES),
    JobEnd.RETRIED: (metrics.JOB_RETRY,),
    JobEnd.RELEASED: (metrics.JOBS_RELEASED,),
    JobEnd.LOST: (metrics.LEASES_LOST,),
}


class JobMetrics(Listener):
    """Counts the jobs of one process. `on_hide` is called before their gauges are read no more."""

    def __init__(
        self, meters: Meters, gauges: Gauges, clock: Clock, *, on_hide: Callable[[], None] | None = None
    ) -> None:
        self._meters = meters
        self._gauges = gauges
        self._clock = clock
        self._on_hide = on_hide
        self._begun: dict[str, float] = {}  # by lease

    def on_start(self, view: QueueView) -> None:
        self._gauges.show(view)

    def on_stop(self, view: QueueView) -> None:
        if self._on_hide is not None:
            self._on_hide()
        self._gauges.hide(view)

    def on_lease(self, jobs: Sequence[LeasedJob], took_s: float) -> None:
        if jobs:
            self._meters.add(metrics.JOBS_LEASED, len(jobs))
            self._meters.record(metrics.DISPATCH_MS, took_s * 1000)
        for job in jobs:
            self._meters.record(metrics.QUEUE_WAIT, job.waited_s * 1000)

    def on_job_start(self, job: LeasedJob) -> None:
        self._begun[job.lease_id] = self._clock.monotonic()

    def on_wait(self, job: LeasedJob, kind: str, key: str, seconds: float) -> None:
        self._meters.record(metrics.SLOT_WAIT, seconds * 1000, kind=kind)

    def on_job_end(
        self, job: LeasedJob, end: JobEnd, reason: str | None = None, outcome: DownloadOutcome | None = None
    ) -> None:
        begun = self._begun.pop(job.lease_id, None)
        if begun is None:
            return
        took_s = self._clock.monotonic() - begun
        for metric in _ENDS[end]:
            self._meters.add(metric)
        if end is JobEnd.RETRIED:
            self._meters.add(metrics.JOBS_RETRIED, reason=token(reason))
        self._meters.record(metrics.JOB_DURATION, took_s * 1000, outcome=end.value)
        if end.is_final:
            self._meters.record(metrics.JOB_LATENCY, took_s + job.waited_s)
            if outcome is not None:
                self.count_outcome(outcome)

    def on_heartbeat(self, leases: int) -> None:
        if leases:
            self._meters.add(metrics.LEASE_EXTENSIONS, leases)

    def attempt(self, attempt: Attempt) -> None:
        resolver, verb, reason = attempt.resolver, str(attempt.verb), str(attempt.reason or NONE)
        self._meters.add(metrics.ATTEMPTS, resolver=resolver, status=str(attempt.status), reason=reason, verb=verb)
        if attempt.status is AttemptStatus.RETRY:
            self._meters.add(metrics.RETRIES, resolver=resolver, reason=reason)
        if attempt.verb is Verb.STREAM and attempt.bytes_written:
            self._meters.add(metrics.BYTES, attempt.bytes_written, resolver=resolver)
        if attempt.status in SENT:
            self._count_exchange(attempt, resolver, verb)

    def _count_exchange(self, attempt: Attempt, resolver: str, verb: str) -> None:
        elapsed_ms, host = attempt.elapsed_ms, attempt.host or NONE
        if elapsed_ms is not None:
            self._meters.record(metrics.HTTP_LATENCY, elapsed_ms, resolver=resolver, verb=verb)
        if attempt.from_cache and not attempt.revalidated:
            return
        status = NONE if attempt.http_status is None else str(attempt.http_status)
        self._meters.add(metrics.HTTP_REQUESTS, host=host, status=status, resolver=resolver)
        if elapsed_ms is not None:
            self._meters.record(metrics.CONTENT_HTTP_LATENCY, elapsed_ms, host=host, resolver=resolver)

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **whose: Any) -> None:
        if delay_ms > 0:
            self._meters.record(metrics.RATE_SLEEP, float(delay_ms))
            self._meters.add(metrics.RATE_WAITS, rule=why)

    def breaker_transition(self, key: str, old_state: str, new_state: str, **change: Any) -> None:
        if new_state == "open":
            self._meters.add(metrics.BREAKER_OPEN, host=key.removeprefix("host:"))

    def count_outcome(self, outcome: DownloadOutcome) -> None:
        """A work ended for good."""
        resolver, reason = str(outcome.meta.get("resolver") or NONE), str(outcome.reason or NONE)
        self._meters.add(metrics.OUTCOMES, resolver=resolver, outcome=str(outcome.classification), reason=reason)
        if outcome.classification == OutcomeClass.SKIP and outcome.reason in _NOT_ATTEMPTED:
            return
        self._meters.add(metrics.TIERS_ENDED, tier=str(outcome.meta.get("tier") or NONE) if outcome.ok else NONE)
        if outcome.ok and outcome.meta.get("ttfp_ms") is not None:
            self._meters.record(metrics.TTFP, float(outcome.meta["ttfp_ms"]))


def token(reason: str | None) -> str:
    """The word of a reason, without its sentence: labels are few."""
    return (reason or "unknown").partition(":")[0].partition(" ")[0][:40]
