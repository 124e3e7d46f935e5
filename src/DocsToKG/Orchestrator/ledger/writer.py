"""Group commit: one thread that gathers changes into transactions.

Knows SQLite's write lock and how to wait for it, and of jobs only that some follow others. Promises:
an answer is given only after the commit; a change that is refused or breaks does not undo its
neighbours; a locked file is waited for, up to the busy timeout. Futures are settled in this thread,
so a callback on one must not wait for the ledger.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from DocsToKG.Orchestrator.errors import LedgerClosed, LedgerError
from DocsToKG.Orchestrator.ledger.dependencies import follow
from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime
from DocsToKG.Orchestrator.ledger.schema import is_busy, open_connection, translated
from DocsToKG.Orchestrator.ledger.transaction import Transaction
from DocsToKG.Orchestrator.signal.base import Signal

T = TypeVar("T")
Item = TypeVar("Item")
# Makes many changes at once: one answer for each item, in order; a `LedgerError` among them is a refusal.
Together = Callable[[Transaction, Sequence[Item]], Sequence[Any]]
_MAX_BATCH = 512
_INNER_BUSY_S = 0.05


@dataclass(slots=True)
class _Change:
    """One change and who waits for it. A durable one survives power loss; a patient one may wait for company.

    One that has `together` is made with its neighbours of the same kind; an early one goes before all that have come
    by the time the transaction begins, so that more neighbours are found.
    """

    make: Callable[[Transaction], Any] | None
    durable: bool
    patient: bool
    together: Together[Any] | None = None
    item: Any = None
    early: bool = False
    future: Future[Any] = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class _Refused:
    error: Exception


class GroupWriter:
    """Owns the writing connection. The thread starts with the first change."""

    def __init__(
        self,
        path: Path,
        *,
        sql: Mapping[str, str],
        ledger_time: LedgerTime,
        signal: Signal,
        busy_timeout_s: float,
        linger_s: float,
    ) -> None:
        self._path = path
        self._sql = sql
        self._time = ledger_time
        self._signal = signal
        self._busy_timeout_s = busy_timeout_s
        self._linger_s = linger_s
        self._queue: SimpleQueue[_Change | None] = SimpleQueue()
        self._hurry = threading.Event()  # somebody waits for a change in the queue
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._stopping = False
        self._synchronous = "NORMAL"

    def submit(self, make: Callable[[Transaction], T], *, durable: bool = False, patient: bool = False) -> Future[T]:
        """Have `make` run in the next transaction. `make` may run more than once, but is committed at most once."""
        return self._put(_Change(make, durable, patient))

    def join(self, together: Together[Item], item: Item, *, patient: bool, early: bool = False) -> Future[Any]:
        """Have `together` make this change along with others of its kind that are there by then."""
        return self._put(_Change(None, False, patient, together, item, early))

    def join_now(self, together: Together[Item], item: Item) -> Any:
        """As `join`, and wait for the commit."""
        self._refuse_own_thread()
        return self.join(together, item, patient=False).result()

    def _put(self, change: _Change) -> Future[Any]:
        with self._lock:
            if self._closed:
                raise LedgerClosed(f"{self._path}: the ledger is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
                self._thread.start()
            self._queue.put(change)
            if not change.patient:
                self._hurry.set()
        return change.future

    def call(self, make: Callable[[Transaction], T], *, durable: bool = False) -> T:
        """Submit and wait for the commit."""
        self._refuse_own_thread()
        return self.submit(make, durable=durable).result()

    def _refuse_own_thread(self) -> None:
        if threading.current_thread() is self._thread:
            raise LedgerError("a callback of the ledger cannot wait for the ledger; submit the change instead")

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
            connection = open_connection(self._path, busy_timeout_s=self._busy_timeout_s)
            connection.execute(f"PRAGMA busy_timeout = {int(_INNER_BUSY_S * 1000)}")
        except sqlite3.Error as error:
            self._refuse_everything(translated(error, self._path))
            return
        try:
            while batch := self._collect():
                self._commit(connection, batch)
        finally:
            connection.close()

    def _refuse_everything(self, error: LedgerError) -> None:
        while batch := self._collect():
            for change in batch:
                change.future.set_exception(error)

    def _collect(self) -> list[_Change]:
        """The next changes: at once when someone waits for one of them, after a short linger otherwise.

        The linger is one sleep and not a wait for each newcomer, which would wake this thread for every change.
        """
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

    def _commit(self, connection: sqlite3.Connection, batch: Sequence[_Change]) -> None:
        try:
            answers, lanes = self._within_busy_timeout(connection, batch)
        except Exception as error:
            # One change broke the transaction. Alone, each of the others still gets its own.
            if len(batch) > 1 and not is_busy(error):
                for change in batch:
                    self._commit(connection, [change])
                return
            ours = translated(error, self._path) if isinstance(error, sqlite3.Error) else error
            answers, lanes = [_Refused(ours)] * len(batch), set()
        for lane in sorted(lanes):
            self._signal.notify(lane)
        for change, answer in zip(batch, answers, strict=True):
            if isinstance(answer, _Refused):
                change.future.set_exception(answer.error)
            else:
                change.future.set_result(answer)

    def _within_busy_timeout(
        self, connection: sqlite3.Connection, batch: Sequence[_Change]
    ) -> tuple[list[Any], set[str]]:
        deadline = time.monotonic() + self._busy_timeout_s
        pause_s = 0.001
        while True:
            try:
                return self._transact(connection, batch)
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise
            # Nothing of the batch was committed, so the whole of it may run again.
            time.sleep(pause_s * random.random())
            pause_s = min(0.05, pause_s * 2)

    def _transact(self, connection: sqlite3.Connection, batch: Sequence[_Change]) -> tuple[list[Any], set[str]]:
        self._set_synchronous(connection, "FULL" if any(change.durable for change in batch) else "NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            (mark,) = connection.execute("SELECT high_water_ms FROM ledger_time").fetchone()
            tx = Transaction(connection, self._sql, self._time.now_ms(mark))
            answers = _answers(batch, tx)
            follow(tx)
            tx.write_along()
            connection.execute("UPDATE ledger_time SET high_water_ms = ?", (tx.now_ms,))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if tx.unsettled and not self._stopping:
            self._queue.put(_Change(lambda tx: None, durable=False, patient=True))  # goes on in the next transaction
        return answers, tx.lanes

    def _set_synchronous(self, connection: sqlite3.Connection, level: str) -> None:
        if level != self._synchronous:
            connection.execute(f"PRAGMA synchronous = {level}")
            self._synchronous = level


def _answers(batch: Sequence[_Change], tx: Transaction) -> list[Any]:
    """Make all the changes; one answer for each, in the order of the batch."""
    answers: list[Any] = [None] * len(batch)
    order = sorted(range(len(batch)), key=lambda place: not batch[place].early)
    for together, group in groupby(order, key=lambda place: batch[place].together):
        places = list(group)
        if together is None:
            for place in places:
                answers[place] = _answer(batch[place], tx)
            continue
        for place, answer in zip(places, together(tx, [batch[place].item for place in places]), strict=True):
            answers[place] = _Refused(answer) if isinstance(answer, LedgerError) else answer
    return answers


def _answer(change: _Change, tx: Transaction) -> Any:
    """The change's result. A refusal comes before any write, so the transaction goes on without it."""
    assert change.make is not None
    try:
        return change.make(tx)
    except LedgerError as error:
        return _Refused(error)
