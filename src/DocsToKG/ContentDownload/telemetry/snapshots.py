"""The files that show a state rather than a history: `last.csv`, `index.json`, `summary.json`, `results.csv`.

Each is made anew from the database and put in place whole. Streams; a large corpus is not held in memory.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import orjson

from DocsToKG.ContentDownload.catalog.paths import INDEX, LAST, SUMMARY
from DocsToKG.ContentDownload.catalog.selection import TAKEDOWN_STAGE
from DocsToKG.ContentDownload.telemetry.manifest import AT
from DocsToKG.ContentDownload.telemetry.schema import newest_id
from DocsToKG.ContentDownload.telemetry.text import csv_line, csv_lines, is_json_object

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
_GONE, _CHANGED = "it was gone and is written anew", "it was cut short or changed and is written anew"
# Nothing of what was taken down is shown.
_STANDS = f"""NOT EXISTS (SELECT 1 FROM manifests t WHERE t.stage = '{TAKEDOWN_STAGE}'
                            AND t.doc_id = m.doc_id AND t.id > m.id)"""


@dataclass(frozen=True, slots=True)
class Repair:
    """What was put right in a file when the record was opened."""

    name: str
    appended_rows: int = 0
    torn_bytes: int = 0
    diverged: bool = False
    note: str = ""

    def __str__(self) -> str:
        parts = [f"{self.appended_rows} missing lines added"] if self.appended_rows else []
        parts += [f"a torn last line of {self.torn_bytes} bytes mended"] if self.torn_bytes else []
        parts += ["lines of other origin kept"] if self.diverged else []
        parts += [self.note] if self.note else []
        return f"{self.name}: {', '.join(parts)}"


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


def last_lines(rows: Sequence[Sequence[Any]]) -> bytes:
    """The lines that a run adds for the successes among these rows of the manifest."""
    return csv_lines([_last_of(row) for row in rows if row[AT["status"]] == "ok"])


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


RESULT_COLUMNS = ("line", "input", "id", "outcome", "path", "reason", "source", "mark", "version", "version_doi")


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One input line: as it was written, the work it stands for, and either the file or the reason."""

    line: int
    input: str
    id: str | None = None
    outcome: str | None = None
    path: str | None = None
    reason: str | None = None
    source: str | None = None  # the file that holds the line
    mark: str | None = None  # of the file: `unproved`, `damaged`
    version: str | None = None  # of the file: publishedVersion, acceptedVersion or submittedVersion
    version_doi: str | None = None  # of that version


def write_results(path: Path, rows: Iterable[ResultRow]) -> None:
    """Put `results.csv` in place whole; a reader sees the old file or the new one."""
    with replacing(path) as file:
        file.write(csv_line(RESULT_COLUMNS))
        for row in rows:
            file.write(csv_line([getattr(row, name) for name in RESULT_COLUMNS]))


def refresh_snapshots(db: sqlite3.Connection, root: Path, *, last: bool) -> list[Repair]:
    """Write `index.json`, and `last.csv` when asked, unless they show the newest line already and are as long as they
    were made. Returns which of them had been lost or cut."""
    newest = newest_id(db, "manifests")
    repairs = []
    for path, write in ((root / INDEX, write_index), *([(root / LAST, write_last)] if last else [])):
        shown = db.execute("SELECT last_id, end_bytes FROM projections WHERE name = ?", (path.name,)).fetchone()
        size = path.stat().st_size if path.exists() else None
        if shown == (newest, size):
            continue
        write(db, path)
        made = path.stat().st_size
        if shown is not None:
            # Earlier programs did not note the size; where nothing has come since, it is that of the new file.
            left = shown[1] or (made if shown[0] == newest else size)
            # A run that was cut off leaves `last.csv` longer than it was when that run began.
            has_grown = path.name == LAST and shown[0] != newest and (size or 0) > (left or 0)
            if size is None or (size != left and not has_grown):
                repairs.append(Repair(path.name, note=_GONE if size is None else _CHANGED))
        row = (path.name, newest, made)
        db.execute("INSERT OR REPLACE INTO projections (name, last_id, end_bytes) VALUES (?, ?, ?)", row)
    return repairs


def mend_summary(db: sqlite3.Connection, root: Path) -> Repair | None:
    """Put the summary of the last run back where its file was lost or cut."""
    path = root / SUMMARY
    kept = db.execute("SELECT payload FROM summaries ORDER BY created_at DESC, rowid DESC LIMIT 1").fetchone()
    if kept is None or (path.exists() and (not path.is_file() or is_json_object(path.read_bytes()))):
        return None
    repair = Repair(path.name, note=_CHANGED if path.exists() else _GONE)
    write_json(orjson.loads(kept[0]), path)
    return repair
