"""Put many rows into a table with few steps of the database.

Each step lets other threads run first, and where many are busy it waits long for its next turn: rows go in by the
dozen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

# Few sizes, so that the statements are prepared once. The largest keeps to the number of values a statement may have.
_SIZES = (64, 32, 16, 8, 4, 2, 1)


class Insert:
    """Adds rows of these columns to one table. `otherwise` is what to do about a row that is there already."""

    def __init__(self, table: str, columns: Sequence[str], otherwise: str = "") -> None:
        row = f"({', '.join('?' * len(columns))})"
        head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
        self._statements = {size: f"{head}{', '.join([row] * size)} {otherwise}".strip() for size in _SIZES}

    def __call__(self, db: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> None:
        for chunk in _chunks(rows):
            db.execute(self._statements[len(chunk)], list(chain.from_iterable(chunk)))


def _chunks(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    done, left = 0, len(rows)
    for size in _SIZES:
        while left >= size:
            yield rows[done : done + size]
            done, left = done + size, left - size
