"""Is this file a whole PDF?

Asks the bytes at both ends first, then pikepdf, whose exception is the verdict and whose warnings are
notes. Knows nothing of where the file came from beyond what it is told for naming a page's kind.
Promises: a file that lost its end never passes; time and memory are bounded whatever the file inflates
to; an encrypted file is a valid one, flagged.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import pikepdf

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.forms import GZIP_MAGIC, MIN_PDF_BYTES, foreign_kind, has_pdf_header
from DocsToKG.ContentDownload.validation.page_kinds import HEAD_BYTES, classify_body
from DocsToKG.ContentDownload.validation.pdf.document import StreamReport
from DocsToKG.ContentDownload.validation.pdf.ends import Ends, check_ends
from DocsToKG.ContentDownload.validation.pdf.streams import check_common_file, check_streams
from DocsToKG.ContentDownload.validation.report import PdfFacts
from DocsToKG.ContentDownload.validation.source import (
    SHEET_NAME,
    Source,
    head_of,
    lay_out,
    open_source,
    put_away,
    size_of,
)

__all__ = ["MIN_PDF_BYTES", "PdfFacts", "bound_parser", "is_gzip", "prove_pdf", "unwrap_gzip"]

_NOTES = 20
_NOTE_CHARS = 300
_CHUNK = 64 * 1024
_SMALL_BYTES, _SMALL_DECODED_BYTES, _SMALL_S = 64 * 1024, 1 << 20, 0.02
_GZIP_WRAPPER = zlib.MAX_WBITS | 16
_IN_MEMORY = re.compile(rf"stream (?:{SHEET_NAME}|<_io\.BytesIO object at 0x[0-9a-f]+>)")


def prove_pdf(
    source: Source,
    *,
    min_bytes: int = MIN_PDF_BYTES,
    content_type: str | None = None,
    url: str | None = None,
    headers: Mapping[str, str] | None = None,
    streams: str = "none",
) -> PdfFacts:
    """Raise `CandidateRejected` with the reason unless the file is a whole PDF. `streams` (all, sample or none) of a
    small file are decoded along, where that is quick."""
    size = size_of(source)
    if size == 0:
        raise CandidateRejected(Reason.EMPTY_BODY, "no bytes came")
    with open_source(source) as file:
        head = file.read(HEAD_BYTES)
        page_kind = classify_body(head, content_type=content_type, url=url, headers=headers)
        ends = _check_bytes(file, size, head, page_kind, min_bytes)
    return _parse(source, ends, streams)


def is_gzip(source: Source) -> bool:
    """Some servers forget to say that they compressed the file."""
    return head_of(source, len(GZIP_MAGIC)) == GZIP_MAGIC


def unwrap_gzip(source: Source, *, max_bytes: int) -> Iterator[bytes]:
    """The inner file in pieces, for a fresh temp file; raises `too-large` past `max_bytes`, `truncated` on a cut."""
    inflater = zlib.decompressobj(_GZIP_WRAPPER)
    total = 0
    with open_source(source) as file:
        while not inflater.eof:
            piece = _next_piece(inflater, file)
            total += len(piece)
            if total > max_bytes:
                raise CandidateRejected(Reason.TOO_LARGE, f"inflates to more than {max_bytes} bytes")
            yield piece


def _next_piece(inflater: zlib._Decompress, file: BinaryIO) -> bytes:
    packed = inflater.unconsumed_tail or file.read(_CHUNK)
    if not packed:
        raise CandidateRejected(Reason.TRUNCATED, "the gzip stream around the file has no end")
    try:
        return inflater.decompress(packed, _CHUNK)
    except zlib.error as error:
        raise CandidateRejected(Reason.CORRUPT_PDF, f"broken gzip around the file: {error}") from error


def _check_bytes(file: BinaryIO, size: int, head: bytes, page_kind: Reason | None, min_bytes: int) -> Ends:
    """The cheap questions, each with its own reason. Markup before a whole PDF is junk; without one it is a page."""
    kind = foreign_kind(head)
    if kind is not None:
        raise CandidateRejected(Reason.UNEXPECTED_CT, f"{kind}, not a PDF")
    try:
        if not has_pdf_header(head):
            reason = Reason.TOO_SMALL if size < min_bytes else Reason.CORRUPT_PDF
            raise CandidateRejected(reason, f"{size} bytes without a %PDF- header")
        if size < min_bytes:
            raise CandidateRejected(Reason.TOO_SMALL, f"{size} bytes, a paper has at least {min_bytes}")
        return check_ends(file, size)
    except CandidateRejected:
        if page_kind is not None:
            raise CandidateRejected(page_kind, "a web page, not a PDF") from None
        raise


def _parse(source: Source, ends: Ends, streams: str) -> PdfFacts:
    bound_parser()
    if not isinstance(source, bytes):
        return _open(source, source, ends, streams, pikepdf.AccessMode.default)
    file = lay_out(source)
    try:
        return _open(file, source, ends, streams, pikepdf.AccessMode.mmap)
    finally:
        put_away(file)


def _open(file: Path | BinaryIO, source: Source, ends: Ends, streams: str, access: pikepdf.AccessMode) -> PdfFacts:
    try:
        with pikepdf.open(file, inherit_page_attributes=False, access_mode=access) as pdf:
            return _facts(pdf, ends, source, streams)
    except CandidateRejected:
        raise
    except Exception as error:  # the parser raises whatever a broken object provokes; none of it is a paper
        note = _note(str(error), source)
        # A password, or a kind of encryption the parser does not know: the file is whole and keeps its secret.
        if isinstance(error, pikepdf.PasswordError) or "encryption" in note:
            return PdfFacts(None, True, ends.linearized, (note,), ends.version)
        raise CandidateRejected(Reason.CORRUPT_PDF, note) from error


def _facts(pdf: pikepdf.Pdf, ends: Ends, source: Source, streams: str) -> PdfFacts:
    # Opening has walked the page tree: loops, and trees deeper than any writer's, raised there.
    pages = pdf.pages
    count = len(pages)
    warnings = pdf.get_warnings()
    notes = [_note(str(warning), source) for warning in warnings]
    repaired = any("reconstruct" in note for note in notes)
    if repaired and ends.short:
        raise CandidateRejected(Reason.TRUNCATED, "smaller than its own linearization says, and its index is broken")
    if count == 0:
        raise CandidateRejected(Reason.CORRUPT_PDF, "no pages")
    if repaired and any("non-dictionary" in note for note in notes):
        # An editor may leave an empty place in the page tree; together with damage it is a page that was lost.
        raise CandidateRejected(Reason.CORRUPT_PDF, "damaged, and pages are missing")
    return PdfFacts(
        pages=count,
        encrypted=pdf.is_encrypted,
        linearized=ends.linearized,
        warnings=tuple(notes[:_NOTES]),
        version=ends.version,
        repaired=repaired,
        streams=_checked(pdf, source, streams, warnings) if streams != "none" and count > 1 else None,
    )


def _checked(pdf: pikepdf.Pdf, source: Source, mode: str, warnings: Sequence[object]) -> StreamReport | None:
    """What decoding the streams of a small file shows; None where it would take longer than the way to a worker."""
    if size_of(source) > _SMALL_BYTES:
        return None
    if isinstance(source, bytes) and not (warnings or pdf.is_encrypted):
        report = check_common_file(source, max_bytes=_SMALL_DECODED_BYTES)
        if report is not None:
            return report
    found = check_streams(pdf, mode, max_bytes=_SMALL_DECODED_BYTES, max_s=_SMALL_S, only_flate=True, warnings=warnings)
    return StreamReport.from_json(found) if found["complete"] else None


def _note(text: str, source: Source) -> str:
    """A parser's message without the temp file's path, or the place of the bytes in memory, in it."""
    nameless = _IN_MEMORY.sub("file", text) if isinstance(source, bytes) else text.replace(str(source), "file")
    return nameless[:_NOTE_CHARS]


@functools.cache
def bound_parser() -> None:
    """Cap what the parser may inflate and hold, for the whole process; a 600 kB file can otherwise cost a gigabyte.

    Called by the first proof; call it at start when other threads will use pikepdf.
    """
    pikepdf.settings.set_qpdf_limits(
        flate_max_memory=64 << 20,
        png_max_memory=64 << 20,
        tiff_max_memory=64 << 20,
        run_length_max_memory=64 << 20,
        doc_max_warnings=2_000,
    )
