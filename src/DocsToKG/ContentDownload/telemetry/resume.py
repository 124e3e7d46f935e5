"""What an earlier run has finished already, so that it is not done again.

Reads whichever form of the record is there: the database, else the manifest, else `last.csv`.
Promises: the three give the same answer for the same history; what a crash or a full disk cut short is passed over, and
no work is called finished because of half a line.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.catalog.connection import stream
from DocsToKG.ContentDownload.catalog.paths import DATABASE, LAST, MANIFEST
from DocsToKG.ContentDownload.catalog.selection import TAKEDOWN_STAGE
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.telemetry.recovery import (
    intact_part,
    is_corrupt,
    is_damaged,
    load_last_csv,
    load_previous_manifest,
    readable_rows,
)

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord


class ResumeLookup(Protocol):
    """Knows which works are finished."""

    def completed_ids(self) -> frozenset[str]: ...


class JsonlResumeLookup:
    """Reads `manifest.jsonl`. `taken_down` are works that it calls so, once asked."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self.taken_down: set[str] = set()

    def completed_ids(self) -> frozenset[str]:
        return _standing(load_previous_manifest(self._path), self.taken_down)


class SqliteResumeLookup:
    """Asks `manifest.sqlite`; of a damaged one, as much as can be read. `is_whole` tells, once asked."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self.is_whole = False

    def completed_ids(self) -> frozenset[str]:
        if self._path.stat().st_size == 0 or is_damaged(self._path):
            return self._readable_ids()
        try:
            ids = self._ask()
        except sqlite3.Error as error:
            if is_corrupt(error):
                return self._readable_ids()
            raise RecordError(
                f"{self._path} cannot be read ({error}): move it away to go on from manifest.jsonl"
            ) from error
        self.is_whole = True
        return ids

    def _ask(self) -> frozenset[str]:
        uri = f"{self._path.resolve().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=30)) as db:
            return frozenset(row[0] for row in db.execute("SELECT doc_id FROM catalog_entries WHERE status = 'ok'"))

    def _readable_ids(self) -> frozenset[str]:
        # A row that is lost before it has told how it ended tells nothing.
        rows = map(intact_part, readable_rows(self._path, "manifests"))
        return _standing((row for row in rows if "outcome" in row), set())


class SharedResumeLookup:
    """Asks a record that several machines share."""

    def __init__(self, shared: SharedRecord) -> None:
        self._shared = shared

    def completed_ids(self) -> frozenset[str]:
        return self._shared.again(self._ask)

    def _ask(self) -> frozenset[str]:
        from DocsToKG.ContentDownload.catalog.shared.snapshot import Snapshot

        with contextlib.closing(Snapshot(self._shared)) as db:
            return frozenset(row[0] for row in stream(db, "SELECT doc_id FROM catalog_entries WHERE status = 'ok'"))


class CsvResumeLookup:
    """Reads `last.csv`."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def completed_ids(self) -> frozenset[str]:
        return frozenset(row["doc_id"] for row in load_last_csv(self._path))


class ResumeController:
    """Knows the finished works of the record that `manifest_path` (its `manifest.jsonl`, or its folder) belongs to.

    `source` is the form that was consulted first: the database, else the manifest, else `last.csv`. A database that is
    whole is enough. One that is damaged, or a text file, which may have lost its end unnoticed, is completed by the
    forms after it: a work that any of them calls obtained was obtained. A `shared` record knows what every machine has
    obtained, and is asked alone (`source` is then `postgres`).
    """

    def __init__(
        self, manifest_path: Path | str, *, database: Path | None = None, shared: SharedRecord | None = None
    ) -> None:
        self.source: str | None = None
        self.completed_ids: frozenset[str] = frozenset()
        if shared is not None:
            self.source, self.completed_ids = "postgres", SharedResumeLookup(shared).completed_ids()
            return
        path = Path(manifest_path)
        root = path if path.is_dir() else path.parent
        jsonl = root / MANIFEST if path.is_dir() or path.suffix != ".jsonl" else path
        lines = JsonlResumeLookup(jsonl)
        rows = SqliteResumeLookup(at := database or root / DATABASE)
        forms: list[tuple[str, Path, ResumeLookup]] = [
            ("sqlite", at, rows),
            ("jsonl", jsonl, lines),
            ("csv", at := root / LAST, CsvResumeLookup(at)),
        ]
        for name, at, lookup in forms:
            if not at.is_file():
                continue
            self.source = self.source or name
            self.completed_ids = (self.completed_ids | lookup.completed_ids()) - lines.taken_down
            if rows.is_whole and self.completed_ids:
                break

    def filter_works(self, works: Iterable[WorkArtifact]) -> Iterator[WorkArtifact]:
        """The works that are still to be done."""
        return (work for work in works if work.work_id not in self.completed_ids)


def _standing(lines: Iterable[Mapping[str, Any]], taken_down: set[str]) -> frozenset[str]:
    """The works that were obtained and not taken down after it; those that were are added to `taken_down`."""
    obtained: set[str] = set()
    for line in lines:
        doc_id = line.get("doc_id")
        if not isinstance(doc_id, str):
            continue
        if line.get("status") == "ok":
            obtained.add(doc_id)
            taken_down.discard(doc_id)
        elif line.get("stage") == TAKEDOWN_STAGE:
            obtained.discard(doc_id)
            taken_down.add(doc_id)
    return frozenset(obtained)
