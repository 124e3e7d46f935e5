"""The ledger in a PostgreSQL database, for all threads, processes and machines that share it.

Knows which changes can be made by one call of the database: ends and leases, which are nearly all. Promises: what was
answered survives whatever the database survives; a lost connection is waited for, and the answer to a commit that got
lost is found out.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import psycopg
from psycopg_pool import PoolTimeout

from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.ledger import sql_files
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.driver import Done, Write
from DocsToKG.Orchestrator.ledger.drivers.postgres import control_sql, maintenance, work
from DocsToKG.Orchestrator.ledger.drivers.postgres.connection import Apart, Governed, Transactor
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, Database, is_gone, queries
from DocsToKG.Orchestrator.ledger.drivers.postgres.leasing import HostChooser
from DocsToKG.Orchestrator.ledger.leasing import Chooser
from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime
from DocsToKG.Orchestrator.ledger.transaction import Rows, Transaction, Values

T = TypeVar("T")
_LOCK = 0x446B4C32
MAINTENANCE_S = 2.0
_DAY_MS = 24 * 3600 * 1000
_APART_S = 1.0  # what one call does not do is likely more than once


class PostgresDriver:
    """A pool of connections for reading, and one connection for writing, which is made when it is needed."""

    dialect = "postgres"
    one_writer = False
    direct = True

    def __init__(
        self,
        database: Database,
        *,
        ledger_time: LedgerTime,
        retain_history_days: int | None = None,
        maintenance_s: float = MAINTENANCE_S,
    ) -> None:
        self.name = database.name
        self.filters = sql_files.filters(self.dialect)
        self._statements: Mapping[str, str] = queries(database)
        self._hosts = HostChooser()
        self.chooser: Chooser = self._hosts
        self._database = database
        self._time = ledger_time
        self._transactor = Transactor(database, sql=self._statements, ledger_time=ledger_time)
        self._retain_days = retain_history_days
        self._maintenance_s = maintenance_s
        self._maintained_at = -maintenance_s
        self._maintenance: threading.Thread | None = None
        self._months_of = -1  # the day on which they were last looked at
        self._is_governed = False
        self._apart_until = 0.0
        self._lock = threading.Lock()
        self._version, self._version_until = 0, 0.0

    def close(self) -> None:
        self._database.close()

    def fetch(self, query: str, values: Values | None = None) -> Rows:
        return self._database.fetch(self._statements[query], values)

    def select(self, query: str, wanted: str, values: Values) -> Rows:
        return self._database.fetch(self._statements[query].replace("{wanted}", wanted), values)

    def read(self, make: Callable[[ControlTx], T], now_ms: int) -> T:
        return self._database.use(
            lambda connection: control_sql.read(connection, self._statements["place"], now_ms, make)
        )

    def next_moments(self, job_type: str | None) -> tuple[bool, int | None, int | None, bool, int]:
        query = "next_moments" if job_type is None else "next_moments_of_type"
        [(due, waiting, lease_until, paused, now)] = self.fetch(query, {"job_type": job_type})
        return due, waiting, lease_until, paused, now

    def version(self, poll_s: float) -> int:
        """Whether others have committed is found out by asking, at moments that differ between processes."""
        with self._lock:
            if time.monotonic() >= self._version_until:
                self._version += 1
                self._version_until = time.monotonic() + poll_s * random.uniform(0.75, 1.25)
            return self._version

    def begin(self) -> None:
        """A connection is made when it is needed, and made again when it was lost."""

    def end(self) -> None:
        if self._maintenance is not None:
            self._maintenance.join(MAINTENANCE_S)
        if self._transactor.is_connected:
            with contextlib.suppress(psycopg.Error, LedgerError):
                maintenance.keep_up(self._transactor.connection, self._statements, self._time.now_ms())
        self._transactor.drop()

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True, follows: bool = False) -> Iterator[Transaction]:
        try:
            with self._transactor.begun() as begun:
                if follows:
                    self._transactor.hold(_LOCK)
                yield begun.tx
                self._transactor.commit(begun)
        except (psycopg.Error, LedgerError):
            if follows:
                self._transactor.drop()
            raise

    def with_patience(self, deed: Callable[[], T], *, undone: Callable[[], None]) -> T:
        return self._transactor.with_patience(deed, undone=undone)

    def work(self, batch: Sequence[Write], free_rules: int | None) -> Done | None:
        wanted = work.as_work(batch)
        if wanted is None or (self._is_governed and (free_rules is None or wanted.ends)):
            return None
        if wanted.requests and time.monotonic() < self._apart_until:
            return None
        try:
            return work.work(self._transactor, self._hosts, self._time, wanted, free_rules)
        except Governed:
            self._is_governed = True  # for good: the number of the rules only grows
            return None
        except Apart:
            self._apart_until = time.monotonic() + _APART_S
            return None

    def committed(self, lanes: set[str]) -> None:
        if lanes:
            self._hosts.forget()

    def maintain(self) -> None:
        now, today = time.monotonic(), self._time.now_ms() // _DAY_MS
        if now - self._maintained_at < self._maintenance_s and today == self._months_of:
            return
        if not self._transactor.is_connected or (self._maintenance is not None and self._maintenance.is_alive()):
            return
        self._maintained_at = now
        if today != self._months_of:
            self._keep_months(today)
        # Beside the work: whoever has just committed would have to wait for it, and so would all who come after.
        self._maintenance = threading.Thread(target=self._maintain_beside, name="ledger-maintenance", daemon=True)
        self._maintenance.start()

    def _keep_months(self, today: int) -> None:
        """Make and remove months of the history."""
        try:
            connection: Connection = self._transactor.connection
            maintenance.keep_months(connection, self._database, self._time.now_ms(), self._retain_days)
            self._months_of = today
        except (psycopg.Error, LedgerError):  # tried again next time
            self._transactor.drop()

    def _maintain_beside(self) -> None:
        """What fails is done next time."""
        failures = (psycopg.Error, PoolTimeout, LedgerError)
        with contextlib.suppress(*failures), self._database.lent(MAINTENANCE_S) as connection:
            maintenance.keep_up(connection, self._statements, self._time.now_ms())

    def is_away(self, error: Exception) -> bool:
        return is_gone(error)

    def translated(self, error: Exception) -> Exception:
        return self._database.translated(error) if isinstance(error, psycopg.Error) else error
