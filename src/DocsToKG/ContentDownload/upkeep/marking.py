"""What a check of the stored files found, told to the record: so that the report counts it and the next run mends it.

Knows the table of files. Does not touch the files. Promises: a mark is of one file of one work, and goes when a whole
check finds that file good again; a check that found nothing new writes nothing.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.telemetry.schema import open_database, transaction
from DocsToKG.ContentDownload.upkeep.verifying import Findings
from DocsToKG.core.clock import Clock, utc_iso

_MARK = "UPDATE downloads SET corrupt = ?, verified_at = ? WHERE doc_id = ? AND sha256 = ?"


def mark(database: Path, findings: Findings, *, clock: Clock) -> bool:
    """Note what is damaged or missing, and what is so no more; False when the record cannot be written."""
    lacking = {
        (doc_id, file["sha256"]) for file in (*findings.damaged, *findings.missing) for doc_id in file["doc_ids"]
    }
    with Catalog(database) as catalog:
        known = {(file.doc_id, file.sha256) for file in catalog.damaged()}
    found = lacking - known
    good = known - lacking if findings.is_whole and not findings.unreadable else set()
    if not found and not good:
        return True
    now = utc_iso(clock.now())
    rows = [(is_damaged, now, *file) for is_damaged, files in ((1, found), (0, good)) for file in sorted(files)]
    try:
        with contextlib.closing(open_database(database)) as db, transaction(db):
            db.executemany(_MARK, rows)
    except sqlite3.OperationalError:
        return False  # a disk that can only be read: what was found is told all the same
    return True
