"""Digests of stored files, as fast as the disk gives them.

Knows large blocks and how to tell the system what will be read; hashing leaves the interpreter to other threads.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import BinaryIO

from DocsToKG.ContentDownload.catalog.files import StoredFiles
from DocsToKG.ContentDownload.errors import FileUnreadable

BLOCK = 1 << 20


def digest_of(files: StoredFiles, key: str, buffer: bytearray | None = None) -> tuple[str, int] | None:
    """Digest and length of a file; None when it is not there. `FileUnreadable` also where it breaks off."""
    opened = files.open(key)
    if opened is None:
        return None
    with contextlib.closing(opened):
        try:
            return _digest(opened, memoryview(buffer if buffer is not None else bytearray(BLOCK)))
        except OSError as error:
            raise FileUnreadable(f"{key}: {error.strerror or error}") from error


def _digest(opened: BinaryIO, view: memoryview) -> tuple[str, int]:
    _advise(opened, before=True)
    digest, size = hashlib.sha256(), 0
    readinto = getattr(opened, "readinto", None)
    if readinto is None:
        while block := opened.read(len(view)):
            digest.update(block)
            size += len(block)
    else:
        while count := readinto(view):
            digest.update(view[:count])
            size += count
    _advise(opened, before=False)
    return digest.hexdigest(), size


def _advise(opened: BinaryIO, *, before: bool) -> None:
    """Read ahead; afterwards let go, so that a check does not push everything else out of memory."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        advice = os.POSIX_FADV_SEQUENTIAL if before else os.POSIX_FADV_DONTNEED
        os.posix_fadvise(opened.fileno(), 0, 0, advice)
