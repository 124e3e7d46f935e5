"""Files that stand for several works, and what that saves. Reads only, on a connection that it is given."""

from __future__ import annotations

import sqlite3
from typing import Any

# The digests come from the index alone; only what is shared is looked up.
_SEVERAL = """
SELECT sha256, works, size AS size_bytes, (works - 1) * size AS bytes_saved
  FROM (SELECT sha256, COUNT(*) AS works,
               (SELECT COALESCE(MAX(d.size_bytes), 0) FROM downloads d WHERE d.sha256 = downloads.sha256) AS size
          FROM downloads GROUP BY sha256 HAVING COUNT(*) > 1)
"""
_NAMED = "SELECT doc_id FROM downloads WHERE sha256 = ? ORDER BY doc_id LIMIT ?"
_MOST_NAMED = 100


def totals(db: sqlite3.Connection) -> dict[str, int]:
    """Works and files, bytes as they are named and as they are stored."""
    works, named = db.execute("SELECT COUNT(*), COALESCE(SUM(size_bytes), 0) FROM downloads").fetchone()
    sums = "COUNT(*), COALESCE(SUM(works - 1), 0), COALESCE(SUM(bytes_saved), 0)"
    shared, extra, saved = db.execute(f"SELECT {sums} FROM ({_SEVERAL})").fetchone()
    return {
        "works": works,
        "files": works - extra,
        "shared_files": shared,
        "bytes_named": named,
        "bytes_stored": named - saved,
        "bytes_saved": saved,
    }


def shared_files(db: sqlite3.Connection, *, limit: int) -> list[dict[str, Any]]:
    """Those that save most, with the first works that each stands for."""
    cursor = db.execute(f"SELECT * FROM ({_SEVERAL}) ORDER BY bytes_saved DESC, sha256 LIMIT ?", (limit,))
    names = [column[0] for column in cursor.description]
    found = [dict(zip(names, row, strict=True)) for row in cursor]
    return [
        {**file, "doc_ids": [doc_id for (doc_id,) in db.execute(_NAMED, (file["sha256"], _MOST_NAMED))]}
        for file in found
    ]
