"""What is printed: blocks of text that flow over pages, and marks that stand at a fixed place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

A4 = (595.0, 842.0)
LANDSCAPE = (842.0, 595.0)
BREAK = "break"


class Block(NamedTuple):
    """One paragraph. `^` inside a marked text starts and ends a superscript; a newline always ends a line.

    `role` is the structure type of a tagged file, or `break` for a new page.
    """

    text: str
    size: float = 10.0
    bold: bool = False
    align: str = "left"  # left | center | right
    before: float = 4.0
    role: str = "P"
    across: bool = False  # over all columns
    marked: bool = False
    indent: float = 0.0


class Mark(NamedTuple):
    """A line at a fixed place; `angle` in degrees; `pages` is all, first, others, last or a number."""

    text: str
    x: float
    y: float
    size: float = 8.0
    angle: int = 0
    pages: str = "all"
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """`front`, `body` and `back` follow each other. With `pages`, `body` is cut so that `back` begins on the last one.

    `{page}` in a mark is the printed page number, which starts with `first_page`.
    """

    front: tuple[Block, ...]
    body: Iterable[Block] = ()
    back: tuple[Block, ...] = ()
    marks: tuple[Mark, ...] = ()
    pages: int | None = None
    first_page: int = 1
    columns: int = 1
    size: tuple[float, float] = A4
    rotate: int = 0
    line_numbers: bool = False
    unmarked: int = 0  # pages before the first one that bears marks
    language: str = "en"
    title: str = ""  # of Info and XMP
    authors: tuple[str, ...] = ()
    doi: str | None = None  # of XMP
    subject: str = ""


def page_break() -> Block:
    return Block("", role=BREAK)
