"""Is every stored file what its name says? Hashes the store again, names what is damaged, missing or nobody's, and
marks it in the record, so that the report counts it and the next run fetches it again.

Knows the layout of the store and what the record says should be there. Changes nothing in the store. Promises: every
object is read once, several at a time; findings are kept part by part, so that a check that was cut off goes on; a mark
is of one file of one work, and goes when a whole check finds that file good again.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from DocsToKG.ContentDownload.catalog.store import Catalog, Download
from DocsToKG.ContentDownload.errors import StorageError
from DocsToKG.ContentDownload.storage.cas import cas_key
from DocsToKG.ContentDownload.storage.files import BLOCK, CAS, READABLE, StoredFile, StoredFiles, digest_of
from DocsToKG.ContentDownload.telemetry.schema import open_database, transaction
from DocsToKG.ContentDownload.telemetry.snapshots import replacing
from DocsToKG.core.clock import Clock, utc_iso

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord

_MARK_SHARED = """
UPDATE {s}.downloads d SET corrupt = r.corrupt, verified_at = r.at
  FROM json_to_recordset(%s::json) AS r (corrupt bigint, at text, doc_id text, sha256 text)
 WHERE d.doc_id = r.doc_id AND d.sha256 = r.sha256
"""
_MARK = "UPDATE downloads SET corrupt = ?, verified_at = ? WHERE doc_id = ? AND sha256 = ?"
_SHARDS = tuple(f"{number:02x}" for number in range(256))
_AHEAD = 16
_GOOD_S = 86_400.0  # what a check found longer ago may not be so any more
PARTS = len(_SHARDS) + 1  # the shards, then the readable names

Digest = str | StorageError | None


@dataclass(slots=True)
class Findings:
    """What a check has found so far. Damaged and missing files carry the works they stand for."""

    parts: list[str] = field(default_factory=list)  # done: shards of the store, then the readable names
    files: int = 0
    bytes: int = 0
    damaged: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return "names" in self.parts

    @property
    def is_good(self) -> bool:
        return not (self.damaged or self.missing or self.unreadable)

    @property
    def works(self) -> list[str]:
        """The works that lack a good file."""
        return sorted({doc_id for found in (*self.damaged, *self.missing) for doc_id in found["doc_ids"]})

    def add(self, part: str, found: Findings) -> None:
        """What was found in one more part."""
        self.parts.append(part)
        self.files += found.files
        self.bytes += found.bytes
        for name in ("damaged", "missing", "foreign", "unreadable"):
            getattr(self, name).extend(getattr(found, name))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


Check = Callable[[Findings], None]


class Verifier:
    """Checks one store against one record. `waiting`: digests of files in quarantine, which stand for no work yet.
    `progress` is told the findings after each part."""

    def __init__(
        self,
        files: StoredFiles,
        *,
        on_record: Callable[[str], Iterable[Download]],
        waiting: Container[str] = frozenset(),
        checkpoint: Path | None = None,
        threads: int = 2,
        save_every_s: float = 1.0,
        has_cas: bool = True,
        progress: Callable[[Findings], None] = lambda findings: None,
    ) -> None:
        self._files = files
        self._on_record = on_record
        self._waiting = waiting
        self._checkpoint = checkpoint
        self._threads = threads
        self._save_every_s = save_every_s
        self._has_cas = has_cas
        self._progress = progress
        self._buffers = threading.local()
        self._saved_at = time.monotonic()

    def run(self, *, afresh: bool = False) -> Findings:
        """Check everything; goes on with a check that was cut off, unless `afresh`."""
        findings = Findings() if afresh else self._read()
        with ThreadPoolExecutor(self._threads, thread_name_prefix="verify") as pool:
            try:
                for part, check in self._parts(pool, findings):
                    self._note(findings, part, check)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self._save(findings)
                raise
        if self._checkpoint is not None:
            with contextlib.suppress(OSError):  # of a disk that can only be read
                self._checkpoint.unlink(missing_ok=True)
        return findings

    def _parts(self, pool: ThreadPoolExecutor, done: Findings) -> Iterator[tuple[str, Check]]:
        """The parts that are left, each with what there is to judge. Shards are read ahead of the one that is judged,
        so that the readers have work also where a shard holds a single file."""
        ahead: deque[tuple[str, Check]] = deque()
        for shard in _SHARDS if self._has_cas else ():
            if shard not in done.parts:
                files = list(self._files.list(f"{CAS}/{shard}"))
                digests = pool.map(self._digest, files)
                ahead.append((shard, partial(self._check_shard, shard, zip(files, digests, strict=True))))
            if len(ahead) > _AHEAD:
                yield ahead.popleft()
        yield from ahead
        if "names" not in done.parts:
            yield "names", partial(self._check_names, pool)

    def _note(self, findings: Findings, part: str, check: Check) -> None:
        """A part counts as a whole or not at all."""
        found = Findings()
        check(found)
        findings.add(part, found)
        now = time.monotonic()
        if now - self._saved_at >= self._save_every_s:
            self._saved_at = now
            self._save(findings)
        self._progress(findings)

    def _check_shard(self, shard: str, found: Iterable[tuple[StoredFile, Digest]], findings: Findings) -> None:
        works: dict[str, list[str]] = {}
        for held in self._on_record(shard):
            works.setdefault(held.sha256, []).append(held.doc_id)
        there: set[str] = set()
        for file, digest in found:
            wanted = f"{shard}{file.key.rpartition('/')[2]}"
            if file.key.count("/") != 3 or len(wanted) != 64:
                findings.foreign.append(file.key)
                continue
            there.add(wanted)
            self._judge(findings, file, wanted, digest, works.get(wanted))
            if wanted not in works and wanted not in self._waiting:
                findings.foreign.append(file.key)
        for digest in sorted(works.keys() - there):
            findings.missing.append({"key": cas_key(digest), "sha256": digest, "doc_ids": works[digest]})

    def _check_names(self, pool: ThreadPoolExecutor, findings: Findings) -> None:
        """The names that people read: there, and another name of the object or a whole copy of it."""
        wanted = {held.path: (held.sha256, held.doc_id) for held in self._on_record("") if held.path}
        inner = self._objects(findings) if self._has_cas else frozenset()
        copies: list[StoredFile] = []
        there: set[str] = set()
        for file in (file for folder in READABLE for file in self._files.list(folder)):
            there.add(file.key)
            if file.key not in wanted:
                findings.foreign.append(file.key)
            elif file.same_as not in inner:
                copies.append(file)
        for path in sorted(wanted.keys() - there):
            if not self._files.exists(path):
                sha256, doc_id = wanted[path]
                findings.missing.append({"key": path, "sha256": sha256, "doc_ids": [doc_id]})
        for file, digest in zip(copies, pool.map(self._digest, copies), strict=True):
            sha256, doc_id = wanted[file.key]
            self._judge(findings, file, sha256, digest, [doc_id])

    def _objects(self, findings: Findings) -> frozenset[object]:
        """What the objects are, whatever their names: they were hashed already. Anything else in there is foreign."""
        found: set[object] = set()
        for file in self._files.list("cas"):
            if file.key[:11] == f"{CAS}/" and file.key[11:13] in _SHARDS and file.key[13:14] == "/":
                found.add(file.same_as)
            else:
                findings.foreign.append(file.key)
        return frozenset(found - {None})

    def _judge(
        self,
        findings: Findings,
        file: StoredFile,
        wanted: str,
        digest: Digest,
        works: list[str] | None,
    ) -> None:
        """What is nobody's is named as that alone, whatever its bytes are."""
        if isinstance(digest, StorageError):
            findings.unreadable.append(str(digest))
        elif digest not in (None, wanted) and works is not None:
            findings.damaged.append({"key": file.key, "sha256": wanted, "found": digest, "doc_ids": works})
        findings.files += 1
        findings.bytes += file.size

    def _digest(self, file: StoredFile) -> Digest:
        buffer = getattr(self._buffers, "block", None)
        if buffer is None:
            buffer = self._buffers.block = bytearray(BLOCK)
        try:
            found = digest_of(self._files, file.key, buffer)
        except StorageError as error:
            return error
        return None if found is None else found[0]

    def _read(self) -> Findings:
        if self._checkpoint is None:
            return Findings()
        try:
            if time.time() - self._checkpoint.stat().st_mtime > _GOOD_S:
                return Findings()
            kept = Findings(**json.loads(self._checkpoint.read_bytes()))
        except (OSError, ValueError, TypeError):
            return Findings()
        return Findings() if kept.is_whole else kept

    def _save(self, findings: Findings) -> None:
        """Where nothing can be written, on a full disk or an archived one, the next check begins at the beginning."""
        if self._checkpoint is not None:
            with contextlib.suppress(OSError):
                self._checkpoint.parent.mkdir(parents=True, exist_ok=True)
                with replacing(self._checkpoint) as file:
                    file.write(json.dumps(findings.to_dict()).encode())


