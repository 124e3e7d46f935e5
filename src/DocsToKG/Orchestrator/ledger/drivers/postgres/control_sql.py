"""The portable SQL of the control plane in the words of PostgreSQL.

Values are written in by the driver as literals: the same statement may then compare a value, test it for NULL or count
by it without saying its type, as SQLite lets it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import psycopg

from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection

T = TypeVar("T")
_LOCK = "/* lock */"
# A text in quotes is left as it is, but for the sign that the driver reads.
_WORDS = re.compile(r"'(?:[^']|'')*'|:([a-z_][a-z0-9_]*)|%", re.IGNORECASE)


def execute(connection: Connection, statement: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """The rows of a portable statement. Its tables are found by the search path."""
    cursor = psycopg.ClientCursor(connection)
    cursor.execute(worded(statement), {name: _storable(value) for name, value in (values or {}).items()})
    return cursor.fetchall() if cursor.description is not None else []


@lru_cache(maxsize=512)
def worded(statement: str) -> str:
    """`:name` as the driver has it, and a lock where one is asked for."""
    text = statement.rstrip()
    if text.endswith(_LOCK):
        text = f"{text.removesuffix(_LOCK)} FOR UPDATE"
    return _WORDS.sub(_word, text)


def _word(found: re.Match[str]) -> str:
    name = found.group(1)
    return found.group().replace("%", "%%") if name is None else f"%({name})s"


def _storable(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def read(connection: Connection, place: str, now_ms: int, make: Callable[[ControlTx], T]) -> T:
    """Read on one snapshot. `place` is the statement that names the schema."""
    # Without values these are sent as one message. Left as a transaction that was begun by hand, so it ends by hand.
    connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {place}")
    try:
        answer = make(ControlTx(now_ms, lambda statement, values: execute(connection, statement, values)))
    except BaseException:
        with contextlib.suppress(psycopg.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return answer
