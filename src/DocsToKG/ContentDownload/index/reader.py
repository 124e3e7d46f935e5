"""Read an index: look works up one by one, or join a whole list.

Promises: an index that is replaced meanwhile is read to the end as it was; closed and unknown works are told apart;
memory is bounded whatever the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, Self

from DocsToKG.ContentDownload.errors import IndexDamaged, InputError
from DocsToKG.ContentDownload.index.engine import (
    DEFAULT_LIMITS,
    Database,
    Limits,
    connect,
    filled,
    listed,
    mapped_errors,
    quoted,
    statement,
)
from DocsToKG.ContentDownload.index.manifest import Manifest, digest_of, read_manifest, reading
from DocsToKG.ContentDownload.index.sources import SOURCES

_BATCH = 20_000  # names that are handed to the database at once
_TRIES = 5  # to open an index that is being replaced
# Whose copies go first: the user's own, then those with a checksum, then the indexes of open copies.
_ORDER = ("copies", "pmc", "openalex", "unpaywall", "arxiv", "crossref", "datacite")


class Access(StrEnum):
    """What an index says of a work: it knows a copy; a source that would know of one has none; or it knows nothing."""

    OPEN = "open"
    CLOSED = "closed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KnownWork:
    """A work as the index knows it. `ids` are names with their scheme, strongest first; `copies` best first, each with
    url, kind, page, host_type, license, version, evidence, location, checksum and the source that told."""

    access: Access
    ids: tuple[str, ...] = ()
    title: str | None = None
    year: int | None = None
    authors: tuple[str, ...] = ()
    pages: str | None = None
    type: str | None = None
    is_retracted: bool | None = None
    oa_status: str | None = None
    copies: tuple[Mapping[str, Any], ...] = ()


NOT_KNOWN = KnownWork(Access.UNKNOWN)


class Index:
    """An index on disk, open for reading. Use as a context manager."""

    def __init__(self, root: Path, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.root = root
        self._limits = limits
        self._stack = ExitStack()

    @classmethod
    def open(cls, root: str | Path, *, limits: Limits = DEFAULT_LIMITS) -> Self:
        index = cls(Path(root), limits=limits)
        return index.__enter__()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.manifest = self._hold(stack)
            self._files = [self.root / self.manifest.folder / file.name for file in self.manifest.files]
            self._db = stack.enter_context(connect(self._limits))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def _hold(self, stack: ExitStack) -> Manifest:
        """Open the current index and keep its files from being removed."""
        for tries_left in reversed(range(_TRIES)):
            manifest = read_manifest(self.root)
            if manifest is None:
                raise InputError(f"{self.root} holds no index; make one with: content index build")
            try:
                stack.enter_context(reading(self.root / manifest.folder))
                return manifest
            except IndexDamaged:
                if not tries_left or read_manifest(self.root) == manifest:
                    raise
        raise AssertionError("the last try returns or raises")

    def lookup(self, names: Sequence[str]) -> list[KnownWork]:
        """What is known of each work, by names such as `doi:10.1234/abc` or `pmid:123`."""
        found = dict(self.join((number, (name,)) for number, name in enumerate(names)))
        return [found[number] for number in range(len(names))]

    def join(self, works: Iterable[tuple[int, Sequence[str]]]) -> Iterator[tuple[int, KnownWork]]:
        """What is known of each of the numbered works, in the order of their numbers. The first of a work's names that
        the index knows counts."""
        self._ask(works)
        with mapped_errors(f"{self.root} cannot be read"):
            self._find_keys()
            self._answer()
            # With the order asked for, what does not fit into memory is sorted on the disk.
            answers = self._db.execute(
                "SELECT a.work, b.* EXCLUDE (work) FROM (SELECT DISTINCT work FROM requested) a "
                "LEFT JOIN answers b ON a.work = b.work ORDER BY a.work"
            )
            names = [column[0] for column in answers.description or ()]
            while rows := answers.fetchmany(_BATCH):
                for row in rows:
                    yield row[0], _known(dict(zip(names, row, strict=True)))

    @property
    def database(self) -> Database:
        """The connection, for callers that fill its table `requested` and then count."""
        return self._db

    def count_requested(self) -> list[tuple[Any, ...]]:
        """Works and copies in `requested`, each work named once, by access and by the source, host, kind, licence and
        version of the first copy. Unknown works are left out."""
        with mapped_errors(f"{self.root} cannot be read"):
            self._db.execute(filled(statement("direct_keys"), buckets=str(len(self._files)), files=listed(self._files)))
            self._db.execute(
                "CREATE OR REPLACE TEMP TABLE planned (access VARCHAR, source VARCHAR, host VARCHAR, kind VARCHAR, "
                "license VARCHAR, version VARCHAR, works BIGINT, copies BIGINT)"
            )
            for answers in self._by_bucket():
                self._db.execute(filled(statement("plan_counts"), answers=answers))
            return self._db.execute(
                "SELECT * EXCLUDE (works, copies), sum(works)::BIGINT, sum(copies)::BIGINT FROM planned "
                "WHERE access <> 'unknown' GROUP BY ALL"
            ).fetchall()

    def _ask(self, works: Iterable[tuple[int, Sequence[str]]]) -> None:
        import pyarrow as pa  # type: ignore[import-untyped]

        self._db.execute("CREATE OR REPLACE TEMP TABLE requested (work BIGINT, rank SMALLINT, name VARCHAR)")
        rows = ((work, rank, name) for work, names in works for rank, name in enumerate(names or ("",)))
        while some := list(islice(rows, _BATCH)):
            numbers, ranks, names = zip(*some, strict=True)
            columns = {"work": pa.array(numbers, pa.int64()), "rank": pa.array(ranks, pa.int16()), "name": names}
            self._db.register("batch", pa.table(columns))
            self._db.execute("INSERT INTO requested SELECT * FROM batch")

    def _find_keys(self) -> None:
        """Names to keys. A DOI is the strongest name, so it is a key or nothing; other names may point to one."""
        self._db.execute("CREATE OR REPLACE TEMP TABLE keys (work BIGINT, key VARCHAR, bucket INTEGER)")
        files = self._files_of("SELECT name FROM requested")
        if not files:
            return
        self._db.execute(
            filled(statement("keys"), files=listed(files)),
            [len(self._files)],
        )

    def _answer(self) -> None:
        nothing = self._answers("(FROM keys WHERE false)", self._files[0])
        self._db.execute(f"CREATE OR REPLACE TEMP TABLE answers AS {nothing}")
        for answers in self._by_bucket():
            self._db.execute(f"INSERT INTO answers {answers}")

    def _by_bucket(self) -> Iterator[str]:
        """The query for the answers of each hash of the keys."""
        for [bucket] in self._db.execute("SELECT DISTINCT bucket FROM keys ORDER BY 1").fetchall():
            yield self._answers(f"(FROM keys WHERE bucket = {bucket})", self._files[bucket])

    def _answers(self, keys: str, file: Path) -> str:
        telling = ", ".join(quoted(source.name) for source in SOURCES.values() if source.tells_access)
        return filled(statement("answers"), telling=telling, sources=listed(_ORDER), keys=keys, files=listed([file]))

    def _files_of(self, names: str) -> list[Path]:
        """The files that hold the names of a query; a hash names its file."""
        buckets = self._db.execute(
            f"SELECT DISTINCT bucket_of(name, {len(self._files)}) FROM ({names}) WHERE name <> '' ORDER BY 1"
        ).fetchall()
        return [self._files[bucket] for [bucket] in buckets]

    def export(self, target: Path) -> int:
        """Every copy as a row of a table: Parquet, or CSV by the name of the file. Returns how many."""
        form = "csv, HEADER" if target.name.endswith((".csv", ".csv.gz")) else "parquet, COMPRESSION zstd"
        beside = target.with_name(f".{target.name}.tmp")
        with mapped_errors(f"{target} cannot be written", reading=False):
            found = self._db.execute(
                f"COPY ({filled(statement('export'), files=listed(self._files))}) TO {quoted(beside)} (FORMAT {form})"
            ).fetchone()
        beside.replace(target)
        return int(found[0]) if found is not None else 0

    def verify(self, watch: Any = lambda done, total: None) -> list[str]:
        """What is wrong with the files: nothing, or what and where. Reads every byte."""
        problems = []
        for number, (file, path) in enumerate(zip(self.manifest.files, self._files, strict=True)):
            if not path.exists():
                problems.append(f"{path}: is not there")
            elif digest_of(path) != file.sha256:
                problems.append(f"{path}: is not what was written")
            elif self._misplaced(path, number):
                problems.append(f"{path}: holds rows of another hash, or out of order")
            watch(number + 1, len(self._files))
        return problems

    def _misplaced(self, path: Path, number: int) -> bool:
        [(wrong,)] = self._db.execute(
            "SELECT count(*) FROM (SELECT key, lag(key) OVER (ORDER BY file_row_number) AS before "
            f"FROM read_parquet({listed([path])}, file_row_number=true)) "
            "WHERE bucket_of(key, ?) <> ? OR before > key",
            [len(self._files), number],
        ).fetchall()
        return bool(wrong)


def _known(answer: dict[str, Any]) -> KnownWork:
    if answer["key"] is None:
        return NOT_KNOWN
    copies = list({copy["url"]: copy for copy in reversed(answer["copies"])}.values())[::-1]
    access = Access.OPEN if copies else Access.CLOSED if answer["is_told"] else Access.UNKNOWN
    return KnownWork(
        access,
        ids=tuple(sorted(answer["ids"] or (answer["key"],), key=_strength)),
        title=answer["title"],
        year=answer["year"],
        authors=tuple(answer["authors"] or ()),
        pages=answer["pages"],
        type=answer["type"],
        is_retracted=answer["is_retracted"],
        oa_status=answer["oa_status"],
        copies=tuple(copies),
    )


def _strength(name: str) -> int:
    return ("doi", "arxiv", "pmcid", "pmid", "openalex").index(name.partition(":")[0])
