"""The work queue: enqueue, lease, acknowledge and retry works, in one SQLite file.

A thin face on the ledger: knows which call means which change, and remembers the leases it gave
out, so that callers who name only the job id are fenced too. Does not know threads, HTTP or
pipelines. Promises: one live lease per job; enqueueing a known artifact_id changes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from DocsToKG.ContentDownload.orchestrator.models import Job, JobState, LeasedJobDict, leased_job_dict
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import BadUrl, host_key
from DocsToKG.Orchestrator.errors import LeaseLost, LedgerUnusable
from DocsToKG.Orchestrator.jobs.retry import DEFAULT_MAX_ATTEMPTS
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, Enqueued, Fail, Finish, JobFilter, NewJob, Release
from DocsToKG.Orchestrator.notifications.opening import DEFAULT_CHANNEL, SignalKind, open_signal

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.config.models import QueueConfig
    from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger

Artifact = Mapping[str, Any] | str
_ACKNOWLEDGED = (JobState.DONE, JobState.SKIPPED, JobState.ERROR)
_DEFAULT_TTL_S = 600.0
_CHUNK = 2000
_ADDRESS = "url:"
DOWNLOADS = JobFilter(job_type=DEFAULT_JOB_TYPE)  # a ledger may hold jobs of other types, which are not ours


def first_host(artifact_id: str) -> str | None:
    """The host that a work given by its address asks first, so that leasing goes round over hosts from the start.

    None for all others: whom they ask first is an index, and which host has the file shows only then.
    """
    if not artifact_id.startswith(_ADDRESS):
        return None
    try:
        return host_key(artifact_id.removeprefix(_ADDRESS)) or None
    except BadUrl:
        return None


@dataclass(frozen=True, slots=True)
class _Held:
    fence: int
    lease_id: str


class WorkQueue:
    """A queue of works at `path`, made where missing. `ledger` has what this face leaves out.

    With `url` it is on that PostgreSQL server, and at `path` the workers of this machine only show that they live;
    `listen_url` is the server itself where `url` is that of a pooler. `signal` is how processes wake each other when
    work comes, where that is not the ledger's own way, `signal_url` the broker that it goes through, `signal_channel`
    what tells this queue's wake-ups there from others'. On a server, months of history that ended more than
    `history_retention_days` ago are removed. With `orchestrator_url` the queue is behind that service, which the token
    in `token_file` lets in; what an operator decides is then asked of the service itself.
    """

    def __init__(
        self,
        path: str | Path,
        wal_mode: bool = True,
        *,
        clock: Clock | None = None,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        url: str | None = None,
        listen_url: str | None = None,
        signal: SignalKind | None = None,
        signal_url: str | None = None,
        signal_channel: str = DEFAULT_CHANNEL,
        history_retention_days: int | None = None,
        orchestrator_url: str | None = None,
        token_file: str | None = None,
    ) -> None:
        from DocsToKG.Orchestrator.ledger.opening import open_ledger

        is_ledgers_own = signal is None or (signal == "pg_notify" and url is not None)
        self.signal = None if is_ledgers_own else open_signal(signal or "local", signal_url, channel=signal_channel)
        self.ledger: DatabaseLedger = (
            open_ledger(
                path,
                url=url,
                clock=clock,
                wal=wal_mode,
                listen_url=listen_url,
                signal=self.signal,
                retain_history_days=history_retention_days,
            )
            if orchestrator_url is None
            else _served(orchestrator_url, token_file, Path(path))
        )
        self._max_attempts = max_attempts
        self._lock = threading.Lock()
        self._held: dict[int, _Held] = {}
        self._ttls: dict[str, float] = {}

    def __enter__(self) -> WorkQueue:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.ledger.close()
        if self.signal is not None:
            self.signal.close()

    def enqueue(self, artifact_id: str, artifact: Artifact, resolver_hint: str | None = None) -> bool:
        """True when the artifact is new; False, and nothing changed, when it is known."""
        [answer] = self._enqueue_all([(artifact_id, artifact, resolver_hint)])
        return answer.created

    def bulk_import(self, rows: Iterable[tuple[str, Artifact, str | None]]) -> int:
        """How many of the rows were new. Rows may be a stream of any length."""
        rest = iter(rows)
        created = 0
        while chunk := list(islice(rest, _CHUNK)):
            created += sum(answer.created for answer in self._enqueue_all(chunk))
        return created

    def _enqueue_all(self, rows: Iterable[tuple[str, Artifact, str | None]]) -> list[Enqueued]:
        return self.ledger.enqueue_many(
            [
                NewJob(
                    artifact_id,
                    artifact,
                    resolver_hint=hint,
                    max_attempts=self._max_attempts,
                    host_key=first_host(artifact_id),
                )
                for artifact_id, artifact, hint in rows
            ]
        )

    def lease(self, worker_id: str, limit: int, lease_ttl_sec: float) -> list[LeasedJobDict]:
        """Up to `limit` jobs, newly taken for `worker_id`: queued ones that are due, and those whose lease ran out."""
        jobs = self.ledger.lease(worker_id, limit, lease_ttl_sec, job_type=DEFAULT_JOB_TYPE, begun=True)
        if not jobs and limit > 0:  # nobody else may be there to try a suspect
            jobs = self.ledger.lease_suspect(worker_id, lease_ttl_sec, job_type=DEFAULT_JOB_TYPE, begun=True)
        with self._lock:
            self._ttls[worker_id] = lease_ttl_sec
            self._held.update({job.job_id: _Held(job.fence, job.lease_id) for job in jobs})
        return [leased_job_dict(job, worker_id) for job in jobs]

    def heartbeat(self, worker_id: str) -> set[str]:
        """Extend the worker's live leases by the time they were given for; the lease ids still held."""
        with self._lock:
            ttl_s = self._ttls.get(worker_id, _DEFAULT_TTL_S)
        return self.ledger.heartbeat(worker_id, ttl_s)

    def ack(
        self,
        job_id: int,
        outcome: str,
        last_error: str | None = None,
        *,
        fence: int | None = None,
        lease_id: str | None = None,
    ) -> None:
        """End a job as `done`, `skipped` or `error`. Raises `LeaseLost` when the job has another lease or is over."""
        if outcome not in _ACKNOWLEDGED:
            raise ValueError(f"{outcome!r} is not an outcome; use one of {', '.join(_ACKNOWLEDGED)}")
        held = self._lease_named(job_id, fence, lease_id)
        self.ledger.finish(Finish(job_id, held.fence, held.lease_id, JobState(outcome), last_error))
        self._forget(job_id, held)

    def fail_and_retry(
        self,
        job_id: int,
        backoff_sec: float,
        max_attempts: int,
        last_error: str,
        *,
        fence: int | None = None,
        lease_id: str | None = None,
    ) -> None:
        """Count a failure: back to `queued` after the delay while attempts are left, else `error`."""
        held = self._lease_named(job_id, fence, lease_id)
        self.ledger.fail(Fail(job_id, held.fence, held.lease_id, backoff_sec, max_attempts, last_error))
        self._forget(job_id, held)

    def release(
        self,
        job_id: int,
        delay_sec: float = 0.0,
        *,
        host_key: str | None = None,
        why: str | None = None,
        fence: int | None = None,
        lease_id: str | None = None,
    ) -> None:
        """Give the job back, to be leased again after the delay (at most 24 h). Counts no attempt."""
        held = self._lease_named(job_id, fence, lease_id)
        self.ledger.release(Release(job_id, held.fence, held.lease_id, delay_sec, host_key, why))
        self._forget(job_id, held)

    def stats(self) -> dict[str, int]:
        """How many downloads are in each state; jobs of other types on the same ledger are not counted."""
        return self.ledger.stats(DEFAULT_JOB_TYPE)

    def job(self, job_id: int) -> Job:
        return Job.from_record(self.ledger.job(job_id))

    def _lease_named(self, job_id: int, fence: int | None, lease_id: str | None) -> _Held:
        if fence is not None and lease_id is not None:
            return _Held(fence, lease_id)
        with self._lock:
            held = self._held.get(job_id)
        # Half a name is checked against the lease we know, so that it is never weaker than none.
        if held is None or fence not in (None, held.fence) or lease_id not in (None, held.lease_id):
            raise LeaseLost(job_id, fence)
        return held

    def _forget(self, job_id: int, held: _Held) -> None:
        with self._lock:
            if self._held.get(job_id) == held:
                del self._held[job_id]


def configured_queue(settings: QueueConfig, *, max_attempts: int, clock: Clock | None = None) -> WorkQueue:
    """The queue that the settings name."""
    return WorkQueue(
        settings.path,
        wal_mode=settings.wal_mode,
        clock=clock,
        max_attempts=max_attempts,
        url=settings.url,
        listen_url=settings.listen_url,
        signal=settings.signal,
        signal_url=settings.signal_address,
        signal_channel=settings.signal_channel,
        history_retention_days=settings.history_retention_days,
        orchestrator_url=settings.orchestrator_url,
        token_file=settings.token_file,
    )


def _served(url: str, token_file: str | None, path: Path) -> DatabaseLedger:
    """The ledger behind a service: all that a worker needs of one."""
    from DocsToKG.Orchestrator.client import OrchestratorClient, RemoteLedger

    return cast("DatabaseLedger", RemoteLedger(OrchestratorClient(url, token_in(token_file)), local_path=path))


def token_in(token_file: str | None) -> str:
    """What lets a worker in to the service that has its queue."""
    if token_file is None:
        raise LedgerUnusable("a queue behind a service needs a token: name its file in queue.token_file")
    try:
        return Path(token_file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise LedgerUnusable(f"the token in {token_file} cannot be read") from None
