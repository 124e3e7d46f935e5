"""Bytes that nobody looks at yet: in memory while they are few, then in a file.

Knows files without a name and, where the disk has none, named ones that are locked while they live. Does not know what
the bytes mean or where they will be. Promises: counted and hashed as they come; every byte is written to the disk once;
leaving the `with` leaves nothing behind.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal

from DocsToKG.ContentDownload.storage.disk import place_of, refusal

Link = Literal["hardlink", "reflink", "copy", "none"]

IN_MEMORY = 1 << 20

_READ_BYTES = 1 << 20
_FICLONE = 0x40049409  # linux/fs.h; other systems refuse it and get a copy


class TempFile:
    """`open_file` gives a descriptor to write to, and its path if it has a name; `where` is said in errors.

    Leaving the `with` removes it.
    """

    def __init__(
        self, open_file: Callable[[], tuple[int, str | None]], *, where: str, in_memory: int = IN_MEMORY
    ) -> None:
        self.size = 0
        self._open_file = open_file
        self._where = where
        self._in_memory = in_memory
        self._pieces: list[bytes] = []
        self._fd = -1
        self.opened_at = 0.0  # on the disk, in the machine's time
        self._name: str | None = None
        self._is_open = True
        self._sha256 = hashlib.sha256()
        self._hashed = 0  # how many bytes the digest covers; all that were written to the disk

    @property
    def sha256(self) -> str:
        if self._hashed != self.size:
            self._sha256, self._hashed = hashlib.sha256(self.data or b""), self.size
        return self._sha256.hexdigest()

    @property
    def data(self) -> bytes | None:
        """All of it, while it is in memory."""
        if self._fd >= 0:
            return None
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    @property
    def path(self) -> Path:
        """Where to read it; goes to the disk for that."""
        self._to_disk()
        return Path(self.source)

    @property
    def source(self) -> str:
        """What can be linked: the file's name, or its place among the open files."""
        return self._name or place_of(self._fd)

    def fileno(self) -> int:
        """The open file, once it is on the disk."""
        return self._fd

    @property
    def has_name(self) -> bool:
        return self._name is not None

    async def wait_for_room(self, size: int) -> None:
        """Return when so many bytes more can be written without waiting for others."""

    def write(self, data: bytes) -> None:
        if not self._is_open:
            raise ValueError("the temporary file is closed")
        if self._fd >= 0:
            self._write_out(data)
            self._sha256.update(data)
            self._hashed += len(data)
        else:
            self._pieces.append(data)
        self.size += len(data)
        if self._fd < 0 and self.size > self._in_memory:
            self._to_disk()

    def restart(self) -> None:
        """Forget what was written: the first byte comes again."""
        self.size = self._hashed = 0
        self._sha256 = hashlib.sha256()
        self._pieces = []
        if self._fd < 0:
            return
        try:
            os.lseek(self._fd, 0, os.SEEK_SET)
            os.ftruncate(self._fd, 0)
        except OSError as error:
            raise refusal(error, self._where) from error

    def another(self) -> TempFile:
        """An empty one beside this, for more bytes of the same work."""
        return TempFile(self._open_file, where=self._where, in_memory=self._in_memory)

    def seal(self, *, fsync: bool) -> None:
        """Read-only from here on, and on the disk before any name points at it."""
        self._to_disk()
        try:
            os.fchmod(self._fd, 0o444)
            if fsync:
                os.fsync(self._fd)
        except OSError as error:
            raise refusal(error, self._where) from error

    def copy_from(self, source: str) -> Link:
        """The bytes of `source`, shared on disks that can share; this file must be empty."""
        self._to_disk()
        with open(source, "rb") as origin:
            try:
                fcntl.ioctl(self._fd, _FICLONE, origin.fileno())
                return "reflink"
            except OSError:
                while chunk := origin.read(_READ_BYTES):
                    self.write(chunk)
        return "copy"

    def discard(self) -> None:
        """Remove the temporary name; names already linked to the same bytes stay. Safe to call twice."""
        self._is_open = False
        self._pieces = []
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        try:
            # The name goes first: a file without a lock may be another's to sweep.
            if self._name is not None:
                Path(self._name).unlink(missing_ok=True)
        finally:
            os.close(fd)

    def __enter__(self) -> TempFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.discard()

    def _to_disk(self) -> None:
        if self._fd >= 0:
            return
        pieces = self._pieces
        if self._hashed != self.size:
            self._sha256, self._hashed = hashlib.sha256(), self.size
            for piece in pieces:
                self._sha256.update(piece)
        self.opened_at = time.monotonic()
        try:
            self._fd, self._name = self._open_file()
        except OSError as error:
            raise refusal(error, self._where) from error
        self._pieces = []
        for piece in pieces:
            self._write_out(piece)

    def _write_out(self, data: bytes) -> None:
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
        except OSError as error:
            raise refusal(error, self._where) from error
