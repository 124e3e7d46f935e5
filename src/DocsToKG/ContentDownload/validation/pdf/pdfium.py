"""Read a PDF's text with PDFium. Runs in a worker process: PDFium parses hostile bytes in C++.

Knows PDFium's C interface. Does not know processes, or what the text means.
Promises: bounded pages, letters, outline entries and attachments; a file that PDFium refuses raises `Unreadable`.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any

import pypdfium2_raw as pdfium
from pypdfium2_raw.version import PDFIUM_INFO

from DocsToKG.ContentDownload.validation.pdf.document import ReadOptions, number_blocks

ENGINE = f"pdfium {PDFIUM_INFO.build}"

_ERRORS = {2: "file error", 3: "not a PDF, or damaged", 4: "a password is needed", 5: "unknown security", 6: "page"}
_ENCRYPTED = frozenset({4, 5})
_INFO = ("Title", "Author", "Subject", "Keywords", "Creator", "Producer", "doi", "DOI", "WPS-ARTICLEDOI")
_INFO_CHARS = 2_000
_OUTLINE = 200
_ATTACHMENTS = 50
_NAME_CHARS = 300
_OBJECTS = 200
_IMAGE = 3
_LONGEST_ROW = 2_000
_CharBox = tuple[float, float, float, float]  # left, bottom, right, top
_BREAK = re.compile(r"\r\n|\r|\n|\f|\x0b|\u2028|\u2029")
# PDFium marks a hyphen at the end of a line by one of these.
_SOFT_HYPHENS = dict.fromkeys((0x02, 0xFFFE, 0xAD), "-")
_CONTROLS = dict.fromkeys([*range(1), *range(3, 32), 0x7F, 0xFFFF, 0x200B, 0x200E, 0x200F, 0xFEFF], None)
_CLEAN: dict[int, str | None] = {**_SOFT_HYPHENS, **_CONTROLS}


class Unreadable(Exception):
    """PDFium refuses the file."""

    def __init__(self, detail: str, *, encrypted: bool = False) -> None:
        super().__init__(detail)
        self.encrypted = encrypted


def start() -> None:
    """Initialise the library, once in a process."""
    pdfium.FPDF_InitLibrary()


def read(data: Any, size: int, options: ReadOptions) -> dict[str, Any]:
    """The document in the form of `DocumentText.from_json`, without `xmp` and `streams`. `data` is a
    ctypes buffer that stays alive during the call."""
    document = pdfium.FPDF_LoadMemDocument64(data, size, None)
    if not document:
        code = pdfium.FPDF_GetLastError()
        raise Unreadable(_ERRORS.get(code, f"error {code}"), encrypted=code in _ENCRYPTED)
    try:
        count = pdfium.FPDF_GetPageCount(document)
        return {
            "page_count": count,
            "pages": list(_pages(document, count, options)),
            "info": {key: text for key in _INFO if (text := _info(document, key))},
            "outline": list(_outline(document)),
            "attachments": list(_attachments(document)),
            "engine": ENGINE,
        }
    finally:
        pdfium.FPDF_CloseDocument(document)


def _pages(document: Any, count: int, options: ReadOptions) -> Iterator[dict[str, Any]]:
    first = range(min(options.pages, count))
    wanted = dict.fromkeys([*first, *range(max(0, count - options.last_pages), count)])
    left = options.max_document_letters
    for index in wanted:
        if left <= 0:
            return
        page = _page(document, index, min(options.max_letters, left))
        left -= page["letters"]
        yield page


def _page(document: Any, index: int, max_letters: int) -> dict[str, Any]:
    empty: dict[str, Any] = {
        "number": index + 1, "width": 0.0, "height": 0.0, "lines": [], "letters": 0, "images": 0,
        "label": _label(document, index), "cut": False, "marks": 1,
    }  # fmt: skip
    page = pdfium.FPDF_LoadPage(document, index)
    if not page:
        return empty
    try:
        # Otherwise the lines of a turned page come in the wrong order.
        pdfium.FPDFPage_SetRotation(page, 0)
        shown = {
            "width": round(pdfium.FPDF_GetPageWidthF(page), 1),
            "height": round(pdfium.FPDF_GetPageHeightF(page), 1),
        }
        text_page = pdfium.FPDFText_LoadPage(page)
        if not text_page:
            return {**empty, **shown}
        try:
            chars = max(0, pdfium.FPDFText_CountChars(text_page))
            text = _text(text_page, min(chars, max_letters))
            lines = list(number_blocks(_lines(text_page, text)))
        finally:
            pdfium.FPDFText_ClosePage(text_page)
        letters = sum(len(line[0]) - line[0].count(" ") for line in lines)
        images = _images(page) if letters < 200 else 0
        marks = pdfium.FPDFPage_CountObjects(page) + pdfium.FPDFPage_GetAnnotCount(page)
        return {
            **empty, **shown, "lines": lines, "letters": letters, "images": images, "cut": chars > max_letters,
            "marks": marks,
        }  # fmt: skip
    finally:
        pdfium.FPDF_ClosePage(page)


def _text(text_page: Any, count: int) -> str:
    if count <= 0:
        return ""
    # A character outside the basic plane takes two units.
    units = (ctypes.c_ushort * (2 * count + 2))()
    written = pdfium.FPDFText_GetText(text_page, 0, count, units)
    return bytes(units)[: 2 * max(0, written - 1)].decode("utf-16-le", "replace")


def _lines(text_page: Any, text: str) -> Iterator[tuple[str, float, float, float, float, float]]:
    at = 0
    for part in _BREAK.split(text):
        if part and not part.isspace():
            yield from _rows_of(text_page, at, part)
        at += len(part) + 2


def _rows_of(text_page: Any, at: int, part: str) -> Iterator[tuple[str, float, float, float, float, float]]:
    """The rows of a line. PDFium runs rows together at a hyphen, and where letters have no known width."""
    first, last = _ends(at, part)
    ends = _char(text_page, first), _char(text_page, last)
    if len(part) > _LONGEST_ROW or ends[0] is None or ends[1] is None or _is_one_row(ends[0], ends[1]):
        if shown := _shown(part):
            yield (shown, *_box(text_page, first, last, ends))
        return
    for start, row in _divided(text_page, at, part, ends[0]):
        if shown := _shown(row):
            first, last = _ends(start, row)
            yield (shown, *_box(text_page, first, last, (_char(text_page, first), _char(text_page, last))))


def _shown(row: str) -> str:
    return " ".join((row if row.isprintable() else row.translate(_CLEAN)).split())


def _divided(text_page: Any, at: int, part: str, box: _CharBox) -> Iterator[tuple[int, str]]:
    begun = 0
    for offset, letter in enumerate(part):
        if letter.isspace() or (now := _char(text_page, at + offset)) is None:
            continue
        if not _is_one_row(box, now):
            yield at + begun, part[begun:offset]
            begun = offset
        box = now
    yield at + begun, part[begun:]


def _ends(at: int, part: str) -> tuple[int, int]:
    return at + len(part) - len(part.lstrip()), at + len(part.rstrip()) - 1


def _is_one_row(one: _CharBox, other: _CharBox) -> bool:
    """Their heights overlap, or they follow one another upwards, as turned text does."""
    if one[1] == other[1] and one[3] == other[3]:
        return True
    overlap = min(one[3], other[3]) - max(one[1], other[1])
    return overlap > 0.2 * min(one[3] - one[1], other[3] - other[1]) or abs(one[0] - other[0]) < 1.0


def _box(
    text_page: Any, first: int, last: int, ends: tuple[_CharBox | None, _CharBox | None]
) -> tuple[float, float, float, float, float]:
    """The line's box and height, from three of its letters: asking for each letter would cost more than the text."""
    one, two = ends
    if one is not None and two is not None and one[1] == two[1] and one[3] == two[3]:
        left, right, size = min(one[0], two[0]), max(one[2], two[2]), one[3] - one[1]
        return (round(left, 1), round(one[1], 1), round(right, 1), round(one[3], 1), round(size, 2))
    middle = _char(text_page, (first + last) // 2) if last - first > 1 else None
    boxes = [box for box in dict.fromkeys((one, middle, two)) if box is not None]
    if not boxes:
        return (0.0, 0.0, 0.0, 0.0, 0.0)
    left, right = min(box[0] for box in boxes), max(box[2] for box in boxes)
    heights = sorted(box[3] - box[1] for box in boxes)
    size = heights[len(heights) // 2]
    usual = [box for box in boxes if box[3] - box[1] >= 0.8 * size]  # no superscripts
    bottom, top = min(box[1] for box in usual), max(box[3] for box in usual)
    return (round(left, 1), round(bottom, 1), round(right, 1), round(top, 1), round(size, 2))


# Filled again by each call: PDFium is used by one thread.
_BOX = pdfium.FS_RECTF()
_BOX_REFERENCE = ctypes.byref(_BOX)


def _char(text_page: Any, text_index: int) -> _CharBox | None:
    index = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, text_index)
    if index < 0:
        return None
    if not pdfium.FPDFText_GetLooseCharBox(text_page, index, _BOX_REFERENCE):
        return None
    left, bottom, right, top = _BOX.left, _BOX.bottom, _BOX.right, _BOX.top
    if left > right:
        left, right = right, left
    if bottom > top:
        bottom, top = top, bottom
    return (left, bottom, right, top) if top > bottom else None


def _images(page: Any) -> int:
    count = min(_OBJECTS, pdfium.FPDFPage_CountObjects(page))
    return sum(pdfium.FPDFPageObj_GetType(pdfium.FPDFPage_GetObject(page, index)) == _IMAGE for index in range(count))


def _info(document: Any, key: str) -> str:
    return _wide(lambda buffer, size: pdfium.FPDF_GetMetaText(document, key.encode(), buffer, size), _INFO_CHARS)


def _label(document: Any, index: int) -> str:
    return _wide(lambda buffer, size: pdfium.FPDF_GetPageLabel(document, index, buffer, size), 40)


def _outline(document: Any) -> Iterator[str]:
    """The titles of the first level; a loop in the list ends with the bound."""
    entry = pdfium.FPDFBookmark_GetFirstChild(document, None)
    for _ in range(_OUTLINE):
        if not entry:
            return
        title = _wide(lambda buffer, size, entry=entry: pdfium.FPDFBookmark_GetTitle(entry, buffer, size), _NAME_CHARS)
        if title:
            yield title
        entry = pdfium.FPDFBookmark_GetNextSibling(document, entry)


def _attachments(document: Any) -> Iterator[str]:
    for index in range(min(_ATTACHMENTS, pdfium.FPDFDoc_GetAttachmentCount(document))):
        found = pdfium.FPDFDoc_GetAttachment(document, index)
        if found:
            yield _wide(
                lambda buffer, size, found=found: pdfium.FPDFAttachment_GetName(found, buffer, size), _NAME_CHARS
            )


def _wide(ask: Any, max_chars: int) -> str:
    """A UTF-16 string of the library, of at most `max_chars`; empty when it is longer than four times that."""
    size = ask(None, 0)
    if not 2 < size <= 8 * max_chars:
        return ""
    buffer = (ctypes.c_ushort * (size // 2))()
    ask(buffer, 2 * (size // 2))
    return " ".join(bytes(buffer)[: size - 2].decode("utf-16-le", "replace").split())[:max_chars]
