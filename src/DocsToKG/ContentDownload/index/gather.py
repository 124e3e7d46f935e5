"""The second step of a build: the rows of each hash, of all sources, sorted into one file of the index.

Of a record that was read several times the newest counts. An update keeps the rows of the old index, except those of
records that were read again or deleted. Promises: a file is complete or missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from DocsToKG.ContentDownload.index.engine import Database, filled, listed, mapped_errors, quoted, statement
from DocsToKG.ContentDownload.index.manifest import IndexFile, atomic_file, digest_of
from DocsToKG.ContentDownload.index.parts import Part, on_disk
from DocsToKG.ContentDownload.index.scatter import table_of
from DocsToKG.ContentDownload.index.sources import SOURCES

_COLUMNS = (
    "key, same_as, source, record, updated, ids, title, year, authors, pages, type, is_retracted, oa_status, copies"
)
_NEWEST = (
    "CREATE OR REPLACE TEMP TABLE collected AS SELECT * FROM collected QUALIFY row_number() OVER "
    "(PARTITION BY key, source, record ORDER BY updated DESC NULLS LAST, title) = 1"
)


@dataclass(frozen=True, slots=True)
class FileCounts:
    """What one file of the index holds."""

    file: IndexFile
    works: int
    open_works: int
    closed_works: int
    copies: int


class Gather:
    """Files below `files` from the batches in `scattered`, and from the files of an older index, `base`."""

    def __init__(self, db: Database, files: Path, scattered: Sequence[Path], *, base: Sequence[Path] = ()) -> None:
        self._db = db
        self._files = files
        self._scattered = scattered
        self._base = base
        for command in statement("empty").split(";"):
            db.execute(command)

    def exclude(self, deleted: Sequence[Part], place: Path) -> None:
        """Leave out the records named in files of ids, and those of the old index that were read again."""
        fresh = [file for folder in self._scattered for file in folder.glob("*/bucket=*/*.parquet")]
        if fresh and self._base:
            self._db.execute(f"INSERT INTO changed SELECT DISTINCT source, record FROM {table_of(fresh)}")
        with on_disk(deleted, place / "fetched") as found:
            for file in found:
                with mapped_errors(f"{file} cannot be read as a list of ids"):
                    self._db.execute(filled(statement("deleted"), file=quoted(file)))

    def write(self, bucket: int) -> FileCounts:
        name = f"part-{bucket:04}.parquet"
        note = self._files / f"{name}.json"
        if not note.exists():
            with mapped_errors(f"{self._files / name} cannot be written", reading=False):
                counts = self._write(bucket, self._files / name)
                with atomic_file(note) as beside:
                    beside.write_text(json.dumps(asdict(counts)))
        noted = json.loads(note.read_text())
        return FileCounts(**(noted | {"file": IndexFile(**noted["file"])}))

    def _write(self, bucket: int, target: Path) -> FileCounts:
        self._collect(bucket)
        with atomic_file(target) as beside:
            self._db.execute(
                f"COPY (SELECT * FROM collected ORDER BY key, source, record) TO {quoted(beside)} "
                "(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 24576)"
            )
        telling = ", ".join(quoted(source.name) for source in SOURCES.values() if source.tells_access)
        [(rows, *counts)] = self._db.execute(filled(statement("counts"), telling=telling)).fetchall()
        self._db.execute("DROP TABLE collected")
        return FileCounts(IndexFile(target.name, rows, target.stat().st_size, digest_of(target)), *counts)

    def _collect(self, bucket: int) -> None:
        fresh = [file for folder in self._scattered for file in folder.glob(f"*/bucket={bucket}/*.parquet")]
        rows = table_of(fresh) if fresh else "no_rows"
        old = f"read_parquet({listed([self._base[bucket]])})" if self._base else "no_rows"
        self._db.execute(filled(statement("collect"), columns=_COLUMNS, rows=rows, old=old))
        twice = "SELECT 1 FROM (SELECT 1 FROM collected GROUP BY key, source, record HAVING count(*) > 1) LIMIT 1"
        if self._db.execute(twice).fetchone() is not None:
            self._db.execute(_NEWEST)
