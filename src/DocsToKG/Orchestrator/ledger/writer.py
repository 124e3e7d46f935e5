"""Group commit on SQLite: the thread that owns the writing connection.

Knows SQLite's write lock and how to wait for it, and of jobs only that some follow others. Promises those of
`group_commit`, and: a change that is refused or breaks does not undo its neighbours; a locked file is waited for, up to
the busy timeout.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.ledger import control
from DocsToKG.Orchestrator.ledger.base import Told
from DocsToKG.Orchestrator.ledger.dependencies import follow
from DocsToKG.Orchestrator.ledger.drivers.sqlite import policy_leasing
from DocsToKG.Orchestrator.ledger.drivers.sqlite.busy import is_busy
from DocsToKG.Orchestrator.ledger.drivers.sqlite.schema import open_connection, translated
from DocsToKG.Orchestrator.ledger.group_commit import Change, Gathering, Refused, settle
from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime
from DocsToKG.Orchestrator.ledger.transaction import Transaction
from DocsToKG.Orchestrator.notifications.base import Signal

T = TypeVar("T")
Item = TypeVar("Item")
# Makes many changes at once: one answer for each item, in order; a `LedgerError` among them is a refusal.
Together = Callable[[Transaction, Sequence[Item]], Sequence[Any]]
_INNER_BUSY_S = 0.05
_MARK = "SELECT high_water_ms, (SELECT value FROM settings WHERE name = 'control_version') FROM ledger_time"


@dataclass(slots=True)
class _Change(Change):
    """A durable one survives power loss.

    One that has `together` is made with its neighbours of the same kind; an early one goes before all that have come
    by the time the transaction begins, so that more neighbours are found.
    """

    make: Callable[[Transaction], Any] | None
    durable: bool = False
    together: Together[Any] | None = None
    item: Any = None
    early: bool = False


class GroupWriter(Gathering[_Change]):
    """Owns the writing connection, which belongs to one thread."""

    def __init__(
        self,
        path: Path,
        *,
        sql: Mapping[str, str],
        ledger_time: LedgerTime,
        signal: Signal,
        busy_timeout_s: float,
        linger_s: float,
        lively_linger_s: float | None = None,
        undone: Callable[[], None] = lambda: None,
    ) -> None:
        """`undone` is told when a transaction was, in which changes may have learned something."""
        super().__init__(str(path), linger_s=linger_s, lively_linger_s=lively_linger_s, direct=False)
        self._undone = undone
        self._path = path
        self._sql = sql
        self._time = ledger_time
        self._signal = signal
        self._busy_timeout_s = busy_timeout_s
        self._connection: sqlite3.Connection | None = None
        self._synchronous = "NORMAL"

    def submit(self, make: Callable[[Transaction], T], *, durable: bool = False, patient: bool = False) -> Future[T]:
        """Have `make` run in the next transaction. `make` may run more than once, but is committed at most once."""
        return self._promised(_Change(patient, make, durable))

    def join(self, together: Together[Item], item: Item, *, patient: bool, early: bool = False) -> Future[Any]:
        """Have `together` make this change along with others of its kind that are there by then."""
        return self._promised(_Change(patient, None, False, together, item, early))

    def join_and_tell(self, together: Together[Item], item: Item, told: Told) -> None:
        """As `join`, patiently and early, for one who is only told."""
        self._put(_Change(True, None, False, together, item, True, future=None, told=told))

    def join_now(self, together: Together[Item], item: Item) -> Any:
        """As `join`, and wait for the commit."""
        return self._wait(_Change(False, None, False, together, item))

    def call(self, make: Callable[[Transaction], T], *, durable: bool = False) -> T:
        """Submit and wait for the commit."""
        answer: T = self._wait(_Change(False, control.in_scope(make), durable))
        return answer

    def _begin(self) -> None:
        try:
            self._connection = open_connection(self._path, busy_timeout_s=self._busy_timeout_s)
            self._connection.execute(f"PRAGMA busy_timeout = {int(_INNER_BUSY_S * 1000)}")
            self._connection.execute("PRAGMA temp_store = MEMORY")  # a statement of many rows would write a file
        except sqlite3.Error as error:
            raise translated(error, self._path) from error

    def _end(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _commit(self, batch: Sequence[_Change]) -> None:
        assert self._connection is not None
        try:
            answers, lanes = self._within_busy_timeout(self._connection, batch)
        except Exception as error:
            # One change broke the transaction. Alone, each of the others still gets its own.
            if len(batch) > 1 and not is_busy(error):
                for change in batch:
                    self._commit([change])
                return
            ours = translated(error, self._path) if isinstance(error, sqlite3.Error) else error
            answers, lanes = [Refused(ours)] * len(batch), set()
        for lane in sorted(lanes):
            self._signal.notify(lane)
        settle(batch, answers)

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
            mark, rules = connection.execute(_MARK).fetchone()
            tx = Transaction(connection, self._sql, self._time.now_ms(mark), int(rules or 0))
            answers = _answers(batch, tx)
            if tx.verdicts:
                policy_leasing.judge(tx)
            follow(tx)
            tx.write_along()
            connection.execute("UPDATE ledger_time SET high_water_ms = ?", (tx.now_ms,))
            connection.execute("COMMIT")
        except BaseException:
            self._undone()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if tx.unsettled:
            self._put_again(_Change(True, lambda tx: None))  # goes on in the next transaction
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
            answers[place] = Refused(answer) if isinstance(answer, LedgerError) else answer
    return answers


def _answer(change: _Change, tx: Transaction) -> Any:
    """The change's result. A refusal comes before any write, so the transaction goes on without it."""
    assert change.make is not None
    try:
        return change.make(tx)
    except LedgerError as error:
        return Refused(error)
