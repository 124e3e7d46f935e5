"""The bytes to be proved: in memory while they are few, else a file."""

from __future__ import annotations

import io
from pathlib import Path

Source = Path | bytes


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
