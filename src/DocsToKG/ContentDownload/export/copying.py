"""Bring the files of works into a new folder, proved on the way.

Promises: the folder appears whole under its name or not at all; a file that is not what the record says, or that cannot
be read, stops nothing, is left out and named. Trouble of the whole store ends it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

from DocsToKG.ContentDownload.errors import FileUnreadable, InputError
from DocsToKG.ContentDownload.storage.files import StoredFiles

_BLOCK = 1 << 20


@dataclass(slots=True)
class Copied:
    """What came along. `spoiled` are files that are gone, damaged or unreadable: path and what was found."""

    files: int = 0
    bytes: int = 0
    spoiled: list[tuple[str, str]] = field(default_factory=list)


@contextlib.contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """A folder to fill that takes its name when the block ends well."""
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"{place} is there already; name a new folder, or empty it first")
    if place.exists() and place.samefile(Path.cwd()):
        raise InputError(f"{place} is the folder that you are in, and a new one takes its place; name a new folder")
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f".{place.name}.unfinished")
    # What an export that was cut off has left behind.
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        yield unfinished
        if place.exists():
            place.rmdir()
        os.replace(unfinished, place)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def copy_file(files: StoredFiles, row: dict[str, Any], folder: Path, copied: Copied) -> bool:
    """Copy the file of a row to its path below `folder`; False, and noted, when it is not what the record says."""
    path = row["path"]
    found = _copied(files, path, row["sha256"], folder / path) if path else "missing"
    if isinstance(found, str):
        copied.spoiled.append((path or row["doc_id"], found))
        return False
    copied.files += 1
    copied.bytes += found
    return True


def _copied(files: StoredFiles, path: str, wanted: str, target: Path) -> int | str:
    """The length of the copy, or what was found instead of the file: then there is no copy."""
    try:
        opened = files.open(path)
        if opened is None:
            return "missing"
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(opened), target.open("wb") as out:
            digest, size = pour(opened, out)
    except FileUnreadable:
        target.unlink(missing_ok=True)
        return "unreadable"
    if digest != wanted:
        target.unlink()
        return "damaged"
    return size


def pour(opened: BinaryIO, out: IO[bytes]) -> tuple[str, int]:
    """Copy what is open; its digest and length. Trouble of the reader is a `FileUnreadable`, of the writer its own."""
    digest, size = hashlib.sha256(), 0
    while block := _read(opened):
        digest.update(block)
        out.write(block)
        size += len(block)
    return digest.hexdigest(), size


def _read(opened: BinaryIO) -> bytes:
    try:
        return opened.read(_BLOCK)
    except OSError as error:
        raise FileUnreadable(error.strerror or str(error)) from error
