"""Text files that follow the database: appended to while it runs, brought up to date when it opens again.

Knows where in a file the rows of a table are. Does not know what the rows mean.
Promises: after `catch_up` every row is in the file exactly once and no line is torn; whole lines that were there before
stay, whoever wrote them.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from DocsToKG.ContentDownload.catalog.paths import ATTEMPTS_CSV, LAST, MANIFEST
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.telemetry import attempts, manifest
from DocsToKG.ContentDownload.telemetry.schema import newest_id, rows_after
from DocsToKG.ContentDownload.telemetry.snapshots import Repair, last_lines, refresh_snapshots
from DocsToKG.ContentDownload.telemetry.text import is_json_object

_CHUNK = 1 << 20
_LONGEST_LINE = 4 << 20
_TOGETHER = 1_000
_POSITION = "SELECT first_id, base_bytes, last_id, end_bytes FROM projections WHERE name = ?"
_SAVE_POSITION = """
INSERT INTO projections (name, first_id, base_bytes, last_id, end_bytes) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET first_id = excluded.first_id, base_bytes = excluded.base_bytes,
                                 last_id = excluded.last_id, end_bytes = excluded.end_bytes
"""


@dataclass(frozen=True, slots=True)
class Position:
    """Rows `first_id`..`last_id` are in bytes `base_bytes`..`end_bytes`; what is before them is not ours."""

    first_id: int = 1
    base_bytes: int = 0
    last_id: int = 0
    end_bytes: int = 0


Rows = Iterable[tuple[int, Sequence[Any]]]


class TextFile:
    """One append-only file. `rows_after(id)` reads the table, `lines` makes the bytes of rows, and `whole` tells
    whether a last line without its newline is complete."""

    def __init__(
        self,
        path: Path,
        *,
        header: bytes = b"",
        lines: Callable[[Sequence[Sequence[Any]]], bytes],
        rows_after: Callable[[int], Rows],
        whole: Callable[[bytes], bool],
    ) -> None:
        self.path = path
        self.name = path.name
        self.position = Position()
        self._header = header
        self._made_of = lines
        self.rows_after = rows_after
        self._whole = whole
        self._fd = -1

    @property
    def last_id(self) -> int:
        return self.position.last_id

    def append(self, rows: Sequence[Sequence[Any]], last_id: int) -> None:
        """Add rows that are committed. A short write is left for the next `catch_up` to complete."""
        data = self._made_of(rows)
        self._write(data)
        self.position = replace(self.position, last_id=last_id, end_bytes=self.position.end_bytes + len(data))

    def open(self) -> None:
        # A named pipe or a device has no end to compare with; not waiting for one is why it is opened non-blocking.
        self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            raise RecordError(f"{self.path} is not a regular file: remove it and run again")

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def start_after(self, last_id: int) -> None:
        """The file holds the rows so far; go on at its end."""
        self.open()
        self.position = Position(last_id=last_id, end_bytes=self._size())

    def catch_up(self, position: Position | None, *, newest_id: int, save: Callable[[Position], None]) -> Repair | None:
        """Open the file and write into it what the table has more; returns what was amiss, if anything.

        `save` stores where comparing begins, before anything is appended, so that a crash in here is healed as well.
        """
        note = "the file was gone" if position is not None and not self.path.exists() else ""
        self.open()
        with open(self._fd, "rb", closefd=False) as file:
            torn, start = self._begin(file, position, newest_id)
            save(start)
            repair = self._add_missing(file, start)
        repair = replace(repair, torn_bytes=repair.torn_bytes + torn, note=note)
        return repair if repair != Repair(self.name) else None

    def _begin(self, file: BinaryIO, position: Position | None, newest_id: int) -> tuple[int, Position]:
        """How far the file can be believed without comparing; and the bytes of a foreign torn line dropped."""
        size = self._size()
        if position is None or size < position.base_bytes:
            # Nobody has followed this file yet: what is in it stays, and the rows so far are taken to be in it.
            torn = mend_tail(self._fd, whole=self._whole)
            kept, first_id = self._size(), newest_id + 1 if position is None else position.first_id
            return torn, Position(first_id, kept, first_id - 1, kept) if kept else Position()
        if size >= position.end_bytes and self._last_row_stands(file, position):
            return 0, position
        return 0, Position(position.first_id, position.base_bytes, position.first_id - 1, position.base_bytes)

    def _last_row_stands(self, file: BinaryIO, position: Position) -> bool:
        """The bytes before the recorded end are the recorded row: a disk that lost power may hold zeros there."""
        if position.last_id < position.first_id:
            return position.end_bytes == position.base_bytes
        for row_id, values in self.rows_after(position.last_id - 1):
            line = self._made_of([values])
            file.seek(max(0, position.end_bytes - len(line)))
            return row_id == position.last_id and file.read(len(line)) == line
        return False

    def _add_missing(self, file: BinaryIO, start: Position) -> Repair:
        """Append the rows after `start` that are not among the lines there."""
        file.seek(start.end_bytes)
        there, torn = Counter[bytes](), b""
        while line := file.readline(_CHUNK):
            if line.endswith(b"\n"):
                there[_digest(torn + line)] += 1
                torn = b""
            else:
                torn = (torn + line)[:_LONGEST_LINE]
        newest, added = start.last_id, 0

        def missing() -> Iterator[bytes]:
            nonlocal newest, added
            if self._header and start.end_bytes == 0:
                if not there:
                    yield self._header
                there[_digest(self._header)] -= 1
            for row_id, values in self.rows_after(start.last_id):
                line, newest = self._made_of([values]), row_id
                if there[name := _digest(line)] > 0:
                    there[name] -= 1
                else:
                    added += 1
                    yield line

        lines = missing()
        first = next(lines, b"")
        if torn and first.startswith(torn):  # it goes on where it was cut off
            first = first[len(torn) :]
        elif torn:
            mend_tail(self._fd, whole=self._whole)
        held = chain([first], lines)
        while some := list(islice(held, _TOGETHER)):
            self._write(b"".join(some))
        self.position = Position(start.first_id, start.base_bytes, newest, self._size())
        return Repair(self.name, added, len(torn), diverged=any(count > 0 for count in there.values()))

    def _size(self) -> int:
        return os.fstat(self._fd).st_size

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


def text_files(db: sqlite3.Connection, root: Path, sinks: Sequence[str]) -> dict[str, list[TextFile]]:
    """The text files of each table that `sinks` ask for."""
    tables: dict[str, list[TextFile]] = {"manifests": [], "http_events": []}
    manifests = partial(rows_after, db, manifest.SELECT_MANIFESTS)
    events = partial(rows_after, db, attempts.SELECT_ATTEMPTS)
    if "jsonl" in sinks:
        jsonl = TextFile(root / MANIFEST, lines=manifest.manifest_lines, rows_after=manifests, whole=is_json_object)
        tables["manifests"].append(jsonl)
    if "csv" in sinks:
        csv = TextFile(
            root / ATTEMPTS_CSV,
            header=attempts.CSV_HEADER,
            lines=attempts.attempts_csv,
            rows_after=events,
            whole=lambda line: line.count(b",") >= len(attempts.CSV_COLUMNS) - 1,
        )
        tables["http_events"].append(csv)
    return tables


def catch_up(
    db: sqlite3.Connection, root: Path, sinks: Sequence[str], opened: ExitStack
) -> tuple[dict[str, list[TextFile]], list[Repair]]:
    """Open the text files and bring all of them up to the database; they are closed with `opened`. Returns those that
    rows are appended to, by table, and what was amiss."""
    tables, repairs = text_files(db, root, sinks), list[Repair | None]()
    for table, files in tables.items():
        for file in files:
            opened.callback(file.close)
            row = db.execute(_POSITION, (file.name,)).fetchone()
            save = partial(save_position, db, file.name)
            repairs.append(file.catch_up(Position(*row) if row else None, newest_id=newest_id(db, table), save=save))
            save(file.position)
    repairs += refresh_snapshots(db, root, last="csv" in sinks)
    if "csv" in sinks:
        # `last.csv` alone must tell what was obtained, whenever a run is cut off: successes are added to its end, and
        # the next snapshot leaves one line of each work.
        manifests = partial(rows_after, db, manifest.SELECT_MANIFESTS)
        last = TextFile(root / LAST, lines=last_lines, rows_after=manifests, whole=bool)
        last.start_after(newest_id(db, "manifests"))
        opened.callback(last.close)
        tables["manifests"].append(last)
    return tables, [repair for repair in repairs if repair is not None]


def save_position(db: sqlite3.Connection, name: str, at: Position) -> None:
    """Note how far a file has come. A snapshot notes by itself what it shows."""
    if name != LAST:
        db.execute(_SAVE_POSITION, (name, at.first_id, at.base_bytes, at.last_id, at.end_bytes))


def follow(files: Iterable[TextFile]) -> None:
    """Give each the rows that its table has more, whoever committed them. Those of one table that are at the same row
    share the reading, which costs more than the writing."""
    together: dict[int, list[TextFile]] = {}
    for file in files:
        together.setdefault(file.last_id, []).append(file)
    for last_id, some in together.items():
        rows = iter(some[0].rows_after(last_id))
        while read := list(islice(rows, _TOGETHER)):
            values = [values for _, values in read]
            for file in some:
                file.append(values, read[-1][0])


def mend_tail(fd: int, *, whole: Callable[[bytes], bool]) -> int:
    """End the file with a newline: complete the last line when only that is missing, else drop the piece. Returns how
    many bytes the line had that lacked its end."""
    size = os.fstat(fd).st_size
    cut = _after_last_newline(fd, size)
    if cut == size:
        return 0
    if size - cut <= _CHUNK and whole(os.pread(fd, size - cut, cut)):
        os.write(fd, b"\n")
    else:
        os.ftruncate(fd, cut)
    return size - cut


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def _after_last_newline(fd: int, size: int) -> int:
    """Where the last line begins that is not ended, looking from the back."""
    end = size
    while end > 0:
        begin = max(0, end - _CHUNK)
        found = os.pread(fd, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
