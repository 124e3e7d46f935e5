"""Make an attestation: hash every file of a corpus again, and sign the list.

Knows the record and the store. Promises: what is signed was read a moment ago; a file that is gone, or is not what the
record says, is named, and then nothing is written; memory does not grow with the corpus.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO, TypeVar

from DocsToKG.ContentDownload.attestation.statement import (
    PART_FILES,
    PAYLOAD_TYPE,
    AttestedFile,
    Corpus,
    Part,
    Sums,
    digest,
    payload,
    work_of,
)
from DocsToKG.ContentDownload.catalog.store import Download
from DocsToKG.ContentDownload.errors import StorageError
from DocsToKG.ContentDownload.storage.files import READABLE, StoredFiles, digest_of
from DocsToKG.Orchestrator.signing import dsse
from DocsToKG.Orchestrator.signing.keys import Signer

T = TypeVar("T")
U = TypeVar("U")
_AHEAD = 32
_WORKS_SHOWN = 100


@dataclass(slots=True)
class Attested:
    """What was signed. `spoiled` are files that are not as the record says: path and what was found."""

    parts: int = 0
    files: int = 0
    bytes: int = 0
    spoiled: list[tuple[str, str]] = field(default_factory=list)


def attest(
    downloads: Iterable[Download],
    files: StoredFiles,
    out: IO[bytes],
    *,
    name: str,
    at: str,
    tool: str,
    signers: Sequence[Signer],
    threads: int = 2,
    part_files: int = PART_FILES,
) -> Attested:
    """Write the attestation to `out`, of which nothing is worth anything when `spoiled` is not empty."""
    done = Attested()
    with tempfile.TemporaryDirectory(prefix="attest-") as folder, closing(_sorted(downloads, Path(folder))) as listed:
        corpus = Corpus(name, at, tool, tuple(sorted(READABLE)))  # a file in one that was empty is extra, too
        proved = _proved(listed, files, done, threads)
        previous = None
        for number, (some, is_last) in enumerate(_parts(proved, part_files), start=1):
            done.parts, done.files = number, done.files + len(some)
            done.bytes += sum(file.size for file in some)
            sums = Sums(done.parts, done.files, done.bytes) if is_last else None
            content = payload(Part(number, previous, corpus, tuple(some), sums))
            out.write(json.dumps(dsse.sign(content, PAYLOAD_TYPE, signers), separators=(",", ":")).encode() + b"\n")
            previous = digest(content)
    return done


def _sorted(downloads: Iterable[Download], folder: Path) -> sqlite3.Connection:
    """The files by their names, on disk: one row for each work."""
    listed = sqlite3.connect(folder / "files.sqlite", isolation_level=None)
    listed.execute("PRAGMA journal_mode = OFF")
    listed.execute("PRAGMA synchronous = OFF")
    listed.execute("CREATE TABLE files (path TEXT, sha256 TEXT, doc_id TEXT, work TEXT)")
    listed.execute("BEGIN")
    listed.executemany("INSERT INTO files VALUES (?, ?, ?, ?)", map(_row, downloads))
    listed.execute("COMMIT")
    listed.execute("CREATE INDEX by_path ON files (path, doc_id)")
    return listed


def _row(file: Download) -> tuple[str, str, str, str]:
    work = work_of(file.doc_id, url=file.url, licence=file.license, version=file.version, at=file.created_at)
    return file.path, file.sha256, file.doc_id, json.dumps(work)


def _proved(listed: sqlite3.Connection, files: StoredFiles, done: Attested, threads: int) -> Iterator[AttestedFile]:
    """The files that are what the record says, in the order of their names; the others are noted."""
    rows = listed.execute("SELECT path, sha256, work FROM files ORDER BY path, doc_id")
    grouped = ((path, [row[1:] for row in group]) for path, group in groupby(rows, key=lambda row: row[0]))
    for (path, works), found in ahead(grouped, lambda one: _found(files, one[0]), threads):
        sha256 = works[0][0]
        if isinstance(found, str):
            done.spoiled.append((path, found))
        elif found[0] != sha256 or any(other != sha256 for other, _ in works):
            done.spoiled.append((path, "damaged"))
        else:
            yield AttestedFile(path, sha256, found[1], [json.loads(work) for _, work in works[:_WORKS_SHOWN]])


def _found(files: StoredFiles, path: str) -> tuple[str, int] | str:
    try:
        return digest_of(files, path) or "missing"
    except StorageError:
        return "unreadable"


def ahead(items: Iterable[T], deed: Callable[[T], U], threads: int) -> Iterator[tuple[T, U]]:
    """Each item with what the deed makes of it, in order, several done at once and only a few ahead."""
    waiting: deque[tuple[T, Future[U]]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="hash") as pool:
        for item in items:
            waiting.append((item, pool.submit(deed, item)))
            if len(waiting) >= _AHEAD:
                first, future = waiting.popleft()
                yield first, future.result()
        while waiting:
            first, future = waiting.popleft()
            yield first, future.result()


def _parts(files: Iterator[AttestedFile], size: int) -> Iterator[tuple[list[AttestedFile], bool]]:
    """Lists of so many, each with whether it is the last; a single empty one where there is none."""
    some: list[AttestedFile] = []
    for file in files:
        if len(some) == size:
            yield some, False
            some = []
        some.append(file)
    yield some, True
