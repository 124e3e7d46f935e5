"""Cache entries in one SQLite file, bodies in a table of their own.

Knows SQL and its errors. An entry and its body are one transaction, so a crash leaves both or none. For one machine:
on a network disk the write-ahead log is not used, since it needs shared memory.
"""

from __future__ import annotations

import contextlib
import io
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeAlias

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.pending import PendingBody
from DocsToKG.ContentDownload.net.stores.base import Entry, StoreFailed
from DocsToKG.Orchestrator.ledger.drivers.sqlite.busy import set_journal_mode
from DocsToKG.Orchestrator.ledger.drivers.sqlite.disk import network_disk

Put: TypeAlias = tuple[Entry, Sequence[str]]  # an entry without a body, and those it replaces

BUSY_TIMEOUT_S = 5.0
_LARGEST_BODY = 16 * 1024 * 1024
_SWEPT_AT_ONCE = 500
_HEADS = "SELECT id, head FROM entries WHERE key = ? ORDER BY id"
_PUT = "INSERT OR REPLACE INTO entries (key, id, stored_at, head) VALUES "
_ROW = "(?, ?, ?, ?)"
_ROWS_AT_ONCE = 64  # a power of four
# Keys come in no order: rows that lay in the order of their keys would have a page to themselves, which is written for
# each. Files of an earlier version keep theirs so, and are used as they are.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
  key TEXT NOT NULL, id TEXT NOT NULL, stored_at REAL NOT NULL, head BLOB NOT NULL, PRIMARY KEY (key, id)
);
CREATE INDEX IF NOT EXISTS entries_by_age ON entries (stored_at);
CREATE TABLE IF NOT EXISTS bodies (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TRIGGER IF NOT EXISTS body_goes_too AFTER DELETE ON entries BEGIN DELETE FROM bodies WHERE id = old.id; END;
"""


class SqliteBackend:
    """The entries in the file `path`."""

    shared = False
    slow = True
    rest_s = 0.0

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, check_same_thread=False, isolation_level=None, timeout=BUSY_TIMEOUT_S
            )
        except (sqlite3.Error, OSError) as error:
            raise _unusable(path, error) from None
        try:
            set_journal_mode(self._connection, "delete" if network_disk(path) else "wal", BUSY_TIMEOUT_S)
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute("PRAGMA temp_store=MEMORY")  # a statement of many rows would write a file
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error as error:
            self._connection.close()
            raise _unusable(path, error) from None

    def new_body(self) -> PendingBody | None:
        return PendingBody.spooled(largest=_LARGEST_BODY)

    def heads(self, key: str) -> list[tuple[str, bytes]]:
        try:
            with self._lock:
                rows = self._connection.execute(_HEADS, (key,)).fetchall()
        except sqlite3.Error as error:
            raise StoreFailed(type(error).__name__) from None
        return [(uuid.UUID(entry_id).hex, bytes(head)) for entry_id, head in rows]

    def beginnings(self, digits: int, *, since: float) -> list[str]:
        """The first digits of the keys of all entries that were stored at this time or later."""
        asked = "SELECT group_concat(substr(key, 1, ?), '') FROM entries WHERE stored_at >= ? AND key GLOB ?"
        with self._using() as connection:
            found = connection.execute(asked, (digits, since, "[0-9a-f]" * digits + "*")).fetchone()
        text = found[0] or ""
        return [text[at : at + digits] for at in range(0, len(text), digits)]

    def body(self, key: str, entry_id: str) -> BinaryIO | None:
        with self._using() as connection:
            row = connection.execute("SELECT body FROM bodies WHERE id = ?", (entry_id,)).fetchone()
        return None if row is None else io.BytesIO(row[0])

    def put(self, entry: Entry, body: PendingBody | None, *, replaced: Iterable[str]) -> None:
        row = (entry.key, entry.id, entry.stored_at, entry.head)
        with self._changing() as connection:
            _delete(connection, entry.key, replaced)
            connection.execute(f"{_PUT}{_ROW}", row)
            if body is not None:
                connection.execute("INSERT INTO bodies (id, body) VALUES (?, ?)", (entry.id, body.content()))

    def put_all(self, puts: Sequence[Put]) -> None:
        """Entries without a body, and what each replaces, together."""
        rows = sorted((entry.key, entry.id, entry.stored_at, entry.head) for entry, _ in puts)
        gone = [(entry.key, entry_id) for entry, replaced in puts for entry_id in replaced]
        with self._changing() as connection:
            # In few statements, since each lets go of the interpreter, and has to get it back.
            start, many = 0, _ROWS_AT_ONCE
            while start < len(rows):
                while many > len(rows) - start:
                    many //= 4
                values = tuple(chain.from_iterable(rows[start : start + many]))
                connection.execute(_PUT + ", ".join([_ROW] * many), values)
                start += many
            # Afterwards, as one of these may replace another.
            connection.executemany("DELETE FROM entries WHERE key = ? AND id = ?", gone)

    def rewrite(self, entry: Entry) -> None:
        with self._changing() as connection:
            connection.execute(
                "UPDATE entries SET head = ? WHERE key = ? AND id = ?", (entry.head, entry.key, entry.id)
            )

    def delete(self, key: str, entry_ids: Iterable[str]) -> None:
        with self._changing() as connection:
            _delete(connection, key, entry_ids)

    def flush(self) -> None:
        """Nothing waits here."""

    def sweep(self, shard: int, *, now: float, ttl_s: float) -> None:
        del shard  # the oldest are found by an index
        with self._changing() as connection:
            connection.execute(
                "DELETE FROM entries WHERE (key, id) IN"
                " (SELECT key, id FROM entries WHERE stored_at <= ? ORDER BY stored_at LIMIT ?)",
                (now - ttl_s, _SWEPT_AT_ONCE),
            )

    def walk(self) -> Iterator[bytes]:
        last = ("", "")
        while True:
            with self._using() as connection:
                rows = connection.execute(
                    "SELECT key, id, head FROM entries WHERE (key, id) > (?, ?) ORDER BY key, id LIMIT 500", last
                ).fetchall()
            if not rows:
                return
            last = (rows[-1][0], rows[-1][1])
            yield from (bytes(head) for _, _, head in rows)

    def clear(self) -> int:
        with self._changing() as connection:
            count: int = connection.execute("SELECT count(*) FROM entries").fetchone()[0]
            connection.execute("DELETE FROM entries")
        # The file shrinks now if nobody else uses it, and otherwise gives its pages to new entries.
        with contextlib.suppress(StoreFailed), self._using() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return count

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise StoreFailed(type(error).__name__) from None

    @contextlib.contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise


def _delete(connection: sqlite3.Connection, key: str, entry_ids: Iterable[str]) -> None:
    rows = [(key, entry_id) for entry_id in entry_ids]
    connection.executemany("DELETE FROM entries WHERE key = ? AND id = ?", rows)


def _unusable(path: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"hishel.sqlite_path: {path} cannot be used as a cache ({error}); name another file, or remove this one"
    )
