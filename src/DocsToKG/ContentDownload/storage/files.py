"""Stored files, wherever they are kept: open, exists, size, list, delete.

`StoredFiles` is all that looking after a store needs; a key is a path below its root with `/` between the parts.
`LocalFiles` is the disk. Promises: no key leads out of the root, and a symbolic link is never followed out of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from DocsToKG.ContentDownload.errors import FileUnreadable, StorageError

CAS = "cas/sha256"
BLOCK = 1 << 20
READABLE = ("PDF", "HTML", "XML")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a store. `same_as` is equal for names of one and the same file, None where that cannot be told."""

    key: str
    size: int
    same_as: object = None


class StoredFiles(Protocol):
    """What every place for files can do. Trouble is a `StorageError`, a `FileUnreadable` where only that file is meant;
    a missing file is None or False."""

    def open(self, key: str) -> BinaryIO | None: ...

    def exists(self, key: str) -> bool: ...

    def size(self, key: str) -> int | None: ...

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """The files below a folder, in the order of their keys."""

    def delete(self, key: str) -> bool:
        """Whether there was something to delete."""


class LocalFiles:
    """The files below `root` on this machine."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.abspath(root))

    def open(self, key: str) -> BinaryIO | None:
        with self._trouble(key, FileUnreadable):
            try:
                # No file of ours is a link, and one that is could lead anywhere.
                fd = os.open(self._at(key), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except (FileNotFoundError, NotADirectoryError):
                return None
            return os.fdopen(fd, "rb", buffering=0)

    def exists(self, key: str) -> bool:
        return self.size(key) is not None

    def size(self, key: str) -> int | None:
        with self._trouble(key):
            try:
                found = os.stat(self._at(key), follow_symlinks=False)
            except (FileNotFoundError, NotADirectoryError):
                return None
        return found.st_size

    def list(self, prefix: str) -> Iterator[StoredFile]:
        with self._trouble(prefix):
            yield from self._below(prefix)

    def delete(self, key: str) -> bool:
        with self._trouble(key):
            try:
                os.unlink(self._at(key))
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def _below(self, folder: str) -> Iterator[StoredFile]:
        try:
            with os.scandir(self._at(folder)) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            key = f"{folder}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(key)
            else:
                status = entry.stat(follow_symlinks=False)
                yield StoredFile(key, status.st_size, (status.st_dev, status.st_ino))

    def _at(self, key: str) -> str:
        parts = key.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise StorageError(f"{key[:200]!r} is not the name of a stored file")
        return os.path.join(self.root, *parts)

    @contextlib.contextmanager
    def _trouble(self, key: str, kind: type[StorageError] = StorageError) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise kind(f"{self.root / key}: {error.strerror or error}") from error


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
