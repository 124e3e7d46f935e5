"""One statement for many rows. Run row by row, SQLite spends more on each statement than on its row.

Knows that a statement with one list of values can be written with many, and that what all rows share is bound once: it
has the first numbers (`?1`, `?2`), and the values of the rows come after. Sizes are few and fixed, so that SQLite has
parsed each of them once. Promises the order of the rows.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

# Powers of two, so that a handful of rows, as a run finishes them, takes few statements. Most values in one: 128 rows
# of 21 columns; SQLite takes 32,766 since 3.32.
_MOST = 128
_VALUES = re.compile(r"VALUES (\([?0-9, ]+\))")


def run_rows(
    connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]], shared: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    """Run a statement with one `VALUES (...)` for all the rows, and give what it returns."""
    found: list[tuple[Any, ...]] = []
    for part in _parts(rows):
        cursor = connection.execute(widened(statement, len(part)), [*shared, *chain.from_iterable(part)])
        found += cursor.fetchall()
    return found


def _parts(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    start, left = 0, len(rows)
    while left:
        size = min(_MOST, 1 << left.bit_length() - 1)
        yield rows[start : start + size] if size < len(rows) else rows
        start, left = start + size, left - size


@lru_cache(maxsize=128)
def widened(statement: str, rows: int) -> str:
    """The statement with so many lists of values instead of one."""
    words, count = _VALUES.subn(lambda found: "VALUES " + ", ".join([found[1]] * rows), statement)
    if count != 1:
        raise ValueError("a statement for many rows has one list of values")
    return words
