"""CSV and TSV: one paper per row, in the columns whose names say so.

With known column names each row is read by them. Without, the first cell of a row that parses is the paper,
and a first row in which nothing parses, above one in which something does, is taken for a header.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from DocsToKG.ContentDownload.inputs.entries import (
    IDENTIFYING,
    Entry,
    identifier_in,
    identifies,
    kind_of_field,
    without_marker,
)
from DocsToKG.ContentDownload.inputs.lines import MAX_LINE_CHARS, Line

_DELIMITERS = (",", "\t", ";", "|")
_MAX_ROW_LINES = 20
_OPEN_QUOTE = "a quote opens here and is never closed; close it, or double the quotes inside a cell"


def delimiter_of(line: str) -> str:
    """The sign that separates the cells of a header; a comma when none is there."""
    counts = {sign: line.count(sign) for sign in _DELIMITERS}
    best = max(counts, key=lambda sign: counts[sign])
    return best if counts[best] else ","


def is_header(line: str) -> bool:
    """Whether a line names at least one column that holds identifiers."""
    return any(identifies(cell.strip(" \"'")) for cell in line.split(delimiter_of(line)))


def read_table(lines: Iterable[Line], *, delimiter: str | None = None) -> Iterator[Entry]:
    rows = _Rows(lines, delimiter)
    first = next(rows, None)
    if first is None:
        return
    if first.problem is None and any(identifies(cell) for cell in first.cells):
        rows.kinds = [kind_of_field(cell) for cell in first.cells]
        yield from (_by_columns(row, rows.kinds) for row in rows)
    else:
        yield from _by_looks(first, rows)


class _Row(NamedTuple):
    number: int
    cells: list[str]
    problem: str | None = None

    @property
    def text(self) -> str:
        return ", ".join(cell for cell in self.cells if cell)[:2000]


class _Rows:
    """Rows that are not blank, each with the number of its first line.

    A quoted cell may span a few lines. One that spans more, reaches the end of the file or contains rows was never
    closed: its first line is a problem, and reading resumes after it.
    """

    def __init__(self, lines: Iterable[Line], delimiter: str | None) -> None:
        self._lines = iter(lines)
        self._ahead: deque[Line] = deque(islice(self._lines, 1))
        self._sign = delimiter or delimiter_of(self._ahead[0].text if self._ahead else "")
        self.kinds: list[str | None] = []  # of the columns, once they are known

    def __iter__(self) -> _Rows:
        return self

    def __next__(self) -> _Row:
        while True:
            row = self._read()
            if row.problem is not None or any(row.cells):
                return row

    def _read(self) -> _Row:
        first = self._next_line()
        if first is None:
            raise StopIteration
        if first.too_long:
            return _Row(first.number, [], "the line is longer than 64 KiB; split it")
        taken = [first]
        try:
            cells = next(csv.reader(self._feed(taken), delimiter=self._sign, skipinitialspace=True))
            if len(taken) > 1:
                self._check_quotes(taken, cells)
        except _OpenQuote:
            self._ahead.extendleft(reversed(taken[1:]))
            return _Row(first.number, [first.text], _OPEN_QUOTE)
        except csv.Error as error:
            return _Row(first.number, [first.text], f"not a readable row ({error}); check its quotes")
        return _Row(first.number, [cell.strip() for cell in cells])

    def _next_line(self) -> Line | None:
        return self._ahead.popleft() if self._ahead else next(self._lines, None)

    def _feed(self, taken: list[Line]) -> Iterator[str]:
        """The first line, and a further one each time the reader asks because a quote is still open."""
        yield _text(taken[0])
        size = len(taken[0].text)
        while (line := self._next_line()) is not None:
            taken.append(line)
            size += len(line.text)
            if line.too_long or len(taken) > _MAX_ROW_LINES or size > MAX_LINE_CHARS:
                raise _OpenQuote
            yield _text(line)
        raise _OpenQuote

    def _check_quotes(self, taken: list[Line], cells: list[str]) -> None:
        """Raises when the quote that closed a long cell is rather the opening one of a later row."""
        strict = csv.reader(map(_text, taken), delimiter=self._sign, skipinitialspace=True, strict=True)
        try:
            next(strict)
        except csv.Error:
            if strict.line_num > 1:
                raise _OpenQuote from None
        lines = [line for cell in cells for line in cell.split("\n")[1:]]
        if any(self._is_a_row(line) for line in lines):
            raise _OpenQuote

    def _is_a_row(self, line: str) -> bool:
        """Whether a line inside a cell has an identifier where this table has its identifiers."""
        found = [identifier_in(piece) for piece in line.split(self._sign)]
        if self.kinds:
            return any(name for kind, name in zip(self.kinds, found, strict=False) if kind in IDENTIFYING)
        # An abstract may well have an address on a line of its own.
        return any(name is not None and name.scheme != "url" for name in found)


class _OpenQuote(Exception):
    """A quote that nothing closes."""


def _text(line: Line) -> str:
    return line.text.replace("\0", "\ufffd") + "\n"


def _by_columns(row: _Row, kinds: list[str | None]) -> Entry:
    fields: dict[str, list[str]] = {}
    for kind, cell in zip(kinds, row.cells, strict=False):
        if kind is not None and cell:
            fields.setdefault(kind, []).append(cell)
    return Entry(row.number, row.text, fields, problem=row.problem)


def _by_looks(first: _Row, rows: Iterator[_Row]) -> Iterator[Entry]:
    opening = _first_that_parses(first)
    second = next(rows, None)
    if second is None or not (opening.problem and not first.problem and _first_that_parses(second).problem is None):
        yield opening
    if second is not None:
        yield _first_that_parses(second)
    yield from map(_first_that_parses, rows)


def _first_that_parses(row: _Row) -> Entry:
    if row.problem is not None:
        return Entry(row.number, row.text, problem=row.problem)
    for cell in row.cells:
        if identifier_in(bare := without_marker(cell)) is not None:
            return Entry(row.number, bare)
    return Entry(row.number, row.text, problem="no cell of this row is an identifier; name a column doi, id or url")
