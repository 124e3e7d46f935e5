"""What the text engine read of a PDF: pages, lines with their place and size, metadata, damaged streams.

Knows the form in which a worker process sends it, and bounds what it takes from one. Does not know PDFium or processes.
Promises: a reply of the wrong shape raises `ValueError`, whatever is in it.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from DocsToKG.ContentDownload.validation.identity import thresholds
from DocsToKG.ContentDownload.validation.normalization import fold, line_content

HEADER = struct.Struct("!I")  # the length of each message between a run and its workers

# Lines of one block have about the same size and stand directly below one another.
_SIZE_RATIO = 1.12
_LINE_GAP = 1.05  # between the boxes of two lines, in heights of a line


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How much of a file is read, and within which limits. `max_pages` is the number of pages when looking through."""

    pages: int = 2
    last_pages: int = 1
    max_letters: int = 20_000  # of one page
    max_document_letters: int = 200_000
    text: bool = True
    streams: str = "all"  # all | sample | none
    max_stream_bytes: int = 256 << 20  # decoded, of the whole file
    max_stream_s: float = 5.0

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ReadOptions:
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text. Coordinates are in points from the lower left corner of the page; `size` is the line's height."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    size: float
    block: int


@dataclass(frozen=True)
class Page:
    """A page as it was read. `number` counts from 1. `label` is the number that a reader program shows."""

    number: int
    width: float
    height: float
    lines: tuple[Line, ...]
    letters: int
    images: int = 0
    label: str = ""
    cut: bool = False  # the page has more letters than are read
    marks: int = 1  # things drawn on it

    @cached_property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @cached_property
    def folded(self) -> str:
        """The text in comparable form, line by line."""
        return fold(self.text)

    @cached_property
    def folded_lines(self) -> tuple[str, ...]:
        return tuple(self.folded.split("\n"))

    @cached_property
    def contents(self) -> tuple[str, ...]:
        """The upper lines as lines of a title are compared."""
        return tuple(line_content(text) for text in self.folded_lines[: thresholds.TITLE_LINES])


@dataclass(frozen=True, slots=True)
class StreamReport:
    """What decoding the streams showed. `damaged` names the object and the error of the first damaged streams;
    `complete`: neither the bound in bytes nor that in time has ended it."""

    checked: int = 0
    skipped: int = 0
    decoded_bytes: int = 0
    damaged: tuple[str, ...] = ()
    complete: bool = True

    def to_json(self) -> dict[str, Any]:
        return {**self.record(), "damaged": self.damaged}

    def record(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "checked": self.checked,
            "skipped": self.skipped,
            "decoded_bytes": self.decoded_bytes,
            "complete": self.complete,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StreamReport:
        return cls(
            checked=int(data["checked"]),
            skipped=int(data["skipped"]),
            decoded_bytes=int(data["decoded_bytes"]),
            damaged=tuple(str(note)[:200] for note in data["damaged"][:10]),
            complete=bool(data["complete"]),
        )


@dataclass(frozen=True)
class DocumentText:
    """What was read of a document."""

    page_count: int
    pages: tuple[Page, ...]
    info: dict[str, str] = field(default_factory=dict)
    xmp: str = ""
    outline: tuple[str, ...] = ()
    attachments: tuple[str, ...] = ()
    streams: StreamReport | None = None
    engine: str = ""

    @cached_property
    def letters(self) -> int:
        return sum(page.letters for page in self.pages)

    @property
    def is_scan(self) -> bool:
        """Every page that was read is a picture without text."""
        return bool(self.pages) and all(page.letters == 0 and page.images > 0 for page in self.pages)

    @property
    def is_blank(self) -> bool:
        """One page with nothing on it."""
        return self.page_count == 1 and all(page.marks == 0 for page in self.pages)

    def page(self, number: int) -> Page | None:
        return next((page for page in self.pages if page.number == number), None)

    def record(self) -> dict[str, Any]:
        """What was read, for the manifest."""
        read = {
            "engine": self.engine,
            "pages": [page.number for page in self.pages],
            "letters": self.letters,
            "scan": self.is_scan,
            "cut": any(page.cut for page in self.pages),
            "info": sorted(self.info),
            "xmp": bool(self.xmp),
            "outline": len(self.outline),
            "attachments": len(self.attachments),
        }
        return {name: value for name, value in read.items() if value or name == "letters"}

    @classmethod
    def from_json(cls, data: Any) -> DocumentText:
        """The document of a worker's reply. Raises `ValueError` when the reply has another shape."""
        try:
            return cls(
                page_count=int(data["page_count"]),
                pages=tuple(_page(page) for page in data["pages"]),
                info={str(key)[:60]: str(value)[:2_000] for key, value in data["info"].items()},
                xmp=str(data["xmp"]),
                outline=tuple(map(str, data["outline"])),
                attachments=tuple(map(str, data["attachments"])),
                streams=StreamReport.from_json(data["streams"]) if data.get("streams") else None,
                engine=str(data["engine"])[:100],
            )
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"not a document: {error}") from error


