"""DuckDB as this package uses it: a database in memory, bounded, with a folder for what does not fit.

Knows the library, its limits and its errors; other modules write SQL. Promises: no query takes much more than its
memory limit, and an error names the file or disk at fault.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.errors import ConfigError, DiskFull, InputError, StorageError

if TYPE_CHECKING:
    import duckdb

    Database = duckdb.DuckDBPyConnection
else:
    Database = object

_INSTALL = "the index needs DuckDB and PyArrow; install them with: pip install 'docstokg[bulk]'"
_MIB = 1 << 20
_HELD_ROW_BYTES = 4000  # of the memory for each row held back, eight times what one takes


@dataclass(frozen=True, slots=True)
class Limits:
    """What a build or a join may use. What does not fit into memory goes to files in `spill`."""

    memory_bytes: int = 2048 * _MIB
    threads: int = 0  # 0: one for each processor
    spill: Path | None = None


DEFAULT_LIMITS = Limits()


@contextmanager
def connect(limits: Limits = DEFAULT_LIMITS) -> Iterator[Database]:
    """A connection with this package's macros. The order of rows is kept only where a query asks for it."""
    duckdb = library()
    threads = limits.threads or os.cpu_count() or 1
    with duckdb.connect(":memory:") as db:
        db.execute(f"SET memory_limit = '{limits.memory_bytes // _MIB}MiB'")
        db.execute(f"SET threads = {threads}")
        # Rows that each thread holds back while it writes a file for each hash.
        db.execute(f"SET partitioned_write_flush_threshold = {limits.memory_bytes // threads // _HELD_ROW_BYTES}")
        db.execute("SET write_buffer_row_group_count = 1")
        db.execute("SET enable_progress_bar = false")  # it would be printed among our output
        db.execute("SET preserve_insertion_order = false")
        db.execute("SET autoinstall_known_extensions = false")
        if limits.spill is not None:
            db.execute(f"SET temp_directory = {quoted(limits.spill)}")
        db.execute(statement("macros"))
        yield db


@cache
def library():  # type: ignore[no-untyped-def]  # the module, which may be missing
    try:
        import duckdb
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        raise ConfigError(_INSTALL) from None
    return duckdb


@cache
def statement(name: str) -> str:
    """The text of `sql/<name>.sql`."""
    return resources.files(__package__).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


def filled(text: str, **words: str) -> str:
    """A statement with its placeholders filled. Braces that name none are DuckDB's own."""
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text


def quoted(text: object) -> str:
    """As a literal of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def listed(values: object) -> str:
    return "[" + ", ".join(quoted(value) for value in values) + "]"  # type: ignore[attr-defined]


@contextmanager
def mapped_errors(doing: str, *, reading: bool = True) -> Iterator[None]:
    """Map DuckDB's errors to ours: bad input, a full disk, or too little memory. `doing` describes the step."""
    duckdb = library()
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.OutOfMemoryException as error:
        if "max_temp_directory_size" in str(error) or "No space" in str(error):
            raise _full(doing, error) from error
        raise StorageError(f"{doing}: the memory does not suffice; allow more with --memory") from error
    except duckdb.IOException as error:
        if is_full(error):
            raise _full(doing, error) from error
        raise (InputError if reading else StorageError)(f"{doing}: {_first_line(error)}") from error
    except OSError as error:
        if is_full(error):
            raise _full(doing, error) from error
        raise
    except duckdb.Error as error:
        if not reading:
            raise
        raise InputError(f"{doing}: {_first_line(error)}") from error


def is_full(error: BaseException) -> bool:
    text = str(error)
    number = getattr(error, "errno", None)
    return number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or any(
        words in text for words in ("No space left", "File too large", "Disk quota", "disk is full")
    )


def _full(doing: str, error: BaseException) -> DiskFull:
    return DiskFull(f"{doing}: the disk is full ({_first_line(error)}); make room, then run the same command again")


def _first_line(error: BaseException) -> str:
    """Errors of threads that write come as JSON."""
    text = str(error).strip()
    message = re.search(r'"exception_message":"((?:[^"\\]|\\.)*)"', text)
    return (message[1].replace('\\"', '"') if message is not None else text.partition("\n")[0])[:300]
