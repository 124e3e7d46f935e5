"""The files that show a state rather than a history: `last.csv`, `index.json`, `summary.json`.

Each is made anew from the database and put in place whole. Streams; a large corpus is not held in memory. To `last.csv`
each new success is added while a run goes on, since it alone must tell what was obtained, whenever the run is cut off.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import orjson

from DocsToKG.ContentDownload.catalog.selection import TAKEDOWN_STAGE
from DocsToKG.ContentDownload.telemetry.manifest import AT, SELECT_MANIFESTS
from DocsToKG.ContentDownload.telemetry.projections import Rows
from DocsToKG.ContentDownload.telemetry.schema import newest_id, rows_after
from DocsToKG.ContentDownload.telemetry.text import csv_line, csv_lines

LAST_COLUMNS = (
    "doc_id",
    "run_id",
    "title",
    "year",
    "resolver",
    "tier",
    "url",
    "canonical_url",
    "path",
    "sha256",
    "size_bytes",
    "mime",
    "license",
    "oa_status",
    "version",
    "created_at",
)
_last_of = itemgetter(*(AT[name] for name in LAST_COLUMNS))
_INDEX_COLUMNS = (
    "doc_id",
    "url",
    "status",
    "path",
    "sha256",
    "size_bytes",
    "mime",
    "resolver",
    "tier",
    "license",
    "run_id",
    "created_at",
)
# Nothing of what was taken down is shown.
_STANDS = f"""NOT EXISTS (SELECT 1 FROM manifests t WHERE t.stage = '{TAKEDOWN_STAGE}'
                            AND t.doc_id = m.doc_id AND t.id > m.id)"""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes `path`'s place when the block ends well, and is never seen half written."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_last(db: sqlite3.Connection, path: Path) -> None:
    """The most recent success of every work, in the order they were obtained."""
    names = ", ".join(f"m.{name}" for name in LAST_COLUMNS)
    rows = db.execute(
        f"SELECT {names} FROM manifests m WHERE m.id IN "
        f"(SELECT MAX(id) FROM manifests WHERE status = 'ok' GROUP BY doc_id) AND {_STANDS} ORDER BY m.id"
    )
    with replacing(path) as file:
        file.write(csv_line(LAST_COLUMNS))
        while some := rows.fetchmany(1_000):
            file.write(csv_lines(some))


class LastLines:
    """The lines that a run adds to the end of `last.csv`; the next snapshot leaves one of each work."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self.rows_after: Callable[[int], Rows] = partial(rows_after, db, SELECT_MANIFESTS)
        self.last_id = newest_id(db, "manifests")
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def append(self, rows: Sequence[Sequence[Any]], last_id: int) -> None:
        """Add the successes among rows that are committed, values in the order of the table's columns."""
        status = AT["status"]
        self._write([_last_of(row) for row in rows if row[status] == "ok"])
        self.last_id = last_id

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, rows: Sequence[Sequence[Any]]) -> None:
        view = memoryview(csv_lines(rows) if rows else b"")
        while view:
            view = view[os.write(self._fd, view) :]


def write_index(db: sqlite3.Connection, path: Path) -> None:
    """Canonical URL to what was obtained from it, one entry to a line; the latest file of a URL stands."""
    names = ", ".join(f"m.{name}" for name in _INDEX_COLUMNS)
    rows = db.execute(
        f"SELECT m.canonical_url, {names} FROM manifests m WHERE m.id IN "
        "(SELECT MAX(id) FROM manifests WHERE status = 'ok' AND canonical_url IS NOT NULL GROUP BY canonical_url) "
        f"AND {_STANDS} ORDER BY m.canonical_url"
    )
    with replacing(path) as file:
        file.write(b"{")
        for number, (url, *values) in enumerate(rows):
            entry = dict(zip(_INDEX_COLUMNS, values, strict=True))
            file.write(b",\n" if number else b"\n")
            file.write(orjson.dumps(url) + b": " + orjson.dumps(entry))
        file.write(b"\n}\n")


def write_json(value: Any, path: Path) -> None:
    with replacing(path) as file:
        file.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
