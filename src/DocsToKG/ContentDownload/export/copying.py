"""Bring the files of works into a new folder, proved on the way.

Promises: the folder appears whole under its name or not at all; a file that is not what the record says stops nothing,
is left out and named.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.catalog.files import StoredFiles
from DocsToKG.ContentDownload.errors import InputError

_BLOCK = 1 << 20


@dataclass(slots=True)
class Copied:
    """What came along. `spoiled` are files that are gone or damaged: path and what was found."""

    files: int = 0
    bytes: int = 0
    spoiled: list[tuple[str, str]] = field(default_factory=list)


@contextlib.contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """A folder to fill that takes its name when the block ends well."""
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"{place} is there already; name a new folder, or empty it first")
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
    path, wanted = row["path"], row["sha256"]
    opened = files.open(path) if path else None
    if opened is None:
        copied.spoiled.append((path or row["doc_id"], "missing"))
        return False
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with contextlib.closing(opened), target.open("wb") as out:
        while block := opened.read(_BLOCK):
            digest.update(block)
            out.write(block)
            size += len(block)
    if digest.hexdigest() != wanted:
        target.unlink()
        copied.spoiled.append((path, "damaged"))
        return False
    copied.files += 1
    copied.bytes += size
    return True
