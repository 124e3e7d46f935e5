"""Open a ledger file: check that it can be one, bring its schema up to date, read the named queries.

Knows the numbered migrations and SQLite's settings. Does not know jobs. Promises: two processes
that open a new file at once both end with the same schema, and a newer file is left untouched.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from DocsToKG.Orchestrator.errors import LedgerBusy, LedgerDamaged, LedgerError, LedgerTooNew, LedgerUnusable
from DocsToKG.Orchestrator.ledger import sql_files
from DocsToKG.Orchestrator.ledger.drivers.sqlite.busy import is_busy, primary_code, set_journal_mode
from DocsToKG.Orchestrator.ledger.drivers.sqlite.disk import network_disk
from DocsToKG.Orchestrator.ledger.drivers.sqlite.type_indexes import with_types

APPLICATION_ID = 0x446B4C31
_LOST = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def open_connection(path: Path, *, busy_timeout_s: float, looking: bool = False) -> sqlite3.Connection:
    """A connection that may move between threads, in autocommit: transactions are written out where they are meant.
    `looking`: a ledger that cannot be written is read as it stands."""
    where = _as_it_stands(path) if looking else None
    connection = sqlite3.connect(
        where or path, uri=where is not None, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        # Pages that change again and again are copied from the log to the file less often.
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA cache_size = -32768")  # KiB; the default of 2 MB spills at some thousand jobs
    except BaseException:
        connection.close()
        raise
    return connection


def _as_it_stands(path: Path) -> str | None:
    """The address of a file for reading alone, where SQLite may not write; None where it may, or there is no file."""
    if not path.is_file() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return None
    log = path.with_name(f"{path.name}-wal")
    # With a log, SQLite reads both by the index beside them; without one it would want to make an index.
    is_closed = not log.exists() or not log.stat().st_size
    return f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if is_closed else ''}"


def prepare(path: Path, *, wal: bool | None, busy_timeout_s: float) -> None:
    """Make the folder and the file where missing, and bring the schema up to date."""
    if sqlite3.sqlite_version_info < (3, 35):
        raise LedgerUnusable(f"SQLite {sqlite3.sqlite_version} is too old for the ledger; 3.35 or newer is needed")
    if wal and (kind := network_disk(path)):
        raise LedgerUnusable(
            f"{path} is on a network disk ({kind}), where WAL is not safe; choose a local path or set wal_mode to false"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerUnusable(f"cannot make the folder of {path}: {error.strerror}") from error
    try:
        connection = open_connection(path, busy_timeout_s=busy_timeout_s, looking=wal is None)
        try:
            if wal is not None:
                set_journal_mode(connection, "wal" if wal else "delete", busy_timeout_s)
            migrate(connection, path)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise translated(error, path) from error


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Apply the migrations that the file lacks, all in one transaction."""
    steps = migrations()
    if _version(connection, path) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, script in enumerate(steps[_version(connection, path) :], start=1 + _version(connection, path)):
            for statement in statements(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, path: Path) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and owner != APPLICATION_ID:
        raise LedgerDamaged(f"{path} is a database, but not a ledger; choose another path")
    if version > len(migrations()):
        raise LedgerTooNew(
            f"{path} has schema {version}, this program knows {len(migrations())}; use the newer version of the program"
        )
    return int(version)


def migrations() -> tuple[str, ...]:
    """The scripts in order; the file named 0001 leads to version 1."""
    return sql_files.migrations("sqlite", "")


def statements(script: str) -> Iterator[str]:
    """The single statements of a script; a trigger's inner semicolons do not end it."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


@cache
def queries() -> Mapping[str, str]:
    """The statements by name, and their forms for the jobs of one type."""
    return with_types(sql_files.statements("sqlite"))


def translated(error: sqlite3.Error, path: Path) -> LedgerError:
    """SQLite's error in our words."""
    if is_busy(error):
        return LedgerBusy(f"{path} is locked by another process; try again")
    if primary_code(error) in _LOST:
        return LedgerDamaged(f"{path} is not a ledger or is damaged ({error}); restore it or move it away")
    return LedgerUnusable(f"{path} cannot be read or written: {error}")
