"""A database that was cut short or is damaged: noticed, put aside, and read as far as it goes.

Knows the outside of an SQLite file (its first bytes, its pages). Does not know what the rows mean. Promises: only a
file that begins like a database, or with the zeros that a power cut may leave, or that stands where the database of a
record was, is called damaged; nothing is deleted; reading never fails.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.catalog.places import is_in_its_place
from DocsToKG.Orchestrator.ledger.drivers.sqlite.busy import primary_code

_MAGIC = b"SQLite format 3\0"
_LOG = "-wal"
_BESIDE = (_LOG, "-shm", "")
LOOKED_THROUGH = 16 << 20  # small enough to be read from end to end at every start
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_damaged(path: Path) -> bool:
    """Whether `path` is a database that lost a part of itself. An empty file is a new one."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    if not begins_like_one(path):
        return is_in_its_place(path)
    return _is_cut(path) or not _opens(path)


def is_broken(error: BaseException | None) -> bool:
    """Whether the error says that a database is not whole."""
    return primary_code(error) == sqlite3.SQLITE_CORRUPT


def begins_like_one(path: Path) -> bool:
    """Whether the file is a database, the beginning of one, or one that lost it; something else is somebody else's."""
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
    return _MAGIC.startswith(head) or not any(head)


def version_of(path: Path) -> int:
    """The schema version that the first bytes of the file tell; 0 when they are gone."""
    with path.open("rb") as file:
        head = file.read(64)
    return int.from_bytes(head[60:], "big") if head.startswith(_MAGIC) else 0


def put_aside(path: Path) -> Path:
    """Give a damaged database another name, together with its log; returns that name."""
    number = 1
    while (aside := _aside(path, number)).exists():
        number += 1
    # The log goes first: should this be cut off, the database is still there to be put aside.
    for ending in _BESIDE:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
    return aside


def last_aside(path: Path) -> Path | None:
    """The database that was put aside last, if any was."""
    number = 1
    while _aside(path, number).exists():
        number += 1
    return _aside(path, number - 1) if number > 1 else None


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.damaged-{number}")


def readable_rows(path: Path, table: str) -> Iterator[dict[str, Any]]:
    """The rows of `table`, oldest first, up to the place where the file is broken."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(_connect(path)) as db:
        # Without this, a file that is shorter than it says is refused as a whole.
        db.execute("PRAGMA writable_schema = ON")
        db.execute("PRAGMA cell_size_check = ON")
        db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        cursor = db.execute(f'SELECT * FROM "{table}" NOT INDEXED ORDER BY id')
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))


def known_part(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row up to where it is lost: the rest of one that goes on in a lost page reads as zeros."""
    return dict(takewhile(lambda item: not (isinstance(item[1], str) and "\0" in item[1]), row.items()))


def _is_cut(path: Path) -> bool:
    """The file does not end with a page. With a log beside it, the log has the rest."""
    log = path.with_name(path.name + _LOG)
    if log.exists() and log.stat().st_size:
        return False
    with path.open("rb") as file:
        head = file.read(18)
    page = int.from_bytes(head[16:18], "big")
    page = 65_536 if page == 1 else page
    return len(head) < 18 or page < 512 or path.stat().st_size % page != 0


def _opens(path: Path) -> bool:
    try:
        with contextlib.closing(_connect(path)) as db:
            db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
            if path.stat().st_size <= LOOKED_THROUGH:
                return bool(db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError as error:
        # A lock or a missing right is no damage.
        return primary_code(error) not in _BROKEN
    return True


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30, isolation_level=None)
