"""How a round of files is made to last: file by file, or the whole disk at once, whichever takes less time.

Telling a disk to keep all it has (`syncfs`) costs about as much for twenty files as for one, but also waits for what
others have written to it. So both ways are timed, and the better one is taken. Knows descriptors and time, no names.
Promises: who is told that the disk has been flushed may rely on it; where that cannot be known, file by file it is.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

from DocsToKG.Orchestrator.ledger.drivers.sqlite.disk import kind_of_disk

# Of these it is known that all is written when the call returns; others may take the call and do nothing.
_KNOWN = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs"})
_TELLS_ERRORS = (5, 8)  # the Linux from which on the call reports what could not be written
_WORTH_IT = 3
_WEIGHT = 0.2  # of the newest round in an average
LOOK_AGAIN = 250  # rounds after which the way that seemed worse is tried again


class Flushing:
    """The choice for the disk that `folder` is on. `whole` writes all that a disk has, which it is told by a file that
    is open there; left out, it is the system's own way, where that is known to be sound."""

    def __init__(self, folder: Path, whole: Callable[[int], None] | None = None) -> None:
        self._folder = folder
        self._given = whole
        self._lock = threading.Lock()
        self._whole_s: float | None = None  # a round
        self._each_s: float | None = None  # a file
        self._since = 0

    @functools.cached_property
    def _whole(self) -> Callable[[int], None] | None:
        if self._given is not None:
            return self._given
        return sync_disk if may_sync_disk() and kind_of_disk(self._folder) in _KNOWN else None

    def is_for_all(self, files: int, *, is_due: bool = False) -> bool:
        """Should a round of so many files flush the disk as a whole? `is_due`: that is done for others in any case."""
        if files < (1 if is_due else _WORTH_IT) or self._whole is None:
            return False
        with self._lock:
            if self._whole_s is None or self._each_s is None:
                return self._whole_s is None
            self._since += 1
            better = self._whole_s <= self._each_s * files
            if self._since < LOOK_AGAIN:
                return better
            self._since = 0
            return not better

    def flush(self, file: int) -> None:
        """All that was written to the disk of the open `file` is kept from here on."""
        assert self._whole is not None
        self._whole(file)

    def took(self, seconds: float, *, files: int, all_at_once: bool) -> None:
        """A round is over: remember what it cost."""
        with self._lock:
            if all_at_once:
                self._whole_s = _average(self._whole_s, seconds)
            elif files:
                self._each_s = _average(self._each_s, seconds / files)


def sync_disk(file: int) -> None:
    """Raises OSError also for what could not be written since `file` was opened."""
    if _libc().syncfs(file) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _average(before: float | None, now: float) -> float:
    return now if before is None else before + _WEIGHT * (now - before)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@functools.cache
def may_sync_disk() -> bool:
    system = os.uname()
    version = re.match(r"(\d+)\.(\d+)", system.release)
    if system.sysname != "Linux" or version is None or (int(version[1]), int(version[2])) < _TELLS_ERRORS:
        return False
    return hasattr(_libc(), "syncfs")
