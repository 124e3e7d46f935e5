"""Is this copy the corpus that was signed? Needs the copy, the attestation and the keys one trusts, nothing else.

Reads the attestation and walks the folders side by side, both in the order of names, so that memory grows with neither.
Promises: every file that is changed, missing or extra is named; no link is followed; a part of the attestation that is
lost, moved, added or signed by a stranger is found, whatever the files are.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from DocsToKG.ContentDownload.attestation.attesting import ahead
from DocsToKG.ContentDownload.attestation.statement import (
    PAYLOAD_TYPE,
    AttestationBad,
    AttestedFile,
    Corpus,
    Part,
    Sums,
    digest,
    part_of,
)
from DocsToKG.ContentDownload.errors import StorageError
from DocsToKG.ContentDownload.storage.files import LocalFiles, digest_of
from DocsToKG.Orchestrator.errors import NotVerified
from DocsToKG.Orchestrator.signing import dsse
from DocsToKG.Orchestrator.signing.keys import Trust

MAX_LINE_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class Compared:
    """What a check found."""

    corpus: Corpus | None = None
    files: int = 0
    bytes: int = 0
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not (self.changed or self.missing or self.extra or self.unreadable)


def check(attestation: BinaryIO, root: Path, trust: Trust, *, threads: int = 2) -> Compared:
    """Compare the files below `root` with the attestation; `AttestationBad` or `NotVerified` where that is no good."""
    done, files = Compared(), LocalFiles(root)
    attested = (file for part in _noting(done, parts(attestation, trust)) for file in part.files)
    for file, found in ahead(_joined(done, attested, root), lambda file: _digest(files, file), threads):
        if isinstance(found, str):
            getattr(done, found).append(file.path)
        else:
            done.files += 1
            done.bytes += found[1]
            if found != (file.sha256, file.size):
                done.changed.append(file.path)
    return done


def parts(attestation: BinaryIO, trust: Trust) -> Iterator[Part]:
    """The statements, each proved before it is handed out: signed by those one trusts, and each after the one before.

    At the end the sums must be right, so that whoever has read all has read everything that was signed.
    """
    previous, first, last, seen = None, None, "", Sums(0, 0, 0)
    part: Part | None = None
    for number, line in enumerate(_lines(attestation), start=1):
        if part is not None and part.sums is not None:
            raise AttestationBad(f"line {number} comes after the last part")
        content = _proved(line, trust, number)
        part = part_of(content)
        first = first or part.corpus
        if (part.number, part.previous, part.corpus) != (number, previous, first):
            raise AttestationBad(
                f"part {number} does not follow the one before it: a part is lost, moved or of another"
            )
        names = [last, *(file.path for file in part.files)]
        if any(after <= before for before, after in pairwise(names)):
            raise AttestationBad(f"part {number} names files twice or out of order")
        yield part
        previous, last = digest(content), names[-1]
        size = sum(file.size for file in part.files)
        seen = Sums(number, seen.files + len(part.files), seen.bytes + size)
    if part is None or part.sums is None:
        raise AttestationBad("the last part is missing: the attestation was cut short")
    if part.sums != seen:
        raise AttestationBad("the sums of the last part are not those of all")


def _lines(attestation: BinaryIO) -> Iterator[bytes]:
    while line := attestation.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise AttestationBad("a line is too long for a part of an attestation")
        if not line.endswith(b"\n"):
            raise AttestationBad("the last line has no end: the attestation was cut short")
        yield line


def _proved(line: bytes, trust: Trust, number: int) -> bytes:
    try:
        envelope = json.loads(line)
    except (ValueError, RecursionError):
        raise AttestationBad(f"line {number} is not a signed part of an attestation") from None
    try:
        return dsse.verify(envelope, trust.keys, trust.now, trust.threshold, payload_type=PAYLOAD_TYPE)
    except NotVerified as error:
        raise NotVerified(error.reason, f"part {number}: {error}") from None


def _noting(done: Compared, found: Iterator[Part]) -> Iterator[Part]:
    for part in found:
        done.corpus = part.corpus
        yield part


def _joined(done: Compared, attested: Iterator[AttestedFile], root: Path) -> Iterator[AttestedFile]:
    """The attested files that are there to be read. Those that are not, and files that nobody attested, are noted."""
    wanted = next(attested, None)
    for name in _walk(root, done.corpus.folders if done.corpus is not None else (), done):
        while wanted is not None and wanted.path < name:
            yield wanted  # outside of the folders that are walked, or missing: whoever reads it finds out
            wanted = next(attested, None)
        if wanted is not None and wanted.path == name:
            yield wanted
            wanted = next(attested, None)
        else:
            done.extra.append(name)
    while wanted is not None:
        yield wanted
        wanted = next(attested, None)


def _digest(files: LocalFiles, file: AttestedFile) -> tuple[str, int] | str:
    try:
        if not stat.S_ISREG(os.lstat(files.root / file.path).st_mode):
            return "changed"  # a folder, a link or a pipe, which is not even opened
        return digest_of(files, file.path) or "missing"
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except (StorageError, OSError):
        return "unreadable"


def _walk(root: Path, folders: Sequence[str], done: Compared) -> Iterator[str]:
    """Everything below some folders that is not itself a folder, in the order of whole names."""
    waiting = [f"{folder}/" for folder in sorted(folders, reverse=True)]
    while waiting:
        name = waiting.pop()
        if not name.endswith("/"):
            yield name
            continue
        try:
            waiting += [f"{name}{found}" for found in sorted(_inside(root / name), reverse=True)]
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            yield name[:-1]
        except OSError:
            done.unreadable.append(name)


def _inside(folder: Path) -> Iterator[str]:
    """The names in a folder; a folder sorts as its files do, with the stroke after its name."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
