"""The first step of a build: read files once and partition their rows by a hash of their identifier.

Works on one batch of files at a time. Promises: a batch is complete or missing, under a digest of its files, so that it
is read once however often the build is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from DocsToKG.ContentDownload.index.bad_lines import Reasons, added, bad_lines_of
from DocsToKG.ContentDownload.index.engine import Database, filled, listed, mapped_errors, quoted, statement
from DocsToKG.ContentDownload.index.manifest import atomic_folder
from DocsToKG.ContentDownload.index.parts import Part, form_of, on_disk
from DocsToKG.ContentDownload.index.sources import SOURCES, relation_of, rows_of
from DocsToKG.core.digest import canonical_json, sha256_hex

_SUMMARY = "summary.json"
_NO_BUCKET = "bucket=__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """What was read of a batch of files of one source."""

    source: str
    files: int
    rows: int = 0
    records: int = 0
    newest: str | None = None
    bad: Reasons = field(default_factory=dict)

    @property
    def bad_lines(self) -> int:
        return sum(count for count, _ in self.bad.values())


class Scatter:
    """Batches below `place`, for an index of so many files. `inventory` says which records of PMC count."""

    def __init__(self, db: Database, place: Path, *, buckets: int, inventory: Sequence[Part] = ()) -> None:
        self._db = db
        self._place = place
        self._buckets = buckets
        self._inventory = inventory
        if inventory:
            self._read_inventory()

    def batch(self, parts: Sequence[Part]) -> tuple[Path, BatchSummary]:
        """The folder with the rows of these files."""
        target = self._place / f"rows-{self._name_of(parts)}"
        if not target.exists():
            with atomic_folder(target) as folder, on_disk(parts, self._place / "fetched") as files:
                self._copy(files, folder)
                (folder / _SUMMARY).write_text(json.dumps(asdict(self._summary(files, folder))))
        noted = json.loads((target / _SUMMARY).read_text())
        return target, BatchSummary(
            **(noted | {"bad": {why: (n, example) for why, (n, example) in noted["bad"].items()}})
        )

    def _name_of(self, parts: Sequence[Part]) -> str:
        made_of = [[asdict(part) for part in some] for some in (parts, self._inventory)]
        return sha256_hex(canonical_json([self._buckets, *made_of]))[:20]

    def _copy(self, files: Mapping[Path, Part], folder: Path) -> None:
        for form, some in _by_form(files).items():
            source = SOURCES[files[some[0]].source]
            query = rows_of(
                source,
                relation_of(self._db, source, some, form),
                buckets=self._buckets,
                today=datetime.now(UTC).date(),
                inventory="inventory" if self._inventory else None,
            )
            others = f" and {len(some) - 1} more" if len(some) > 1 else ""
            with mapped_errors(f"{files[some[0]].name}{others} cannot be read as {source.name}"):
                self._db.execute(
                    f"COPY ({query}) TO {quoted(folder / form)} "
                    "(FORMAT parquet, PARTITION_BY (bucket), ROW_GROUP_SIZE 24576)"
                )

    def _summary(self, files: Mapping[Path, Part], folder: Path) -> BatchSummary:
        """What was read; the rows of bad lines go."""
        source = next(iter(files.values())).source
        bad = list(folder.glob(f"*/{_NO_BUCKET}/*"))
        reasons = self._reasons(bad, files) if bad else {}
        for file in bad:
            file.unlink()
        good = list(folder.glob("*/bucket=*/*.parquet"))
        if not good:
            return BatchSummary(source, len(files), bad=reasons)
        [(rows, records, newest)] = self._db.execute(
            f"SELECT count(*), count(*) FILTER (same_as IS NULL), max(updated) FROM {table_of(good)}"
        ).fetchall()
        return BatchSummary(source, len(files), rows, records, newest, reasons)

    def _reasons(self, bad: Iterable[Path], files: Mapping[Path, Part]) -> Reasons:
        noted = self._db.execute(
            f"SELECT bad_in, count(*), count(raw_id), min(raw_id) FROM {table_of(bad)} GROUP BY bad_in ORDER BY bad_in"
        ).fetchall()
        reasons: Reasons = {}
        for name, count, named, raw_id in noted:
            file = Path(name)
            reasons = added(reasons, bad_lines_of(file, files[file].name, count=count, named=named, raw_id=raw_id))
        return reasons

    def _read_inventory(self) -> None:
        """PMC's inventory names the metadata that are of today: `metadata/PMC<n>.<v>.json` in the second column."""
        with on_disk(self._inventory, self._place / "fetched") as files, mapped_errors("the inventory cannot be read"):
            self._db.execute(filled(statement("inventory"), files=listed(files)))


def table_of(files: Iterable[Path]) -> str:
    """The partitioned rows, without a column from the name of the folder."""
    return f"read_parquet({listed(files)}, hive_partitioning=false)"


def _by_form(files: Mapping[Path, Part]) -> dict[str, list[Path]]:
    by_form: dict[str, list[Path]] = {}
    for file, part in files.items():
        by_form.setdefault(form_of(file, part), []).append(file)
    return by_form
