"""Make an index from the files of its sources, or bring one up to date.

Finished steps stay in `building/` under a digest of their inputs, so that an interrupted build resumes. Promises: the
existing index is not touched until the new one is complete; memory is bounded; unreadable lines are counted, and end a
build only when there are many.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.ContentDownload.index.bad_lines import added
from DocsToKG.ContentDownload.index.engine import DEFAULT_LIMITS, Database, Limits, connect
from DocsToKG.ContentDownload.index.gather import FileCounts, Gather
from DocsToKG.ContentDownload.index.manifest import BUILDING, Manifest, SourceInfo, publish, read_manifest, writing
from DocsToKG.ContentDownload.index.parts import Part, batches, find_parts
from DocsToKG.ContentDownload.index.scatter import BatchSummary, Scatter
from DocsToKG.core.clock import utc_iso
from DocsToKG.core.digest import canonical_json, sha256_hex
from DocsToKG.core.ids import new_run_id

_RECORDS_EACH = 400_000  # in a file of the index, about
_FEWEST_FILES, _MOST_FILES = 16, 4096
_RECORD_BYTES, _PACKED_RECORD_BYTES = 5000, 1000
_JUDGED_FROM = 1000  # records, from which on a share of bad lines means something before the end


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a step of a build is: `done` of `total` files read, or files of the index written; `rows` so far."""

    step: str
    done: int
    total: int
    rows: int
    seconds: float


