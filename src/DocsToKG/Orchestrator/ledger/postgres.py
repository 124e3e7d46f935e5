"""The ledger in a PostgreSQL database, for all threads, processes and machines that share it.

Knows which change or read answers which call. Does not know threads of work, HTTP or papers. Promises those of `base`,
and: what was answered survives whatever the database survives; time is the database's and never steps back; counting
does not scan; a lost connection is waited for, and the answer to a commit that got lost is found out.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.errors import BadJob, LeaseLost, UnknownJob
from DocsToKG.Orchestrator.jobs import eligibility
from DocsToKG.Orchestrator.jobs.eligibility import Why
from DocsToKG.Orchestrator.jobs.states import TERMINAL, JobState
from DocsToKG.Orchestrator.ledger import any_engine, checks, control, dependencies, explain
from DocsToKG.Orchestrator.ledger.base import (
    DEFAULT_JOB_TYPE,
    DEFAULT_TENANT,
    Enqueued,
    Fail,
    Finish,
    FinishResult,
    HistoryRow,
    JobFilter,
    JobRecord,
    LeasedJob,
    NewJob,
    Progress,
    Release,
    Told,
    WorkerEnd,
)
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.deduplication import refuse_missing_needs
from DocsToKG.Orchestrator.ledger.drivers.postgres import changes, schema
from DocsToKG.Orchestrator.ledger.drivers.postgres.complete import ending, failing, plain, progressing, releasing
from DocsToKG.Orchestrator.ledger.drivers.postgres.connection import only
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database, queries
from DocsToKG.Orchestrator.ledger.drivers.postgres.enqueue import enqueue
from DocsToKG.Orchestrator.ledger.drivers.postgres.leasing import LeaseRequest
from DocsToKG.Orchestrator.ledger.drivers.postgres.ledger_time import ClockTime, DatabaseTime
from DocsToKG.Orchestrator.ledger.drivers.postgres.reads import Reader, condition
from DocsToKG.Orchestrator.ledger.drivers.postgres.waiting import Waiting
from DocsToKG.Orchestrator.ledger.drivers.postgres.writer import UPKEEP_S, GroupWriter
from DocsToKG.Orchestrator.ledger.policy_leasing import Governor
from DocsToKG.Orchestrator.notifications.base import Signal
from DocsToKG.Orchestrator.notifications.local import LocalSignal

T = TypeVar("T")
_ENQUEUE_CHUNK = 2000
_PAGE_CAP = 10_000


class PostgresLedger:
    """Opens (and makes) the ledger at `url`. Close it, or use it in a `with`; what was submitted is committed first.

    `schema_name` is where its tables lie. `patience_s` is how long a database that is away is waited for. `poll_s` is
    how often the ledger is asked for work that no signal told of. `clock` is this machine's, for moments that are
    shown; with `database_time` False it is the ledger's too, for tests. Months of history older than
    `retain_history_days` are removed, where given; that, and folding the counts, happens after a commit, `upkeep_s`
    after the last time. The `signal` is closed with the ledger. Beside `local_path` the workers of this machine show
    that they live (`control.worker_liveness`).
    """

    def __init__(
        self,
        url: str,
        *,
        schema_name: str = "orchestrator",
        clock: Clock | None = None,
        database_time: bool = True,
        patience_s: float = 30.0,
        linger_s: float = 0.002,
        poll_s: float = 1.0,
        signal: Signal | None = None,
        retain_history_days: int | None = None,
        upkeep_s: float = UPKEEP_S,
        local_path: str | Path | None = None,
    ) -> None:
        self.path = Path(local_path or "state/workers")
        self._database = Database(url, schema=schema_name, patience_s=patience_s)
        self._time = (DatabaseTime if database_time else ClockTime)(clock or SystemClock())
        self._signal = signal or LocalSignal()
        now_ms = schema.prepare(self._database)
        sql = queries(self._database)
        self._reader = Reader(self._database, sql)
        self._time.now_ms(self._reader.time_mark(), now_ms)
        governor = Governor()
        self._waiting = Waiting(
            reader=self._reader, ledger_time=self._time, signal=self._signal, poll_s=poll_s, held=governor
        )
        self._writer = GroupWriter(
            self._database,
            sql=sql,
            ledger_time=self._time,
            signal=self._signal,
            linger_s=linger_s,
            retain_history_days=retain_history_days,
            governor=governor,
            upkeep_s=upkeep_s,
        )
        # A finalizer must not keep the ledger itself alive, so it is given the parts.
        self._close = weakref.finalize(self, _close_parts, self._writer, self._database, self._signal)

    def __enter__(self) -> PostgresLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """Where the ledger is, without what is secret."""
        return self._database.name

    @property
    def signal(self) -> Signal:
        """How this process hears of work; its counters tell how well."""
        return self._signal

    @property
    def pending_changes(self) -> int:
        """Changes of this process that were submitted and wait for the writer, or are in its open transaction."""
        return self._writer.pending

    def close(self) -> None:
        self._close()

    def enqueue_many(self, jobs: Sequence[NewJob], *, actor: str = "producer") -> list[Enqueued]:
        """One row per artifact; a known one changes nothing. All jobs are checked before the first is written."""
        checked = [checks.checked_job(job) for job in jobs]
        order = dependencies.needs_first(checked)
        refuse_missing_needs(checked, has=self._reader.has, named=self._reader.named)
        answers: dict[int, Enqueued] = {}
        for start in range(0, len(order), _ENQUEUE_CHUNK):
            places = order[start : start + _ENQUEUE_CHUNK]
            write = partial(enqueue, jobs=[checked[place] for place in places], actor=plain(actor) or "producer")
            answers.update(zip(places, self._writer.call(write), strict=True))
        return [answers[place] for place in range(len(checked))]

    def lease(
        self,
        worker_id: str,
        limit: int,
        ttl_s: float,
        *,
        job_type: str | None = None,
        begun: bool = False,
        tenants: Collection[str] | None = None,
    ) -> list[LeasedJob]:
        """Take up to `limit` jobs that are due, by priority, host and age, for `ttl_s`; nothing while paused.

        A lease that ran out costs no attempt. `begun` says that work starts with the lease; otherwise the first
        progress does. `tenants` narrows it to theirs.
        """
        request = _lease_request(worker_id, limit, ttl_s, job_type, begun, tenants)
        return self._writer.lease(request) if limit > 0 else []

    def finish_and_lease(
        self,
        finishes: Sequence[Finish],
        worker_id: str,
        limit: int,
        ttl_s: float,
        *,
        job_type: str | None = None,
        begun: bool = False,
        tenants: Collection[str] | None = None,
    ) -> tuple[list[FinishResult | LeaseLost], list[LeasedJob]]:
        """End jobs and lease the next ones, in one transaction. A lost lease is an answer in its place."""
        ends = [ending(checks.checked_end(finish)) for finish in finishes]
        request = _lease_request(worker_id, limit, ttl_s, job_type, begun, tenants)
        if limit < 1:
            return self._writer.wait_for(ends), []
        return self._writer.settle_and_lease(ends, request)

    def heartbeat(self, worker_id: str, ttl_s: float) -> set[str]:
        """Extend the worker's live leases; the lease ids still held. What is missing there is lost: drop that work."""
        ttl_ms = checks.lease_ms(ttl_s)
        return self._writer.call(lambda tx: changes.heartbeat(tx, worker_id, ttl_ms))

    def submit_finish(self, finish: Finish) -> Future[FinishResult]:
        """End a job. The same end by the same lease again is `already`; a lost lease raises `LeaseLost`.

        A lease that ran out while nobody else took the job is still good: the fence proves there was no other owner.
        """
        return _single(self._writer.settle([ending(checks.checked_end(finish))]))

    def submit_finishes(
        self, finishes: Sequence[Finish], *, patient: bool = True
    ) -> Future[list[FinishResult | LeaseLost]]:
        """End many jobs at once, each fenced by itself; a lost lease is an answer in its place."""
        return self._writer.settle([ending(checks.checked_end(finish)) for finish in finishes], patient=patient)

    def submit_fail(self, fail: Fail) -> Future[JobState]:
        """Count a failed try; the state it led to."""
        return _single(self._writer.settle([failing(fail)]))

    def submit_release(self, release: Release) -> Future[JobState]:
        """Give a lease back without judging the job."""
        return _single(self._writer.settle([releasing(release)]))

    def submit_progress(self, progress: Progress) -> Future[None]:
        """Say where a running job is. Wait for the first of a lease before work that could end the process."""
        return _single(self._writer.settle([progressing(progress)]))

    def tell_progress(self, progress: Progress, told: Told) -> None:
        self.submit_progress(progress).add_done_callback(lambda done: told(done.exception()))

    def finish(self, finish: Finish) -> FinishResult:
        answer: FinishResult = only(self._writer.wait_for([ending(checks.checked_end(finish))]))
        return answer

    def fail(self, fail: Fail) -> JobState:
        return JobState(only(self._writer.wait_for([failing(fail)])))

    def release(self, release: Release) -> JobState:
        return JobState(only(self._writer.wait_for([releasing(release)])))

    def progress(self, progress: Progress) -> None:
        only(self._writer.wait_for([progressing(progress)]))

    def lease_suspect(
        self, worker_id: str, ttl_s: float, *, job_type: str | None = None, begun: bool = False
    ) -> list[LeasedJob]:
        """One suspect that is due, for a process that works on nothing else meanwhile."""
        worker, ttl_ms = checks.worker_name(worker_id), checks.lease_ms(ttl_s)
        return self._writer.call(lambda tx: changes.lease_suspect(tx, worker, ttl_ms, job_type, begun))

    def next_suspect_at(self, job_type: str | None = None) -> float | None:
        """When the next suspect may be leased, by this process's clock; None when there is none."""
        at_ms = self._reader.next_suspect_ms(job_type)
        return None if at_ms is None else self._time.local_s(at_ms)

    def release_worker(
        self, worker_id: str, in_hand: Collection[int] | None = (), *, end: WorkerEnd | None = None
    ) -> int:
        """Free all leases of a worker known to be dead; how many there were. None of them costs an attempt."""
        return self._writer.call(lambda tx: changes.release_worker(tx, worker_id, in_hand, end))

    def retry_failed(
        self,
        *,
        job_ids: Collection[int] | None = None,
        job_type: str | None = None,
        states: Collection[JobState] = (JobState.ERROR,),
        actor: str = "operator",
        reason: str | None = None,
    ) -> int:
        """Queue ended jobs again with their attempts reset; how many there were.

        Jobs that were canceled because one of these had failed wait again; they are not counted.
        """
        if not TERMINAL.issuperset(states):
            raise BadJob(f"only ended jobs can be retried: {', '.join(sorted(TERMINAL))}")
        note = plain(checks.short_error(reason))
        return sum(
            self._writer.call(partial(changes.retry, found=page, actor=plain(actor) or "", reason=note))
            for page in self._reader.ended_jobs(states, job_type, job_ids)
        )

    def cancel(self, job_id: int, reason: str, *, actor: str = "operator", ticket: str | None = None) -> bool:
        """Call a job off; False when it was over already. Its worker learns at the next heartbeat."""
        note = plain(checks.cancel_note(reason)) or ""
        return self._writer.call(lambda tx: changes.cancel(tx, job_id, note, plain(actor) or "", plain(ticket)))

    def cancel_many(self, wanted: JobFilter, reason: str, *, actor: str = "operator", ticket: str | None = None) -> int:
        """Call off every job that fits and is not over; how many there were. What comes in meanwhile may be missed."""
        note = plain(checks.cancel_note(reason)) or ""
        words, values = condition(wanted)
        said: dict[str, Any] = {"reason": note, "actor": plain(actor) or "", "ticket": plain(ticket)}
        write = partial(changes.cancel_page, wanted=words, values=values, **said)
        return sum(self._writer.call(partial(write, found=page)) for page in self._reader.open_jobs(wanted))

    def pause(self, *, actor: str = "operator", reason: str | None = None) -> None:
        """Stop leasing, everywhere, and nothing else."""
        self._set_paused(True, actor, reason)

    def resume(self, *, actor: str = "operator", reason: str | None = None) -> None:
        self._set_paused(False, actor, reason)

    def _set_paused(self, paused: bool, actor: str, reason: str | None) -> None:
        note = plain(checks.short_error(reason))
        self._writer.call(lambda tx: any_engine.set_paused(tx, paused, plain(actor) or "", note))

    def is_paused(self) -> bool:
        return self._reader.is_paused()

    def job(self, job_id: int) -> JobRecord:
        found = self._reader.by_id(job_id)
        if not found:
            raise UnknownJob(job_id)
        return found[0]

    def find(
        self, artifact_id: str, *, tenant: str = DEFAULT_TENANT, job_type: str = DEFAULT_JOB_TYPE
    ) -> JobRecord | None:
        found = self._reader.named(artifact_id, tenant, job_type)
        return found[0] if found else None

    def list_jobs(
        self,
        state: JobState | None = None,
        limit: int = 100,
        after_id: int = 0,
        *,
        wanted: JobFilter | None = None,
    ) -> list[JobRecord]:
        """Jobs by id, after `after_id`: hand in the last id of a page to get the next. A page has at most 10,000."""
        chosen = "" if state is None else "state = %(state)s AND "
        values = {} if state is None else {"state": JobState(state).value}
        words, asked = condition(wanted or JobFilter())
        return self._reader.jobs(
            f"WHERE {chosen}{words} AND id > %(after_id)s ORDER BY id LIMIT %(limit)s",
            after_id=after_id,
            limit=min(max(0, limit), _PAGE_CAP),
            **values,
            **asked,
        )

    def stats(self, job_type: str | None = None) -> dict[str, int]:
        """How many jobs are in each state, of one type where it is named; `leased` is `in_progress` once more."""
        return self._reader.stats(job_type)

    def depths(self) -> dict[tuple[str, str], int]:
        """How many jobs wait, by job type and tenant."""
        return self._reader.depths()

    def next_eligible_at(self, job_type: str | None = None) -> float | None:
        """When the next queued job or suspect (of a type) may be leased, by this process's clock; None when there is
        none."""
        moments = (self._waiting.next_eligible_at(job_type), self.next_suspect_at(job_type))
        return min((at for at in moments if at is not None), default=None)

    def why(self, job_id: int) -> Why:
        """What keeps a job from running, and when it may."""
        found = self._reader.by_id(job_id)
        return explain.why(found[0], self._reader, self._time, self.look) if found else eligibility.unknown(job_id)

    def change(self, make: Callable[[ControlTx], T]) -> T:
        """Change what governs the queue: `make` is run in one transaction, again where it was not committed."""
        return self._writer.call(lambda tx: control.make_change(tx, make))

    def look(self, make: Callable[[ControlTx], T]) -> T:
        """Read what governs the queue, on one snapshot."""
        return self._reader.look(make, self._time.now_ms())

    def history(self, job_id: int) -> list[HistoryRow]:
        return self._reader.history(job_id)

    def verify_history(self) -> bool:
        return self._reader.verify_history()

    def wake(self) -> None:
        """Call back everyone who waits for work, for example to stop."""
        self._signal.notify("")

    def wait_for_work(
        self, timeout_s: float, *, unless: Callable[[], bool] = lambda: False, job_type: str | None = None
    ) -> bool:
        """Wait until a lease may find something: True then; False when time is over, or `unless` is found true.

        With `job_type`, jobs of other types that are due call nobody.
        """
        return self._waiting.for_work(timeout_s, unless, job_type)


def _lease_request(
    worker_id: str, limit: int, ttl_s: float, job_type: str | None, begun: bool, tenants: Collection[str] | None
) -> LeaseRequest:
    only = None if tenants is None else frozenset(tenants)
    return LeaseRequest(checks.worker_name(worker_id), limit, checks.lease_ms(ttl_s), job_type, begun, tenants=only)


def _single(many: Future[Any]) -> Future[Any]:
    """A future for the one answer of a list. Canceling it takes the change back while that is possible."""
    return _Single(many)


class _Single(Future[Any]):
    def __init__(self, many: Future[Any]) -> None:
        super().__init__()
        self._many = many
        many.add_done_callback(self._settle)

    def cancel(self) -> bool:
        return self._many.cancel() and super().cancel()

    def running(self) -> bool:
        return self._many.running()

    def _settle(self, many: Future[Any]) -> None:
        if many.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
            return
        error = many.exception()
        answer = None if error is not None else many.result()[0]
        if error is not None or isinstance(answer, LeaseLost):
            self.set_exception(error or answer)
        else:
            self.set_result(answer)


def _close_parts(writer: GroupWriter, database: Database, signal: Signal) -> None:
    writer.close()
    database.close()
    signal.close()
