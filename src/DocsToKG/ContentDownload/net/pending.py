"""Bodies on their way into the cache, that nobody may see yet.

A body bound for a folder lies in one that its process holds a lock in; the lock ends with the process, so a newcomer
knows whose leftovers it may sweep. A body bound for elsewhere has no name, and ends with its process. A full disk or
too large a body ends the copy, never the transfer.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import IO, BinaryIO

log = logging.getLogger(__name__)

_IN_MEMORY = 512 * 1024


class PendingFolder:
    """This process's part of `root`. Opening it sweeps what dead processes left."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        for name in os.listdir(root):
            _sweep(root / name)
        self._folder, self._owner = _claim(root)

    def new_path(self) -> Path:
        return self._folder / uuid.uuid4().hex

    def new_body(self) -> PendingBody | None:
        """None when the disk does not take it."""
        path = self.new_path()
        try:
            return PendingBody(path.open("xb"), path=path)
        except OSError:
            log.warning("the cache folder takes no new body; going on without", exc_info=True)
            return None

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._owner.close()


class PendingBody:
    """A body being written. `complete` only after its last byte."""

    def __init__(self, file: IO[bytes], *, path: Path | None = None, largest: int | None = None) -> None:
        self.path = path
        self.complete = False
        self.size = 0
        self._largest = largest
        self._digest = hashlib.sha256()
        self._file: IO[bytes] | None = file

    @classmethod
    def spooled(cls, *, largest: int) -> PendingBody:
        """One without a name: in memory, and on disk when it grows."""
        return cls(tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY), largest=largest)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def copying(self, blocks: AsyncIterator[bytes]) -> Copied:
        """`blocks` passed on while a copy of them is kept."""
        return Copied(self, blocks)

    def content(self) -> bytes:
        """All of it; only of a body without a name, which has a largest size."""
        if self._file is None:
            raise OSError("the body is gone")
        self._file.seek(0)
        return self._file.read()

    def move_to(self, place: Path) -> None:
        """Only of a body with a name."""
        if self.path is None:
            raise OSError("the body has no name")
        os.replace(self.path, place)

    def discard(self) -> None:
        self.complete = False
        self._close()
        if self.path is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()

    def keep(self, block: bytes) -> None:
        """One more block of the copy."""
        if self._file is None:
            return
        if self._largest is not None and self.size + len(block) > self._largest:
            self._close()
            return
        try:
            self._file.write(block)
            self._digest.update(block)
            self.size += len(block)
        except OSError:
            log.warning("the cache folder is full or away; going on without", exc_info=True)
            self._close()

    def finish(self) -> None:
        """It was the last block."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.flush()
                self.complete = True
        # A name keeps the bytes; without one, the open file does.
        if self.path is not None or not self.complete:
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()


class Copied:
    """A body on its way to its reader. The copy is thrown away unless the reader comes to the end."""

    def __init__(self, copy: PendingBody, blocks: AsyncIterator[bytes]) -> None:
        self._copy = copy
        self._blocks = blocks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            block = await anext(self._blocks)
        except StopAsyncIteration:
            self._copy.finish()
            raise
        except BaseException:
            self._copy.discard()
            raise
        self._copy.keep(block)
        return block

    async def aclose(self) -> None:
        """Discards a copy that is not whole. The stream it was read from is its owner's to close."""
        if not self._copy.complete:
            self._copy.discard()
        if isinstance(self._blocks, AsyncGenerator):
            await self._blocks.aclose()


def _claim(root: Path) -> tuple[Path, BinaryIO]:
    # Another process may sweep between our mkdir and our lock; then the next name is tried.
    for _ in range(20):
        folder = root / uuid.uuid4().hex
        folder.mkdir()
        owner = _try_lock(folder / "owner", create=True)
        if owner is not None:
            return folder, owner
    raise OSError("the pending folder of the cache cannot be claimed")


def _sweep(folder: Path) -> None:
    owner = _try_lock(folder / "owner", create=False)
    if owner is not None:
        shutil.rmtree(folder, ignore_errors=True)
        owner.close()


def _try_lock(path: Path, *, create: bool) -> BinaryIO | None:
    """The open, locked file; None when another holds it or it is gone."""
    try:
        file = path.open("ab" if create else "rb")
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
    except OSError:
        pass
    file.close()
    return None
