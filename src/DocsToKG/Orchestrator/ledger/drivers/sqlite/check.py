"""The queue in a file: on a disk of this machine, of this version, and writable; nothing is made or migrated."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from DocsToKG.core.checks import Finding, failed, ok, warning
from DocsToKG.Orchestrator.ledger.drivers.sqlite.disk import network_disk
from DocsToKG.Orchestrator.ledger.drivers.sqlite.schema import APPLICATION_ID, migrations

_OLDEST = (3, 35)
_BUSY_S = 3.0


def check_file(path: Path, *, wal: bool) -> Iterator[Finding]:
    """The ledger file at `path`."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        yield ok("file", f"none yet; the first command makes {path}")
        yield from _library_and_disk(path, wal)
        return
    except OSError as error:
        yield failed("file", f"{path}: {error.strerror}", f"let uid {os.getuid()} look into its folder")
        return
    step = "file"
    try:
        with closing(_open(path)) as connection:
            yield _file(connection, path)
            step = "permissions"
            # The lock of a writer, without a change.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
            yield ok("permissions", "the lock of a writer was had and given back")
    except sqlite3.Error as error:
        yield failed(step, f"{path}: {error}", "see who owns the file and its folder, and who holds it locked")
    yield from _library_and_disk(path, wal)


def _open(path: Path) -> sqlite3.Connection:
    # Only one that is there: looking must not make a ledger.
    address = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(address, uri=True, timeout=_BUSY_S, isolation_level=None)


def _file(connection: sqlite3.Connection, path: Path) -> Finding:
    [(have,)] = connection.execute("PRAGMA user_version").fetchall()
    [(owner,)] = connection.execute("PRAGMA application_id").fetchall()
    known = len(migrations())
    if owner != APPLICATION_ID:
        return failed("file", f"{path} is a database, but not a queue", "name another file in queue.path")
    if have > known:
        advice = "use the newer version of the program that wrote it"
        return failed("file", f"{path} has schema {have}, this version knows {known}", advice)
    if have < known:
        advice = "the first command of this version migrates it"
        return warning("file", f"{path} has schema {have}, and this version brings {known}", advice)
    return ok("file", f"{path}, schema {have}")


def _library_and_disk(path: Path, wal: bool) -> Iterator[Finding]:
    if sqlite3.sqlite_version_info < _OLDEST:
        yield failed("library", f"SQLite {sqlite3.sqlite_version} is too old", "use SQLite 3.35 or newer")
    else:
        yield ok("library", f"SQLite {sqlite3.sqlite_version}")
    kind = network_disk(path)
    if kind is not None and wal:
        advice = "put queue.path on a disk of this machine, or use queue.backend: postgres for many machines"
        yield failed("disk", f"a network disk ({kind}), where two machines would spoil the file", advice)
