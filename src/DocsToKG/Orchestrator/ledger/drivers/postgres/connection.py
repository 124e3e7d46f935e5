"""The writing connection of a ledger on PostgreSQL: transactions on it, and what becomes of them when it is lost.

Promises: a lost connection, a deadlock or a lock held too long is tried again as long as the patience lasts; where the
answer to a commit was lost, the database is asked, and a link of the history is the proof. For one thread at a time.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import psycopg

from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, Database, is_again, is_gone, run
from DocsToKG.Orchestrator.ledger.drivers.postgres.procedures import BEGIN, Call
from DocsToKG.Orchestrator.ledger.drivers.postgres.session import PostgresSession, heads_in, written
from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime
from DocsToKG.Orchestrator.ledger.transaction import Transaction

T = TypeVar("T")
Proof = tuple[str, int, int, bytes]
_TENANTS_KEPT = 16
_LOCK_TIMEOUT_MS = 5000
_IDLE_TIMEOUT_MS = 15_000  # a process that freezes within a transaction must not keep its rows
_TIME_STEP_MS = 1000
_TWICE = "23505"  # another process added the same job meanwhile
_MOST_TWICE = 20
_UNKNOWN_NUMBER = "22023"


class Governed(Exception):
    """Rules were written on this ledger: one call of the database does not do."""


class Apart(Exception):
    """Leases are asked for while several tenants wait, or the queue is paused: this time, one call does not do."""


class Begun(NamedTuple):
    """An open transaction and its number."""

    tx: Transaction
    xid: str


class Transactor:
    """Owns the connection, which is made when it is needed."""

    def __init__(self, database: Database, *, sql: Mapping[str, str], ledger_time: LedgerTime) -> None:
        self._database = database
        self._sql = sql
        self._time = ledger_time
        self._connection: Connection | None = None
        self._call: Call | None = None
        self._tenants: dict[str, None] = {}  # those written to lately, the last one last
        self._time_written_ms = 0

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.connect(prepare=True)
        return self._connection

    def drop(self) -> None:
        connection, self._connection, self._call = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def with_patience(self, deed: Callable[[], T], *, undone: Callable[[], None]) -> T:
        deadline = time.monotonic() + self._database.patience_s
        pause_s, twice = 0.005, 0
        while True:
            try:
                return deed()
            except psycopg.Error as error:
                undone()
                if is_gone(error) or self._connection is None or self._connection.broken:
                    self.drop()
                elif not is_again(error) and (error.sqlstate != _TWICE or twice >= _MOST_TWICE):
                    raise
                twice += error.sqlstate == _TWICE
                if time.monotonic() >= deadline:
                    raise
            except BaseException:
                undone()
                raise
            time.sleep(pause_s * random.random())
            pause_s = min(1.0, pause_s * 2)

    @contextlib.contextmanager
    def begun(self) -> Iterator[Begun]:
        """An open transaction that knows the time and holds the chains it will likely need: one round trip."""
        values = {
            "tenants": list(self._tenants),
            "lock_timeout": str(_LOCK_TIMEOUT_MS),
            "idle_timeout": str(_IDLE_TIMEOUT_MS),
        }
        with self._undone_unless_left() as connection:
            [row] = _first(connection, self._sql["begin"], values)
            database_ms, stored_ms, unsettled, xid, heads, rules, paused, _ = row
            now = self._time.now_ms(stored_ms, database_ms)
            self._time_written_ms = max(self._time_written_ms, stored_ms)
            tx = Transaction(
                PostgresSession(connection, self._sql),
                now,
                heads=heads_in(heads, now),
                control_version=int(rules or 0),
                is_paused=paused,
                unsettled=unsettled,
            )
            yield Begun(tx, xid)

    def commit(self, begun: Begun) -> None:
        """Write what goes along, and commit: one round trip. Says whether jobs ended that others wait for."""
        tx = begun.tx
        self._remember(tx.heads)
        values: dict[str, Any] = {**written(tx), "time": None}
        if tx.now_ms - self._time_written_ms >= _TIME_STEP_MS:
            values["time"] = self._time_written_ms = tx.now_ms
        connection, wrote = self.connection, None
        try:
            with connection.pipeline():
                if any(value is not None for value in values.values()):
                    wrote = connection.execute(self._sql["write"], values)
                connection.execute("COMMIT")
        except psycopg.Error as error:
            if not is_gone(error) or not self._was_committed(begun.xid, _proof_of(tx)):
                raise
            tx.unsettled = True  # what others wait for is looked at in any case
            return
        tx.unsettled |= wrote is not None and wrote.fetchall() != [(0,)]

    @contextlib.contextmanager
    def worked(self, values: Mapping[str, Any]) -> Iterator[tuple[Transaction, list[tuple[Any, ...]]]]:
        """`work` in a transaction that is committed at the end: two round trips. Its rows, the last one 'done'."""
        mark_ms, onward_ms, own_ms = self._time.reckoning()
        times = {"mark": mark_ms, "onward": onward_ms, "own": own_ms, "idle_timeout": str(_IDLE_TIMEOUT_MS)}
        with self._undone_unless_left() as connection:
            if self._call is None:
                self._call = Call(connection, self._sql["work"])
            rows = self._call.begin({**values, **times})
            if not rows:
                raise Governed
            if rows[-1][0] == "apart":
                raise Apart
            now, said, xid = rows[-1][2], rows[-1][3], rows[-1][6]
            self._time.now_ms(now, now)
            yield Transaction(PostgresSession(connection, self._sql), now), rows
            try:
                self._call.commit()
            except psycopg.Error as error:
                if not is_gone(error) or not self._was_committed(xid, _proof(said)):
                    raise

    @contextlib.contextmanager
    def _undone_unless_left(self) -> Iterator[Connection]:
        connection = self.connection
        try:
            yield connection
        except BaseException:
            with contextlib.suppress(psycopg.Error):
                # Not by the driver, which would have the session forget all that was prepared in it.
                connection.pgconn.exec_(b"ROLLBACK")
            raise

    def _remember(self, tenants: Mapping[str, object]) -> None:
        for tenant in tenants:
            self._tenants.pop(tenant, None)
            self._tenants[tenant] = None
        while len(self._tenants) > _TENANTS_KEPT:
            del self._tenants[next(iter(self._tenants))]

    def _was_committed(self, xid: str, proof: Proof | None) -> bool:
        """The connection was lost on the way to the commit. Ask the database what became of it."""
        self.drop()
        while (status := self._status(xid)) == "in progress":
            time.sleep(0.05)
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

    def hold(self, lock: int) -> None:
        """One process at a time, until the transaction is over."""
        run(self.connection, "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (lock, self._database.schema))


def _first(connection: Connection, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Begin a transaction and run its first statement: one round trip."""
    with connection.pipeline():
        connection.execute(BEGIN)
        cursor = connection.execute(statement, values)
    return cursor.fetchall()


def _proof_of(tx: Transaction) -> Proof | None:
    """A link that is there if, and only if, this transaction was committed."""
    return next(((tenant, head.shard, head.link, head.hash) for tenant, head in tx.moved_heads), None)


def _proof(said: str | None) -> Proof | None:
    if said is None:
        return None
    tenant, shard, link, digest = json.loads(said)
    return tenant, shard, link, bytes.fromhex(digest)
