"""Files that stand for several works, and what that saves; and which of a work's files is the one that stands for it.

A work that was obtained again may have got other bytes: the latest file stands for it, earlier ones are superseded.
Reads only, on a connection that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from DocsToKG.ContentDownload.catalog.connection import Db

# Of a row of `downloads`: no later file stands for its work. For few rows; many are told apart by `_SUPERSEDED`.
STANDS = """NOT EXISTS (SELECT 1 FROM downloads n
                          WHERE n.doc_id = downloads.doc_id AND n.manifest_id > downloads.manifest_id)"""
_SUPERSEDED = """SELECT d.rowid FROM (SELECT doc_id FROM downloads GROUP BY doc_id HAVING COUNT(*) > 1) s
  CROSS JOIN downloads d ON d.doc_id = s.doc_id
 WHERE d.manifest_id < (SELECT MAX(n.manifest_id) FROM downloads n WHERE n.doc_id = d.doc_id)"""
_STANDING = f"downloads.rowid NOT IN ({_SUPERSEDED})"
# The digests come from the index alone; only what is shared is looked up.
_SEVERAL = f"""
SELECT sha256, works, size AS size_bytes, (works - 1) * size AS bytes_saved
  FROM (SELECT sha256, COUNT(*) AS works,
               (SELECT COALESCE(MAX(d.size_bytes), 0) FROM downloads d WHERE d.sha256 = downloads.sha256) AS size
          FROM downloads WHERE {_STANDING} GROUP BY sha256 HAVING COUNT(*) > 1) s
"""
_NAMED = f"SELECT doc_id FROM downloads WHERE sha256 = ? AND {STANDS} ORDER BY doc_id LIMIT ?"
_MOST_NAMED = 100
_ONE = "SELECT :doc_id AS doc_id"
_OFTEN = "SELECT doc_id FROM manifests GROUP BY doc_id HAVING COUNT(*) > 1"
_EARLIER_NAMES = """
SELECT m.sha256, m.path FROM ({works}) s CROSS JOIN manifests m ON m.doc_id = s.doc_id
 WHERE m.status = 'ok' AND m.path <> COALESCE((
   SELECT d.path FROM downloads d WHERE d.doc_id = m.doc_id ORDER BY d.manifest_id DESC LIMIT 1), '')
   AND m.sha256 IS NOT NULL AND m.path IS NOT NULL
 GROUP BY m.sha256, m.path ORDER BY MIN(m.doc_id), MIN(m.id)
"""


def totals(db: Db) -> dict[str, int]:
    """Works and files, bytes as they are named and as they are stored."""
    works, named = db.execute(
        f"SELECT COUNT(*), COALESCE(SUM(size_bytes), 0) FROM downloads WHERE {_STANDING}"
    ).fetchone()
    sums = "COUNT(*), COALESCE(SUM(works - 1), 0), COALESCE(SUM(bytes_saved), 0)"
    shared, extra, saved = db.execute(f"SELECT {sums} FROM ({_SEVERAL}) f").fetchone()
    return {
        "works": works,
        "files": works - extra,
        "shared_files": shared,
        "bytes_named": named,
        "bytes_stored": named - saved,
        "bytes_saved": saved,
    }


def earlier_names(db: Db, doc_id: str | None = None) -> Iterator[tuple[str, str]]:
    """Digest and readable name of files that stood for a work and do so no more: another file does, or the same under
    another name. Of one work, or of all."""
    yield from db.execute(_EARLIER_NAMES.format(works=_ONE if doc_id is not None else _OFTEN), {"doc_id": doc_id})


def shared_files(db: Db, *, limit: int) -> list[dict[str, Any]]:
    """Those that save most, with the first works that each stands for."""
    cursor = db.execute(f"SELECT * FROM ({_SEVERAL}) f ORDER BY bytes_saved DESC, sha256 LIMIT ?", (limit,))
    names = [column[0] for column in cursor.description]
    found = [dict(zip(names, row, strict=True)) for row in cursor]
    return [
        {**file, "doc_ids": [doc_id for (doc_id,) in db.execute(_NAMED, (file["sha256"], _MOST_NAMED))]}
        for file in found
    ]
