"""Is the only page of a PDF empty paper?

Knows the operators that put something on a page. Promises: what cannot be read is not called empty; bounded like every
other look into a file; nothing raises because of what a file holds.
"""

from __future__ import annotations

import io
import re

import pikepdf

from DocsToKG.ContentDownload.proof.imprint import PAGE_BYTES, inflate
from DocsToKG.ContentDownload.proof.source import Source

_STREAMS = 50
# Text, pictures, shadings, and the ends of paths that are filled or drawn.
_PAINTS = re.compile(rb"(?<![^\s\])>])(?:Tj|TJ|'|\"|Do|BI|sh|[fF]\*?|[bB]\*?|[sS])(?![^\s\[(<])")


def shows_nothing(source: Source) -> bool:
    """The file has one page, and nothing whatever is painted on it."""
    try:
        with pikepdf.open(io.BytesIO(source) if isinstance(source, bytes) else source) as pdf:
            return len(pdf.pages) == 1 and _is_empty(pdf.pages[0].obj)
    except Exception:  # the parser raises whatever a broken object provokes; then the page is not known
        return False


def _is_empty(page: pikepdf.Object) -> bool:
    if "/Annots" in page:
        return False
    content = page.get("/Contents")
    streams = list(content) if isinstance(content, pikepdf.Array) else [content]
    return len(streams) <= _STREAMS and all(stream is None or _paints_nothing(stream) for stream in streams)


def _paints_nothing(stream: pikepdf.Object) -> bool:
    if not isinstance(stream, pikepdf.Stream):
        return False
    text = inflate(stream, PAGE_BYTES)
    unread = not text and int(stream.get("/Length", 0)) > 0
    return not unread and len(text) < PAGE_BYTES and not _PAINTS.search(text)
