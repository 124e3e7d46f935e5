"""What the disk refuses, and names for files.

Knows errno, hard links (also from files that have no name yet) and how a folder's names are made to last.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from types import TracebackType

from DocsToKG.ContentDownload.errors import DiskFull, StorageError

# Disks without hard links (exFAT, some network mounts), a folder on another disk, or an object with too many names.
NO_LINK = frozenset({errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.EACCES})

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
# What disks and kernels say that know no files without a name.
_NO_UNNAMED = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS})
_UNNAMED: int = getattr(os, "O_TMPFILE", 0)
# A file without a name is linked through its place in /proc, which the kernel then has to follow. Python asks for that
# only where a folder is given too; with absolute paths the kernel does not look at it.
_NO_FOLDER = 0


class DiskErrors(contextlib.AbstractContextManager[None]):
    """`refusal` around several calls. What is done for every file catches OSError by itself, which costs nothing."""

    __slots__ = ("_path",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, OSError):
            raise refusal(error, self._path) from error


def refusal(error: OSError, path: str | os.PathLike[str]) -> StorageError:
    """The disk's refusal in the words of this package. `path` is named where the system names none."""
    if error.errno in _NO_ROOM:
        return DiskFull(f"{path}: no space left; make room and start again, nothing stored is lost")
    return StorageError(f"{error.filename or path}: {error.strerror or error}")


def in_words(error: Exception, path: str | os.PathLike[str]) -> Exception:
    """The error for somebody who is told of it later: a `refusal` where it is the disk's."""
    if not isinstance(error, OSError):
        return error
    told = refusal(error, path)
    told.__cause__ = error
    return told


def open_unnamed(folder: str) -> int | None:
    """A new file on the disk of `folder` that has no name, so that a kill leaves nothing; None where that cannot be."""
    if not _UNNAMED or not _has_places():
        return None
    try:
        return os.open(folder, os.O_RDWR | _UNNAMED | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in _NO_UNNAMED:
            return None
        raise


@functools.cache
def _has_places() -> bool:
    return os.path.exists("/proc/self/fd")


def place_of(fd: int) -> str:
    """A path to an open file, named or not."""
    return f"/proc/self/fd/{fd}"


def hard_link(source: str, target: str) -> None:
    """Give the file at `source` the further name `target`; raises `FileExistsError` when that is taken."""
    os.link(source, target, dst_dir_fd=_NO_FOLDER)


def sync_folder(path: str) -> None:
    """The names in a folder survive a power cut from here on."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
