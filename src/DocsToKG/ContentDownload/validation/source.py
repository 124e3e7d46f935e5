"""The bytes to be proved: in memory while they are few, else a file.

Knows how a parser takes bytes in memory without asking for them piece by piece.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

Source = Path | bytes

SHEET_NAME = "<sheet>"


class Sheet(io.FileIO):
    """A file in memory for one paper after another, kept for the life of the process.

    A parser maps it and reads by itself. From a `BytesIO` it would read by hundreds of calls, and before each of them
    other threads may take the interpreter.
    """

    def __init__(self, fd: int) -> None:
        super().__init__(fd, "r+b", closefd=False)
        self._size = 0

    def __repr__(self) -> str:
        return SHEET_NAME

    def put(self, data: bytes) -> None:
        """These bytes and no others. Nobody may have the sheet mapped."""
        written = os.pwrite(self.fileno(), data, 0)
        if self._size > written:
            os.ftruncate(self.fileno(), written)
        self._size = written
        if written != len(data):
            raise OSError("no memory for all of it")


FREE_SHEETS: list[Sheet] = []  # never more than were in use at once


def open_source(source: Source) -> io.BytesIO | io.BufferedReader:
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def size_of(source: Source) -> int:
    return len(source) if isinstance(source, bytes) else source.stat().st_size


def head_of(source: Source, count: int) -> bytes:
    """The first `count` bytes."""
    if isinstance(source, bytes):
        return source[:count]
    with source.open("rb") as file:
        return file.read(count)


def lay_out(data: bytes) -> Sheet | io.BytesIO:
    """The bytes for a parser, which must be done with them before `put_away`."""
    try:
        sheet = FREE_SHEETS.pop()
    except IndexError:
        made = _new_sheet()
        if made is None:
            return io.BytesIO(data)
        sheet = made
    try:
        sheet.put(data)
    except OSError:
        put_away(sheet)
        return io.BytesIO(data)
    return sheet


def put_away(file: Sheet | io.BytesIO) -> None:
    if isinstance(file, Sheet):
        FREE_SHEETS.append(file)


def _new_sheet() -> Sheet | None:
    """None where the system has no such files, or gives no more."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return Sheet(os.memfd_create("sheet"))
    return None
