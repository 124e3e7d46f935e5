"""One statement for many rows. Run row by row, SQLite spends more on each statement than on its row.

Knows that a statement with one list of values can be written with many. Sizes are few and fixed, so that SQLite has
parsed each of them once. Promises the order of the rows.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

# Most values in one statement: 64 rows of 21 columns. SQLite takes 32,766 since 3.32.
_SIZES = (64, 8, 1)
_VALUES = re.compile(r"VALUES (\([?, ]+\))")


def run_rows(connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Run a statement with one `VALUES (?, ...)` for all the rows, and give what it returns."""
    found: list[tuple[Any, ...]] = []
    for part in _parts(rows):
        cursor = connection.execute(widened(statement, len(part)), list(chain.from_iterable(part)))
        found += cursor.fetchall()
    return found


def _parts(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    start = 0
    for size in _SIZES:
        while len(rows) - start >= size:
            yield rows[start : start + size]
            start += size


@lru_cache(maxsize=64)
def widened(statement: str, rows: int) -> str:
    """The statement with so many lists of values instead of one."""
    words, count = _VALUES.subn(lambda found: "VALUES " + ", ".join([found[1]] * rows), statement)
    if count != 1:
        raise ValueError("a statement for many rows has one list of values")
    return words
