"""Group commit on PostgreSQL: one thread that gathers changes into transactions, three round trips each.

Knows connections, their loss and how to find out what became of a commit without an answer. Promises: an answer is
given only after the commit; a change that is refused or breaks does not undo its neighbours; a lost connection, a
deadlock or a lock held too long is tried again as long as the patience lasts. Futures are settled in this thread, so a
callback on one must not wait for the ledger.
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

import psycopg

from DocsToKG.Orchestrator.errors import LeaseLost, LedgerClosed, LedgerError
from DocsToKG.Orchestrator.ledger.base import LeasedJob
from DocsToKG.Orchestrator.ledger.postgres import following, upkeep
from DocsToKG.Orchestrator.ledger.postgres.database import Connection, Database, is_again, is_gone, run
from DocsToKG.Orchestrator.ledger.postgres.leasing import LeaseRequest, Turns
from DocsToKG.Orchestrator.ledger.postgres.ledger_time import DatabaseTime
from DocsToKG.Orchestrator.ledger.postgres.settling import Order, settle
from DocsToKG.Orchestrator.ledger.postgres.transaction import Transaction, heads_of
from DocsToKG.Orchestrator.signal.base import Signal

T = TypeVar("T")
_MAX_BATCH = 512
_TENANTS_KEPT = 16
_LOCK_TIMEOUT_MS = 5000
_IDLE_TIMEOUT_MS = 15_000  # a process that freezes within a transaction must not keep its rows
_LOCK = 0x446B4C32
_UPKEEP_S = 2.0
_TIME_STEP_MS = 1000
_TWICE = "23505"  # another process added the same job meanwhile
_MOST_TWICE = 20
_UNKNOWN_NUMBER = "22023"


@dataclass(slots=True)
class _Change:
    """One change and who waits for it: orders of a worker, a wish for leases, or anything else."""

    patient: bool
    orders: Sequence[Order] | None = None
    request: LeaseRequest | None = None
    make: Callable[[Transaction], Any] | None = None
    future: Future[Any] = field(default_factory=Future)


class _Refused(NamedTuple):
    error: Exception


class GroupWriter:
    """Owns the writing connection. The thread starts with the first change."""

    def __init__(
        self,
        database: Database,
        *,
        sql: Mapping[str, str],
        ledger_time: DatabaseTime,
        signal: Signal,
        linger_s: float,
        retain_history_days: int | None,
    ) -> None:
        self._database = database
        self._sql = sql
        self._time = ledger_time
        self._signal = signal
        self._linger_s = linger_s
        self._retain_days = retain_history_days
        self._turns = Turns()
        self._queue: SimpleQueue[_Change | None] = SimpleQueue()
        self._hurry = threading.Event()  # somebody waits for a change in the queue
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._tenants: dict[str, None] = {}  # those written to lately, the last one last
        self._kept_up_at = -_UPKEEP_S
        self._time_written_ms = 0
        self._closed = False
        self._stopping = False

    def settle(self, orders: Sequence[Order], *, patient: bool = True) -> Future[Any]:
        """Have orders written in the next transaction; a list with an answer for each."""
        return self._submit(_Change(patient, orders=orders))

    def lease(self, request: LeaseRequest) -> list[LeasedJob]:
        return list(self._wait(_Change(False, request=request)))

    def call(self, make: Callable[[Transaction], T]) -> T:
        """Have `make` run in the next transaction, and wait for the commit. It may run more than once."""
        answer: T = self._wait(_Change(False, make=make))
        return answer

    def wait_for(self, orders: Sequence[Order]) -> Any:
        return self._wait(_Change(False, orders=orders))

    def _wait(self, change: _Change) -> Any:
        if threading.current_thread() is self._thread:
            raise LedgerError("a callback of the ledger cannot wait for the ledger; submit the change instead")
        return self._submit(change).result()

    def _submit(self, change: _Change) -> Future[Any]:
        with self._lock:
            if self._closed:
                raise LedgerClosed(f"{self._database.name}: the ledger is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
                self._thread.start()
            self._queue.put(change)
            if not change.patient:
                self._hurry.set()
        return change.future

    def close(self) -> None:
        """Commit what was submitted, then stop. Safe to call twice."""
        with self._lock:
            self._closed = True
            thread = self._thread
            self._queue.put(None)
            self._hurry.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        try:
            while batch := self._collect():
                self._commit(batch)
                self._keep_up()
            self._keep_up(last=True)
        finally:
            self._drop_connection()

    def _collect(self) -> list[_Change]:
        """The next changes: at once when someone waits for one of them, after a short linger otherwise."""
        batch: list[_Change] = []
        if not self._stopping:
            self._take(self._queue.get(), batch)
        if batch and batch[0].patient and self._queue.qsize() < _MAX_BATCH:
            self._hurry.wait(self._linger_s)
        self._hurry.clear()
        with contextlib.suppress(Empty):
            while not self._stopping and len(batch) < _MAX_BATCH:
                self._take(self._queue.get_nowait(), batch)
        return batch if batch or self._stopping else self._collect()

    def _take(self, change: _Change | None, batch: list[_Change]) -> None:
        if change is None:
            self._stopping = True
        elif change.future.set_running_or_notify_cancel():
            batch.append(change)

    def _commit(self, batch: Sequence[_Change]) -> None:
        try:
            answers, lanes = self._with_patience(lambda connection: self._transact(connection, batch))
        except Exception as error:
            # One change broke the transaction. Alone, each of the others still gets its own.
            if len(batch) > 1 and not is_gone(error) and not isinstance(error, LedgerError):
                for change in batch:
                    self._commit([change])
                return
            ours = self._database.translated(error) if isinstance(error, psycopg.Error) else error
            answers, lanes = [_Refused(ours)] * len(batch), set()
        if lanes:
            self._turns.forget()
        for lane in sorted(lanes):
            self._signal.notify(lane)
        for change, answer in zip(batch, answers, strict=True):
            if isinstance(answer, _Refused):
                change.future.set_exception(answer.error)
            else:
                change.future.set_result(answer)

    def _with_patience(self, deed: Callable[[Connection], T]) -> T:
        """Run a transaction, again where nothing of it was committed and another try may do."""
        deadline = time.monotonic() + self._database.patience_s
        pause_s, twice = 0.005, 0
        while True:
            try:
                if self._connection is None:
                    self._connection = self._database.connect()
                return deed(self._connection)
            except psycopg.Error as error:
                self._turns.reset()
                if is_gone(error) or self._connection is None or self._connection.broken:
                    self._drop_connection()
                elif not is_again(error) and (error.sqlstate != _TWICE or twice >= _MOST_TWICE):
                    raise
                twice += error.sqlstate == _TWICE
                if time.monotonic() >= deadline:
                    raise
            time.sleep(pause_s * random.random())
            pause_s = min(1.0, pause_s * 2)

    def _transact(self, connection: Connection, batch: Sequence[_Change]) -> tuple[list[Any], set[str]]:
        with self._begun(connection) as (tx, xid, unsettled):
            answers = self._answers(tx, batch)
            turned = self._finish(connection, tx, xid)
        lanes = tx.lanes
        if turned or unsettled:
            lanes |= self._follow(connection)
        return answers, lanes

    def _answers(self, tx: Transaction, batch: Sequence[_Change]) -> list[Any]:
        """What workers said comes first, so that a job given back may be leased in the same transaction."""
        answers: dict[int, Any] = {}
        told = [(place, change.orders) for place, change in enumerate(batch) if change.orders is not None]
        settled = iter(settle(tx, [order for _, orders in told for order in orders]))
        for place, orders in told:
            answers[place] = [next(settled) for _ in orders]
        for place, change in enumerate(batch):
            if change.make is not None:
                answers[place] = _made(change.make, tx)
        asked = [(place, change.request) for place, change in enumerate(batch) if change.request is not None]
        for _, group in groupby(asked, key=lambda pair: (pair[1].ttl_ms, pair[1].job_type, pair[1].begun)):
            alike = list(group)
            leased = self._turns.lease(tx, [request for _, request in alike])
            answers.update(zip((place for place, _ in alike), leased, strict=True))
        return [answers[place] for place in range(len(batch))]

    @contextlib.contextmanager
    def _begun(self, connection: Connection) -> Any:
        """An open transaction that knows the time and holds the chains it will likely need: one round trip."""
        values = {
            "tenants": list(self._tenants),
            "lock_timeout": str(_LOCK_TIMEOUT_MS),
            "idle_timeout": str(_IDLE_TIMEOUT_MS),
        }
        with contextlib.ExitStack() as undo:
            undo.callback(_roll_back, connection)
            with connection.pipeline():
                connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                [row] = _execute(connection, self._sql["begin"], values).fetchall()
            database_ms, stored_ms, unsettled, xid, heads = row
            now = self._time.now_ms(stored_ms, database_ms)
            self._time_written_ms = max(self._time_written_ms, stored_ms)
            yield Transaction(connection, self._sql, now, heads_of(json.loads(heads or "[]"), now)), xid, unsettled
            undo.pop_all()

    def _finish(self, connection: Connection, tx: Transaction, xid: str) -> bool:
        """Write what goes along, and commit: one round trip. Whether jobs ended that others wait for."""
        for tenant in tx.heads:
            self._tenants.pop(tenant, None)
            self._tenants[tenant] = None
        while len(self._tenants) > _TENANTS_KEPT:
            del self._tenants[next(iter(self._tenants))]
        values: dict[str, Any] = {**tx.written(), "time": None}
        if tx.now_ms - self._time_written_ms >= _TIME_STEP_MS:
            values["time"] = self._time_written_ms = tx.now_ms
        wrote = None
        try:
            with connection.pipeline():
                if any(value is not None for value in values.values()):
                    wrote = _execute(connection, self._sql["write"], values)
                connection.execute("COMMIT")
        except psycopg.Error as error:
            if not is_gone(error) or not self._was_committed(xid, tx):
                raise
            return True  # what others wait for is looked at in any case
        return wrote is not None and wrote.fetchall() != [(0,)]

    def _was_committed(self, xid: str, tx: Transaction) -> bool:
        """The connection was lost on the way to the commit. Ask the database what became of it."""
        self._drop_connection()
        while (status := self._status(xid)) == "in progress":
            time.sleep(0.05)
        proof = tx.proof()
        if status != "committed" or proof is None:
            return status == "committed"
        # Another server that took over may know this number as another transaction's: only our own link is proof.
        words = "SELECT 1 FROM orchestrator.job_history WHERE tenant = %s AND shard = %s AND link = %s AND hash = %s"
        return bool(self._database.fetch(self._database.sql(words), proof))

    def _status(self, xid: str) -> str:
        try:
            return str(self._database.fetch("SELECT pg_xact_status(%s::xid8)", (xid,))[0][0])
        except LedgerError as error:
            # A server that crashed, or another that took over, has never heard of the number.
            if getattr(error.__cause__, "sqlstate", None) == _UNKNOWN_NUMBER:
                return "aborted"
            raise

    def _follow(self, connection: Connection) -> set[str]:
        """Move on the jobs that waited; what is not done here is done by whoever writes next."""
        lanes: set[str] = set()
        try:
            if self._connection is None:
                self._connection = connection = self._database.connect()
            with self._begun(connection) as (tx, xid, _):
                run(connection, "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_LOCK, self._database.schema))
                more = following.follow(tx)
                self._finish(connection, tx, xid)
            lanes = tx.lanes
        except psycopg.Error:
            self._drop_connection()
            more = True
        if more and not self._stopping:
            self._queue.put(_Change(True, make=lambda tx: None))
        return lanes

    def _keep_up(self, *, last: bool = False) -> None:
        """Now and then, in a pause: fold the counts, write the time, make and remove months of the history."""
        now = time.monotonic()
        if not last and now - self._kept_up_at < _UPKEEP_S:
            return
        self._kept_up_at = now
        with contextlib.suppress(psycopg.Error, LedgerError):
            if self._connection is not None:
                upkeep.keep_up(self._connection, self._database, self._sql, self._time.now_ms(), self._retain_days)
            return
        self._drop_connection()

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()


def _made(make: Callable[[Transaction], Any], tx: Transaction) -> Any:
    """The change's result. A refusal comes before any write, so the transaction goes on without it."""
    try:
        return make(tx)
    except LedgerError as error:
        return _Refused(error)


def _execute(connection: Connection, statement: str, values: Any) -> psycopg.Cursor[tuple[Any, ...]]:
    return connection.execute(statement, values)


def _roll_back(connection: Connection) -> None:
    with contextlib.suppress(psycopg.Error):
        connection.execute("ROLLBACK")


def only(answers: Sequence[Any]) -> Any:
    """The answer to a single order; a lost lease is raised."""
    [answer] = answers
    if isinstance(answer, LeaseLost):
        raise answer
    return answer
