"""What an earlier run has finished already, so that it is not done again.

Reads whichever form of the record is there: the database, else the manifest, else `last.csv`.
Promises: the three give the same answer for the same history; a line torn by a crash is passed over.
"""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import orjson

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.errors import RecordError

_LINE_CAP = 4 << 20


def load_previous_manifest(path: Path | str) -> Iterator[dict[str, Any]]:
    """The records of a `manifest.jsonl`, one by one. Lines that are not JSON objects are passed over."""
    with open(path, "rb") as file:
        while line := file.readline(_LINE_CAP):
            record = _parse(line)
            if record is not None:
                yield record


class ResumeLookup(Protocol):
    """Knows which works are finished."""

    def completed_ids(self) -> frozenset[str]: ...


class JsonlResumeLookup:
    """Reads `manifest.jsonl`."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def completed_ids(self) -> frozenset[str]:
        return frozenset(
            line["doc_id"]
            for line in load_previous_manifest(self._path)
            if line.get("status") == "ok" and isinstance(line.get("doc_id"), str)
        )


class SqliteResumeLookup:
    """Asks `manifest.sqlite`."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def completed_ids(self) -> frozenset[str]:
        try:
            db = sqlite3.connect(f"{self._path.resolve().as_uri()}?mode=ro", uri=True, timeout=30)
            try:
                rows = db.execute("SELECT doc_id FROM catalog_entries WHERE status = 'ok'").fetchall()
            finally:
                db.close()
        except sqlite3.Error as error:
            raise RecordError(
                f"{self._path} cannot be read ({error}): move it away to go on from manifest.jsonl"
            ) from error
        return frozenset(row[0] for row in rows)


class CsvResumeLookup:
    """Reads `last.csv`."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def completed_ids(self) -> frozenset[str]:
        return frozenset(row["doc_id"] for row in load_last_csv(self._path))


def load_last_csv(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a `last.csv` that name a work."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        for row in csv.DictReader(line.replace("\0", "") for line in file):
            if row.get("doc_id"):
                yield {key: value for key, value in row.items() if key and value}


class ResumeController:
    """Knows the finished works of the record that `manifest_path` (its `manifest.jsonl`, or its folder) belongs to."""

    def __init__(self, manifest_path: Path | str, *, database: Path | None = None) -> None:
        path = Path(manifest_path)
        root = path if path.is_dir() else path.parent
        jsonl = root / "manifest.jsonl" if path.is_dir() or path.suffix != ".jsonl" else path
        candidates: list[tuple[str, Path, ResumeLookup]] = [
            ("sqlite", at := database or root / "manifest.sqlite", SqliteResumeLookup(at)),
            ("jsonl", jsonl, JsonlResumeLookup(jsonl)),
            ("csv", at := root / "last.csv", CsvResumeLookup(at)),
        ]
        found = next(((name, lookup) for name, at, lookup in candidates if at.is_file()), None)
        self.source: str | None = found[0] if found else None
        self.completed_ids: frozenset[str] = found[1].completed_ids() if found else frozenset()

    def filter_works(self, works: Iterable[WorkArtifact]) -> Iterator[WorkArtifact]:
        """The works that are still to be done."""
        return (work for work in works if work.work_id not in self.completed_ids)


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None
