"""Open the record's database and bring it to the schema this version writes.

Knows `telemetry_schema.sql` and its version. Does not know what the rows mean.
Promises: a database of a newer version is refused untouched; an upgrade happens whole or not at all.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.Orchestrator.ledger.drivers.sqlite.busy import set_journal_mode

SCHEMA_VERSION = 4
_BUSY_TIMEOUT_S = 30.0
_MADE = "FROM sqlite_master WHERE type IN ('view', 'index', 'trigger') AND sql IS NOT NULL"


def schema_sql() -> str:
    """The text of `telemetry_schema.sql` as shipped."""
    return files("DocsToKG.ContentDownload.telemetry").joinpath("telemetry_schema.sql").read_text(encoding="utf-8")


def open_database(path: Path | None) -> sqlite3.Connection:
    """The record's database, at the current schema. None gives a private one that vanishes when closed."""
    db = sqlite3.connect(
        str(path) if path else "", timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        db.execute("PRAGMA synchronous = NORMAL")
        # Pages that change again and again are copied from the log to the file less often.
        db.execute("PRAGMA wal_autocheckpoint = 4000")
        if path is not None:  # what has no file of its own would lie in memory as a whole
            set_journal_mode(db, "wal", _BUSY_TIMEOUT_S)
            db.execute("PRAGMA temp_store = MEMORY")  # a statement of many rows would write a file
        ManifestSchemaMigrator(db, name=str(path or "the record")).migrate()
    except BaseException:
        db.close()
        raise
    return db


def refuse_newer(version: int, name: str) -> None:
    """A database of a newer program is not touched."""
    if version > SCHEMA_VERSION:
        raise RecordError(
            f"{name} has schema version {version}, this program knows up to {SCHEMA_VERSION}: "
            "use the newer program that wrote it, or another folder"
        )


def newest_id(db: sqlite3.Connection, table: str) -> int:
    """The id of the last row; 0 when there is none."""
    return int(db.execute(f"SELECT COALESCE(MAX(id), 0) FROM {table}").fetchone()[0])


def rows_after(db: sqlite3.Connection, sql: str, row_id: int) -> Iterator[tuple[int, Sequence[Any]]]:
    """What `sql` selects after the row `row_id`: the id of each row, which it names first, and the other values."""
    return ((row[0], row[1:]) for row in db.execute(sql, (row_id,)))


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Everything in the block, or nothing of it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # A full disk may have rolled back already.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


class ManifestSchemaMigrator:
    """Upgrades the database of an older version, refuses that of a newer one.

    Schema changes are additive, so an upgrade adds the tables and columns that are missing and renews the views,
    indexes and triggers that differ. A database of this version that lacks something is upgraded too.
    """

    def __init__(self, db: sqlite3.Connection, *, name: str = "the record") -> None:
        self._db = db
        self._name = name

    def migrate(self) -> int:
        """Bring the database to `SCHEMA_VERSION`; returns the version it had (0: it was new)."""
        found = self.version()
        refuse_newer(found, self._name)
        if found < SCHEMA_VERSION or not self._is_complete():
            self._upgrade()
        return found

    def version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _is_complete(self) -> bool:
        """Whether every table has all its columns, and views, indexes and triggers are as they should be."""
        made = f"SELECT name, sql {_MADE}"
        with contextlib.closing(sqlite3.connect(":memory:")) as wanted:
            for statement in _statements(schema_sql()):
                wanted.execute(statement)
            if not set(wanted.execute(made)) <= set(self._db.execute(made)):
                return False
            tables = [name for (name,) in wanted.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return all(self._columns(wanted, name).keys() <= self._columns(self._db, name).keys() for name in tables)

    def _upgrade(self) -> None:
        with transaction(self._db):
            before = self._columns(self._db, "manifests"), self._columns(self._db, "http_events")
            self._drop_what_differs()
            for statement in _statements(schema_sql()):
                self._apply(statement)
            if before != (self._columns(self._db, "manifests"), self._columns(self._db, "http_events")):
                # Lines written so far keep the form they have; the files go on in the new one.
                self._db.execute("UPDATE projections SET first_id = last_id + 1, base_bytes = end_bytes")
            self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _drop_what_differs(self) -> None:
        """Views, indexes and triggers hold no data. One that is as it should be stays: building it takes long."""
        wanted = {statement.removesuffix(";") for statement in _statements(schema_sql())}
        rows = self._db.execute(f"SELECT type, name, sql {_MADE}").fetchall()
        for kind, name, sql in rows:
            if sql not in wanted:
                self._db.execute(f'DROP {kind} "{name}"')

    def _apply(self, statement: str) -> None:
        words = statement.split()
        if words[:2] == ["CREATE", "TABLE"] and self._columns(self._db, words[2]):
            self._add_missing_columns(words[2], statement)
        elif not self._db.execute("SELECT 1 FROM sqlite_master WHERE sql = ?", (statement[:-1],)).fetchone():
            self._db.execute(statement)

    def _add_missing_columns(self, table: str, statement: str) -> None:
        present = self._columns(self._db, table)
        with contextlib.closing(sqlite3.connect(":memory:")) as wanted:
            wanted.execute(statement)
            for name, declaration in self._columns(wanted, table).items():
                if name not in present:
                    self._db.execute(f'ALTER TABLE "{table}" ADD COLUMN "{name}" {declaration}')

    @staticmethod
    def _columns(db: sqlite3.Connection, table: str) -> dict[str, str]:
        """Column name to its declaration: type, NOT NULL and default."""
        columns = {}
        for _, name, kind, not_null, default, _ in db.execute(f'PRAGMA table_info("{table}")'):
            given = f" DEFAULT {default}" if default is not None else ""
            columns[name] = f"{kind}{' NOT NULL' if not_null else ''}{given}"
        return columns


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one, because `executescript` would end our transaction."""
    text = ""
    for line in script.splitlines(keepends=True):
        if not text and (not line.strip() or line.startswith("--")):
            continue
        text += line
        if sqlite3.complete_statement(text):
            yield text.strip()
            text = ""


# Each step of the database lets other threads run first, and where many are busy the next turn comes late: rows go in
# by the dozen. Few sizes, so that the statements are prepared once. The largest keeps to the number of values that a
# statement may have.
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