@dataclass(frozen=True, slots=True)
class TextFailure:
    """Why a file could not be read. `reason` is a word for records: text-engine-crashed, -timeout, -memory, -output,
    -closed, text-unreadable, text-encrypted."""

    reason: str
    detail: str = ""
    streams: StreamReport | None = None

    def record(self) -> dict[str, Any]:
        return {"failure": self.reason, "detail": self.detail[:200]}

    @classmethod
    def from_json(cls, data: Any) -> TextFailure:
        streams = StreamReport.from_json(data["streams"]) if data.get("streams") else None
        return cls(str(data["failure"])[:60], str(data.get("detail", ""))[:300], streams)


def number_blocks(lines: Iterable[tuple[str, float, float, float, float, float]]) -> Iterator[list[Any]]:
    """The lines with the number of the block to which each belongs."""
    block, above = -1, None
    for line in lines:
        if above is None or not _continues(above, line):
            block += 1
        above = line
        yield [*line, block]


def _continues(
    above: tuple[str, float, float, float, float, float], line: tuple[str, float, float, float, float, float]
) -> bool:
    _, left, bottom, right, _, size = above
    _, next_left, _, next_right, next_top, next_size = line
    small, large = sorted((size, next_size))
    if small <= 0 or large > small * _SIZE_RATIO:
        return False
    gap = bottom - next_top
    return -0.6 * large <= gap <= _LINE_GAP * large and next_left < right and next_right > left


def _page(data: dict[str, Any]) -> Page:
    lines = tuple(
        Line(str(text), float(left), float(bottom), float(right), float(top), float(size), int(block))
        for text, left, bottom, right, top, size, block in data["lines"]
    )
    lines = _edges_outside(_without_numbers(lines), float(data["height"]))
    return Page(
        number=int(data["number"]),
        width=float(data["width"]),
        height=float(data["height"]),
        lines=lines,
        letters=int(data["letters"]),
        images=int(data["images"]),
        label=str(data["label"]),
        cut=bool(data["cut"]),
        marks=int(data["marks"]),
    )


_TOP_EDGE, _BOTTOM_EDGE = 0.9, 0.08  # of a page's height
_MOST_IN_HEADER = 4


def _edges_outside(lines: tuple[Line, ...], height: float) -> tuple[Line, ...]:
    """The header's lines first and the footer's last, wherever the file draws them."""
    tops = [line for line in lines if line.bottom > _TOP_EDGE * height]
    bottoms = [line for line in lines if line.top < _BOTTOM_EDGE * height]
    if height <= 0 or not (tops or bottoms):
        return lines
    # A block that goes on into the page is text.
    inner = {line.block for line in lines if line.bottom <= _TOP_EDGE * height and line.top >= _BOTTOM_EDGE * height}
    header = [line for line in tops if line.block not in inner]
    if len(header) > _MOST_IN_HEADER:
        header = []
    footer = [line for line in bottoms if line.block not in inner]
    moved = {id(line) for line in (*header, *footer)}
    return (*header, *(line for line in lines if id(line) not in moved), *footer)


_NUMBERED = re.compile(r"(\d{1,4})(?:\s+(.*))?")
_FEWEST_NUMBERED = 8


def _without_numbers(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """The lines of a manuscript without the numbers that its lines bear."""
    found = [_NUMBERED.fullmatch(line.text) for line in lines]
    numbers = [int(each[1]) for each in found if each is not None]
    steps = sum(two == one + 1 for one, two in itertools.pairwise(numbers))
    if steps < _FEWEST_NUMBERED or steps < 0.5 * len(lines):
        return lines
    shown = (
        line if each is None else replace(line, text=each[2] or "") for line, each in zip(lines, found, strict=True)
    )
    return tuple(line for line in shown if line.text)
