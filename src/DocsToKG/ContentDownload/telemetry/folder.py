"""The folder of a record: its files, its lock, and what a failing disk means in our words."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from DocsToKG.ContentDownload.catalog.paths import DATABASE, MANIFEST
from DocsToKG.ContentDownload.errors import DiskFull, FolderInUse, RecordDamaged, RecordError, RunError
from DocsToKG.ContentDownload.telemetry.recovery import is_corrupt
from DocsToKG.core.locks import lock_soon
from DocsToKG.Orchestrator.ledger.drivers.sqlite.busy import primary_code

_LOCK = ".record.lock"
_LEAVING_S = 1.0  # a process that ends lets go of its files one by one
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Hold the record in `folder` for this process and those that are given the open file; the system lets go of it
    when the last of them has died."""
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not lock_soon(fd, within_s=_LEAVING_S):
            raise FolderInUse(f"another run is writing the record in {folder}: wait for it, or use another folder")
        yield fd
    finally:
        os.close(fd)


def record_error(error: Exception, root: Path) -> RunError:
    """What went wrong with the record in `root`, as an error that stops the run and names the way out."""
    if isinstance(error, RunError):
        return error
    full = isinstance(error, OSError) and error.errno in _NO_SPACE
    if full or primary_code(error) == sqlite3.SQLITE_FULL:
        return DiskFull(f"the disk that holds the record in {root} is full: free some space and run again")
    if is_corrupt(error):
        return RecordDamaged(
            f"{DATABASE} of the record in {root} is damaged: run the same command again; it keeps what is there aside "
            f"and fills a new one from {MANIFEST}"
        )
    if primary_code(error) == sqlite3.SQLITE_NOTADB:
        return RecordError(f"{DATABASE} of the record in {root} is no database: move it away, or name another folder")
    if primary_code(error) == sqlite3.SQLITE_CANTOPEN:
        return RecordError(f"{DATABASE} of the record in {root} cannot be opened: check that it is a file of yours")
    return RecordError(f"the record in {root} cannot be written: {error}")


@contextlib.contextmanager
def record_errors(root: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise record_error(error, root) from error
