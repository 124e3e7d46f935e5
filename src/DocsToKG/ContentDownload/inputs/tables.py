"""CSV and TSV: one paper per row, in the columns that say so.

With known column names each row is read by them. Without, the first cell of a row that parses is the paper,
and a first row in which nothing parses, above one in which something does, is taken for a header.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator

from DocsToKG.ContentDownload.inputs.entries import Entry, identifies, kind_of_field
from DocsToKG.ContentDownload.inputs.lines import Line
from DocsToKG.ContentDownload.resolvers.ids import BadIdentifier, parse_identifier

_DELIMITERS = (",", "\t", ";", "|")


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
        kinds = [kind_of_field(cell) for cell in first.cells]
        yield from (_by_columns(row, kinds) for row in rows)
    else:
        yield from _by_looks(first, rows)


class _Row:
    def __init__(self, number: int, cells: list[str], problem: str | None = None) -> None:
        self.number = number
        self.cells = cells
        self.problem = problem

    @property
    def text(self) -> str:
        return ", ".join(cell for cell in self.cells if cell)[:2000]


class _Rows:
    """Rows that are not blank, each with the number of its first line."""

    def __init__(self, lines: Iterable[Line], delimiter: str | None) -> None:
        self._lines = iter(lines)
        self._first_number = 0
        self._started = False
        self._too_long: list[int] = []
        self._ready: deque[_Row] = deque()
        self._at_end = False
        beginning = next(self._lines, None)
        self._pushed_back = [beginning] if beginning is not None else []
        sign = delimiter or delimiter_of(beginning.text if beginning is not None else "")
        self._reader = csv.reader(self._feed(), delimiter=sign, skipinitialspace=True)

    def __iter__(self) -> _Rows:
        return self

    def __next__(self) -> _Row:
        while not self._ready:
            row = self._read()
            # Lines that were passed over on the way to a row come before it.
            self._ready.extend(
                _Row(number, [], "the line is longer than 64 KiB; split it") for number in self._too_long
            )
            self._too_long.clear()
            if row is not None:
                self._ready.append(row)
            elif self._at_end and not self._ready:
                raise StopIteration
        return self._ready.popleft()

    def _read(self) -> _Row | None:
        """The next row; None when it is blank or there is none."""
        self._started = False
        try:
            cells = [cell.strip() for cell in next(self._reader)]
        except csv.Error as error:
            return _Row(self._first_number, [], f"not a readable row ({error}); check its quotes")
        except StopIteration:
            self._at_end = True
            return None
        return _Row(self._first_number, cells) if any(cells) else None

    def _feed(self) -> Iterator[str]:
        while True:
            line = self._pushed_back.pop() if self._pushed_back else next(self._lines, None)
            if line is None:
                return
            if line.too_long:
                self._too_long.append(line.number)
                continue
            if not self._started:
                self._started, self._first_number = True, line.number
            yield line.text.replace("\0", "\ufffd") + "\n"


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
        try:
            parse_identifier(cell)
        except BadIdentifier:
            continue
        return Entry(row.number, cell)
    return Entry(row.number, row.text, problem="no cell of this row is an identifier; name a column doi, id or url")
