"""Rows as CSV, JSON lines or Parquet. Streams: a million rows need no more memory than a thousand."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import IO, Any, TypeVar

import orjson

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.export.rows import COLUMNS

T = TypeVar("T")

_BATCH = 10_000
_LINES = 1_000
# A spreadsheet would run what begins so; titles come from outside.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(rows: Iterable[Mapping[str, Any]], out: IO[bytes]) -> int:
    """One header, one row to a line (RFC 4180); flags are true and false. Returns the number of rows."""
    out.write(_csv_lines([list(COLUMNS)]))
    count = 0
    for group in _groups(rows, _LINES):
        out.write(_csv_lines([[_cell(value) for value in row.values()] for row in group]))
        count += len(group)
    return count


def write_jsonl(rows: Iterable[Mapping[str, Any]], out: IO[bytes]) -> int:
    """One JSON object to a line. Returns the number of rows."""
    count = 0
    for group in _groups(rows, _LINES):
        out.write(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in group))
        count += len(group)
    return count


def write_parquet(rows: Iterable[Mapping[str, Any]], out: IO[bytes]) -> int:
    """Typed columns with what they say as metadata, in groups of rows. Needs pyarrow. Returns the number of rows."""
    need_parquet()
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    kinds = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
    schema = pa.schema(
        [pa.field(name, kinds[kind], metadata={"comment": says}) for name, (kind, says) in COLUMNS.items()]
    )
    count = 0
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for group in _groups(rows, _BATCH):
            columns = {name: [row[name] for row in group] for name in COLUMNS}
            writer.write_table(pa.table(columns, schema=schema))
            count += len(group)
    return count


def need_parquet() -> None:
    """Say before the work begins what is missing for it."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ConfigError(
            "Parquet needs the package pyarrow: install docstokg[report], or choose --format csv or jsonl"
        ) from None


def _groups(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(rows)
    while group := list(islice(rest, size)):
        yield group


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return value
    line = value if value.isprintable() else "".join(char if char.isprintable() else " " for char in value)
    return f"'{line}" if line.startswith(_FORMULA) else line


def _csv_lines(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
