"""A ledger that is elsewhere: what a worker needs of one, over HTTP and with no database.

Knows which call of the service means which call of a ledger. Promises those of `ledger.base` for leasing, renewing and
settling, because the service keeps them; what is an operator's to decide is refused here.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Unpack

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.client.api import End, EndOptions, OrchestratorClient
from DocsToKG.Orchestrator.control.workers.hosts import BreakerReport, HostReport, Orders
from DocsToKG.Orchestrator.control.workers.lease_rows import JobLease
from DocsToKG.Orchestrator.errors import LeaseLost, LedgerError, Refused
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import (
    Callback,
    Enqueued,
    Fail,
    Finish,
    FinishResult,
    LeasedJob,
    LeaseTerms,
    NewJob,
    Progress,
    Release,
    TracedJob,
    WorkerEnd,
)
from DocsToKG.Orchestrator.notifications.local import LocalSignal
from DocsToKG.Orchestrator.tracing import TRACEPARENT
from DocsToKG.Orchestrator.views import parse_timestamp

_STATES = {
    "pending": JobState.PENDING, "queued": JobState.QUEUED, "leased": JobState.IN_PROGRESS,
    "succeeded": JobState.DONE, "failed": JobState.ERROR, "canceled": JobState.CANCELED,
    "timed_out": JobState.TIMED_OUT,
}  # fmt: skip
_ENDS: dict[JobState, End] = {
    JobState.DONE: "succeeded", JobState.SKIPPED: "succeeded", JobState.ERROR: "failed",
    JobState.CANCELED: "canceled", JobState.TIMED_OUT: "timed_out",
}  # fmt: skip
_AT_ONCE = 500
_ASK_S = 1.0
_LOOK_S = 0.05


class NotForWorkers(Refused, AttributeError):
    """A worker behind a service asked its ledger for what only operators may do."""


class RemoteReports:
    """Reports of a worker, by way of the service."""

    def __init__(self, client: OrchestratorClient) -> None:
        self._client = client

    def report(
        self, worker_id: str, about: Mapping[str, Any], words: Sequence[HostReport], steps: Sequence[BreakerReport] = ()
    ) -> Orders:
        self._client.report_worker(worker_id, **about)
        return self._client.report_hosts(worker_id, [_host(word) for word in words], [asdict(step) for step in steps])


def _host(word: HostReport) -> dict[str, Any]:
    said = {name: getattr(word, name) for name in HostReport.__slots__}
    return {**said, "limits": dict(word.limits)}


class RemoteLedger:
    """The ledger behind a service, for workers. `local_path` is where this machine's workers show that they live."""

    def __init__(
        self,
        client: OrchestratorClient,
        *,
        local_path: str | Path = "state/workers",
        threads: int = 8,
        clock: Clock | None = None,
    ) -> None:
        self.path = Path(local_path)
        self._client = client
        self._clock = clock or SystemClock()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="remote-ledger")
        self._lock = threading.Lock()
        self._held: dict[str, str] = {}  # leases and the workers that have them
        self._tenant: str | None = None  # that of the token, once it was asked for
        self.signal = LocalSignal()

    def __enter__(self) -> RemoteLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def reports(self) -> RemoteReports:
        """Where workers report what they know of hosts."""
        return RemoteReports(self._client)

    def close(self) -> None:
        """What was submitted is sent first."""
        self._pool.shutdown(wait=True)
        self._client.close()

    def enqueue_many(self, jobs: Sequence[NewJob], *, actor: str = "producer") -> list[Enqueued]:
        answers: list[Enqueued] = []
        for start in range(0, len(jobs), _AT_ONCE):
            rows = self._client.enqueue_many([_request(job) for job in jobs[start : start + _AT_ONCE]])
            answers += [Enqueued(row["id"], row["artifactId"], row["created"], _STATES[row["status"]]) for row in rows]
        return answers

    def lease(self, worker_id: str, limit: int, ttl_s: float, **terms: Unpack[LeaseTerms]) -> list[LeasedJob]:
        """The service leases for the tenant of the token; work counts as begun with the lease."""
        if limit < 1:
            return []
        leases = self._client.lease(
            worker_id, job_types=_types(terms), limit=min(limit, _AT_ONCE), lease_s=max(1.0, ttl_s)
        )
        return self._taken(worker_id, leases)

    def _taken(self, worker_id: str, leases: Sequence[JobLease]) -> list[LeasedJob]:
        with self._lock:
            self._held.update((lease.lease_id, worker_id) for lease in leases)
        now = self._clock.now()
        return [_leased(lease, now) for lease in leases]

    def finish_and_lease(
        self, finishes: Sequence[Finish], worker_id: str, limit: int, ttl_s: float, **terms: Unpack[LeaseTerms]
    ) -> tuple[list[FinishResult | LeaseLost], list[LeasedJob]]:
        """The last end and the leases are one request."""
        told: list[FinishResult | LeaseLost] = [self._finished(finish) for finish in finishes[:-1]]
        if not finishes or limit < 1:
            told += [self._finished(finish) for finish in finishes[-1:]]
            return told, self.lease(worker_id, limit, ttl_s, **terms)
        last = finishes[-1]
        try:
            leases = self._client.complete_and_lease(
                last.lease_id, _ENDS[last.state], worker_id, job_types=_types(terms), limit=min(limit, _AT_ONCE),
                lease_s=max(1.0, ttl_s), **_how(last),
            )  # fmt: skip
        except LeaseLost as lost:
            return [*told, lost], self.lease(worker_id, limit, ttl_s, **terms)
        self._let_go(last.lease_id)
        return [*told, "applied"], self._taken(worker_id, leases)

    def heartbeat(self, worker_id: str, ttl_s: float) -> set[str]:
        """What is missing in the answer is lost: drop that work."""
        with self._lock:
            mine = [lease_id for lease_id, worker in self._held.items() if worker == worker_id]
        held: set[str] = set()
        for start in range(0, len(mine), _AT_ONCE):
            some = self._client.renew(mine[start : start + _AT_ONCE], lease_s=max(1.0, ttl_s))
            held.update(each.lease_id for each in some if each.state == "held")
        with self._lock:
            for lease_id in set(mine) - held:
                self._held.pop(lease_id, None)
        return held

    def finish(self, finish: Finish) -> FinishResult:
        self._client.complete(finish.lease_id, _ENDS[finish.state], **_how(finish))
        self._let_go(finish.lease_id)
        return "applied"

    def fail(self, fail: Fail) -> JobState:
        done = self._client.complete(
            fail.lease_id,
            "failed",
            reason=fail.last_error[:2000] or "failed",
            retryable=True,
            retry_after_s=min(fail.delay_s, 86_400.0),
            result=fail.result,
        )
        self._let_go(fail.lease_id)
        return _STATES[str(done["status"])]

    def release(self, release: Release) -> JobState:
        self._client.release(
            release.lease_id,
            delaySeconds=min(release.delay_s, 86_400.0),
            hostKey=release.host_key,
            reason=None if release.why is None else release.why[:500],
            countAttempt=release.count_attempt,
        )
        self._let_go(release.lease_id)
        return JobState.QUEUED

    def submit_finish(self, finish: Finish) -> Future[FinishResult]:
        return self._pool.submit(self.finish, finish)

    def submit_finishes(
        self, finishes: Sequence[Finish], *, patient: bool = True
    ) -> Future[list[FinishResult | LeaseLost]]:
        """Each is a request of its own, and they go side by side; whoever gathers them comes after them in the queue,
        so that they are under way by then."""
        ends = [self._pool.submit(self._finished, finish) for finish in finishes]
        return self._pool.submit(lambda: [end.result() for end in ends])

    def submit_fail(self, fail: Fail) -> Future[JobState]:
        return self._pool.submit(self.fail, fail)

    def submit_release(self, release: Release) -> Future[JobState]:
        return self._pool.submit(self.release, release)

    def submit_progress(self, progress: Progress) -> Future[None]:
        return self._pool.submit(self._client.progress, progress.lease_id, progress.stage)

    def tell_progress(self, progress: Progress, told: Callback) -> None:
        self.submit_progress(progress).add_done_callback(lambda done: told(done.exception()))

    def lease_suspect(
        self, worker_id: str, ttl_s: float, *, job_type: str | None = None, begun: bool = False
    ) -> list[LeasedJob]:
        """A suspect is leased where its workers are on the ledger itself; a service hands out none."""
        return []

    def next_suspect_at(self, job_type: str | None = None) -> float | None:
        return None

    def release_worker(
        self, worker_id: str, in_hand: Collection[int] | None = (), *, end: WorkerEnd | None = None
    ) -> int:
        """Give back what this process leased for the worker; how many jobs that were."""
        with self._lock:
            mine = [lease_id for lease_id, worker in self._held.items() if worker == worker_id]
        freed = 0
        for lease_id in mine:
            try:
                self._client.release(lease_id, reason="the worker ends")
                freed += 1
            except LeaseLost:
                pass
            self._let_go(lease_id)
        return freed

    def is_paused(self) -> bool:
        return bool(self._client.dashboard()["paused"]) or bool(self._client.maintenance()["on"])

    def stats(self, job_type: str | None = None) -> dict[str, int]:
        """By state; what was skipped counts as done, as the service does not tell them apart."""
        figures = self._client.dashboard()
        counts = figures["counts"] if job_type is None else figures["queues"].get(job_type, {})
        found = {state.value: int(counts.get(word, 0)) for word, state in _STATES.items()} | {"skipped": 0}
        return {**found, "leased": found["in_progress"], "total": sum(found.values())}

    def depths(self) -> dict[tuple[str, str], int]:
        """Of the token's own tenant, which is all that the service shows of the queues."""
        queues = self._client.dashboard()["queues"]
        self._tenant = tenant = self._tenant or str(self._client.whoami()["tenant"])
        waits = ("queued", "pending")
        return {(kind, tenant): sum(int(counts.get(word, 0)) for word in waits) for kind, counts in queues.items()}

    def next_eligible_at(self, job_type: str | None = None) -> float | None:
        """When the first of the waiting jobs may run, among the newest; None where none waits."""
        soonest: float | None = None
        for number, job in enumerate(self._client.jobs(status="queued", jobType=job_type, page_size=500)):
            at = parse_timestamp(str(job["nextEligibleAt"]))
            soonest = at if soonest is None else min(soonest, at)
            if number >= _AT_ONCE or at <= self._clock.now():
                break
        return soonest

    def wake(self) -> None:
        self.signal.notify("")

    def wait_for_work(
        self, timeout_s: float, *, unless: Callable[[], bool] = lambda: False, job_type: str | None = None
    ) -> bool:
        """Work may be there at any time, and nobody calls: ask about once a second."""
        deadline, since = time.monotonic() + min(timeout_s, _ASK_S), self.signal.mark()
        while not unless():
            left = deadline - time.monotonic()
            if left <= 0:
                return timeout_s >= _ASK_S
            if self.signal.wait(min(_LOOK_S, left), since=since):
                return True
        return False

    def cancel(self, job_id: int, reason: str, *, actor: str = "operator", ticket: str | None = None) -> bool:
        return bool(self._client.cancel(job_id, reason, ticket=ticket)["status"] == "canceled")

    def __getattr__(self, name: str) -> NoReturn:
        """What a worker does not need is not here."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotForWorkers(f"{name} is not for a worker behind a service; ask the service itself", "remote")

    def _finished(self, finish: Finish) -> FinishResult | LeaseLost:
        try:
            return self.finish(finish)
        except LeaseLost as lost:
            return lost

    def _let_go(self, lease_id: str) -> None:
        with self._lock:
            self._held.pop(lease_id, None)


def _how(finish: Finish) -> EndOptions:
    """How a job ended, as the service takes it."""
    skipped = finish.state is JobState.SKIPPED
    reason = finish.last_error or (finish.state.value if finish.state is not JobState.DONE else None)
    return {
        "reason": None if reason is None else reason[:2000], "retryable": False, "result": finish.result,
        "outcome": "skipped" if skipped else finish.outcome,
    }  # fmt: skip


def _leased(lease: JobLease, now: float) -> LeasedJob:
    made: type[LeasedJob] = TracedJob if lease.instrumentation.wait_told else LeasedJob
    return made(
        job_id=lease.job_id,
        fence=lease.fence,
        lease_id=lease.lease_id,
        lease_until=lease.lease_until,
        artifact_id=lease.artifact_id,
        artifact_json=json.dumps(lease.payload),
        payload_digest=lease.payload_digest,
        resolver_hint=lease.resolver_hint,
        host_key=lease.host_key,
        priority=lease.priority,
        attempts=lease.retry.attempt - 1,
        max_attempts=lease.retry.max_attempts,
        tenant=lease.provenance.tenant,
        project=lease.provenance.project,
        job_type=lease.job_type,
        source=lease.source,
        idempotency_key=lease.idempotency_key,
        correlation_id=lease.provenance.correlation_id,
        trace_context=lease.instrumentation.traceparent,
        replay_of=lease.replay_of,
        eligible_at=now - lease.waited_s,
        leased_at=now,
    )


def _request(job: NewJob) -> dict[str, Any]:
    payload = json.loads(job.payload) if isinstance(job.payload, str) else dict(job.payload)
    if any(isinstance(need, str) for need in job.depends_on):
        raise LedgerError("name the jobs that a job needs by their numbers here")
    request = {
        "payload": payload, "artifactId": job.artifact_id, "jobType": job.job_type, "priority": job.priority,
        "maxAttempts": job.max_attempts, "delaySeconds": job.delay_s, "project": job.project, "source": job.source,
        "payloadDigest": job.payload_digest, "dependencies": list(job.depends_on),
        "idempotencyKey": job.idempotency_key, "correlationId": job.correlation_id,
        "traceparent": job.trace_context if re.match(TRACEPARENT, job.trace_context or "") else None,
    }  # fmt: skip
    return {name: value for name, value in request.items() if value is not None}


def _types(terms: LeaseTerms) -> list[str]:
    job_type = terms.get("job_type")
    return [] if job_type is None else [job_type]
