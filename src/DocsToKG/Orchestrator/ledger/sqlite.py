"""The ledger in one SQLite file, for all threads and processes of one machine.

Knows which change or read answers which call. Does not know threads of work, HTTP or papers.
Promises those of `base`, and: an enqueued job survives power loss; other changes survive a killed
process; counting does not scan; time never steps back.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.domain.states import TERMINAL, JobState
from DocsToKG.Orchestrator.errors import BadJob, LeaseLost, UnknownJob
from DocsToKG.Orchestrator.ledger import changes, checks, schema
from DocsToKG.Orchestrator.ledger.base import (
    DEFAULT_JOB_TYPE,
    DEFAULT_TENANT,
    Enqueued,
    Fail,
    Finish,
    FinishResult,
    HistoryRow,
    JobRecord,
    LeasedJob,
    NewJob,
    Progress,
    Release,
)
from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime
from DocsToKG.Orchestrator.ledger.reads import Reader
from DocsToKG.Orchestrator.ledger.transaction import Transaction
from DocsToKG.Orchestrator.ledger.writer import GroupWriter
from DocsToKG.Orchestrator.signal.base import Signal
from DocsToKG.Orchestrator.signal.local import LocalSignal

_ENQUEUE_CHUNK = 2000
_PAGE_CAP = 10_000


class SqliteLedger:
    """Opens (and makes) the file at `path`. Close it, or use it in a `with`; what was submitted is committed first.

    `wal` None leaves the journal mode as it is, for those who only look.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock | None = None,
        wal: bool | None = True,
        busy_timeout_s: float = 30.0,
        linger_s: float = 0.002,
        poll_s: float = 0.25,
        signal: Signal | None = None,
    ) -> None:
        self.path = Path(path)
        self._time = LedgerTime(clock or SystemClock())
        self._signal = signal or LocalSignal()
        self._poll_s = poll_s
        schema.prepare(self.path, wal=wal, busy_timeout_s=busy_timeout_s)
        sql = schema.queries()
        connection = schema.open_connection(self.path, busy_timeout_s=busy_timeout_s)
        self._reader = Reader(self.path, connection, sql)
        self._writer = GroupWriter(
            self.path,
            sql=sql,
            ledger_time=self._time,
            signal=self._signal,
            busy_timeout_s=busy_timeout_s,
            linger_s=linger_s,
        )
        # A ledger that is dropped unclosed, or open at exit, still commits what it was given.
        self._close = weakref.finalize(self, _close_parts, self._writer, self._reader)

    def __enter__(self) -> SqliteLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._close()

    def enqueue_many(self, jobs: Sequence[NewJob], *, actor: str = "producer") -> list[Enqueued]:
        """One row per artifact; a known one changes nothing. All jobs are checked before the first is written."""
        checked = [checks.checked_job(job) for job in jobs]
        answers: list[Enqueued] = []
        for start in range(0, len(checked), _ENQUEUE_CHUNK):
            chunk = checked[start : start + _ENQUEUE_CHUNK]
            answers += self._writer.call(partial(changes.enqueue, jobs=chunk, actor=actor), durable=True)
        return answers

    def lease(
        self, worker_id: str, limit: int, ttl_s: float, *, job_type: str | None = None, begun: bool = False
    ) -> list[LeasedJob]:
        """Take up to `limit` jobs that are due, by priority and age, for `ttl_s`; nothing while paused.

        A lease that ran out counts an attempt, except where a worker takes back a job it had not begun. `begun`
        says that work starts with the lease; otherwise the first progress does.
        """
        worker, ttl_ms = checks.worker_name(worker_id), checks.lease_ms(ttl_s)
        return self._writer.call(lambda tx: changes.lease(tx, worker, limit, ttl_ms, job_type, begun))

    def heartbeat(self, worker_id: str, ttl_s: float) -> set[str]:
        """Extend the worker's live leases; the lease ids still held. What is missing there is lost: drop that work."""
        ttl_ms = checks.lease_ms(ttl_s)
        return self._writer.call(lambda tx: changes.heartbeat(tx, worker_id, ttl_ms))

    def submit_finish(self, finish: Finish) -> Future[FinishResult]:
        """End a job. The same end by the same lease again is `already`; a lost lease raises `LeaseLost`.

        A lease that ran out while nobody else took the job is still good: the fence proves there was no other owner.
        """
        return self._writer.submit(_finishing(finish), patient=True)

    def submit_finishes(self, finishes: Sequence[Finish]) -> Future[list[FinishResult | LeaseLost]]:
        """End many jobs at once, each fenced by itself; a lost lease is an answer in its place."""
        orders = [checks.finish_values(finish) for finish in finishes]
        return self._writer.submit(partial(changes.finish_many, orders=orders), patient=True)

    def submit_fail(self, fail: Fail) -> Future[JobState]:
        """Count a failed try; the state it led to."""
        return self._writer.submit(_failing(fail), patient=True)

    def submit_release(self, release: Release) -> Future[JobState]:
        """Give a lease back without judging the job."""
        return self._writer.submit(_releasing(release), patient=True)

    def submit_progress(self, progress: Progress) -> Future[None]:
        """Say where a running job is. Wait for the first of a lease before work that could end the process."""
        return self._writer.submit(partial(changes.progress, order=progress), patient=True)

    def finish(self, finish: Finish) -> FinishResult:
        return self._writer.call(_finishing(finish))

    def fail(self, fail: Fail) -> JobState:
        return self._writer.call(_failing(fail))

    def release(self, release: Release) -> JobState:
        return self._writer.call(_releasing(release))

    def progress(self, progress: Progress) -> None:
        self._writer.call(partial(changes.progress, order=progress))

    def release_worker(self, worker_id: str) -> int:
        """Free all leases of a worker known to be dead; how many there were. Jobs it had begun count an attempt."""
        return self._writer.call(lambda tx: changes.release_worker(tx, worker_id))

    def retry_failed(
        self,
        *,
        job_ids: Collection[int] | None = None,
        job_type: str | None = None,
        states: Collection[JobState] = (JobState.ERROR,),
        actor: str = "operator",
        reason: str | None = None,
    ) -> int:
        """Queue ended jobs again with their attempts reset; how many there were."""
        if not TERMINAL.issuperset(states):
            raise BadJob(f"only ended jobs can be retried: {', '.join(sorted(TERMINAL))}")
        note = checks.short_error(reason)
        return sum(
            self._writer.call(partial(changes.retry, found=page, actor=actor, reason=note), durable=True)
            for page in self._reader.ended_jobs(states, job_type, job_ids)
        )

    def cancel(self, job_id: int, reason: str, *, actor: str = "operator", ticket: str | None = None) -> bool:
        """Call a job off; False when it was over already. Its worker learns at the next heartbeat."""
        note = checks.short_error(reason.strip())
        if not note:
            raise BadJob("a cancel needs a reason")
        return self._writer.call(lambda tx: changes.cancel(tx, job_id, note, actor, ticket), durable=True)

    def pause(self, *, actor: str = "operator", reason: str | None = None) -> None:
        """Stop leasing, everywhere, and nothing else."""
        self._set_paused(True, actor, reason)

    def resume(self, *, actor: str = "operator", reason: str | None = None) -> None:
        self._set_paused(False, actor, reason)

    def _set_paused(self, paused: bool, actor: str, reason: str | None) -> None:
        note = checks.short_error(reason)
        self._writer.call(lambda tx: changes.set_paused(tx, paused, actor, note), durable=True)

    def is_paused(self) -> bool:
        return self._reader.is_paused()

    def job(self, job_id: int) -> JobRecord:
        found = self._reader.jobs("WHERE id = :job_id", job_id=job_id)
        if not found:
            raise UnknownJob(job_id)
        return found[0]

    def find(
        self, artifact_id: str, *, tenant: str = DEFAULT_TENANT, job_type: str = DEFAULT_JOB_TYPE
    ) -> JobRecord | None:
        condition = "WHERE tenant = :tenant AND job_type = :job_type AND artifact_id = :artifact AND replay_of IS NULL"
        found = self._reader.jobs(condition, tenant=tenant, job_type=job_type, artifact=artifact_id)
        return found[0] if found else None

    def list_jobs(self, state: JobState | None = None, limit: int = 100, after_id: int = 0) -> list[JobRecord]:
        """Jobs by id, after `after_id`: hand in the last id of a page to get the next. A page has at most 10,000."""
        chosen = "" if state is None else "state = :state AND "
        values = {} if state is None else {"state": JobState(state).value}
        return self._reader.jobs(
            f"WHERE {chosen}id > :after_id ORDER BY id LIMIT :limit",
            after_id=after_id,
            limit=min(max(0, limit), _PAGE_CAP),
            **values,
        )

    def stats(self) -> dict[str, int]:
        """How many jobs are in each state; `leased` is another word for `in_progress`."""
        return self._reader.stats()

    def next_eligible_at(self) -> float | None:
        """When the next queued or staged job may be leased, by this process's clock; None when there is none."""
        due, waiting, _ = self._reader.next_moments()
        if due:
            return self._time.local_s(self._time.now_ms())
        return None if waiting is None else self._time.local_s(waiting)

    def history(self, job_id: int) -> list[HistoryRow]:
        return self._reader.history(job_id)

    def verify_history(self) -> bool:
        return self._reader.verify_history()

    def wake(self) -> None:
        """Call back everyone who waits for work, for example to stop."""
        self._signal.notify("")

    def wait_for_work(self, timeout_s: float, *, unless: Callable[[], bool] = lambda: False) -> bool:
        """Wait until a lease may find something: True then; False when time is over, or `unless` is found true."""
        left = timeout_s
        while not unless():
            mark = self._signal.mark()
            if (soonest := self._seconds_to_work()) <= 0:
                return True
            if left <= 0:
                return False
            step = min(left, self._poll_s, soonest)
            self._signal.wait(step, since=mark)
            left -= step
        return False

    def _seconds_to_work(self) -> float:
        if self._reader.is_paused():
            return float("inf")
        due, waiting, lease_until = self._reader.next_moments()
        moments = [at for at in (waiting, lease_until) if at is not None]
        return 0.0 if due else min((at - self._time.now_ms() for at in moments), default=float("inf")) / 1000


def _finishing(finish: Finish) -> Callable[[Transaction], FinishResult]:
    return partial(changes.finish, values=checks.finish_values(finish))


def _failing(fail: Fail) -> Callable[[Transaction], JobState]:
    checks.result_text(fail.result)
    return partial(changes.fail, order=fail, delay_ms=checks.delay_ms(fail.delay_s))


def _releasing(release: Release) -> Callable[[Transaction], JobState]:
    return partial(changes.release, order=release, delay_ms=checks.release_delay_ms(release.delay_s))


def _close_parts(writer: GroupWriter, reader: Reader) -> None:
    writer.close()
    reader.close()
