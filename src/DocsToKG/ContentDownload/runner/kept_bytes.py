"""The bytes that ended a process: measured, and kept for whoever wants to look, where nothing opens them.

Knows files and digests; does not know jobs. Promises: at most `_MOST_FILES` files of `_MOST_BYTES` together are kept,
and what is kept can be read by its owner alone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_MOST_FILES = 20
_MOST_BYTES = 1 << 28
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BytesAtHand:
    """A file that a process was at when it ended."""

    path: Path
    size: int
    sha256: str


def measure(files: Sequence[Path]) -> BytesAtHand | None:
    """The last of the files that holds anything; None where there is none."""
    for path in reversed(files):
        try:
            digest, size = hashlib.sha256(), 0
            with open(path, "rb") as file:
                while chunk := file.read(_READ_BYTES):
                    digest.update(chunk)
                    size += len(chunk)
        except OSError:
            continue
        if size:
            return BytesAtHand(path, size, digest.hexdigest())
    return None


def keep_bytes(at_hand: BytesAtHand, folder: Path) -> Path | None:
    """Put a copy into the folder, under its digest; None where that is full, or the disk is."""
    place = folder / at_hand.sha256
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if place.exists():
            return place
        sizes = [entry.stat().st_size for entry in folder.iterdir()]
        if len(sizes) >= _MOST_FILES or sum(sizes) + at_hand.size > _MOST_BYTES:
            return None
        partial = folder / f".{at_hand.sha256}"
        shutil.copyfile(at_hand.path, partial)
        os.chmod(partial, 0o400)
        os.replace(partial, place)
    except OSError:
        return None
    return place
