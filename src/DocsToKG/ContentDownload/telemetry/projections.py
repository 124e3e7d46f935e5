"""Text files that follow the database: appended to while it runs, brought up to date when it opens again.

Knows where in a file the rows of a table stand. Does not know what the rows mean.
Promises: after `catch_up` every row stands in the file exactly once and no line is torn; whole lines that were
there before stay, whoever wrote them.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from DocsToKG.ContentDownload.errors import RecordError

_CHUNK = 1 << 20
_TOGETHER = 1_000


@dataclass(frozen=True, slots=True)
class Position:
    """Rows `first_id`..`last_id` stand in bytes `base_bytes`..`end_bytes`; what is before them is not ours."""

    first_id: int = 1
    base_bytes: int = 0
    last_id: int = 0
    end_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Repair:
    """What was put right in a file when the record was opened."""

    name: str
    appended_rows: int = 0
    torn_bytes: int = 0
    diverged: bool = False
    note: str = ""

    def __str__(self) -> str:
        parts = [f"{self.appended_rows} missing lines added"] if self.appended_rows else []
        parts += [f"a torn last line of {self.torn_bytes} bytes mended"] if self.torn_bytes else []
        parts += ["lines of other origin kept"] if self.diverged else []
        parts += [self.note] if self.note else []
        return f"{self.name}: {', '.join(parts)}"


Rows = Iterable[tuple[int, Sequence[Any]]]
Lines = Iterable[tuple[int, bytes]]


class Follower(Protocol):
    """Whatever holds the rows of a table up to `last_id`."""

    rows_after: Callable[[int], Rows]

    @property
    def last_id(self) -> int: ...

    def append(self, rows: Sequence[Sequence[Any]], last_id: int) -> None: ...


class Projection:
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

    def catch_up(self, position: Position | None, *, newest_id: int, save: Callable[[Position], None]) -> Repair | None:
        """Open the file and write into it what the table has more; returns what was amiss, if anything.

        `save` stores where comparing begins, before anything is appended, so that a crash in here is healed as well.
        """
        note = "the file was gone" if position is not None and not self.path.exists() else ""
        # A named pipe or a device has no end to compare with; not waiting for one is why it is opened non-blocking.
        self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            raise RecordError(f"{self.path} is not a regular file: remove it and run again")
        with open(self._fd, "rb", closefd=False) as file:
            torn, start = self._begin(file, position, newest_id)
            save(start)
            repair = self._follow(file, start)
        repair = replace(repair, torn_bytes=repair.torn_bytes + torn, note=note)
        return repair if repair != Repair(self.name) else None

    @property
    def last_id(self) -> int:
        return self.position.last_id

    def append(self, rows: Sequence[Sequence[Any]], last_id: int) -> None:
        """Add rows that are committed. A short write is left for the next `catch_up` to complete."""
        if rows:
            data = self._made_of(rows)
            self._write(data)
            self.position = replace(self.position, last_id=last_id, end_bytes=self.position.end_bytes + len(data))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _line(self, values: Sequence[Any]) -> bytes:
        return self._made_of([values])

    def _begin(self, file: BinaryIO, position: Position | None, newest_id: int) -> tuple[int, Position]:
        """How far the file can be believed without comparing; and the bytes of a foreign torn line dropped."""
        size = _size(file)
        if position is None:
            # Nobody has followed this file yet: what is in it stays, and the rows so far are taken to be in it.
            torn = self._mend_tail(file)
            kept = _size(file)
            return torn, Position(newest_id + 1, kept, newest_id, kept) if kept else Position()
        if size < position.base_bytes:
            torn = self._mend_tail(file)
            kept = _size(file)
            return torn, Position(position.first_id, kept, position.first_id - 1, kept) if kept else Position()
        if size >= position.end_bytes and self._last_row_stands(file, position):
            return 0, position
        return 0, Position(position.first_id, position.base_bytes, position.first_id - 1, position.base_bytes)

    def _last_row_stands(self, file: BinaryIO, position: Position) -> bool:
        """The bytes before the recorded end are the recorded row: a disk that lost power may hold zeros there."""
        if position.last_id < position.first_id:
            return position.end_bytes == position.base_bytes
        for row_id, values in self.rows_after(position.last_id - 1):
            line = self._line(values)
            file.seek(max(0, position.end_bytes - len(line)))
            return row_id == position.last_id and file.read(len(line)) == line
        return False

    def _follow(self, file: BinaryIO, start: Position) -> Repair:
        """Compare the file with the rows from `start` on, and write what is missing."""
        file.seek(start.end_bytes)
        offset, last_id = start.end_bytes, start.last_id
        lines = iter(self._lines(start))
        repair = Repair(self.name)
        for row_id, line in lines:
            found = file.read(len(line))
            if found != line:
                if line.startswith(found):
                    rest = chain([(row_id, line[len(found) :])], lines)
                    last_id, added = self._append_lines(rest)
                    repair = Repair(self.name, added, len(found))
                else:
                    last_id, repair = self._merge(file, offset, chain([(row_id, line)], lines))
                break
            offset, last_id = offset + len(line), row_id or last_id
        else:
            repair = Repair(self.name, torn_bytes=self._mend_tail(file))
        self.position = Position(start.first_id, start.base_bytes, max(last_id, start.last_id), _size(file))
        return repair

    def _lines(self, start: Position) -> Iterator[tuple[int, bytes]]:
        if self._header and start.end_bytes == 0:
            yield 0, self._header
        for row_id, values in self.rows_after(start.last_id):
            yield row_id, self._line(values)

    def _merge(self, file: BinaryIO, offset: int, lines: Lines) -> tuple[int, Repair]:
        """The file goes on differently from the table: keep its lines, and add the rows that are not among them."""
        torn = self._mend_tail(file)
        file.seek(offset)
        known = {_digest(line) for line in iter(lambda: file.readline(_CHUNK), b"")}
        newest = 0

        def missing() -> Iterator[tuple[int, bytes]]:
            nonlocal newest
            for row_id, line in lines:
                newest = row_id
                if row_id and _digest(line) not in known:
                    yield row_id, line

        _, added = self._append_lines(missing())
        return newest, Repair(self.name, added, torn, diverged=True)

    def _append_lines(self, lines: Lines) -> tuple[int, int]:
        """Write the lines; returns the last row's id and how many rows there were."""
        last_id = count = 0
        held: list[bytes] = []
        for row_id, line in lines:
            last_id, count = row_id, count + int(row_id > 0)
            held.append(line)
            if len(held) >= _TOGETHER:
                self._write(b"".join(held))
                held.clear()
        self._write(b"".join(held))
        return last_id, count

    def _mend_tail(self, file: BinaryIO) -> int:
        return mend_tail(self._fd, whole=self._whole)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


def follow(followers: Iterable[Follower]) -> None:
    """Give each the rows that its table has more, whoever committed them. Those of one table that stand at the same row
    share the reading, which costs more than the writing."""
    together: dict[int, list[Follower]] = {}
    for follower in followers:
        together.setdefault(follower.last_id, []).append(follower)
    for last_id, some in together.items():
        rows = iter(some[0].rows_after(last_id))
        while read := list(islice(rows, _TOGETHER)):
            values = [values for _, values in read]
            for follower in some:
                follower.append(values, read[-1][0])


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


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


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
