"""`index.json`: what an index holds and which folder its files are in. A new index is published by replacing it.

Knows the layout of an index's folder and its locks: one writer, and readers whose files stay while they read.
Promises: at every moment, also after kill -9, the folder holds the old index or the new one, complete.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.errors import FolderInUse, IndexDamaged, InputError

FORMAT = 1
MANIFEST = "index.json"
BUILDING = "building"
_LOCK = ".lock"
_READERS = ".readers"
_FILES = "works-"


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The rows of one hash of the identifier."""

    name: str
    rows: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What was read of one source. `newest` is the latest change that its records tell."""

    records: int = 0
    read_at: str | None = None
    newest: str | None = None
    files: int = 0
    bad_lines: int = 0
    bad: Mapping[str, tuple[int, str]] = field(default_factory=dict)  # by reason: how many, and an example


@dataclass(frozen=True, slots=True)
class Manifest:
    version: str
    built_at: str
    works: int
    open_works: int
    closed_works: int
    copies: int
    sources: Mapping[str, SourceInfo]
    files: tuple[IndexFile, ...]
    format: int = FORMAT

    @property
    def folder(self) -> str:
        return f"{_FILES}{self.version}"

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def read_manifest(root: Path) -> Manifest | None:
    """None where no index has been built yet."""
    try:
        data: dict[str, Any] = json.loads((root / MANIFEST).read_bytes())
        if data.get("format") != FORMAT:
            raise InputError(
                f"{root} is an index of format {data.get('format')}; build it anew, this version reads {FORMAT}"
            )
        data["files"] = tuple(IndexFile(**file) for file in data["files"])
        data["sources"] = {name: SourceInfo(**info) for name, info in data["sources"].items()}
        return Manifest(**data)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise IndexDamaged(f"{root / MANIFEST} cannot be read ({error}); build the index anew") from error


def publish(root: Path, manifest: Manifest, files: Path) -> None:
    """Make the files of `files` the index by one rename, and remove the old one."""
    target = root / manifest.folder
    (files / _READERS).touch()
    files.rename(target)
    sync(target)
    with atomic_file(root / MANIFEST) as beside:
        beside.write_text(json.dumps(asdict(manifest), indent=1))
    sync(root)
    drop_old(root, keep=manifest.folder)


def drop_old(root: Path, *, keep: str | None) -> None:
    """Remove the files of earlier indexes; those that are being read are left to the next build."""
    for folder in root.glob(f"{_FILES}*"):
        if folder.name == keep:
            continue
        with suppress(BlockingIOError), _locked(folder / _READERS, fcntl.LOCK_EX):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def writing(root: Path) -> Iterator[None]:
    """Hold the writer's lock. Leftovers of a killed writer are removed."""
    root.mkdir(parents=True, exist_ok=True)
    try:
        with _locked(root / _LOCK, fcntl.LOCK_EX):
            manifest = read_manifest(root)
            drop_old(root, keep=manifest.folder if manifest is not None else None)
            yield
    except BlockingIOError:
        raise FolderInUse(f"another build is working in {root}; wait until it has ended") from None


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Keep the files of this folder from being removed."""
    try:
        with _locked(folder / _READERS, fcntl.LOCK_SH):
            yield
    except FileNotFoundError:
        raise IndexDamaged(f"{folder} is not there, though the index names it; build the index anew") from None
    except BlockingIOError:
        raise FolderInUse(f"{folder} is being replaced by a newer index; open the index again") from None


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    handle = os.open(path, os.O_RDONLY if how == fcntl.LOCK_SH else os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """A folder that gets its name when the block succeeds; leftovers of an earlier try are removed."""
    beside = target.with_name(f"{target.name}.tmp")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    yield beside
    beside.rename(target)


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """A file that is synced and gets its name when the block succeeds."""
    beside = target.with_name(f"{target.name}.tmp")
    yield beside
    sync(beside)
    beside.replace(target)


def sync(path: Path) -> None:
    """Sync a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest_of(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
