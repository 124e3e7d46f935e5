"""Questions to a shared record: many statements on one snapshot, or many rows one by one.

Promises: nothing asked here changes the record; a question of the user's own runs in a transaction that can only read,
is one statement, and does not run without end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg
from psycopg import ClientCursor
from psycopg.adapt import Loader

from DocsToKG.ContentDownload.catalog.connection import Rows, Values
from DocsToKG.ContentDownload.catalog.shared.dialect import translated
from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection

_FETCH = 1_000
# Sorting and comparing a large record would otherwise go through temporary files, row by row.
_BEGIN = ("BEGIN ISOLATION LEVEL REPEATABLE READ", "SET LOCAL work_mem = '64MB'", "SET LOCAL jit = off")


class _Number(Loader):
    """A sum, which the server gives as a number of any length, as an ordinary one."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


class Snapshot:
    """One connection on one snapshot of the record; use `contextlib.closing`."""

    def __init__(self, shared: SharedRecord) -> None:
        self._schema = shared.schema
        self._connection = shared.again(lambda: _begun(shared.connect()))
        self._cursors = count(1)

    def execute(self, sql: str, parameters: Values = (), /) -> Rows:
        """Values are written into the statement: one may be absent, and the server would ask of what kind it is."""
        cursor = ClientCursor(self._connection)
        return cursor.execute(translated(sql, self._schema), parameters)

    def stream(self, sql: str, parameters: Values = (), /) -> Iterator[tuple[Any, ...]]:
        name = f"rows_{next(self._cursors)}"
        with ClientCursor(self._connection) as cursor:
            text = f"DECLARE {name} NO SCROLL CURSOR FOR {translated(sql, self._schema)}"
            cursor.execute(text, parameters)
            while rows := cursor.execute(f"FETCH {_FETCH} FROM {name}").fetchall():
                yield from rows
            cursor.execute(f"CLOSE {name}")

    def close(self) -> None:
        """The snapshot goes, and with it what was noted for its questions; a pooler gets its connection back clean."""
        with contextlib.suppress(psycopg.Error):
            self._connection.rollback()
        self._connection.close()


def _begun(connection: Connection) -> Connection:
    try:
        connection.adapters.register_loader("numeric", _Number)
        with ClientCursor(connection) as cursor:
            for statement in _BEGIN:
                cursor.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


def ask_freely(
    connection: Connection, schema: str, sql: str, *, rows: int, seconds: float
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Columns and first rows of one SELECT of the user's own, in the words of the server."""
    with connection.transaction(force_rollback=True):
        connection.execute("SET TRANSACTION READ ONLY")
        connection.execute(f"SET LOCAL search_path = {schema}, pg_catalog")
        connection.execute(f"SET LOCAL statement_timeout = {max(1, round(seconds * 1000))}")
        # The server refuses several statements, and anything but a question, where a cursor is asked for.
        with connection.cursor(name="question") as cursor:
            cursor.execute(sql)
            found = cursor.fetchmany(rows)
            return tuple(column.name for column in cursor.description or ()), found


def why_refused(error: psycopg.Error, seconds: float) -> str:
    if error.sqlstate == "57014":
        return f"the question took longer than {seconds:g} s: narrow it, or ask for fewer rows"
    if error.sqlstate == "25006" or error.sqlstate == "42601":
        return f"only reading is allowed here: ask with one SELECT ({_first_line(error)})"
    return f"the question cannot be answered: {_first_line(error)}"


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().split("\n")[0][:300]
