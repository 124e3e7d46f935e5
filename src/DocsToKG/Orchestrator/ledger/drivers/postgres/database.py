"""One PostgreSQL server as the ledger sees it: connections, reading, and its errors in our words.

Keeps nothing in a session that the next transaction needs: settings hold within one, and statements are prepared on the
server itself alone, so that a pooler which hands out connections transaction by transaction may stand between.
Promises: a lost connection is waited for as long as the patience lasts; no error tells the address with its password.
"""

from __future__ import annotations

import contextlib
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from DocsToKG.Orchestrator.errors import BadJob, LedgerBusy, LedgerClosed, LedgerError, LedgerUnusable
from DocsToKG.Orchestrator.ledger import sql_files
from DocsToKG.Orchestrator.notifications.pg_notify import is_pooled

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]
Values = Mapping[str, Any] | list[Any] | tuple[Any, ...]

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_AGAIN = {"40001", "40P01", "55P03"}  # serialization, deadlock, lock timeout: nothing was written
# Connection trouble, the server stops or starts, our transaction was idle for too long, or the session was reset and
# has forgotten what was prepared in it.
_GONE = ("08", "57P", "25P03", "26000")
_CROWDED = "53300"
_REFUSED = ("28", "3D", "42501")  # name or password, no such database, no right
# Who is refused while connecting is told in words alone.
_TOLD_NO = re.compile(
    r"authentication failed|no password supplied|pg_hba\.conf|not permitted to log in|(role|database) .* does not exist"
)


class Database:
    """Where the ledger lives: the server and the schema in it. Safe to share between threads."""

    def __init__(self, url: str, *, schema: str, patience_s: float, readers: int = 4) -> None:
        if not _SCHEMA.fullmatch(schema):
            raise BadJob("a schema is named by small letters, digits and underscores")
        try:
            told = conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            # The words of the driver may hold a part of the password.
            raise LedgerUnusable("the address of the ledger's database cannot be read as a PostgreSQL URL") from None
        self.schema = schema
        self.patience_s = patience_s
        self.name = f"postgres {told.get('host', 'localhost')}:{told.get('port', 5432)}/{told.get('dbname', '')}"
        self._url = conninfo.make_conninfo(url, **_defaults(told))
        self._pool: ConnectionPool[Connection] | None = None
        self._readers = readers
        self._lock = threading.Lock()
        self._closed = False

    def sql(self, text: str) -> str:
        """A statement of ours for the schema of this ledger."""
        return text if self.schema == "orchestrator" else text.replace("orchestrator.", f"{self.schema}.")

    def connect(self, *, prepare: bool = False) -> Connection:
        """With `prepare`, statements are kept ready in the session, unless a pooler stands between."""
        connection = psycopg.connect(self._url, autocommit=True, prepare_threshold=None)
        if prepare and not is_pooled(connection):
            connection.prepare_threshold = 2
        return connection

    def fetch(self, statement: str, values: Values | None = None) -> list[tuple[Any, ...]]:
        """Read by one statement, on a connection of the pool. Asks again when the connection was lost."""
        return self.use(lambda connection: run(connection, statement, values))

    @contextlib.contextmanager
    def lent(self, timeout_s: float) -> Iterator[Connection]:
        """A connection of the pool for a while. What goes wrong is told in the driver's words, and not tried again."""
        with self._opened().connection(timeout=timeout_s) as connection:
            yield connection

    def use(self, read: Callable[[Connection], T]) -> T:
        """Read on a connection of the pool; from the start again when the connection was lost."""
        deadline = time.monotonic() + self.patience_s
        pause_s = 0.01
        while True:
            try:
                with self._opened().connection(timeout=max(0.1, deadline - time.monotonic())) as connection:
                    return read(connection)
            except (psycopg.Error, PoolTimeout) as error:
                if not (is_gone(error) or is_again(error)) or time.monotonic() >= deadline:
                    raise self.translated(error) from error
            time.sleep(pause_s * random.random())
            pause_s = min(1.0, pause_s * 2)

    def _opened(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._closed:
                raise LedgerClosed(f"{self.name}: the ledger is closed")
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._url,
                    min_size=0,
                    max_size=self._readers,
                    kwargs={"autocommit": True, "prepare_threshold": None},
                    open=True,
                    name="ledger",
                    num_workers=1,
                    reconnect_timeout=self.patience_s,
                )
            return self._pool

    def close(self) -> None:
        with self._lock:
            self._closed, pool, self._pool = True, self._pool, None
        if pool is not None:
            pool.close()

    def translated(self, error: BaseException) -> LedgerError:
        """The driver's error in our words."""
        if isinstance(error, LedgerError):
            return error
        code = getattr(error, "sqlstate", None) or ""
        words = _first_line(error)
        if code.startswith(_REFUSED) or (not code and _TOLD_NO.search(words)):
            return LedgerUnusable(f"{self.name} refuses us: {words}; check queue.connection_string")
        if is_gone(error):
            return LedgerBusy(f"{self.name} does not answer: {words}; try again")
        if is_again(error):
            return LedgerBusy(f"{self.name} is locked by another transaction; try again")
        return LedgerUnusable(f"{self.name} cannot be read or written: {words}")


def run(connection: Connection, statement: str, values: Values | None = None) -> list[tuple[Any, ...]]:
    """The rows of a statement, none where it gives none."""
    cursor = connection.execute(statement, values)
    return cursor.fetchall() if cursor.description is not None else []


def is_gone(error: BaseException) -> bool:
    """Whether the connection was lost or could not be had, so that another one may do."""
    if isinstance(error, PoolTimeout):
        return True
    code = getattr(error, "sqlstate", None)
    if code is None:
        return isinstance(error, psycopg.OperationalError) and _TOLD_NO.search(str(error)) is None
    return str(code).startswith(_GONE) or code == _CROWDED


def is_again(error: BaseException) -> bool:
    """Whether the same transaction may do at another try."""
    if isinstance(error, psycopg.errors.CheckViolation):
        # A row was on its way into the rest of the history while another process made the month that it belongs to:
        # only this violation is of no constraint that has a name.
        return error.diag.constraint_name is None
    return getattr(error, "sqlstate", None) in _AGAIN


def queries(database: Database) -> dict[str, str]:
    """The statements by name, for the schema of this ledger."""
    return {name: database.sql(body) for name, body in sql_files.statements("postgres").items()}


def _defaults(told: Mapping[str, Any]) -> dict[str, Any]:
    """A dead server or a cut network is noticed in seconds, unless the address says otherwise."""
    ours = {
        "connect_timeout": 5,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
        "application_name": "docstokg-ledger",
    }
    return {name: value for name, value in ours.items() if name not in told}


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:300]
