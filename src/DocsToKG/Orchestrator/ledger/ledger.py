"""The ledger, whatever database holds it.

Knows which change or read answers which call. Does not know threads of work, HTTP or papers. Promises those of `base`,
and: counting does not scan; time never steps back.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, Unpack

from DocsToKG.Orchestrator.errors import BadJob, LeaseLost, UnknownJob
from DocsToKG.Orchestrator.jobs import eligibility
from DocsToKG.Orchestrator.jobs.eligibility import Why
from DocsToKG.Orchestrator.jobs.states import TERMINAL, JobState
from DocsToKG.Orchestrator.ledger import changes, checks, control, dependencies, explain
from DocsToKG.Orchestrator.ledger.base import (
    DEFAULT_JOB_TYPE,
    DEFAULT_TENANT,
    Callback,
    Enqueued,
    Fail,
    Finish,
    FinishResult,
    HistoryRow,
    JobFilter,
    JobRecord,
    LeasedJob,
    LeaseTerms,
    NewJob,
    Progress,
    Release,
    WorkerEnd,
)
from DocsToKG.Orchestrator.ledger.checks import storable
from DocsToKG.Orchestrator.ledger.complete import failing, progressing, releasing
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.deduplication import refuse_missing_needs
from DocsToKG.Orchestrator.ledger.driver import Driver
from DocsToKG.Orchestrator.ledger.enqueue import enqueue
from DocsToKG.Orchestrator.ledger.filters import ANY, condition
from DocsToKG.Orchestrator.ledger.leasing import LeaseRequest
from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime
from DocsToKG.Orchestrator.ledger.policy_leasing import Governor
from DocsToKG.Orchestrator.ledger.reads import Reader
from DocsToKG.Orchestrator.ledger.transaction import Transaction
from DocsToKG.Orchestrator.ledger.waiting import Waiting
from DocsToKG.Orchestrator.ledger.writer import GroupWriter
from DocsToKG.Orchestrator.notifications.base import Signal

T = TypeVar("T")
_ENQUEUE_CHUNK = 2000
_PAGE_CAP = 10_000
_Said = tuple[str, str, str | None]  # why, who, ticket


class DatabaseLedger:
    """A ledger over a driver. Close it, or use it in a `with`; what was submitted is committed first.

    Beside `path` the workers of this machine show that they live (`control.workers.liveness`). `poll_s` is how often it
    is looked for work that no signal told of.
    """

    def __init__(
        self,
        driver: Driver,
        *,
        path: Path,
        ledger_time: LedgerTime,
        signal: Signal,
        linger_s: float,
        lively_linger_s: float | None,
        poll_s: float,
        database_ms: int = 0,
    ) -> None:
        self.path = path
        self._driver = driver
        self._time = ledger_time
        self._signal = signal
        self._reader = Reader(driver)
        # So that reading, too, knows of a clock that was set back.
        self._time.now_ms(self._reader.time_mark(), database_ms)
        governor = Governor()
        self._waiting = Waiting(driver, ledger_time=ledger_time, signal=signal, poll_s=poll_s, governor=governor)
        self._writer = GroupWriter(
            driver, signal=signal, governor=governor, linger_s=linger_s, lively_linger_s=lively_linger_s
        )
        # A ledger that is dropped unclosed, or open at exit, still commits what it was given. A finalizer must not keep
        # the ledger itself alive, so it is given the parts.
        self._close = weakref.finalize(self, _close_parts, self._writer, driver, signal)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """Where the ledger is, without what is secret."""
        return self._driver.name

    @property
    def dialect(self) -> str:
        """Which SQL it speaks, as the folders of `sql/` are called."""
        return self._driver.dialect

    @property
    def one_writer(self) -> bool:
        return self._driver.one_writer

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
        refuse_missing_needs(checked, has=self._reader.by_id, named=self._reader.named)
        answers: dict[int, Enqueued] = {}
        for start in range(0, len(order), _ENQUEUE_CHUNK):
            places = order[start : start + _ENQUEUE_CHUNK]
            write = partial(enqueue, jobs=[checked[place] for place in places], actor=storable(actor))
            answers.update(zip(places, self._writer.call(write, durable=True), strict=True))
        return [answers[place] for place in range(len(checked))]

    def lease(self, worker_id: str, limit: int, ttl_s: float, **terms: Unpack[LeaseTerms]) -> list[LeasedJob]:
        """Take up to `limit` jobs that are due, by priority, host and age, for `ttl_s`; nothing while paused.

        A lease that ran out costs no attempt. `begun` says that work starts with the lease; otherwise the first
        progress does. `tenants` narrows it to theirs.
        """
        request = _request(worker_id, limit, ttl_s, **terms)
        return self._writer.lease(request) if limit > 0 else []

    def finish_and_lease(
        self, finishes: Sequence[Finish], worker_id: str, limit: int, ttl_s: float, **terms: Unpack[LeaseTerms]
    ) -> tuple[list[FinishResult | LeaseLost], list[LeasedJob]]:
        """End jobs and lease the next ones, in one transaction. A lost lease is an answer in its place."""
        ends = [checks.checked_end(finish) for finish in finishes]
        request = _request(worker_id, limit, ttl_s, **terms)
        return self._writer.complete_and_lease(ends, request if limit > 0 else None)

    def heartbeat(self, worker_id: str, ttl_s: float) -> set[str]:
        """Extend the worker's live leases; the lease ids still held. What is missing there is lost: drop that work."""
        ttl_ms = checks.lease_ms(ttl_s)
        return self._writer.call(lambda tx: changes.heartbeat(tx, worker_id, ttl_ms))

    def submit_finish(self, finish: Finish) -> Future[FinishResult]:
        """End a job. The same end by the same lease again is `already`; a lost lease raises `LeaseLost`.

        A lease that ran out while nobody else took the job is still good: the fence proves there was no other owner.
        """
        return self._writer.submit_one(checks.checked_end(finish))

    def submit_finishes(
        self, finishes: Sequence[Finish], *, patient: bool = True
    ) -> Future[list[FinishResult | LeaseLost]]:
        """End many jobs at once, each fenced by itself; a lost lease is an answer in its place."""
        return self._writer.submit([checks.checked_end(finish) for finish in finishes], patient=patient)

    def submit_fail(self, fail: Fail) -> Future[JobState]:
        """Count a failed try; the state it led to."""
        return self._writer.submit_one(failing(fail))

    def submit_release(self, release: Release) -> Future[JobState]:
        """Give a lease back without judging the job."""
        return self._writer.submit_one(releasing(release))

    def submit_progress(self, progress: Progress) -> Future[None]:
        """Say where a running job is. Wait for the first of a lease before work that could end the process."""
        return self._writer.submit_one(progressing(progress))

    def tell_progress(self, progress: Progress, told: Callback) -> None:
        self._writer.tell(progressing(progress), told)

    def finish(self, finish: Finish) -> FinishResult:
        answer: FinishResult = self._writer.wait_for(checks.checked_end(finish))
        return answer

    def fail(self, fail: Fail) -> JobState:
        return JobState(self._writer.wait_for(failing(fail)))

    def release(self, release: Release) -> JobState:
        return JobState(self._writer.wait_for(releasing(release)))

    def progress(self, progress: Progress) -> None:
        self._writer.wait_for(progressing(progress))

    def lease_suspect(
        self, worker_id: str, ttl_s: float, *, job_type: str | None = None, begun: bool = False
    ) -> list[LeasedJob]:
        """One suspect that is due, for a process that works on nothing else meanwhile."""
        return self._writer.suspect(
            _request(worker_id, 1, ttl_s, job_type=job_type, begun=begun), changes.lease_suspect
        )

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
        write = partial(changes.retry, actor=storable(actor), reason=checks.short_error(reason))
        return sum(
            self._writer.call(partial(write, found=page), durable=True)
            for page in self._reader.ended_jobs(states, job_type, job_ids)
        )

    def cancel(self, job_id: int, reason: str, *, actor: str = "operator", ticket: str | None = None) -> bool:
        """Call a job off; False when it was over already. Its worker learns at the next heartbeat."""
        if abs(job_id) >= 2**63:
            raise UnknownJob(job_id)
        said = _said(reason, actor, ticket)
        return self._writer.call(lambda tx: changes.cancel(tx, job_id, *said), durable=True)

    def cancel_many(self, wanted: JobFilter, reason: str, *, actor: str = "operator", ticket: str | None = None) -> int:
        """Call off every job that fits and is not over; how many there were. What comes in meanwhile may be missed."""
        words, said = condition(wanted, self._driver.filters), _said(reason, actor, ticket)
        return sum(
            self._writer.call(partial(_cancel_page, found=page, wanted=words, said=said), durable=True)
            for page in self._reader.open_jobs(wanted)
        )

    def pause(self, *, actor: str = "operator", reason: str | None = None) -> None:
        """Stop leasing, everywhere, and nothing else."""
        self._set_paused(True, actor, reason)

    def resume(self, *, actor: str = "operator", reason: str | None = None) -> None:
        self._set_paused(False, actor, reason)

    def _set_paused(self, paused: bool, actor: str, reason: str | None) -> None:
        note = checks.short_error(reason)
        self._writer.call(lambda tx: changes.set_paused(tx, paused, storable(actor), note), durable=True)

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
        return self._reader.page(state, wanted or ANY, after_id, min(max(0, limit), _PAGE_CAP))

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
        return explain.why(found[0], self._reader, self._time, self.read) if found else eligibility.unknown(job_id)

    def write(self, make: Callable[[ControlTx], T]) -> T:
        """Change what governs the queue: `make` is run in one durable transaction, again where that came to nothing."""
        return self._writer.call(lambda tx: control.make_change(tx, make), durable=True)

    def read(self, make: Callable[[ControlTx], T]) -> T:
        """Read what governs the queue, on one snapshot."""
        return self._driver.read(make, self._time.now_ms())

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


def _request(worker_id: str, limit: int, ttl_s: float, **terms: Unpack[LeaseTerms]) -> LeaseRequest:
    tenants, ttl_ms = terms.get("tenants"), checks.lease_ms(ttl_s)
    only = None if tenants is None else frozenset(tenants)
    job_type, begun = terms.get("job_type"), terms.get("begun", False)
    return LeaseRequest(checks.worker_name(worker_id), limit, ttl_ms, job_type, begun, only)


def _said(reason: str, actor: str, ticket: str | None) -> _Said:
    return checks.cancel_note(reason), storable(actor), None if ticket is None else storable(ticket)


def _cancel_page(tx: Transaction, found: Sequence[int], wanted: changes.Wanted, said: _Said) -> int:
    return changes.cancel_page(tx, found, wanted, *said)


def _close_parts(writer: GroupWriter, driver: Driver, signal: Signal) -> None:
    writer.close()
    driver.close()
    signal.close()
