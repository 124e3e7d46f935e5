"""A PDF's two ends, read without a parser.

Knows the header, the end mark, where the end says the cross-reference is, and what an update that
was cut off looks like. Reads at most 65 KiB and one short piece. A parser may repair a file that lost
its end and call it whole, so this is asked first.
Promises: a file that lost its end is never called whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import BinaryIO

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.forms import HEADER_BYTES

TAIL_BYTES = 64 * 1024

_NEAR = 32
_VERSION = re.compile(rb"%PDF-(\d\.\d)")
_LINEARIZED = re.compile(rb"/Linearized\s+[\d.]+")
_LENGTH = re.compile(rb"/L\s+(\d{1,12})\b")
_POINTER = re.compile(rb"startxref\s*(\d{1,12})\b")
_SECTION = re.compile(rb"\s*(?:xref\b|\d{1,10}\s+\d{1,5}\s+obj\b)")
_TABLE = re.compile(rb"(?<!start)xref\s")
# After the end mark comes junk (blanks, NULs, a comment, the `0` of a chunked answer) or the next revision.
# The second can be cut anywhere: inside its first object's number, or deep in a stream.
_BEGUN = re.compile(rb"[\s\0]*[1-9]\d*(?:\s+(?:\d+(?:\s+(?:o(?:bj?)?)?)?)?)?\Z")
_REVISION = re.compile(rb"\d\s+\d+\s+obj\b|\bendobj\b|\bendstream\b|\bstartxref\b")


@dataclass(frozen=True, slots=True)
class Ends:
    """`short`: the file is smaller than its own linearization says."""

    version: str | None
    linearized: bool
    short: bool


def check_ends(file: BinaryIO, size: int) -> Ends:
    """Raise `CandidateRejected(truncated)` unless the file ends where a PDF ends. The header must have been seen."""
    head = _read(file, 0, 2 * HEADER_BYTES)
    begins = max(head.find(b"%PDF-"), 0)
    _check_tail(file, size, begins)
    linearized = _LINEARIZED.search(head) if b"/Linearized" in head else None
    length = _LENGTH.search(head) if linearized else None
    version = _VERSION.search(head)
    return Ends(
        version=version[1].decode() if version else None,
        linearized=linearized is not None,
        short=length is not None and size - begins < int(length[1]),
    )


def _check_tail(file: BinaryIO, size: int, begins: int) -> None:
    tail = _read(file, max(0, size - TAIL_BYTES), TAIL_BYTES)
    end = tail.rfind(b"%%EOF")
    if end < 0:
        raise _truncated("no %%EOF near the end")
    after = tail[end + 5 :]
    if not after.isspace() and (_BEGUN.match(after) or _REVISION.search(after)):
        raise _truncated("an update was begun after the last %%EOF and never ended")
    pointers = _POINTER.findall(tail, max(0, end - HEADER_BYTES), end)
    if not pointers:
        raise _truncated("no startxref before the last %%EOF")
    offset = int(pointers[-1])
    if not _leads_to_section(file, size, begins, offset):
        raise _truncated(f"startxref says {offset}, where no cross-reference begins")


def _leads_to_section(file: BinaryIO, size: int, begins: int, offset: int) -> bool:
    """Offsets count from the header; with junk before it some writers count from the file's start."""
    # The first section of a linearized file ends with offset 0: an end mark, but never the file's end.
    if offset < len(b"%PDF-1.0"):
        return False
    for at in {offset, offset + begins}:
        if at < size and _SECTION.match(_read(file, at, 64)):
            return True
        # Off by a line end is a writer's slip; more than that means bytes were lost or added on the way.
        if at < size and _TABLE.search(_read(file, max(0, at - _NEAR), 2 * _NEAR)):
            return True
    return False


def _read(file: BinaryIO, at: int, count: int) -> bytes:
    file.seek(at)
    return file.read(count)


def _truncated(detail: str) -> CandidateRejected:
    return CandidateRejected(Reason.TRUNCATED, detail)
