"""A number per key that every process of the machine sees at once: whoever finds it as it was need not read the record.

A small file in shared memory. Who changes a record counts its number up while it holds the record's own lock, before
the change can be seen; who has read a record under that lock, and finds the number as it was then, knows the record
still. Two keys may share a number, which costs a look in vain. Knows no records.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable
from functools import partial
from operator import itemgetter
from pathlib import Path
from zlib import crc32

_NUMBERS = 4096
_NUMBER_BYTES = 8


class Signals:
    """The numbers in the file `path`, which is made if it is not there. Raises `OSError`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            size = _NUMBERS * _NUMBER_BYTES
            if os.fstat(file).st_size < size:
                _lengthen(file, size)
            self._inode = os.fstat(file).st_ino
            self._memory = mmap.mmap(file, size)
            self._numbers = memoryview(self._memory).cast("Q")
        except ValueError as error:
            raise OSError(str(error)) from None
        finally:
            os.close(file)

    def read(self, keys: Iterable[str]) -> tuple[int, ...]:
        """The numbers of `keys` now."""
        return tuple(self._numbers[_place(key)] for key in keys)

    def reader(self, keys: Iterable[str]) -> Callable[[], object]:
        """Gives what can be compared to see whether a number of `keys` has changed, as often as it is called."""
        return partial(itemgetter(*map(_place, keys)), self._numbers)

    def raise_for(self, key: str) -> None:
        """Everyone is to look at the record of `key` again. One at a time, under the record's lock."""
        place = _place(key)
        self._numbers[place] = (self._numbers[place] + 1) % 2**64

    def is_the_file(self) -> bool:
        """Others who open the same path see the same numbers."""
        try:
            return os.stat(self._path).st_ino == self._inode
        except OSError:
            return False

    def close(self) -> None:
        self._numbers.release()
        self._memory.close()


def _lengthen(file: int, size: int) -> None:
    """A full disk is to be felt here; a write to memory that the disk has no room for ends the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.ftruncate(file, size)


def _place(key: str) -> int:
    return crc32(key.encode()) % _NUMBERS
