"""Lists of any size, read into the database: CSV, Parquet, JSON lines (gz, zst), text, also from a bucket.

SQL reads the usual spellings, millions a minute; the rest goes through the parser of identifiers. Promises: a line
means the same work as in a pull, or none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.index.engine import Database, filled, mapped_errors, quoted, statement
from DocsToKG.ContentDownload.index.joining import names_of
from DocsToKG.ContentDownload.index.parts import find_parts, on_disk
from DocsToKG.ContentDownload.inputs import read_inputs
from DocsToKG.ContentDownload.inputs.entries import kind_of_field
from DocsToKG.ContentDownload.resolvers.ids.identifier import BadIdentifier, parse_identifier, to_work

_BATCH = 20_000
_TABLES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", ".txt")
_PACKED = (".gz", ".zst")
# Columns that name a work, strongest first, and how a cell of each becomes a name.
_NAMES = {
    "doi": "name_of(trim({cell}))",
    "arxiv": "'arxiv:' || arxiv_of(trim({cell}))",
    "pmcid": "'pmcid:' || pmcid_of(trim({cell}))",
    "pmid": "'pmid:' || pmid_of(trim({cell}))",
    "openalex": "'openalex:' || openalex_of(trim({cell}))",
    "any": "name_of(trim({cell}))",
    "url": "name_of(trim({cell}))",
}


@dataclass(frozen=True, slots=True)
class ListCounts:
    """Of a list that was read: lines, different works, lines that name none."""

    lines: int
    works: int
    unusable: int


def read_list(db: Database, sources: Sequence[str], spill: Path) -> ListCounts:
    """Fill the table `requested` (work, rank, name) with the different works of all the sources."""
    db.execute("CREATE OR REPLACE TEMP TABLE given (text VARCHAR, name VARCHAR)")
    for source in sources:
        if is_table(source):
            with on_disk(find_parts("list", source), spill / "list") as files:
                for file in files:
                    _read_table(db, file)
        else:
            _insert(db, _named_by_reader([source]))
    _parse_unrecognised(db)
    [(lines, works, unusable)] = db.execute(statement("list")).fetchall()
    db.execute(
        "CREATE OR REPLACE TEMP TABLE requested AS SELECT row_number() OVER () AS work, 0::SMALLINT AS rank, name "
        "FROM (SELECT DISTINCT name FROM given WHERE name IS NOT NULL)"
    )
    db.execute("DROP TABLE given")
    return ListCounts(lines, works, unusable)


def is_table(source: str) -> bool:
    """Whether the database can read the file, by its name."""
    bare = source.lower()
    for suffix in _PACKED:
        bare = bare.removesuffix(suffix)
    return bare.endswith(_TABLES) and (source.startswith("s3://") or Path(source).is_file())


def _read_table(db: Database, file: Path) -> None:
    reader, columns = _reader_of(db, file)
    cells = {kind: _quoted(column) for column in columns if (kind := kind_of_field(column)) in _NAMES}
    if not cells:  # no header that says so: one identifier in a line
        db.execute(filled(statement("lines"), file=quoted(file)))
        return
    names = ", ".join(_NAMES[kind].format(cell=f"{cells[kind]}::VARCHAR") for kind in _NAMES if kind in cells)
    texts = ", ".join(f"{cells[kind]}::VARCHAR" for kind in _NAMES if kind in cells)
    with mapped_errors(f"{file} cannot be read as a list"):
        db.execute(f"INSERT INTO given SELECT coalesce({texts}), coalesce({names}) FROM {reader}")


def _reader_of(db: Database, file: Path) -> tuple[str, list[str]]:
    """The relation that reads a file, and its columns; none where it is plain text."""
    name = file.name.lower()
    if ".parquet" in name:
        reader = f"read_parquet({quoted(file)})"
    elif ".jsonl" in name or ".ndjson" in name:
        reader = f"read_json({quoted(file)}, format='newline_delimited', ignore_errors=true)"
    elif ".txt" in name:
        return "", []
    else:
        reader = f"read_csv({quoted(file)}, header=true, all_varchar=true, ignore_errors=true)"
    with mapped_errors(f"{file} cannot be read as a list"):
        return reader, [str(row[0]) for row in db.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()]


def _parse_unrecognised(db: Database) -> None:
    """Parse the texts that SQL did not recognise."""
    left = db.execute("SELECT DISTINCT text FROM given WHERE name IS NULL AND text IS NOT NULL").fetchall()
    if not left:
        return
    db.execute("CREATE OR REPLACE TEMP TABLE reread (text VARCHAR, name VARCHAR)")
    _insert(db, ((text, _named(text)) for [text] in left), "reread")
    db.execute("UPDATE given SET name = r.name FROM reread r WHERE given.name IS NULL AND given.text = r.text")


def _named(text: str) -> str | None:
    try:
        work = to_work(parse_identifier(text))
    except BadIdentifier:
        return None
    return next(iter(names_of(work)), work.work_id)


def _named_by_reader(sources: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    for line in read_inputs(sources, stdin=sys.stdin):
        if line.work is None:
            yield line.text, None
        else:
            yield line.text, next(iter(names_of(line.work)), line.work.work_id)


def _insert(db: Database, rows: Iterable[tuple[str, str | None]], table: str = "given") -> None:
    import pyarrow as pa  # type: ignore[import-untyped]

    rest = iter(rows)
    while some := list(islice(rest, _BATCH)):
        columns: Any = {"text": pa.array([text for text, _ in some], pa.string())}
        columns["name"] = pa.array([name for _, name in some], pa.string())
        db.register("batch", pa.table(columns))
        db.execute(f"INSERT INTO {table} SELECT * FROM batch")


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
