"""The forms in which a paper can be had, and what tells a body's form.

Knows names, media types and the first bytes of files that are no paper. Does not know whether a file is whole.
Promises: the bytes decide, a header never does.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from DocsToKG.ContentDownload.api.types import DownloadPlan

HEADER_BYTES = 1024
MIN_PDF_BYTES = 1024
GZIP_MAGIC = b"\x1f\x8b\x08"


@dataclass(frozen=True, slots=True)
class Form:
    """`name` is what users write (`formats: pdf, xml`) and the extension of the stored file.

    `accept` is how the form is asked for, where that is not how files are asked for anyway.
    """

    name: str
    mime: str
    accept: str | None = None


PDF = Form("pdf", "application/pdf")
XML = Form("xml", "application/xml", "application/jats+xml, application/xml, text/xml;q=0.9, */*;q=0.3")
HTML = Form("html", "text/html", "text/html, application/xhtml+xml, */*;q=0.3")
FORMS = {form.name: form for form in (PDF, XML, HTML)}

# What comes in a paper's place often enough to be named, by its first bytes.
_FOREIGN = (
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF medium"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript document"),
    (b"Rar!", "a RAR archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"BZh", "a bzip2 file"),
    (b"\x1f\x9d", "a compressed file"),
)
_MAGICS = tuple(magic for magic, _ in _FOREIGN)
_BY_MIME = {
    **dict.fromkeys(("application/xml", "text/xml", "application/jats+xml"), XML),
    **dict.fromkeys(("text/html", "application/xhtml+xml"), HTML),
}


def form_of(plan: DownloadPlan) -> Form:
    """The form that the plan promises. Sources say little about types, so what is not XML or HTML is taken for PDF."""
    return _form_named(plan.expected_mime or "")


@functools.lru_cache(maxsize=64)
def _form_named(media_type: str) -> Form:
    return _BY_MIME.get(media_type.partition(";")[0].strip().lower(), PDF)


def has_pdf_header(head: bytes) -> bool:
    """Blanks, a byte order mark or left-overs of HTTP before the header are common."""
    return head.find(b"%PDF-", 0, HEADER_BYTES) >= 0


def foreign_kind(head: bytes) -> str | None:
    """What the file is, when its first bytes say that it can be none of the forms."""
    # An archive may show the header of a PDF that is packed in it; a PDF may begin with PostScript's mark.
    if not head.startswith(_MAGICS) or (head.startswith(b"%!PS") and has_pdf_header(head)):
        return None
    return next((name for magic, name in _FOREIGN if head.startswith(magic)), None)
