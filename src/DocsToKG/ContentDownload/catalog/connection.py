"""What a question to a record needs of a database: run a statement, go through its rows.

The statements of this package are written once, in SQL that SQLite and, after a translation, PostgreSQL understand.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

Values = Sequence[Any] | Mapping[str, Any]


class Rows(Protocol):
    """The rows of a statement."""

    @property
    def description(self) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Db(Protocol):
    """A connection, of whichever engine."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Rows: ...

    def close(self) -> None: ...


@runtime_checkable
class Streaming(Protocol):
    """A connection that must be told when rows are too many to hold."""

    def stream(self, sql: str, parameters: Any, /) -> Iterator[tuple[Any, ...]]: ...


def stream(db: Db, sql: str, values: Values = ()) -> Iterator[tuple[Any, ...]]:
    """The rows one by one; never more than some of them are in memory."""
    if isinstance(db, sqlite3.Connection):
        return iter(db.execute(sql, values))
    return db.stream(sql, values) if isinstance(db, Streaming) else iter(db.execute(sql, values))
