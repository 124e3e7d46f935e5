"""Files in which nothing shows that they are the paper: those that were kept, and those that wait in quarantine.

Reads the record only. Promises: what a person has settled, and what was taken down, is not listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from DocsToKG.ContentDownload.catalog.connection import Db
from DocsToKG.ContentDownload.catalog.duplicates import STANDS
from DocsToKG.ContentDownload.catalog.selection import TAKEDOWN_STAGE, TAKEN_DOWN

FILE_REJECTED = "file-rejected"  # the cause of a line which says that a person has rejected the file
KEPT, QUARANTINED = "kept", "quarantined"

_KEPT = f"""SELECT doc_id, sha256 FROM downloads
             WHERE proof = 'unproved' AND corrupt = 0 AND {STANDS} ORDER BY doc_id"""
_LINE = """SELECT doc_id, title, year, path, sha256, size_bytes, mime, url, canonical_url, http_status, resolver,
                  evidence, is_guess, version, COALESCE(license_raw, license), host_type, created_at, validation
             FROM manifests WHERE doc_id = ? AND sha256 = ? AND status = 'ok' ORDER BY id DESC LIMIT 1"""
# A file that stands for the work by now has settled the matter, and so has a takedown.
_WAITING = f"""
SELECT doc_id, title, year, candidates, created_at FROM manifests m
 WHERE proof = 'unproved' AND status = 'error' AND NOT EXISTS (SELECT 1 FROM downloads d WHERE d.doc_id = m.doc_id)
   AND NOT EXISTS (SELECT 1 FROM manifests t WHERE t.stage = '{TAKEDOWN_STAGE}' AND t.cause = '{TAKEN_DOWN}'
                      AND t.doc_id = m.doc_id AND t.id > m.id)
 ORDER BY id"""
_REJECTED = f"SELECT doc_id, sha256 FROM manifests WHERE stage = '{TAKEDOWN_STAGE}' AND cause = '{FILE_REJECTED}'"


@dataclass(frozen=True, slots=True)
class UnprovedFile:
    """A file, whose it would be, and where it came from. `state`: kept or quarantined."""

    doc_id: str
    state: str
    sha256: str
    path: str
    title: str | None
    year: int | None
    size_bytes: int | None
    mime: str | None
    url: str | None
    canonical_url: str | None
    http_status: int | None
    source: str | None
    evidence: str | None
    is_guess: bool
    version: str | None
    license: str | None
    host_type: str | None
    since: str | None
    validation: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def unproved_files(db: Db) -> Iterator[UnprovedFile]:
    """Kept ones first; of several lines about one file the latest."""
    rejected = rejected_files(db)
    for key in db.execute(_KEPT).fetchall():
        for row in db.execute(_LINE, tuple(key)).fetchall():
            yield _kept(row)
    waiting: dict[tuple[str, str], UnprovedFile] = {}
    for row in db.execute(_WAITING).fetchall():
        for file in _quarantined(row):
            waiting.pop((file.doc_id, file.sha256), None)
            waiting[file.doc_id, file.sha256] = file
    yield from (file for key, file in waiting.items() if key not in rejected)


def rejected_files(db: Db) -> frozenset[tuple[str, str]]:
    """Works, each with the digest of a file that a person has rejected for it."""
    return frozenset((str(doc_id), str(sha256)) for doc_id, sha256 in db.execute(_REJECTED).fetchall())


def _kept(row: tuple[Any, ...]) -> UnprovedFile:
    doc_id, title, year, path, sha256, size, mime, url, canonical, status, source, evidence, is_guess, *rest = row
    version, licence, host_type, since, validation = rest
    return UnprovedFile(
        doc_id, KEPT, sha256, path, title, year, size, mime, url, canonical, status, source, evidence, bool(is_guess),
        version, licence, host_type, since, _object(validation),
    )  # fmt: skip


def _quarantined(row: tuple[Any, ...]) -> Iterator[UnprovedFile]:
    doc_id, title, year, candidates, since = row
    for candidate in _list(candidates):
        file = candidate.get("quarantine") if isinstance(candidate, dict) else None
        if not isinstance(file, dict) or not (file.get("path") and file.get("sha256")):
            continue
        yield UnprovedFile(
            doc_id, QUARANTINED, str(file["sha256"]), str(file["path"]), title, year, file.get("size_bytes"),
            file.get("mime"), candidate.get("url"), file.get("canonical_url"), file.get("http_status"),
            candidate.get("source"), candidate.get("evidence"), bool(candidate.get("is_guess")), file.get("version"),
            file.get("license"), file.get("host_type"), since, file.get("validation") or {},
        )  # fmt: skip


def _list(text: str | None) -> list[Any]:
    found = _read(text)
    return found if isinstance(found, list) else []


def _object(text: str | None) -> dict[str, Any]:
    found = _read(text)
    return found if isinstance(found, dict) else {}


def _read(text: str | None) -> Any:
    try:
        return orjson.loads(text or "null")
    except ValueError:
        return None  # a line that somebody else wrote
