"""Fill an empty database from the text files of the same folder, when the database was lost or is not kept.

Promises: all of it or nothing, in one transaction; lines that cannot be read are passed over.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.telemetry.manifest import INSERT_DOWNLOAD, INSERT_MANIFEST, ManifestRecord, manifest_row
from DocsToKG.ContentDownload.telemetry.resume import load_last_csv, load_previous_manifest
from DocsToKG.ContentDownload.telemetry.schema import transaction

_CSV_NUMBERS = ("year", "size_bytes")


def restore(db: sqlite3.Connection, root: Path) -> int:
    """Read back what `manifest.jsonl`, else `last.csv`, tells of earlier runs; returns the number of rows."""
    if db.execute("SELECT 1 FROM manifests LIMIT 1").fetchone():
        return 0
    if (root / "manifest.jsonl").is_file():
        return _insert(db, load_previous_manifest(root / "manifest.jsonl"))
    if (root / "last.csv").is_file():
        return _insert(db, map(_from_csv, load_last_csv(root / "last.csv")))
    return 0


def _insert(db: sqlite3.Connection, lines: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    with transaction(db):
        for row in _rows(lines):
            cursor = db.execute(INSERT_MANIFEST, row)
            if cursor.rowcount == 1:
                count += 1
                if row["status"] == "ok":
                    db.execute(INSERT_DOWNLOAD, {**row, "manifest_id": cursor.lastrowid})
    return count


def _rows(lines: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield manifest_row(ManifestRecord.from_dict(line))
        except (TypeError, ValueError, KeyError, AttributeError):
            continue


def _from_csv(row: Mapping[str, str]) -> dict[str, Any]:
    numbers = {key: int(row[key]) for key in _CSV_NUMBERS if row.get(key, "").isdecimal()}
    return {**{key: value for key, value in row.items() if key not in _CSV_NUMBERS}, **numbers, "outcome": "success"}
