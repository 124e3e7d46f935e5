"""Temp file, proof elsewhere, then into the store: the local disk.

Knows temp files that are locked while they live, the content-addressed store, the names people
read, and when the disk must be told to keep what it has. Does not know what the bytes mean.
Promises: no reader ever sees a part of a file; a stored object is never replaced by other bytes;
a kill at any point leaves at most temp files, which the next `prepare` removes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal
from uuid import uuid4

from DocsToKG.ContentDownload.errors import DiskFull, StorageError
from DocsToKG.ContentDownload.storage.cas import cas_path
from DocsToKG.ContentDownload.storage.paths import inside, numbered

Link = Literal["hardlink", "reflink", "copy", "none"]

_MIB = 1 << 20
_READ_BYTES = _MIB
_TEMP_PREFIX = "part-"
_SIBLINGS = 1000
_FICLONE = 0x40049409  # linux/fs.h; other systems refuse it and get a copy
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
# Disks without hard links (exFAT, some network mounts), a folder on another disk, or an object with too many names.
_NO_LINK = frozenset({errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.EACCES})


@dataclass(frozen=True, slots=True)
class Stored:
    """Bytes that are safe on disk. `link` says how the readable name came about; `none` when it is the file itself."""

    sha256: str
    size: int
    cas_path: Path | None
    path: Path
    duplicate: bool
    link: Link


class TempFile:
    """A locked file that nobody looks at yet; counts and hashes what is written. Leaving the `with` removes it."""

    def __init__(self, *, path: Path, fd: int) -> None:
        self.path = path
        self.size = 0
        self._fd = fd
        self._open = True
        self._sha256 = hashlib.sha256()
        self._md5 = hashlib.md5(usedforsecurity=False)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    @property
    def md5(self) -> str:
        return self._md5.hexdigest()

    def write(self, data: bytes) -> None:
        if not self._open:
            raise ValueError(f"{self.path.name} is closed")
        with _disk_errors(self.path):
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]
        self._sha256.update(data)
        self._md5.update(data)
        self.size += len(data)

    def restart(self) -> None:
        """Forget what was written: the server sends the body from its beginning again."""
        with _disk_errors(self.path):
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)
        self.size = 0
        self._sha256 = hashlib.sha256()
        self._md5 = hashlib.md5(usedforsecurity=False)

    def seal(self, *, fsync: bool) -> None:
        """Read-only from here on, and on the disk before any name points at it."""
        with _disk_errors(self.path):
            os.fchmod(self._fd, 0o444)
            if fsync:
                os.fsync(self._fd)

    def copy_from(self, source: Path) -> Link:
        """The bytes of `source`, shared on disks that can share; this file must be empty."""
        with source.open("rb") as origin:
            try:
                fcntl.ioctl(self._fd, _FICLONE, origin.fileno())
                return "reflink"
            except OSError:
                while chunk := origin.read(_READ_BYTES):
                    self.write(chunk)
        return "copy"

    def close(self) -> None:
        """Nothing more is written. The file stays locked, so that no sweeper takes it before it is stored."""
        self._open = False

    def discard(self) -> None:
        """Remove the temporary name; names already linked to the same bytes stay. Safe to call twice."""
        self._open = False
        if self._fd >= 0:
            # The name goes first: a file without a lock may be another's to sweep.
            self.path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> TempFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.discard()


class LocalStore:
    """Artifacts below `root`: `cas/`, the readable folders beside it, and `.tmp` on the same disk."""

    def __init__(
        self,
        root: Path,
        *,
        cas_enabled: bool = True,
        min_free_bytes: int = 512 * _MIB,
        fsync: bool = True,
        link: Callable[[Path, Path], None] = os.link,
    ) -> None:
        self.root = Path(os.path.abspath(root))
        self._temp_dir = self.root / ".tmp"
        self._cas_enabled = cas_enabled
        self._min_free_bytes = min_free_bytes
        self._fsync = fsync
        self._link = link
        self._on_stored: Callable[[float], None] = lambda seconds: None

    def on_stored(self, callback: Callable[[float], None]) -> None:
        """`callback(seconds)` is told how long each file took to be safe on the disk."""
        self._on_stored = callback

    def prepare(self) -> int:
        """Create the folders, remove what dead processes left, and refuse a disk that is nearly full.

        Returns how many left-over temp files were removed.
        """
        with _disk_errors(self.root):
            self._make_dir(self._temp_dir)
            if self._cas_enabled:
                self._make_dir(self.root / "cas" / "sha256")
            swept = sum(_remove_if_dead(path) for path in list(self._temp_dir.iterdir()))
        self.check_space()
        return swept

    def check_space(self, need_bytes: int = 0) -> None:
        """Raise `DiskFull` unless the reserve and `need_bytes` more are free (STO-10)."""
        with _disk_errors(self.root):
            free = shutil.disk_usage(self.root).free
        need = self._min_free_bytes + need_bytes
        if free < need:
            raise DiskFull(
                f"{self.root}: {free // _MIB} MiB free, {-(-need // _MIB)} MiB needed; "
                "make room or choose another storage root"
            )

    def temp(self, suffix: str = ".part") -> TempFile:
        """A new locked temp file on the store's own disk."""
        with _disk_errors(self._temp_dir):
            self._temp_dir.mkdir(parents=True, exist_ok=True)
            while True:
                path = self._temp_dir / f"{_TEMP_PREFIX}{uuid4().hex}{suffix}"
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                if _lock(fd) and os.fstat(fd).st_nlink:
                    return TempFile(path=path, fd=fd)
                # A sweeper met the file in the instant before it was locked, and took it.
                os.close(fd)

    def store(self, temp: TempFile, *, human: str) -> Stored:
        """Give the temp file's bytes their digest's place and their readable name, durably. Consumes `temp`."""
        began = time.monotonic()
        stored = self._store(temp, human)
        self._on_stored(time.monotonic() - began)
        return stored

    def _store(self, temp: TempFile, human: str) -> Stored:
        with temp, _disk_errors(self.root):
            inside(self.root, human)
            temp.seal(fsync=self._fsync)
            if not self._cas_enabled:
                path, present, _ = self._name(temp.path, temp.sha256, human, moves=True)
                return Stored(temp.sha256, temp.size, None, path, present, "none")
            cas = cas_path(self.root, temp.sha256)
            duplicate = self._into_cas(temp, cas)
            path, _, link = self._name(cas, temp.sha256, human, moves=False)
            return Stored(temp.sha256, temp.size, cas, path, duplicate, link)

    def adopt(self, sha256: str, human: str) -> Stored | None:
        """Give an object that is already here another readable name; None when it is not here. Moves no bytes."""
        inside(self.root, human)
        cas = cas_path(self.root, sha256)
        with _disk_errors(self.root):
            if not self.has(sha256):
                return None
            path, _, link = self._name(cas, sha256, human, moves=False)
            return Stored(sha256, cas.stat().st_size, cas, path, True, link)

    def has(self, sha256: str) -> bool:
        return self._cas_enabled and cas_path(self.root, sha256).is_file()

    def open(self, sha256: str) -> BinaryIO | None:
        """The object for reading, or None when it is not here. The caller closes it."""
        path = cas_path(self.root, sha256)
        try:
            return path.open("rb") if self._cas_enabled else None
        except FileNotFoundError:
            return None

    def verify(self, sha256: str, human: str | None = None) -> bool:
        """The bytes of `sha256` are here and whole: as an object, and under their readable name where one is given."""
        with _disk_errors(self.root):
            places = [cas_path(self.root, sha256)] if self._cas_enabled else []
            places += [self.at(human)] if human is not None else []
            whole = {place: place.is_file() for place in places}
            if len(places) == 2 and all(whole.values()) and _same_file(*places):
                places.pop()  # two names of one file are hashed once
            return bool(places) and all(whole.values()) and all(_digest(place) == sha256 for place in places)

    def relative(self, path: Path) -> str:
        """A stored file as records name it: below the root, so that a corpus can be moved."""
        return str(path.relative_to(self.root))

    def at(self, relative: str) -> Path:
        """Where the file is that records name `relative`."""
        return inside(self.root, relative)

    def drop_damaged(self, sha256: str, human: str) -> None:
        """Remove the object and the readable name where they do not hold the bytes of `sha256`; good ones stay."""
        with _disk_errors(self.root):
            for path in (cas_path(self.root, sha256), self.at(human)):
                if path.is_file() and _digest(path) != sha256:
                    path.unlink(missing_ok=True)

    def _into_cas(self, temp: TempFile, cas: Path) -> bool:
        """True when the object was there before. A kept object is never touched."""
        self._make_dir(cas.parent)
        try:
            self._link(temp.path, cas)
            present = False
        except OSError as error:
            if error.errno not in _NO_LINK | {errno.EEXIST}:
                raise
            # A failing disk may have kept the name and lost bytes: then it is not what its name says.
            present = cas.is_file() and _digest(cas) == temp.sha256
            if not present:
                # Replacing is safe here and only here: the same name is the same bytes.
                os.replace(temp.path, cas)
        # Also for an object that was there: it may be a rival's of a moment ago, its name not yet on the disk.
        self._sync_dir(cas.parent)
        return present

    def _name(self, source: Path, sha256: str, human: str, *, moves: bool) -> tuple[Path, bool, Link]:
        """The readable name for `source`: (path, was it there already, how). Other bytes are never overwritten."""
        for number in range(1, _SIBLINGS):
            path = inside(self.root, human if number == 1 else numbered(human, number))
            self._make_dir(path.parent)
            try:
                link = self._publish(source, path, moves=moves)
            except FileExistsError:
                if _same_bytes(source, path, sha256):
                    self._sync_dir(path.parent)
                    return path, True, "hardlink" if _same_file(source, path) else "copy"
                continue
            self._sync_dir(path.parent)
            return path, False, link
        raise StorageError(f"{human}: {_SIBLINGS} other files have this name already; move them away")

    def _publish(self, source: Path, path: Path, *, moves: bool) -> Link:
        """Make `path` appear whole or raise `FileExistsError`. `moves`: the source is a temp file that may go."""
        try:
            self._link(source, path)
            return "hardlink"
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
        if moves:
            self._rename_new(source, path)
            return "none"
        with self.temp() as copy:
            link = copy.copy_from(source)
            copy.seal(fsync=self._fsync)
            self._rename_new(copy.path, path)
        return link

    def _rename_new(self, source: Path, path: Path) -> None:
        """Rename without overwriting, where hard links, which would decide this in one step, do not exist."""
        guard = os.open(self._temp_dir / "names.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, "already there", str(path))
            os.replace(source, path)
        finally:
            os.close(guard)

    def _make_dir(self, path: Path) -> None:
        if path.is_dir():
            return
        if path.parent != path:
            self._make_dir(path.parent)
        with contextlib.suppress(FileExistsError):
            path.mkdir()
        self._sync_dir(path.parent)

    def _sync_dir(self, path: Path) -> None:
        """The one place where names become durable."""
        if not self._fsync:
            return
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


@contextlib.contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """What the disk refuses, in the words of this package."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise DiskFull(f"{path}: no space left; make room and start again, nothing stored is lost") from error
        raise StorageError(f"{error.filename or path}: {error.strerror or error}") from error


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_if_dead(path: Path) -> bool:
    """Remove a temp file whose owner is gone: a live owner holds its lock."""
    if not path.name.startswith(_TEMP_PREFIX):
        return False
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        if not _lock(fd):
            return False
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(fd)


def _same_file(one: Path, other: Path) -> bool:
    return os.path.samefile(one, other)


def _same_bytes(source: Path, path: Path, sha256: str) -> bool:
    """A directory or a symbolic link under the name is somebody else's, whatever it leads to."""
    there = path.lstat()
    if not stat.S_ISREG(there.st_mode):
        return False
    return _same_file(source, path) or (there.st_size == source.stat().st_size and _digest(path) == sha256)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
