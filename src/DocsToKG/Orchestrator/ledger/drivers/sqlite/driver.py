"""The ledger in one SQLite file, for all threads and processes of one machine.

Knows SQLite's write lock and how to wait for it. Promises: what is durable survives power loss, other changes survive a
killed process; a locked file is waited for, up to the busy timeout.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from DocsToKG.Orchestrator.errors import LedgerClosed
from DocsToKG.Orchestrator.ledger import sql_files
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.driver import Done, Write
from DocsToKG.Orchestrator.ledger.drivers.sqlite import schema, type_indexes
from DocsToKG.Orchestrator.ledger.drivers.sqlite.busy import is_busy
from DocsToKG.Orchestrator.ledger.drivers.sqlite.leasing import HostChooser
from DocsToKG.Orchestrator.ledger.drivers.sqlite.schema import open_connection, translated
from DocsToKG.Orchestrator.ledger.drivers.sqlite.session import SqliteSession, bound
from DocsToKG.Orchestrator.ledger.leasing import Chooser
from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime
from DocsToKG.Orchestrator.ledger.transaction import Rows, Transaction, Values

T = TypeVar("T")
_INNER_BUSY_S = 0.05


class SqliteDriver:
    """One connection for reading, which threads take in turns, and one for writing, which belongs to the writer.

    `wal` None leaves the journal mode as it is, for those who only look.
    """

    dialect = "sqlite"
    one_writer = True
    direct = False

    def __init__(self, path: Path, *, ledger_time: LedgerTime, wal: bool | None, busy_timeout_s: float) -> None:
        self.name = str(path)
        self.chooser: Chooser = HostChooser()
        self._path = path
        self._time = ledger_time
        self._busy_timeout_s = busy_timeout_s
        schema.prepare(path, wal=wal, busy_timeout_s=busy_timeout_s)
        self.filters = sql_files.filters(self.dialect)
        self._statements = schema.queries()
        self._reading = schema.open_connection(path, busy_timeout_s=busy_timeout_s, looking=wal is None)
        self._lock = threading.RLock()
        self._closed = self._looking = False
        self._writing: sqlite3.Connection | None = None
        self._synchronous = "NORMAL"

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._reading.close()

    def fetch(self, query: str, values: Values | None = None) -> Rows:
        return self._read(self._statements[query], bound(values))

    def select(self, query: str, wanted: str, values: Values) -> Rows:
        return self._read(self._statements[query].replace("{wanted}", wanted), bound(values))

    def read(self, make: Callable[[ControlTx], T], now_ms: int) -> T:
        """What `make` reads by this object beside is of the same snapshot."""
        with self._lock:
            if self._looking:
                return make(ControlTx(now_ms, self._read))
            self._read("BEGIN")
            self._looking = True
            try:
                return make(ControlTx(now_ms, self._read))
            finally:
                self._looking = False
                self._read("ROLLBACK")

    def next_moments(self, job_type: str | None) -> tuple[bool, int | None, int | None, bool, int]:
        form = "" if job_type is None else type_indexes.form_for_reading(self._read)
        [(due, waiting, lease_until, paused, now)] = self.fetch(f"next_moments{form}", {"job_type": job_type})
        return bool(due), waiting, lease_until, bool(paused), now

    def version(self, poll_s: float) -> int:
        return int(self._read("PRAGMA data_version")[0][0])

    def _read(self, statement: str, values: Values | None = None) -> Rows:
        with self._lock:
            if self._closed:
                raise LedgerClosed(f"{self._path}: the ledger is closed")
            try:
                return self._reading.execute(statement, values or {}).fetchall()
            except sqlite3.Error as error:
                raise translated(error, self._path) from error

    def begin(self) -> None:
        try:
            self._writing = open_connection(self._path, busy_timeout_s=self._busy_timeout_s)
            self._writing.execute(f"PRAGMA busy_timeout = {int(_INNER_BUSY_S * 1000)}")
            self._writing.execute("PRAGMA temp_store = MEMORY")  # a statement of many rows would write a file
        except sqlite3.Error as error:
            raise translated(error, self._path) from error

    def end(self) -> None:
        connection, self._writing = self._writing, None
        if connection is not None:
            connection.close()

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = False, follows: bool = False) -> Iterator[Transaction]:
        connection = self._writing
        assert connection is not None
        self._set_synchronous(connection, "FULL" if durable else "NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            session = SqliteSession(connection, self._statements)
            [(mark, unsettled, rules, paused)] = session.rows("begin")
            tx = Transaction(
                session,
                self._time.now_ms(mark),
                control_version=int(rules or 0),
                is_paused=bool(paused),
                unsettled=bool(unsettled),
            )
            yield tx
            session.write_along(tx)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _set_synchronous(self, connection: sqlite3.Connection, level: str) -> None:
        if level != self._synchronous:
            connection.execute(f"PRAGMA synchronous = {level}")
            self._synchronous = level

    def with_patience(self, deed: Callable[[], T], *, undone: Callable[[], None]) -> T:
        deadline = time.monotonic() + self._busy_timeout_s
        pause_s = 0.001
        while True:
            try:
                return deed()
            except sqlite3.OperationalError as error:
                undone()
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise
            except BaseException:
                undone()
                raise
            time.sleep(pause_s * random.random())
            pause_s = min(0.05, pause_s * 2)

    def work(self, batch: Sequence[Write], free_rules: int | None) -> Done | None:
        return None

    def committed(self, lanes: set[str]) -> None:
        """What is due is read anew by every lease."""

    def maintain(self) -> None:
        """Counts and time are written with every change."""

    def is_away(self, error: Exception) -> bool:
        return is_busy(error)

    def translated(self, error: Exception) -> Exception:
        return translated(error, self._path) if isinstance(error, sqlite3.Error) else error
