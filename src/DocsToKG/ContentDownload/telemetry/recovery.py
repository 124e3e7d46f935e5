"""A database that was lost, cut short or damaged: noticed, put aside, and filled anew from what is left of the record.

Knows the outside of an SQLite file (its first bytes, its pages) and how to read the text files back. The manifest tells
the history; what it lacks of the works that were obtained comes from the damaged database and from `last.csv`;
`attempts.csv` tells the requests. Promises: only a file that begins like a database, or with the zeros that a power cut
may leave, or that has the name of a record's database, is called damaged; nothing is deleted; what cannot be read is
passed over; the works come back all or not at all, in one transaction.
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import orjson

from DocsToKG.ContentDownload.catalog.paths import ATTEMPTS_CSV, LAST, MANIFEST, is_in_its_place
from DocsToKG.ContentDownload.catalog.selection import TAKEDOWN_STAGE
from DocsToKG.ContentDownload.telemetry import attempts
from DocsToKG.ContentDownload.telemetry.exports import Position, mend_tail, save_position
from DocsToKG.ContentDownload.telemetry.manifest import (
    AT,
    INSERT_DOWNLOADS,
    JSON_COLUMNS,
    VALIDATION,
    ManifestRecord,
    insert_manifests,
    manifest_values,
)
from DocsToKG.ContentDownload.telemetry.schema import Insert, newest_id, transaction
from DocsToKG.ContentDownload.telemetry.text import is_json_object
from DocsToKG.Orchestrator.ledger.drivers.sqlite.busy import primary_code

_MAGIC = b"SQLite format 3\0"
_LOG = "-wal"
_BESIDE = (_LOG, "-shm", "")
LOOKED_THROUGH = 16 << 20  # small enough to be read from end to end at every start
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LINE_CAP = 4 << 20
_MOST_COLUMNS = 64  # ours are fewer; a line of thousands would be filled up for every row
_CSV_NUMBERS = ("year", "size_bytes")
_DIGITS = re.compile(r"[0-9]{1,18}")  # what 64 bits hold
# No file stands for a work that was taken down.
_FORGET = f"""DELETE FROM downloads WHERE EXISTS (SELECT 1 FROM manifests t WHERE t.stage = '{TAKEDOWN_STAGE}'
              AND t.doc_id = downloads.doc_id AND t.id > downloads.manifest_id)"""


def is_damaged(path: Path) -> bool:
    """Whether `path` is a database that lost a part of itself. An empty file is a new one."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    if not begins_like_one(path):
        return is_in_its_place(path)
    return _is_cut(path) or not _opens(path)


def is_corrupt(error: BaseException | None) -> bool:
    """Whether the error says that a database is not whole."""
    return primary_code(error) == sqlite3.SQLITE_CORRUPT


def begins_like_one(path: Path) -> bool:
    """Whether the file is a database, the beginning of one, or one that lost it; something else is somebody else's."""
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
    return _MAGIC.startswith(head) or not any(head)


def version_of(path: Path) -> int:
    """The schema version that the first bytes of the file tell; 0 when they are gone."""
    with path.open("rb") as file:
        head = file.read(64)
    return int.from_bytes(head[60:], "big") if head.startswith(_MAGIC) else 0


def set_aside(path: Path) -> Path:
    """Give a damaged database another name, together with its log; returns that name."""
    number = 1
    while (aside := _aside(path, number)).exists():
        number += 1
    # The log goes first: should this be cut off, the database is still there to be put aside.
    for ending in _BESIDE:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
    return aside


def last_set_aside(path: Path) -> Path | None:
    """The database that was put aside last, if any was."""
    number = 1
    while _aside(path, number).exists():
        number += 1
    return _aside(path, number - 1) if number > 1 else None


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.damaged-{number}")


def readable_rows(path: Path, table: str) -> Iterator[dict[str, Any]]:
    """The rows of `table`, oldest first, up to the place where the file is broken."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(_connect(path)) as db:
        # Without this, a file that is shorter than it says is refused as a whole.
        db.execute("PRAGMA writable_schema = ON")
        db.execute("PRAGMA cell_size_check = ON")
        db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        cursor = db.execute(f'SELECT * FROM "{table}" NOT INDEXED ORDER BY id')
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))


def intact_part(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row up to where it is lost: the rest of one that goes on in a lost page reads as zeros."""
    return dict(takewhile(lambda item: not (isinstance(item[1], str) and "\0" in item[1]), row.items()))


def _is_cut(path: Path) -> bool:
    """The file does not end with a page. With a log beside it, the log has the rest."""
    log = path.with_name(path.name + _LOG)
    if log.exists() and log.stat().st_size:
        return False
    with path.open("rb") as file:
        head = file.read(18)
    page = int.from_bytes(head[16:18], "big")
    page = 65_536 if page == 1 else page
    return len(head) < 18 or page < 512 or path.stat().st_size % page != 0


def _opens(path: Path) -> bool:
    try:
        with contextlib.closing(_connect(path)) as db:
            db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
            if path.stat().st_size <= LOOKED_THROUGH:
                return bool(db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError as error:
        # A lock or a missing right is no damage.
        return primary_code(error) not in _BROKEN
    return True


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30, isolation_level=None)


def load_previous_manifest(path: Path | str) -> Iterator[dict[str, Any]]:
    """The records of a `manifest.jsonl`, one by one. Lines that are not JSON objects are passed over."""
    with open(path, "rb") as file:
        while line := file.readline(_LINE_CAP):
            record = _parse(line)
            if record is not None:
                yield record


