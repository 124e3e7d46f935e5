"""Reads a bundle: a folder or an archive, file by file, with bounded lines.

Promises: only files of the bundle's form are opened or followed; line length and nesting are bounded; a missing or
additional file is named.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson

from DocsToKG.Orchestrator.audit import archive
from DocsToKG.Orchestrator.audit.layout import ORDER, line
from DocsToKG.Orchestrator.errors import BadBundle

MAX_LINE = 4 * 1_048_576
MAX_HEAD = 16 * 1_048_576  # manifest and its signature
_CHUNK = 1 << 18

Files = Iterator[tuple[str, int, IO[bytes]]]


@contextmanager
def opened(path: Path, believe: Callable[[dict[str, Any], str, str], bytes]) -> Iterator[Files]:
    """The files of a bundle in their order. `believe` verifies an envelope of a kind and gives its payload; an
    archive is unpacked only after its trailer was believed."""
    if path.is_dir():
        yield _folder(path)
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise BadBundle(str(path), f"cannot be read: {error.strerror}") from None
    with file:
        envelope, size = archive.read_trailer(file, path.name)
        said = parsed(believe(envelope, archive.TRAILER_TYPE, path.name), path.name)
        most = archive.check_digest(file, size, said, path.name)
        with archive.unpacking(file, size, most, path.name) as members:
            yield members


def _folder(path: Path) -> Files:
    found = {name for name in _names(path) if name != "signatures"}
    found |= {f"signatures/{name}" for name in _names(path / "signatures")}
    missing, strange = [name for name in ORDER if name not in found], sorted(found - set(ORDER))
    if missing or strange:
        told = f"{missing[0]} is missing" if missing else f"{strange[0][:100]!r} does not belong to it"
        raise BadBundle(path.name, told)
    for name in ORDER:
        with _plain_file(path / name, name) as file:
            yield name, os.fstat(file.fileno()).st_size, file


def _names(path: Path) -> list[str]:
    try:
        return sorted(os.listdir(path))[: len(ORDER) + 2]
    except OSError as error:
        raise BadBundle(path.name, f"cannot be listed: {error.strerror}") from None


def _plain_file(path: Path, name: str) -> IO[bytes]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise BadBundle(name, f"cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadBundle(name, "is not a plain file")
    return os.fdopen(handle, "rb", buffering=0)


def whole(stream: IO[bytes], size: int, name: str) -> bytes:
    """A small file at once."""
    if size > MAX_HEAD:
        raise BadBundle(name, f"is larger than {MAX_HEAD} bytes")
    data = b""
    while block := stream.read(_CHUNK):
        data += block
        if len(data) > MAX_HEAD:
            raise BadBundle(name, f"is larger than {MAX_HEAD} bytes")
    return data


def lines(stream: IO[bytes], name: str, sha: Any) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, and with their ends; `sha` sees every byte."""
    rest, number = b"", 0
    while block := stream.read(_CHUNK):
        sha.update(block)
        *parts, rest = (rest + block).split(b"\n")
        for part in parts:
            number += 1
            _refuse_long(name, number, part)
            yield number, part + b"\n"
        _refuse_long(name, number + 1, rest)
    if rest:
        yield number + 1, rest


def _refuse_long(name: str, number: int, data: bytes) -> None:
    if len(data) > MAX_LINE:
        raise BadBundle(name, f"line {number} is longer than {MAX_LINE} bytes")


def parsed(data: bytes, where: str) -> Any:
    """The value of a line, which must be written in the one way that lines are."""
    try:
        value = orjson.loads(data)  # which itself refuses what is nested too deeply
        if line(value) == data:
            return value
    except (orjson.JSONDecodeError, TypeError):
        pass
    raise BadBundle(where, "is not JSON as a bundle writes it")
