"""One more line in a record that no run is writing: a work was taken down, may be had again, or a person has settled
whether a file is the paper.

Knows the order of a record: database first, in one transaction; then the text files. Promises: the same line is never
added twice, and the files catch up at the next opening should this be cut off.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from DocsToKG.ContentDownload.api.types import OutcomeClass
from DocsToKG.ContentDownload.catalog.paths import LAST, MANIFEST
from DocsToKG.ContentDownload.catalog.selection import TAKEDOWN_STAGE, TAKEN_DOWN
from DocsToKG.ContentDownload.catalog.unproved import FILE_REJECTED
from DocsToKG.ContentDownload.telemetry.exports import catch_up
from DocsToKG.ContentDownload.telemetry.folder import locked, record_errors
from DocsToKG.ContentDownload.telemetry.manifest import (
    INSERT_DOWNLOADS,
    ManifestRecord,
    insert_manifests,
    manifest_values,
)
from DocsToKG.ContentDownload.telemetry.recovery import last_set_aside, restore, restore_attempts
from DocsToKG.ContentDownload.telemetry.schema import newest_id, open_database, transaction
from DocsToKG.core.clock import Clock, utc_iso

_GONE = (TAKEN_DOWN, FILE_REJECTED)


def tombstone(
    doc_id: str, *, run_id: str, cause: str, explanation: str, sha256: str | None, lease_id: str
) -> ManifestRecord:
    """A line after which no earlier file of the work counts; `lease_id` makes it one of a kind."""
    return ManifestRecord(
        doc_id=doc_id,
        outcome=OutcomeClass.SKIP,
        reason=cause,
        run_id=run_id,
        stage=TAKEDOWN_STAGE,
        cause=cause,
        explanation=explanation,
        sha256=sha256,
        lease_id=lease_id,
    )


def add_line(root: Path, line: ManifestRecord, *, database: Path, sinks: Sequence[str], clock: Clock) -> None:
    """Append the line. Needs the folder to be free. No file stands any more for a work that was taken down or whose
    file was rejected; the file of a line that has one does."""
    root.mkdir(parents=True, exist_ok=True)
    database.parent.mkdir(parents=True, exist_ok=True)
    with record_errors(root), contextlib.ExitStack() as held:
        for folder in {root.resolve(), database.parent.resolve()}:
            held.enter_context(locked(folder))
        db = held.enter_context(contextlib.closing(open_database(database)))
        with transaction(db):
            last = db.execute("SELECT MAX(created_at) FROM manifests WHERE id > (SELECT MAX(id) - 1 FROM manifests)")
            stamp = max(str(last.fetchone()[0] or ""), utc_iso(clock.now()))
            before = newest_id(db, "manifests")
            insert_manifests(db, [manifest_values(replace(line, created_at=stamp))])
            if line.cause in _GONE:
                db.execute("DELETE FROM downloads WHERE doc_id = ?", (line.doc_id,))
            db.execute(INSERT_DOWNLOADS, (before,))
        catch_up(db, root, sinks, held)


def refill(root: Path, database: Path, *, attempts: bool) -> None:
    """Fill a database that was lost from the text files of its record, as a run would; with `attempts` also with the
    requests. One that has a line already would stay as it is."""
    if database.is_file() or not any((root / name).is_file() for name in (MANIFEST, LAST)):
        return
    database.parent.mkdir(parents=True, exist_ok=True)
    with record_errors(root), locked(root), contextlib.closing(open_database(database)) as db:
        if restore(db, root, damaged=last_set_aside(database)).rows and attempts:
            restore_attempts(db, root)


def forget_files(database: Path, doc_ids: Sequence[str]) -> int:
    """No file stands for these works, whatever else brought them back (a database filled anew from the text files)."""
    if not doc_ids or not database.is_file():
        return 0
    with contextlib.closing(open_database(database)) as db, transaction(db):
        return sum(db.execute("DELETE FROM downloads WHERE doc_id = ?", (doc_id,)).rowcount for doc_id in doc_ids)


def last_lines(database: Path) -> list[tuple[str, str | None, str, str, str]]:
    """The latest line about the takedown of each work: doc_id, sha256, cause, explanation, created_at."""
    if not database.is_file():
        return []
    with contextlib.closing(open_database(database)) as db:
        return db.execute(
            "SELECT doc_id, sha256, cause, explanation, created_at FROM manifests WHERE id IN "
            "(SELECT MAX(id) FROM manifests WHERE stage = ? GROUP BY doc_id) ORDER BY id",
            (TAKEDOWN_STAGE,),
        ).fetchall()
