"""Rows of the Wayback Machine's capture index, and which of them may be the file of a paper.

Pure. Knows the JSON form (a row of names, then rows of texts) and what crawlers wrote down as the type of a PDF.
Promises: no exception whatever the answer holds; a capture has a full timestamp and an http or https address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import orjson

from DocsToKG.ContentDownload.resolvers.ids.identifier import normalize_url
from DocsToKG.ContentDownload.resolvers.records.fields import MAX_ANSWER_BYTES

_FIELDS = ("timestamp", "original", "mimetype", "statuscode", "digest")
_MOST_ROWS = 1000
_MOMENT = re.compile(r"(?:19|20)\d{12}", re.ASCII)
_PDF_TYPES = frozenset({"application/pdf", "application/x-pdf"})
# Servers that send a file "for download", and crawlers that could not tell.
_ANY_TYPES = frozenset(
    {
        "application/octet-stream",
        "binary/octet-stream",
        "application/download",
        "application/x-download",
        "application/force-download",
        "application/save",
        "unk",
        "",
    }
)


class Capture(NamedTuple):
    """One stored answer."""

    timestamp: str
    original: str
    mimetype: str
    statuscode: str
    digest: str

    @property
    def may_be_pdf(self) -> bool:
        return self.statuscode == "200" and (self.is_pdf or self.mimetype in _ANY_TYPES)

    @property
    def is_pdf(self) -> bool:
        return self.mimetype in _PDF_TYPES


def captures_in(body: bytes) -> list[Capture] | None:
    """The captures an answer names; None when it is no answer of the index. An empty one names none."""
    if not body.strip():
        return []
    try:
        rows = orjson.loads(body) if len(body) <= MAX_ANSWER_BYTES else None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(rows, list):
        return None
    if not rows:
        return []
    header = rows[0] if isinstance(rows[0], list) else []
    if not all(name in header for name in _FIELDS):
        return None
    places = [header.index(name) for name in _FIELDS]
    return list(_captures(rows[1:_MOST_ROWS], places))


def best_captures(captures: Iterable[Capture], url: str, *, at_most: int) -> list[Capture]:
    """Those that may be the file, each content once: of the very address first, then by type, then the newest."""
    asked = _bare(url)
    found = sorted((capture for capture in captures if capture.may_be_pdf), key=lambda c: c.timestamp, reverse=True)
    found.sort(key=lambda capture: (_bare(capture.original) != asked, not capture.is_pdf))
    by_content: dict[str, Capture] = {}
    for capture in found:
        by_content.setdefault(capture.digest or capture.timestamp, capture)
    return list(by_content.values())[:at_most]


def _captures(rows: list[object], places: list[int]) -> Iterator[Capture]:
    for row in rows:
        if not isinstance(row, list) or len(row) <= max(places):
            continue
        values = [row[place] for place in places]
        if not all(isinstance(value, str) for value in values):
            continue
        timestamp, original, mimetype, status, digest = values
        if _MOMENT.fullmatch(timestamp) and original.isprintable() and normalize_url(original) is not None:
            kind = mimetype.partition(";")[0].strip().lower()
            yield Capture(timestamp, original, kind, status, digest[:64])


def _bare(url: str) -> str:
    """The address without its scheme: the index keeps both spellings under one entry."""
    return (normalize_url(url) or url).partition("://")[2]
