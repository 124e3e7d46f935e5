"""Group commit on PostgreSQL: what becomes one transaction, and what is done after it and beside it.

Knows which changes can be made by one call of the database: ends and leases, which are nearly all. Promises those of
`group_commit` and `connection`, and: a change that is refused or breaks does not undo its neighbours.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg_pool import PoolTimeout

from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.ledger import control
from DocsToKG.Orchestrator.ledger.base import LeasedJob
from DocsToKG.Orchestrator.ledger.checks import End
from DocsToKG.Orchestrator.ledger.drivers.postgres import complete, dependencies, maintenance
from DocsToKG.Orchestrator.ledger.drivers.postgres.complete import Order
from DocsToKG.Orchestrator.ledger.drivers.postgres.connection import Apart, Governed, Transactor
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, Database, is_gone
from DocsToKG.Orchestrator.ledger.drivers.postgres.leasing import LeaseRequest, Turns
from DocsToKG.Orchestrator.ledger.drivers.postgres.ledger_time import DatabaseTime
from DocsToKG.Orchestrator.ledger.drivers.postgres.policy_leasing import GovernedLeasing
from DocsToKG.Orchestrator.ledger.drivers.postgres.transaction import Transaction
from DocsToKG.Orchestrator.ledger.drivers.postgres.work import Done, Work, work
from DocsToKG.Orchestrator.ledger.group_commit import Change, Gathering, Refused, settle
from DocsToKG.Orchestrator.ledger.policy_leasing import Governor
from DocsToKG.Orchestrator.notifications.base import Signal

T = TypeVar("T")
_LOCK = 0x446B4C32
UPKEEP_S = 2.0
_DAY_MS = 24 * 3600 * 1000
_APART_S = 1.0  # what one call does not do is likely more than once


@dataclass(slots=True)
class _Change(Change):
    """Orders of a worker, a wish for leases, both at once, or anything else."""

    orders: Sequence[Order] | None = None
    request: LeaseRequest | None = None
    make: Callable[[Transaction], Any] | None = None


class GroupWriter(Gathering[_Change]):
    """Makes the changes of one process."""

    def __init__(
        self,
        database: Database,
        *,
        sql: Mapping[str, str],
        ledger_time: DatabaseTime,
        signal: Signal,
        linger_s: float,
        retain_history_days: int | None,
        governor: Governor | None = None,
        upkeep_s: float = UPKEEP_S,
    ) -> None:
        super().__init__(database.name, linger_s=linger_s, direct=True)
        self._database = database
        self._sql = sql
        self._time = ledger_time
        self._signal = signal
        self._retain_days = retain_history_days
        self._turns = Turns()
        self._leasing = GovernedLeasing(self._turns, governor)
        self._is_governed = False
        self._apart_until = 0.0
        self._transactor = Transactor(database, sql=sql, ledger_time=ledger_time)
        self._upkeep_s = upkeep_s
        self._kept_up_at = -upkeep_s
        self._upkeep: threading.Thread | None = None
        self._months_of = -1  # the day on which they were last looked at

    def settle(self, orders: Sequence[Order], *, patient: bool = True) -> Future[Any]:
        """Have orders written in the next transaction; a list with an answer for each."""
        return self._promised(_Change(patient, orders=orders))

    def lease(self, request: LeaseRequest) -> list[LeasedJob]:
        return list(self._wait(_Change(False, request=request)))

    def settle_and_lease(self, orders: Sequence[Order], request: LeaseRequest) -> tuple[list[Any], list[LeasedJob]]:
        """Both in the next transaction: the answers to the orders, and the jobs."""
        answers, jobs = self._wait(_Change(False, orders=orders, request=request))
        return answers, jobs

    def call(self, make: Callable[[Transaction], T]) -> T:
        """Have `make` run in the next transaction, and wait for the commit. It may run more than once."""
        answer: T = self._wait(_Change(False, make=control.in_scope(make)))
        return answer

    def wait_for(self, orders: Sequence[Order]) -> Any:
        return self._wait(_Change(False, orders=orders))

    def _begin(self) -> None:
        """A connection is made when it is needed, and made again when it was lost."""

    def _end(self) -> None:
        if self._upkeep is not None:
            self._upkeep.join(UPKEEP_S)
        if self._transactor.is_connected:
            with contextlib.suppress(psycopg.Error, LedgerError):
                self._kept_up(self._transactor.connection)
        self._transactor.drop()

    def _commit(self, batch: Sequence[_Change]) -> None:
        try:
            answers, lanes = self._transactor.with_patience(lambda: self._transact(batch), undone=self._leasing.reset)
        except Exception as error:
            # One change broke the transaction. Alone, each of the others still gets its own.
            if len(batch) > 1 and not is_gone(error) and not isinstance(error, LedgerError):
                for change in batch:
                    self._commit([change])
                return
            ours = self._database.translated(error) if isinstance(error, psycopg.Error) else error
            answers, lanes = [Refused(ours)] * len(batch), set()
        if lanes:
            self._turns.forget()
        for lane in sorted(lanes):
            self._signal.notify(lane)
        settle(batch, answers)
        self._keep_up()

    def _transact(self, batch: Sequence[_Change]) -> tuple[list[Any], set[str]]:
        done = self._worked(as_work(batch))
        if done is not None:
            answers, lanes, more = _shared_out(batch, done.ended, done.leased), done.lanes, done.turned
        else:
            with self._transactor.begun() as begun:
                answers = self._answers(begun.tx, batch)
                turned = self._transactor.commit(begun)
            lanes, more = begun.tx.lanes, turned or begun.unsettled
        if more:
            lanes |= self._follow()
        return answers, lanes

    def _worked(self, wanted: Work | None) -> Done | None:
        """Changes made by one call of the database; None where they need more than one."""
        rules = self._leasing.free_rules
        if wanted is None or (self._is_governed and (rules is None or wanted.ends)):
            return None
        if wanted.requests and time.monotonic() < self._apart_until:
            return None
        try:
            return work(self._transactor, self._turns, self._time, wanted, rules)
        except Governed:
            self._is_governed = True  # for good: the number of the rules only grows
            return None
        except Apart:
            self._apart_until = time.monotonic() + _APART_S
            return None

    def _answers(self, tx: Transaction, batch: Sequence[_Change]) -> list[Any]:
        """What workers said comes first, so that a job given back may be leased in the same transaction."""
        answers: dict[int, Any] = {}
        told = [(place, change.orders) for place, change in enumerate(batch) if change.orders is not None]
        settled = iter(complete.settle(tx, [order for _, orders in told for order in orders]))
        for place, orders in told:
            answers[place] = [next(settled) for _ in orders]
        for place, change in enumerate(batch):
            if change.make is not None:
                answers[place] = _made(change.make, tx)
        asked = [(place, change.request) for place, change in enumerate(batch) if change.request is not None]
        leased = self._leasing.lease(tx, [request for _, request in asked])
        for (place, _), jobs in zip(asked, leased, strict=True):
            answers[place] = (answers[place], jobs) if place in answers else jobs
        return [answers[place] for place in range(len(batch))]

    def _follow(self) -> set[str]:
        """Move on the jobs that waited; what is not done here is done by whoever writes next."""
        lanes: set[str] = set()
        try:
            with self._transactor.begun() as begun:
                self._transactor.hold(_LOCK)
                more = dependencies.follow(begun.tx)
                self._transactor.commit(begun)
            lanes = begun.tx.lanes
        except (psycopg.Error, LedgerError):  # what came before is committed, and must not be called refused
            self._transactor.drop()
            more = True
        if more:
            self._put_again(_Change(True, make=lambda tx: None))
        return lanes

    def _keep_up(self) -> None:
        """Now and then, after a commit, while there is something to keep up."""
        now, today = time.monotonic(), self._time.now_ms() // _DAY_MS
        if now - self._kept_up_at < self._upkeep_s and today == self._months_of:
            return
        if not self._transactor.is_connected or (self._upkeep is not None and self._upkeep.is_alive()):
            return
        self._kept_up_at = now
        if today != self._months_of:
            self._keep_months(today)
        # Beside the work: whoever has just committed would have to wait for it, and so would all who come after.
        self._upkeep = threading.Thread(target=self._kept_up_beside, name="ledger-upkeep", daemon=True)
        self._upkeep.start()

    def _keep_months(self, today: int) -> None:
        """Make and remove months of the history."""
        try:
            connection = self._transactor.connection
            maintenance.keep_months(connection, self._database, self._time.now_ms(), self._retain_days)
            self._months_of = today
        except (psycopg.Error, LedgerError):  # tried again next time
            self._transactor.drop()

    def _kept_up_beside(self) -> None:
        """What fails is done next time."""
        failures = (psycopg.Error, PoolTimeout, LedgerError)
        with contextlib.suppress(*failures), self._database.lent(UPKEEP_S) as connection:
            self._kept_up(connection)

    def _kept_up(self, connection: Connection) -> None:
        """Fold the counts, write the time."""
        maintenance.keep_up(connection, self._sql, self._time.now_ms())


def as_work(batch: Sequence[_Change]) -> Work | None:
    """The changes as one call of the database; None where they are not all ends and leases of one kind."""
    ends: list[End] = []
    requests: list[LeaseRequest] = []
    for change in batch:
        if change.make is not None:
            return None
        if change.request is not None:
            if change.request.tenants is not None and change.request.tenant is None:
                return None
            requests.append(change.request)
        for order in change.orders or ():
            if not isinstance(order, End):
                return None
            ends.append(order)
    if len({end.job_id for end in ends}) < len(ends):
        return None
    if len({(request.kind, request.tenant) for request in requests}) > 1:
        return None
    return Work(ends, requests)


def _shared_out(batch: Sequence[_Change], ended: Sequence[Any], leased: Sequence[Any]) -> list[Any]:
    ends, leases = iter(ended), iter(leased)
    answers: list[Any] = []
    for change in batch:
        told = None if change.orders is None else [next(ends) for _ in change.orders]
        jobs = None if change.request is None else next(leases)
        answers.append((told, jobs) if told is not None and jobs is not None else told if jobs is None else jobs)
    return answers


def _made(make: Callable[[Transaction], Any], tx: Transaction) -> Any:
    """The change's result. A refusal comes before any write, so the transaction goes on without it."""
    try:
        return make(tx)
    except LedgerError as error:
        return Refused(error)