def load_last_csv(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a `last.csv` that name a work. A row that was cut short is none: half an id is another work's."""
    # A last line without its newline may end anywhere, unless it ends as the last column of ours does.
    return (row for row in load_csv(path, whole=("\n", "Z")) if row.get("doc_id"))


def load_csv(path: Path, *, whole: str | tuple[str, ...] = "\n") -> Iterator[dict[str, str]]:
    """The rows of a CSV file of ours by the names of its columns; a line that does not end as a `whole` one is none."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines = (line.replace("\0", "") for line in file if line.endswith(whole))
        columns = _cells(next(lines, ""))
        if len(columns) > _MOST_COLUMNS:
            return
        for line in lines:
            values = _cells(line)
            if len(values) >= len(columns):
                yield {key: value for key, value in zip(columns, values, strict=False) if key and value}


def _cells(line: str) -> list[str]:
    """Each row of ours is one line, so that a quote which lost its end spoils no other row."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


@dataclass(frozen=True, slots=True)
class Restored:
    """Rows that were read back, the files they came from, and how much of a torn last line was dropped."""

    rows: int = 0
    sources: tuple[str, ...] = ()
    torn_bytes: int = 0


def restore(db: sqlite3.Connection, root: Path, *, damaged: Path | None = None) -> Restored:
    """Read back what is known of earlier runs into a database that has no row yet. `damaged` is what is left of it."""
    if db.execute("SELECT 1 FROM manifests LIMIT 1").fetchone():
        return Restored()
    manifest, last = root / MANIFEST, root / LAST
    torn = _mended(manifest) if manifest.is_file() else 0
    counts: dict[str, int] = {}
    with transaction(db):
        if manifest.is_file():
            counts[manifest.name] = _insert(db, load_previous_manifest(manifest))
            _note_followed(db, manifest)
        if damaged is not None:
            counts[damaged.name] = _insert(db, map(_from_database, readable_rows(damaged, "manifests")))
        if last.is_file():
            counts[last.name] = _insert(db, map(_from_csv, load_last_csv(last)))
    return Restored(sum(counts.values()), tuple(name for name, count in counts.items() if count), torn)


def restore_attempts(db: sqlite3.Connection, root: Path) -> None:
    """Read the requests of earlier runs back, so that a report still knows how polite they were."""
    path = root / ATTEMPTS_CSV
    if not path.is_file() or newest_id(db, "http_events"):
        return
    rows = (row for row in map(attempts.row_of_line, load_csv(path)) if row is not None)
    insert = Insert("http_events", attempts.COLUMNS)
    with transaction(db):
        while some := list(islice(rows, 1_000)):
            insert(db, some)


def _insert(db: sqlite3.Connection, lines: Iterable[Mapping[str, Any]]) -> int:
    """Add the lines as rows: all of them to an empty table, else those of obtained works that it does not know."""
    before = newest_id(db, "manifests")
    wanted = _unknown_to(db, _rows(lines)) if before else _rows(lines)
    changes = db.total_changes
    while some := list(islice(wanted, 1_000)):
        insert_manifests(db, some)
    count = db.total_changes - changes
    db.execute(INSERT_DOWNLOADS, (before,))
    db.execute(_FORGET)
    return count


def _unknown_to(db: sqlite3.Connection, rows: Iterable[list[Any]]) -> Iterator[list[Any]]:
    known = f"""SELECT 1 FROM downloads WHERE doc_id = ?1 AND sha256 = ?2
                UNION ALL SELECT 1 FROM manifests WHERE stage = '{TAKEDOWN_STAGE}' AND doc_id = ?1"""
    for values in rows:
        file = (values[AT["doc_id"]], values[AT["sha256"]])
        if values[AT["status"]] == "ok" and db.execute(known, file).fetchone() is None:
            yield values


def _mended(manifest: Path) -> int:
    fd = os.open(manifest, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    try:
        return mend_tail(fd, whole=is_json_object)
    finally:
        os.close(fd)


def _note_followed(db: sqlite3.Connection, manifest: Path) -> None:
    """The rows so far are in the manifest, as it is now; those that come after them are not."""
    newest, size = newest_id(db, "manifests"), manifest.stat().st_size
    if size:
        save_position(db, manifest.name, Position(newest + 1, size, newest, size))


def _rows(lines: Iterable[Mapping[str, Any]]) -> Iterator[list[Any]]:
    for line in lines:
        try:
            yield manifest_values(ManifestRecord.from_dict(line))
        except (TypeError, ValueError, KeyError, AttributeError):
            continue


def _from_database(row: Mapping[str, Any]) -> dict[str, Any]:
    """A stored row as the line that was made of it. Where the zeros of a lost page have got into it, the rest of it
    is not known."""
    known = intact_part(row)
    try:
        lists = {name: orjson.loads(known.get(name) or "[]") for name in JSON_COLUMNS}
        return {**known, **lists, VALIDATION: orjson.loads(known.get(VALIDATION) or "null")}
    except orjson.JSONDecodeError:
        return {}


def _from_csv(row: Mapping[str, str]) -> dict[str, Any]:
    numbers = {key: int(row[key]) for key in _CSV_NUMBERS if _DIGITS.fullmatch(row.get(key, ""))}
    return {**{key: value for key, value in row.items() if key not in _CSV_NUMBERS}, **numbers, "outcome": "success"}
