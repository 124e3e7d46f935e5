"""Put a document's blocks on pages: lines with positions, in one column or several.

Does not know fonts or PDF. Promises: equal documents give equal pages; a document with a number of pages has that many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from DocsToKG.Sandbox.pdf.document import BREAK, Block, Document, Mark
from DocsToKG.Sandbox.pdf.widths import text_width, wrapped

_MARGIN, _TOP, _BOTTOM, _GUTTER = 62.0, 72.0, 64.0, 18.0
_LEADING = 1.22
_RAISED, _SMALL = 0.36, 0.66
_RIGHT_TO_LEFT = range(0x590, 0x8FF)
ARTIFACT = -1


class Span(NamedTuple):
    """A piece of a line. `block` counts the blocks of the document; marks have none."""

    text: str
    x: float
    y: float
    size: float
    bold: bool
    angle: int
    block: int
    role: str


class Page(NamedTuple):
    spans: list[Span]


class _Flow:
    def __init__(self, document: Document) -> None:
        self._document = document
        width, height = document.size
        self._width = width - 2 * _MARGIN
        self._column_width = (self._width - _GUTTER * (document.columns - 1)) / document.columns
        self._height = height
        self._number = 0
        self._line_number = 0
        self.pages: list[Page] = []
        self._new_page()

    def _new_page(self) -> None:
        self.pages.append(Page([]))
        self._column = 0
        self._y = self._top = self._height - _TOP

    def _next_column(self) -> None:
        if self._column + 1 < self._document.columns:
            self._column += 1
            self._y = self._top
        else:
            self._new_page()

    def place(self, block: Block, last_page: int | None = None) -> bool:
        """Whether the block fitted on pages up to `last_page`."""
        if block.role == BREAK:
            self._new_page()
            return True
        self._number += 1
        self._y -= block.before
        leading = block.size * _LEADING
        width = (self._width if block.across else self._column_width) - block.indent
        for line in _lines(block, width):
            if self._y - leading < _BOTTOM:
                at_end = self._column + 1 == self._document.columns
                if at_end and last_page is not None and len(self.pages) >= last_page:
                    return False
                self._next_column()
            self._y -= leading
            self._put(block, line, width)
        if block.across:
            self._top = self._y
        return True

    def _put(self, block: Block, line: str, width: float) -> None:
        left = _MARGIN + block.indent + self._column * (self._column_width + _GUTTER)
        x = left + _shift(block, line, width)
        spans = self.pages[-1].spans
        if self._document.line_numbers:
            self._line_number += 1
            number = Span(str(self._line_number), 30.0, self._y, 7.0, False, 0, ARTIFACT, "Artifact")
            spans.append(number)
        if not block.marked or "^" not in line:
            spans.append(Span(line, x, self._y, block.size, block.bold, 0, self._number, block.role))
            return
        pieces = list(enumerate(line.split("^")))
        for at, piece in reversed(pieces) if ord(line[0]) in _RIGHT_TO_LEFT else pieces:
            if not piece:
                continue
            size, lift = (block.size * _SMALL, block.size * _RAISED) if at % 2 else (block.size, 0.0)
            spans.append(Span(piece, x, self._y + lift, size, block.bold, 0, self._number, block.role))
            x += text_width(piece, size)

    def to_page(self, number: int) -> None:
        while len(self.pages) < number:
            self._new_page()


def _lines(block: Block, width: float) -> tuple[str, ...]:
    lines = wrapped(block.text, block.size, width)
    if not block.marked or "^" not in block.text:
        return lines
    return tuple(_balanced(lines))


def _balanced(lines: tuple[str, ...]) -> Iterator[str]:
    """A superscript that a line's end cuts goes on in the next line."""
    raised = False
    for line in lines:
        shown = "^" + line if raised else line
        raised = shown.count("^") % 2 == 1
        yield shown


def _shift(block: Block, line: str, width: float) -> float:
    align = block.align
    if align == "left" and line and ord(line[0]) in _RIGHT_TO_LEFT:
        align = "right"
    if align == "left":
        return 0.0
    free = max(0.0, width - text_width(line.replace("^", "") if block.marked else line, block.size))
    return free / 2 if align == "center" else free


def laid_out(document: Document) -> list[Page]:
    flow = _Flow(document)
    for block in document.front:
        flow.place(block)
    wanted = document.pages
    if wanted is None:
        for block in chain(document.body, document.back):
            flow.place(block)
    else:
        for block in document.body:
            if not flow.place(block, last_page=max(1, wanted - 1)):
                break
        flow.to_page(wanted)
        for block in document.back:
            # What follows a break of its own, as a supplement, may take as many pages as it needs.
            flow.place(block, last_page=wanted if len(flow.pages) == wanted else None)
    _add_marks(document, flow.pages)
    return flow.pages


def _add_marks(document: Document, pages: list[Page]) -> None:
    shown = pages[document.unmarked :]
    for number, page in enumerate(shown):
        for mark in document.marks:
            if _stands_on(mark, number, len(shown)):
                text = mark.text.replace("{page}", str(document.first_page + number))
                page.spans.append(_mark_span(mark, text))


def _mark_span(mark: Mark, text: str) -> Span:
    return Span(text, mark.x, mark.y, mark.size, mark.bold, mark.angle, ARTIFACT, "Artifact")


def _stands_on(mark: Mark, number: int, count: int) -> bool:
    match mark.pages:
        case "first":
            return number == 0
        case "others":
            return number > 0
        case "last":
            return number == count - 1
        case "all":
            return True
    return mark.pages == str(number + 1)


def turned(angle: int) -> tuple[float, float]:
    """Cosine and sine of an angle in degrees."""
    radians = math.radians(angle)
    return round(math.cos(radians), 6), round(math.sin(radians), 6)
