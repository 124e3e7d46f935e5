"""What a check of the stored files found, told to the record: so that the report counts it and the next run mends it.

Knows the table of files. Does not touch the files. Promises: a mark is of one file of one work, and goes when a whole
check finds that file good again; a check that found nothing new writes nothing.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.telemetry.schema import open_database, transaction
from DocsToKG.ContentDownload.upkeep.verifying import Findings
from DocsToKG.core.clock import Clock, utc_iso

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.shared.place import SharedRecord

_MARK_SHARED = """
UPDATE {s}.downloads d SET corrupt = r.corrupt, verified_at = r.at
  FROM json_to_recordset(%s::json) AS r (corrupt bigint, at text, doc_id text, sha256 text)
 WHERE d.doc_id = r.doc_id AND d.sha256 = r.sha256
"""
_MARK = "UPDATE downloads SET corrupt = ?, verified_at = ? WHERE doc_id = ? AND sha256 = ?"


def mark(database: Path, findings: Findings, *, clock: Clock) -> bool:
    """Note what is damaged or missing, and what is so no more; False when the record cannot be written."""
    with Catalog(database) as catalog:
        rows = _changes(catalog, findings, clock)
    if not rows:
        return True
    try:
        with contextlib.closing(open_database(database)) as db, transaction(db):
            db.executemany(_MARK, rows)
    except sqlite3.OperationalError:
        return False  # a disk that can only be read: what was found is told all the same
    return True


def mark_shared(shared: SharedRecord, findings: Findings, *, clock: Clock) -> None:
    """The same on a record that several machines share."""
    from DocsToKG.ContentDownload.catalog.shared.catalog import SharedCatalog

    rows = _changes(SharedCatalog(shared, owns=False), findings, clock)
    if rows:
        sent = [dict(zip(("corrupt", "at", "doc_id", "sha256"), row, strict=True)) for row in rows]
        shared.fetch(_MARK_SHARED.format(s=shared.schema), (json.dumps(sent),))


def _changes(catalog: Catalog, findings: Findings, clock: Clock) -> list[tuple[int, str, str, str]]:
    lacking = {
        (doc_id, file["sha256"]) for file in (*findings.damaged, *findings.missing) for doc_id in file["doc_ids"]
    }
    known = {(file.doc_id, file.sha256) for file in catalog.damaged()}
    found = lacking - known
    good = known - lacking if findings.is_whole and not findings.unreadable else set()
    now = utc_iso(clock.now())
    return [(is_damaged, now, *file) for is_damaged, files in ((1, found), (0, good)) for file in sorted(files)]
