"""Bytes, proof elsewhere, then into the store: the local disk.

Knows temporary files, the content-addressed store, the names people read, and when the disk must be told to keep what
it has. Does not know what the bytes mean. Promises: no reader ever sees a part of a file; a stored object is never
replaced by other bytes; what was stored survives a power cut; a kill at any point leaves at most temp files, which the
next `prepare` removes.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from DocsToKG.ContentDownload.errors import DiskFull, StorageError
from DocsToKG.ContentDownload.storage.cas import cas_key, cas_path
from DocsToKG.ContentDownload.storage.disk import NO_LINK, DiskErrors, hard_link, in_words, open_unnamed, sync_folder
from DocsToKG.ContentDownload.storage.flushing import Flushing
from DocsToKG.ContentDownload.storage.outage import Hold
from DocsToKG.ContentDownload.storage.paths import QUARANTINE, inside, is_plain, numbered
from DocsToKG.ContentDownload.storage.rounds import Rounds
from DocsToKG.ContentDownload.storage.temp import IN_MEMORY, Link, TempFile
from DocsToKG.core.tasks import Answer, Answers
from DocsToKG.core.values import lean_dataclass

__all__ = ["LocalStore", "Order", "Stored", "TempFile"]

_MIB = 1 << 20
_TEMP_PREFIX = "part-"
_SIBLINGS = 1000
_LIVELY_S = 0.015


@lean_dataclass(frozen=True, slots=True)
class Stored:
    """Bytes that are safe, at `place`. `link`: how the readable name came about; `none` when it is the file itself."""

    sha256: str
    size: int
    place: str
    duplicate: bool
    link: Link

    @property
    def path(self) -> Path:
        """For a file on a disk; a bucket's `place` is an address."""
        return Path(self.place)


@dataclass(slots=True, eq=False)
class Order:
    """A file to be stored, and what became of it. One that `is_sealed` is on the disk, though not flushed, and is
    discarded by whoever brought it."""

    temp: TempFile
    human: str
    is_sealed: bool = False
    stored: Stored | None = None
    error: Exception | None = None