Watch = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an index is made from: addresses by source, files with the ids of deleted records, PMC's inventory.

    `bad_share` of the lines of a source may be unreadable. `files` of the index; None: by the size of the sources.
    """

    sources: Sequence[tuple[str, str]]
    deleted: Sequence[str] = ()
    inventory: Sequence[str] = ()
    bad_share: float = 0.01
    files: int | None = None


def build(
    root: Path, wanted: Wanted, *, limits: Limits = DEFAULT_LIMITS, watch: Watch = lambda progress: None
) -> Manifest:
    """A new index in `root`, in place of the one that may be there."""
    with writing(root), _database(root, limits) as db:
        return _Build(db, root, wanted, watch, base=None).make()


def update(
    root: Path, wanted: Wanted, *, limits: Limits = DEFAULT_LIMITS, watch: Watch = lambda progress: None
) -> Manifest:
    """The index in `root`, with newer records of a source in place of older ones, and without deleted ones."""
    with writing(root), _database(root, limits) as db:
        base = read_manifest(root)
        if base is None:
            raise InputError(f"{root} holds no index; make one with: content index build")
        return _Build(db, root, wanted, watch, base=base).make()


@contextmanager
def _database(root: Path, limits: Limits) -> Iterator[Database]:
    spill = limits.spill or root / BUILDING / "spill"
    spill.mkdir(parents=True, exist_ok=True)
    with connect(replace(limits, spill=spill)) as db:
        yield db


class _Build:
    """One build. `base` is the index that is brought up to date, if any."""

    def __init__(self, db: Database, root: Path, wanted: Wanted, watch: Watch, *, base: Manifest | None) -> None:
        self._db = db
        self._root = root
        self._place = root / BUILDING
        self._wanted = wanted
        self._watch = watch
        self._base = base
        self._parts = [part for source, address in wanted.sources for part in find_parts(source, address)]
        self._deleted = [part for address in wanted.deleted for part in find_parts("ids", address)]
        self._files = len(base.files) if base is not None else wanted.files or _files_for(self._parts)

    def make(self) -> Manifest:
        inventory = [part for address in self._wanted.inventory for part in find_parts("ids", address)]
        scatter = Scatter(self._db, self._place, buckets=self._files, inventory=inventory)
        folders, batches_read = self._read(scatter)
        files = self._place / f"files-{self._digest(folders)}"
        files.mkdir(exist_ok=True)
        self._drop_others({*folders, files})
        base = [self._root / self._base.folder / file.name for file in self._base.files] if self._base else []
        gather = Gather(self._db, files, folders, base=base)
        gather.exclude(self._deleted, self._place)
        manifest = self._manifest(batches_read, self._write(gather))
        for note in files.glob("*.json"):
            note.unlink()
        publish(self._root, manifest, files)
        shutil.rmtree(self._place, ignore_errors=True)
        return manifest

    def _read(self, scatter: Scatter) -> tuple[list[Path], list[BatchSummary]]:
        began, done = time.monotonic(), 0
        folders, batches_read = list[Path](), list[BatchSummary]()
        for batch in batches(self._parts):
            folder, summary = scatter.batch(batch)
            folders.append(folder)
            batches_read.append(summary)
            done += len(batch)
            rows = sum(one.records for one in batches_read)
            self._watch(Progress("reading", done, len(self._parts), rows, time.monotonic() - began))
            self._check_bad_lines(batches_read, at_least=_JUDGED_FROM)
        self._check_bad_lines(batches_read)
        return folders, batches_read

    def _write(self, gather: Gather) -> list[FileCounts]:
        began, counts = time.monotonic(), list[FileCounts]()
        for bucket in range(self._files):
            counts.append(gather.write(bucket))
            rows = sum(one.file.rows for one in counts)
            self._watch(Progress("sorting", bucket + 1, self._files, rows, time.monotonic() - began))
        return counts

    def _check_bad_lines(self, batches_read: Sequence[BatchSummary], *, at_least: int = 1) -> None:
        for name, info in _by_source(batches_read).items():
            lines = info.records + info.bad_lines
            if lines >= at_least and info.bad_lines > self._wanted.bad_share * lines:
                reasons = "; ".join(f"{why} {count}, as {example}" for why, (count, example) in info.bad.items())
                raise InputError(
                    f"{info.bad_lines} of {lines} records of {name} cannot be read ({reasons}). Check that these files "
                    "are of this source; --bad-lines allows a larger share"
                )

    def _digest(self, folders: Sequence[Path]) -> str:
        base = self._base.version if self._base is not None else None
        made_of = [base, [folder.name for folder in folders], [asdict(part) for part in self._deleted]]
        return sha256_hex(canonical_json(made_of))[:20]

    def _drop_others(self, wanted: set[Path]) -> None:
        """Remove the leftovers of builds from other inputs."""
        for folder in self._place.iterdir():
            if folder not in wanted and folder.name.startswith(("rows-", "files-", "fetched")):
                shutil.rmtree(folder, ignore_errors=True)

    def _manifest(self, batches_read: Sequence[BatchSummary], counts: Sequence[FileCounts]) -> Manifest:
        before = dict(self._base.sources) if self._base is not None else {}
        return Manifest(
            version=new_run_id().lower(),
            built_at=utc_iso(time.time()),
            works=sum(one.works for one in counts),
            open_works=sum(one.open_works for one in counts),
            closed_works=sum(one.closed_works for one in counts),
            copies=sum(one.copies for one in counts),
            sources=before | _by_source(batches_read),
            files=tuple(one.file for one in counts),
        )


def _by_source(batches_read: Iterable[BatchSummary]) -> dict[str, SourceInfo]:
    found: dict[str, SourceInfo] = {}
    now = utc_iso(time.time())
    for one in batches_read:
        info = found.get(one.source, SourceInfo(read_at=now))
        found[one.source] = SourceInfo(
            records=info.records + one.records,
            read_at=now,
            newest=max(filter(None, (info.newest, one.newest)), default=None),
            files=info.files + one.files,
            bad_lines=info.bad_lines + one.bad_lines,
            bad=added(dict(info.bad), one.bad),
        )
    return found


def _files_for(parts: Iterable[Part]) -> int:
    """A power of two, so that a file of the index fits well into memory while it is sorted."""
    records = sum(part.size_bytes / (_PACKED_RECORD_BYTES if _is_packed(part) else _RECORD_BYTES) for part in parts)
    files = _FEWEST_FILES
    while files < _MOST_FILES and records > files * _RECORDS_EACH:
        files *= 2
    return files


def _is_packed(part: Part) -> bool:
    return part.form != "jsonl" or part.name.endswith((".gz", ".zst"))
