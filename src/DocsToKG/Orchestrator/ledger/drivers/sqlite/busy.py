"""What is wrong with an SQLite file, by SQLite's own code; and that another process has it just now, which is waited
for where SQLite itself does not."""

from __future__ import annotations

import sqlite3
import time

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_PAUSE_S = 0.01


def is_busy(error: BaseException) -> bool:
    return primary_code(error) in _BUSY


def primary_code(error: BaseException | None) -> int:
    """What SQLite says is wrong, without the details; 0 for whatever does not come from it."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def set_journal_mode(connection: sqlite3.Connection, mode: str, busy_timeout_s: float) -> None:
    """`mode` in lower case. SQLite does not wait here by itself: two that make a file would trip over each other."""
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] == mode:
                return
            connection.execute(f"PRAGMA journal_mode = {mode}")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_S)
