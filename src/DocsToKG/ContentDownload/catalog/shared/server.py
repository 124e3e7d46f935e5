"""Where a shared record is: the server and the schema in it, and its trouble in our words.

Connections are those of the ledger on PostgreSQL. Nothing is kept in a session, so that a pooler which hands out
connections transaction by transaction may stand between. Promises: a server that is away is waited for as long as the
patience lasts; no error text has the address with its password.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo
from psycopg_pool import PoolTimeout

from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.Orchestrator.errors import BadJob, LedgerError
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, Database, Values, is_again, is_gone

_T = TypeVar("_T")
SCHEMA = "docstokg_record"
_LONGEST_PAUSE_S = 1.0


class SharedRecord:
    """One record on a server. Safe to share between threads; `close` when done."""

    def __init__(self, url: str, *, schema: str = SCHEMA, patience_s: float = 120.0, readers: int = 4) -> None:
        self.schema = schema
        self.patience_s = patience_s
        try:
            self._database = Database(_named(url), schema=schema, patience_s=patience_s, readers=readers)
        except (BadJob, LedgerError) as error:
            raise RecordError(str(error).replace("the ledger's", "the record's")) from None
        self.name = f"{self._database.name} ({schema})"

    def close(self) -> None:
        self._database.close()

    def fetch(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """The rows of one statement, on a connection of the pool; asked again when the connection was lost."""
        try:
            return self._database.fetch(sql, values)
        except LedgerError as error:
            raise self.record_error(error.__cause__ or error) from error

    def again(self, action: Callable[[], _T], *, unless: Callable[[], bool] = lambda: False) -> _T:
        """What `action` gives, tried again while the server is away, as long as the patience lasts."""
        deadline, pause_s = time.monotonic() + self.patience_s, 0.02
        while True:
            try:
                return action()
            except (psycopg.Error, PoolTimeout) as error:
                if not (is_gone(error) or is_again(error)) or time.monotonic() >= deadline or unless():
                    raise self.record_error(error) from error
            time.sleep(pause_s * (0.5 + random.random()))
            pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)

    def connect(self) -> Connection:
        """A connection of the caller's own."""
        return self._database.connect()

    def connected(self) -> Connection:
        """The same, waited for."""
        return self.again(self.connect)

    @contextmanager
    def trouble(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, PoolTimeout) as error:
            raise self.record_error(error) from error

    def record_error(self, error: BaseException) -> RecordError:
        if isinstance(error, RecordError):
            return error
        told = str(self._database.translated(error))
        return RecordError(f"the shared record: {told.replace('queue.connection_string', 'catalog.connection_string')}")


def _named(url: str) -> str:
    """The address with our name, under which the server's own lists show us, unless it has another."""
    try:
        told = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return url  # whoever opens it says what is wrong
    return url if "application_name" in told else conninfo.make_conninfo(url, application_name="docstokg-record")
