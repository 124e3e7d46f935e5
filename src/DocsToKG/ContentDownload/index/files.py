"""Files that exist complete or not at all, also after kill -9 and power loss."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """A folder that gets its name when the block succeeds; leftovers of an earlier try are removed."""
    beside = target.with_name(f"{target.name}.tmp")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    yield beside
    beside.rename(target)


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """A file that is synced and gets its name when the block succeeds."""
    beside = target.with_name(f"{target.name}.tmp")
    yield beside
    sync(beside)
    beside.replace(target)


def sync(path: Path) -> None:
    """Sync a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest_of(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
