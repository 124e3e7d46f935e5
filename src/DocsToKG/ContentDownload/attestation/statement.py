"""The form of an attestation: in-toto statements (v1) over the files of a corpus, part by part.

An attestation is a file of lines, each a DSSE envelope, as in-toto's bundles are. Each statement names some files with
their digests as subjects, in the order of their names over all parts, and where each came from; it holds the digest of
the statement before it, and the last one says so and has the sums. So a part can be neither lost, moved nor added, and
no more than one part is ever in memory. Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from DocsToKG.ContentDownload.errors import RunError

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:docstokg:corpus:v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
PART_FILES = 2000
_MAX_TEXT = 2000
_HEX = frozenset("0123456789abcdef")


class AttestationBad(RunError):
    """The file is no attestation, or not a whole one. The message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class AttestedFile:
    """A file of the corpus: its name below the root, what it is, and the works that it stands for."""

    path: str
    sha256: str
    size: int
    works: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is said of the whole. `folders` are those that hold nothing but files of the attestation."""

    name: str
    attested_at: str
    tool: str
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sums:
    """What the last part says of all."""

    parts: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Part:
    """One statement, as it was read."""

    number: int
    previous: str | None
    corpus: Corpus
    files: tuple[AttestedFile, ...]
    sums: Sums | None


def work_of(
    doc_id: str, *, url: str | None, licence: str | None, version: str | None, at: str | None
) -> dict[str, Any]:
    """What is said of a work; what is not known is left out."""
    said = {"id": doc_id, "url": url, "license": licence, "version": version, "retrievedAt": at}
    return {name: value[:_MAX_TEXT] for name, value in said.items() if value is not None}


def payload(part: Part) -> bytes:
    """The statement in its one spelling."""
    predicate = {
        "corpus": part.corpus.name,
        "attestedAt": part.corpus.attested_at,
        "tool": part.corpus.tool,
        "folders": list(part.corpus.folders),
        "part": part.number,
        "previous": part.previous,
        "files": [{"size": file.size, "works": list(file.works)} for file in part.files],
        "sums": None
        if part.sums is None
        else {"parts": part.sums.parts, "files": part.sums.files, "bytes": part.sums.bytes},
    }
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": file.path, "digest": {"sha256": file.sha256}} for file in part.files],
        "predicateType": PREDICATE,
        "predicate": predicate,
    }
    return json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def part_of(content: bytes) -> Part:
    """The statement that a payload holds; it was signed, but may still be of another kind."""
    try:
        value = json.loads(content)
        if (value["_type"], value["predicateType"]) != (STATEMENT, PREDICATE):
            raise AttestationBad("it is signed, but not a list of the files of a corpus")
        said, subjects = value["predicate"], value["subject"]
        sums = (
            None if said["sums"] is None else Sums(*(_count(said["sums"][key]) for key in ("parts", "files", "bytes")))
        )
        corpus = Corpus(
            _text(said["corpus"]), _text(said["attestedAt"]), _text(said["tool"]), tuple(map(_folder, said["folders"]))
        )
        files = [_file(subject, more) for subject, more in zip(subjects, said["files"], strict=True)]
        return Part(_count(said["part"]), said["previous"], corpus, tuple(files), sums)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise AttestationBad("it is signed, but not in the form of an attestation") from None


def _file(subject: Any, more: Any) -> AttestedFile:
    sha256 = subject["digest"]["sha256"]
    if not isinstance(sha256, str) or len(sha256) != 64 or not _HEX.issuperset(sha256):
        raise ValueError
    return AttestedFile(_name(subject["name"]), sha256, _count(more["size"]), more["works"])


def _name(text: Any) -> str:
    """A path below the root, and never out of it."""
    parts = _text(text).split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in text:
        raise ValueError
    return str(text)


def _folder(text: Any) -> str:
    if "/" in _name(text):
        raise ValueError
    return str(text)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError
    return value