def mark(database: Path, findings: Findings, *, clock: Clock) -> bool:
    """Note what is damaged or missing, and what is so no more; False when the record cannot be written."""
    with Catalog(database) as catalog:
        rows = _changes(catalog, findings, clock)
    if not rows:
        return True
    try:
        with contextlib.closing(open_database(database)) as db, transaction(db):
            db.executemany(_MARK, rows)
    except sqlite3.OperationalError:
        return False  # a disk that can only be read: what was found is told all the same
    return True


def mark_shared(shared: SharedRecord, findings: Findings, *, clock: Clock) -> None:
    """The same on a record that several machines share."""
    from DocsToKG.ContentDownload.catalog.shared.catalog import SharedCatalog

    rows = _changes(SharedCatalog(shared, owns=False), findings, clock)
    if rows:
        sent = [dict(zip(("corrupt", "at", "doc_id", "sha256"), row, strict=True)) for row in rows]
        shared.fetch(_MARK_SHARED.format(s=shared.schema), (json.dumps(sent),))


def _changes(catalog: Catalog, findings: Findings, clock: Clock) -> list[tuple[int, str, str, str]]:
    lacking = {
        (doc_id, file["sha256"]) for file in (*findings.damaged, *findings.missing) for doc_id in file["doc_ids"]
    }
    known = {(file.doc_id, file.sha256) for file in catalog.damaged()}
    found = lacking - known
    good = known - lacking if findings.is_whole and not findings.unreadable else set()
    now = utc_iso(clock.now())
    return [(is_damaged, now, *file) for is_damaged, files in ((1, found), (0, good)) for file in sorted(files)]
