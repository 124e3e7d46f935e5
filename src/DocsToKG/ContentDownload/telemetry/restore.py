"""Fill an empty database from what is left of the record in the same folder, when the database was lost or damaged.

The manifest tells the history; what it lacks of the works that were obtained comes from the damaged database and from
`last.csv`; `attempts.csv` tells the requests. Promises: the works all or not at all, in one transaction; what cannot
be read is passed over.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from DocsToKG.ContentDownload.catalog.places import LAST, MANIFEST
from DocsToKG.ContentDownload.catalog.selection import TAKEDOWN_STAGE
from DocsToKG.ContentDownload.telemetry import attempts
from DocsToKG.ContentDownload.telemetry.attempts import row_of_line
from DocsToKG.ContentDownload.telemetry.folder import ATTEMPTS_CSV, is_json_object
from DocsToKG.ContentDownload.telemetry.inserting import Insert
from DocsToKG.ContentDownload.telemetry.manifest import (
    AT,
    INSERT_DOWNLOADS,
    JSON_COLUMNS,
    VALIDATION,
    ManifestRecord,
    insert_manifests,
    manifest_values,
)
from DocsToKG.ContentDownload.telemetry.projections import mend_tail
from DocsToKG.ContentDownload.telemetry.resume import load_csv, load_last_csv, load_previous_manifest
from DocsToKG.ContentDownload.telemetry.salvage import known_part, readable_rows
from DocsToKG.ContentDownload.telemetry.schema import newest_id, transaction

_CSV_NUMBERS = ("year", "size_bytes")
_DIGITS = re.compile(r"[0-9]{1,18}")  # what 64 bits hold
# No file stands for a work that was taken down.
_FORGET = f"""DELETE FROM downloads WHERE EXISTS (SELECT 1 FROM manifests t WHERE t.stage = '{TAKEDOWN_STAGE}'
              AND t.doc_id = downloads.doc_id AND t.id > downloads.manifest_id)"""


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
    rows = (row for row in map(row_of_line, load_csv(path)) if row is not None)
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
    """The rows so far stand in the manifest, as it is now; those that come after them do not."""
    newest = newest_id(db, "manifests")
    size = manifest.stat().st_size
    if size:
        columns = "name, first_id, base_bytes, last_id, end_bytes"
        followed = (manifest.name, newest + 1, size, newest, size)
        db.execute(f"INSERT OR REPLACE INTO projections ({columns}) VALUES (?, ?, ?, ?, ?)", followed)


def _rows(lines: Iterable[Mapping[str, Any]]) -> Iterator[list[Any]]:
    for line in lines:
        try:
            yield manifest_values(ManifestRecord.from_dict(line))
        except (TypeError, ValueError, KeyError, AttributeError):
            continue


def _from_database(row: Mapping[str, Any]) -> dict[str, Any]:
    """A stored row as the line that was made of it. Where the zeros of a lost page have got into it, the rest of it
    is not known."""
    known = known_part(row)
    try:
        lists = {name: orjson.loads(known.get(name) or "[]") for name in JSON_COLUMNS}
        return {**known, **lists, VALIDATION: orjson.loads(known.get(VALIDATION) or "null")}
    except orjson.JSONDecodeError:
        return {}


def _from_csv(row: Mapping[str, str]) -> dict[str, Any]:
    numbers = {key: int(row[key]) for key in _CSV_NUMBERS if _DIGITS.fullmatch(row.get(key, ""))}
    return {**{key: value for key, value in row.items() if key not in _CSV_NUMBERS}, **numbers, "outcome": "success"}