class LocalStore:
    """Artifacts below `root`: `cas/`, the readable folders beside it, and `.tmp` on the same disk.

    Files that come at the same time are made to last together. `unnamed`: temporary files have no name where the disk
    can do that; `in_memory` bytes of one are kept off the disk. `flushing`: how a round is made to last.
    """

    def __init__(
        self,
        root: Path,
        *,
        cas_enabled: bool = True,
        min_free_bytes: int = 512 * _MIB,
        fsync: bool = True,
        link: Callable[[str, str], None] = hard_link,
        unnamed: bool = True,
        in_memory: int = IN_MEMORY,
        flushing: Flushing | None = None,
    ) -> None:
        self.root = Path(os.path.abspath(root))
        self._at = str(self.root)
        self._temp_dir = os.path.join(self._at, ".tmp")
        self._cas_enabled = cas_enabled
        self._min_free_bytes = min_free_bytes
        self._fsync = fsync
        self._link = link
        self._unnamed = unnamed
        self._in_memory = in_memory
        self._temp_prefix = _TEMP_PREFIX
        self._made: set[str] = set()  # folders that are there
        self._proved: set[str] = set()  # folders of readable names that lie below the root
        self._rounds: Rounds[Order] = Rounds(self.store_all, in_halves=self.store_in_halves, lively_s=_LIVELY_S)
        self._flushing = flushing or Flushing(self.root)
        self._on_stored: Callable[[float], None] = lambda seconds: None
        self._before_names: Callable[[], None] = lambda: None
        self._answers: Answers | None = None  # for the tasks that store files

    def before_names(self, callback: Callable[[], None]) -> None:
        """`callback()` is called before the files of a round get their names, by the thread of the round."""
        self._before_names = callback

    def on_stored(self, callback: Callable[[float], None]) -> None:
        """`callback(seconds)` is told how long each file took to be safe on the disk."""
        self._on_stored = callback

    def held_up(self) -> Hold | None:
        """Why no file should be fetched now, and for how long: it could not be stored. A local disk is there."""
        return None

    def prepare(self, *, joining: bool = False) -> int:
        """Create the folders, remove what dead processes left, and refuse a disk that is nearly full.

        Returns how many left-over temp files were removed. `joining`: for a process of a run that has begun.
        """
        with DiskErrors(self.root):
            new: dict[str, None] = {}
            self._make_folder(self._temp_dir, new)
            if self._cas_enabled:
                self._make_folder(os.path.join(self._at, "cas", "sha256"), new)
            self._sync(new)
            swept = sum(_remove_if_dead(path) for path in list(Path(self._temp_dir).iterdir()))
        self.check_space()
        return swept

    def check_space(self, need_bytes: int = 0) -> None:
        """Raise `DiskFull` unless the reserve and `need_bytes` more are free (STO-10)."""
        with DiskErrors(self.root):
            free = shutil.disk_usage(self.root).free
        need = self._min_free_bytes + need_bytes
        if free < need:
            raise DiskFull(
                f"{self.root}: {free // _MIB} MiB free, {-(-need // _MIB)} MiB needed; "
                "make room or choose another storage root"
            )

    def temp(self, suffix: str = ".part") -> TempFile:
        """A place for new bytes: in memory first, then on the store's own disk."""
        return TempFile(partial(self._open_temp, suffix), where=self._temp_dir, in_memory=self._in_memory)

    def show_temps(self, owner: str) -> None:
        """From now on every temporary file is on the disk from its first byte, by a name that tells its owner."""
        self._unnamed, self._in_memory = False, 0
        self._temp_prefix = f"{_TEMP_PREFIX}{owner}-"

    def temps_of(self, owner: str) -> list[Path]:
        """The temporary files that an owner who is gone has left, the latest last."""
        left = Path(self._temp_dir).glob(f"{_TEMP_PREFIX}{owner}-*")
        return sorted(left, key=lambda path: path.stat().st_mtime_ns)

    def store(self, temp: TempFile, *, human: str) -> Stored:
        """Give the temp file's bytes their digest's place and their readable name, durably. Consumes `temp`."""
        began = time.monotonic()
        order = Order(temp, human)
        self._rounds.do(order)
        return self._result(order, began)

    async def storing(self, temp: TempFile, *, human: str) -> Stored:
        """`store` for tasks: they wait while the disk takes its time, and nothing calls them off meanwhile. Whoever
        has `temp` discards it."""
        began = time.monotonic()
        # Written here and only flushed in the round: each call to the disk lets go of the interpreter, and a thread
        # that makes many of them beside a busy one waits for it each time.
        self._place(human)
        temp.seal(fsync=False)
        order = Order(temp, human, is_sealed=True)
        loop = asyncio.get_running_loop()
        if self._answers is None or self._answers.loop is not loop:
            self._answers = Answers(loop)
        stored: Answer[None] = Answer(loop=loop)
        self._rounds.begin(order, partial(self._answers.give, stored))
        await stored.wait()
        return self._result(order, began)

    def _result(self, order: Order, began: float) -> Stored:
        if order.stored is None:
            raise order.error or StorageError(f"{order.human}: not stored")
        self._on_stored(time.monotonic() - began)
        return order.stored

    def adopt(self, sha256: str, human: str) -> Stored | None:
        """Give an object that is already here another readable name; None when it is not here. Moves no bytes."""
        self._place(human)
        cas = cas_path(self.root, sha256)
        with DiskErrors(self.root):
            if not self.has(sha256):
                return None
            new: dict[str, None] = {}
            path, _, link = self._name(str(cas), sha256, human, new)
            self._sync(new)
            return Stored(sha256, cas.stat().st_size, path, True, link)

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
        with DiskErrors(self.root):
            places = [cas_path(self.root, sha256)] if self._cas_enabled else []
            places += [self.at(human)] if human is not None else []
            whole = {place: place.is_file() for place in places}
            if len(places) == 2 and all(whole.values()) and os.path.samefile(*places):
                places.pop()  # two names of one file are hashed once
            return bool(places) and all(whole.values()) and all(_digest(place) == sha256 for place in places)

    def relative(self, path: str | Path) -> str:
        """A stored file as records name it: below the root, so that a corpus can be moved."""
        below = f"{self._at}{os.sep}"
        text = str(path)
        return text[len(below) :] if text.startswith(below) else str(Path(path).relative_to(self.root))

    def at(self, relative: str) -> Path:
        """Where the file is that records name `relative`."""
        return inside(self.root, relative)

    def size_of(self, relative: str) -> int | None:
        """How large the file is that records name `relative`; None when it is not there."""
        path = self.at(relative)
        return path.stat().st_size if path.is_file() else None

    def drop_damaged(self, sha256: str, human: str) -> None:
        """Remove the object and the readable name where they do not hold the bytes of `sha256`; good ones stay."""
        with DiskErrors(self.root):
            for path in (cas_path(self.root, sha256), self.at(human)):
                if path.is_file() and _digest(path) != sha256:
                    path.unlink(missing_ok=True)

    def drop_name(self, sha256: str, human: str) -> bool:
        """Remove a readable name of an object; the object stays. A name that is all there is of the bytes stays, and so
        does one that holds others."""
        with DiskErrors(self.root):
            path = self.at(human)
            if not self.has(sha256) or not path.is_file():
                return False
            if not _same_bytes(str(cas_path(self.root, sha256)), str(path), sha256):
                return False
            path.unlink(missing_ok=True)
            return True

    def release(self, relative: str) -> None:
        """Remove a file from quarantine; its object stays, as other works may have it."""
        if relative.startswith(f"{QUARANTINE}/"):
            with DiskErrors(self.root):
                self.at(relative).unlink(missing_ok=True)

    # a round of files

    @property
    def waiting(self) -> int:
        """How many callers of `store` wait for the next round."""
        return self._rounds.waiting

    def store_all(self, orders: Sequence[Order]) -> None:
        """Store the files of a round; each order says afterwards what became of it."""
        try:
            if self.store_in_halves(orders, ()):
                self.store_in_halves((), orders)
        finally:
            for order in orders:
                if not order.is_sealed:
                    order.temp.discard()

    def store_in_halves(self, fresh: Sequence[Order], named: Sequence[Order]) -> bool:
        """Bytes first, then names, then the folders: so no name is ever without its bytes. True when the fresh ones
        have their names and are safe with the next call, as the ones that are `named`: all at once flushes the names of
        these with the bytes of the others."""
        began = time.monotonic()
        all_at_once = self._fsync and self._flushing.is_for_all(len(fresh), is_due=bool(named))
        try:
            self._for_each(fresh, partial(self._seal, fsync=self._fsync and not all_at_once))
            if all_at_once or named:
                self._flush([*named, *fresh] if all_at_once else named)
            new: dict[str, None] = {}
            if fresh:
                self._before_names()
            self._for_each(fresh, partial(self._give_names, new=new))
            if not all_at_once:
                self._sync_names(fresh, new)
        except BaseException as error:
            _spoil([*named, *fresh], StorageError(f"{self.root}: not stored ({type(error).__name__})"))
            raise
        if self._fsync and fresh and (all_at_once or not named):
            self._flushing.took(time.monotonic() - began, files=len(fresh), all_at_once=all_at_once)
        return all_at_once

    def _for_each(self, orders: Sequence[Order], step: Callable[[Order], None]) -> None:
        """What goes wrong with one is its own trouble."""
        for order in orders:
            if order.error is None:
                try:
                    step(order)
                except Exception as error:
                    order.error = in_words(error, self.root)

    def _flush(self, orders: Sequence[Order]) -> None:
        """All of the disk, with all that was written to it: bytes, names and folders."""
        written = [order.temp for order in orders if order.error is None]
        if not written:
            return
        try:
            # By the file that was opened first: what failed to be written before is told only to older ones.
            self._flushing.flush(min(written, key=lambda temp: temp.opened_at).fileno())
        except Exception as error:
            _spoil(orders, in_words(error, self.root))

    def _sync_names(self, orders: Sequence[Order], new: Iterable[str]) -> None:
        try:
            self._sync(new)
        except Exception as error:
            _spoil(orders, in_words(error, self.root))

    def _seal(self, order: Order, *, fsync: bool) -> None:
        if not order.is_sealed:
            self._place(order.human)
            order.temp.seal(fsync=fsync)
        elif fsync:
            os.fsync(order.temp.fileno())

    def _give_names(self, order: Order, new: dict[str, None]) -> None:
        temp, sha256 = order.temp, order.temp.sha256
        if not self._cas_enabled:
            path, present, _ = self._name(temp.source, sha256, order.human, new, temp=temp)
            order.stored = Stored(sha256, temp.size, path, present, "none")
            return
        cas = f"{self._at}/{cas_key(sha256)}"
        duplicate = self._into_cas(temp, cas, new)
        path, _, link = self._name(cas, sha256, order.human, new)
        order.stored = Stored(sha256, temp.size, path, duplicate, link)

    def _into_cas(self, temp: TempFile, cas: str, new: dict[str, None]) -> bool:
        """True when the object was there before. A kept object is never touched."""
        try:
            self._link_new(temp.source, cas, new)
            return False
        except OSError as error:
            if error.errno not in NO_LINK | {errno.EEXIST}:
                raise
            # A failing disk may have kept the name and lost bytes: then it is not what its name says.
            present = os.path.isfile(cas) and _digest(cas) == temp.sha256
            if not present:
                # Replacing is safe here and only here: the same name is the same bytes.
                self._replace(temp, cas)
            return present

    def _name(
        self, source: str, sha256: str, human: str, new: dict[str, None], *, temp: TempFile | None = None
    ) -> tuple[str, bool, Link]:
        """The readable name for `source`: (path, was it there already, how). Other bytes are never overwritten.
        `human` has its place; `temp`: the source itself, which may go."""
        for number in range(1, _SIBLINGS):
            path = f"{self._at}/{human}" if number == 1 else self._place(numbered(human, number))
            try:
                return path, False, self._publish(source, path, new, temp)
            except FileExistsError:
                if _same_bytes(source, path, sha256):
                    return path, True, "hardlink" if os.path.samefile(source, path) else "copy"
        raise StorageError(f"{human}: {_SIBLINGS} other files have this name already; move them away")

    def _publish(self, source: str, path: str, new: dict[str, None], temp: TempFile | None) -> Link:
        """Make `path` appear whole or raise `FileExistsError`."""
        try:
            self._link_new(source, path, new)
            return "hardlink"
        except OSError as error:
            if error.errno not in NO_LINK:
                raise
        if temp is not None and temp.has_name:
            self._rename_new(source, path)
            return "none"
        copy, link = self._copied(source)
        with copy:
            self._rename_new(copy.source, path)
        return link

    def _link_new(self, source: str, path: str, new: dict[str, None]) -> None:
        folder = path.rpartition("/")[0]
        # Also for a name that is there: it may be a rival's of a moment ago, and not yet on the disk.
        new[folder] = None
        try:
            if folder not in self._made:
                self._make_folder(folder, new)
            self._link(source, path)
        except FileNotFoundError:
            # Somebody has removed a folder that was there.
            self._made.clear()
            self._make_folder(folder, new)
            self._link(source, path)

    def _replace(self, temp: TempFile, cas: str) -> None:
        if temp.has_name:
            os.replace(temp.source, cas)
            return
        copy, _ = self._copied(temp.source)
        with copy:
            os.replace(copy.source, cas)

    def _copied(self, source: str) -> tuple[TempFile, Link]:
        """The bytes of `source` in a temporary file with a name, ready for a place, and how they came there."""
        copy = TempFile(self._open_named, where=self._temp_dir)
        try:
            link = copy.copy_from(source)
            copy.seal(fsync=self._fsync)
        except BaseException:
            copy.discard()
            raise
        return copy, link

    def _rename_new(self, source: str, path: str) -> None:
        """Rename without overwriting, where hard links, which would decide this in one step, do not exist."""
        guard = os.open(os.path.join(self._temp_dir, "names.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, "already there", path)
            os.replace(source, path)
        finally:
            os.close(guard)

    # places

    def _place(self, relative: str) -> str:
        """The absolute path of a readable name. Whether its folder leads out of the root is looked at once."""
        folder, _, name = relative.rpartition("/")
        if folder not in self._proved or not is_plain(name):
            with DiskErrors(self.root):
                inside(self.root, relative)
            self._proved.add(folder)
        return f"{self._at}/{relative}"

    def _open_temp(self, suffix: str = ".part") -> tuple[int, str | None]:
        if self._unnamed:
            try:
                fd = open_unnamed(self._temp_dir)
            except FileNotFoundError:
                os.makedirs(self._temp_dir, exist_ok=True)
                fd = open_unnamed(self._temp_dir)
            if fd is not None:
                return fd, None
            self._unnamed = False
        return self._open_named(suffix)

    def _open_named(self, suffix: str = ".part") -> tuple[int, str]:
        """A new locked file. A sweeper may meet it in the instant before it is locked, and take it."""
        os.makedirs(self._temp_dir, exist_ok=True)
        while True:
            path = os.path.join(self._temp_dir, f"{self._temp_prefix}{uuid4().hex}{suffix}")
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            if _lock(fd) and os.fstat(fd).st_nlink:
                return fd, path
            os.close(fd)

    def _make_folder(self, path: str, new: dict[str, None]) -> None:
        """The folder is there afterwards; those that must be told to keep their names are added to `new`."""
        if path in self._made:
            return
        if not os.path.isdir(path):
            parent = os.path.dirname(path)
            if parent != path:
                self._make_folder(parent, new)
            with contextlib.suppress(FileExistsError):
                os.mkdir(path)
            new[parent] = None
        self._made.add(path)

    def _sync(self, folders: Iterable[str]) -> None:
        """The one place where names become durable."""
        if self._fsync:
            for folder in folders:
                sync_folder(folder)


def _spoil(orders: Sequence[Order], error: Exception) -> None:
    for order in orders:
        order.stored, order.error = None, order.error or error


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


def _same_bytes(source: str, path: str, sha256: str) -> bool:
    """A directory or a symbolic link under the name is somebody else's, whatever it leads to."""
    there = os.lstat(path)
    if not stat.S_ISREG(there.st_mode):
        return False
    return os.path.samefile(source, path) or (there.st_size == os.stat(source).st_size and _digest(path) == sha256)


def _digest(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
