"""What is worth a line in the log: backoffs, robots decisions, tiers, breakers, jobs and the life of a worker.

Knows the names of the events, which are a contract, and their levels. Does not know how a line is written (`logs`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from DocsToKG.ContentDownload.api.ports import Change, Whose
from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, DownloadOutcome, Reason
from DocsToKG.ContentDownload.telemetry.events import JobEnd, Listener
from DocsToKG.ContentDownload.telemetry.logs import Log
from DocsToKG.ContentDownload.telemetry.metrics import QueueView
from DocsToKG.Orchestrator.ledger.base import LeasedJob

# Every event with its level and when it is said: the reference is held against it.
EVENTS: Mapping[str, tuple[str, str]] = {
    "worker_started": ("info", "a process begins to lease jobs"),
    "worker_idle": ("info", "it has nothing left to do and looks for more"),
    "worker_shutdown": ("info", "it leases no more, and what it held has ended or gone back"),
    "job_started": ("debug", "a job was leased and begins"),
    "job_ended": ("info", "a try at a job ended; `status` says how"),
    "lease_lost": ("warning", "the ledger refused an end: the job was another's by then, or canceled"),
    "tier_started": ("debug", "a tier of sources is asked for a work"),
    "tier_exhausted": ("info", "no source of the tier had a copy"),
    "tiers_exhausted": ("info", "no tier had a copy; `chain` are the sources that were asked"),
    "backoff": ("info", "something is tried again later or left alone; `reason` says why"),
    "robots": ("info", "robots.txt was fetched or forbids; `decision` says which"),
    "robots_decisions": ("info", "at the end: how often robots.txt allowed, forbade, was silent or unreadable"),
    "breaker": ("info", "a circuit breaker changed its state; one that opens is a warning and an incident"),
    "worker_exception": ("error", "a job failed by a fault of this program; an incident"),
}

_LONG_WAIT_MS = 1_000


class JobLog(Listener):
    """The events of one process."""

    def __init__(self, log: Log, *, worker_id: str = "", leases: bool = True) -> None:
        """A process that only starts others `leases` nothing, and is no worker."""
        self._log = log
        self._leases = leases
        self._worker_id = worker_id
        self._lock = threading.Lock()
        self._jobs: dict[str, LeasedJob] = {}  # by work
        self._tiers: dict[str, str] = {}  # by lease
        self._is_idle = False

    def on_start(self, view: QueueView) -> None:
        if self._leases:
            self._say("worker_started")

    def on_stop(self, view: QueueView) -> None:
        if self._leases:
            self._say("worker_shutdown")

    def on_lease(self, jobs: Sequence[LeasedJob], took_s: float) -> None:
        """Asking in vain is how an idle process waits: it is said once."""
        with self._lock:
            idle = not jobs and not self._jobs
            changed, self._is_idle = idle and not self._is_idle, idle
        if changed:
            self._say("worker_idle")

    def on_job_start(self, job: LeasedJob) -> None:
        with self._lock:
            self._jobs[job.artifact_id] = job
        self._say("job_started", job, status="in_progress")

    def on_stage(self, job: LeasedJob, stage: str) -> None:
        tier = stage.removeprefix("resolve:")
        if tier == stage:
            return
        before = self._tiers.get(job.lease_id)
        self._tiers[job.lease_id] = tier
        if before is not None:
            self._say("tier_exhausted", job, tier=before)
        self._say("tier_started", job, tier=tier)

    def on_job_end(
        self, job: LeasedJob, end: JobEnd, reason: str | None = None, outcome: DownloadOutcome | None = None
    ) -> None:
        with self._lock:
            if self._jobs.get(job.artifact_id) is job:
                del self._jobs[job.artifact_id]
            last = self._tiers.pop(job.lease_id, None)
        if outcome is not None and outcome.reason == Reason.ALL_TIERS_EXHAUSTED:
            if last is not None:
                self._say("tier_exhausted", job, tier=last)
            self._say("tiers_exhausted", job, chain=outcome.meta.get("fallback_chain"), cause=outcome.meta.get("cause"))
        if (reason or "").startswith(Reason.WORKER_EXCEPTION):
            self._say("worker_exception", job, reason=reason, incident=True)
        if end is JobEnd.LOST:
            self._say("lease_lost", job, reason=reason)
        meta = outcome.meta if outcome is not None else {}
        self._say(
            "job_ended",
            job,
            status=end.value,
            reason=reason,
            resolver=meta.get("resolver"),
            tier=meta.get("tier"),
            duration_ms=meta.get("duration_ms"),
        )

    def attempt(self, attempt: Attempt) -> None:
        about = {"work_id": attempt.work_id, "host": attempt.host, "resolver": attempt.resolver}
        if attempt.status is AttemptStatus.RETRY:
            self._of_work(
                "backoff", attempt, reason=_backoff_reason(attempt), retry_after_s=attempt.retry_after_s, **about
            )
        elif attempt.status is AttemptStatus.ROBOTS_DISALLOWED:
            self._of_work("robots", attempt, decision="blocked", **about)
            self._of_work("backoff", attempt, reason="robots-denied", **about)
        elif attempt.status is AttemptStatus.ROBOTS_FETCH:
            self._of_work("robots", attempt, decision=_robots_decision(attempt), **about)
        elif attempt.http_status is not None and (attempt.http_status == 429 or attempt.http_status >= 500):
            self._of_work("backoff", attempt, reason=_backoff_reason(attempt), **about)

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **whose: Unpack[Whose]) -> None:
        if delay_ms <= 0:
            return
        work_id = whose.get("work_id")
        level = "info" if delay_ms >= _LONG_WAIT_MS else "debug"
        job = self._jobs.get(work_id or "")
        self._say("backoff", job, level=level, reason="rate-limit", rule=why, key=key, ms=delay_ms, work_id=work_id)

    def breaker_transition(self, key: str, old_state: str, new_state: str, **change: Unpack[Change]) -> None:
        opened = new_state == "open"
        level = "warning" if opened else "info"
        self._say(
            "breaker",
            level=level,
            key=key,
            before=old_state,
            now=new_state,
            reason=change.get("reason"),
            incident=opened,
        )

    def on_robots(self, decisions: Mapping[str, int]) -> None:
        if decisions:
            self._say("robots_decisions", counts=dict(decisions))

    def _of_work(self, event: str, attempt: Attempt, **fields: Any) -> None:
        self._say(event, self._jobs.get(attempt.work_id or ""), **fields)

    def _say(self, event: str, job: LeasedJob | None = None, *, level: str | None = None, **fields: Any) -> None:
        level = level or EVENTS[event][0]
        if not self._log.wants(level):
            return
        words = {} if job is None else _names(job)
        self._log.say(level, event, workerId=self._worker_id, **words, **_said(fields))


def _names(job: LeasedJob) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "jobId": job.job_id,
        "jobType": job.job_type,
        "tenant": job.tenant,
        "leaseId": job.lease_id,
        "artifact_id": job.artifact_id,
    }


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _backoff_reason(attempt: Attempt) -> str:
    status = attempt.http_status
    if status is None:
        return str(attempt.reason or Reason.CONN_ERROR)
    return "5xx" if status >= 500 else str(status)


def _robots_decision(attempt: Attempt) -> str:
    if attempt.reason is Reason.TIMEOUT:
        return "timeout"
    if attempt.http_status is None:
        return "unreachable"
    return "fetched" if attempt.http_status < 400 else f"status-{attempt.http_status}"
