"""Liveness of workers: each worker process holds a locked file beside the ledger for as long as it lives.

The operating system drops the lock when the process ends, however it ends. Whoever then gets the lock knows that the
worker is dead and frees its leases at once, without waiting for their expiry. The file also names the jobs that the
process was running in its last moment: one of them may have ended it. Promises: the leases of a living worker are never
touched; a file exists for as long as leases may.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import re
import time
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol

from DocsToKG.Orchestrator.errors import BadJob, LedgerError
from DocsToKG.Orchestrator.ledger.base import WorkerEnd

_WORKER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SUFFIX = ".lock"
TRIES = 200
_PAUSE_S = 0.01
# A file's lines are of one length: the number of the process, then places for jobs, blank or with a number.
_LINE = b"%19d\n"
_BLANK = b" " * 19 + b"\n"
_PLACES = 128
_FILE_BYTES = len(_BLANK) * (1 + _PLACES)
_STAGE_BYTES = 1024  # behind the lines: where the one job of a process is


class _FreesWorkers(Protocol):
    @property
    def path(self) -> Path: ...

    def release_worker(
        self, worker_id: str, in_hand: Collection[int] | None = (), *, end: WorkerEnd | None = None
    ) -> int: ...


class NotedStage(NamedTuple):
    """Where a process was with its one job, as it noted last."""

    job_id: int
    stage: str


class InHand:
    """Numbers of jobs that threads are at work on right now, in memory that is also a file: writing one is no call to
    the system, and what was written outlives the process. A job beyond the places is not noted."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._free = [len(_BLANK) * place for place in range(1, 1 + _PLACES)]

    def take(self, job_id: int) -> int | None:
        """The place where it is noted, for `drop`."""
        try:
            place = self._free.pop()
        except IndexError:
            return None
        self._memory[place : place + len(_BLANK)] = _LINE % job_id
        return place

    def drop(self, place: int | None) -> None:
        if place is not None:
            self._memory[place : place + len(_BLANK)] = _BLANK
            self._free.append(place)

    def note_stage(self, job_id: int, stage: str) -> None:
        """Where the one job of this process is, for whoever finds the process dead."""
        text = json.dumps([job_id, stage[:200]]).encode()[: _STAGE_BYTES - 1] + b"\n"
        self._memory[_FILE_BYTES : _FILE_BYTES + len(text)] = text


class Presence:
    """Held from before the first lease of `worker_id` until its last lease is settled.

    A process may hold it for one that it starts: the child `inherits` the open file, and the lock is held while either
    lives. Then the parent alone settles what the child leaves.
    """

    def __init__(self, ledger_path: str | Path, worker_id: str, *, inherits: int | None = None) -> None:
        if not _WORKER_ID.fullmatch(worker_id):
            raise BadJob(f"{worker_id[:80]!r} is not a worker id; use letters, digits, dot, dash and underscore")
        self.path = _folder(Path(ledger_path)) / (worker_id + _SUFFIX)
        self._file: int | None = None
        self._owes = False
        self._inherits = inherits

    def __enter__(self) -> Presence:
        if self._inherits is not None:
            self._file = self._inherits
            return self
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._own_file()
        os.truncate(self._file, 0)
        os.write(self._file, _LINE % os.getpid())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            if not self._owes and self._inherits is None:
                self.path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    def in_hand(self) -> InHand:
        """Where to note the jobs that are worked on. On a disk that is full, or without mapped files, nothing outlives
        the process."""
        assert self._file is not None, "only while it is held"
        try:
            # Written, and not only made longer: to write into a hole of a mapped file on a full disk is death.
            os.pwrite(self._file, _BLANK * _PLACES + b"\n" * _STAGE_BYTES, len(_BLANK))
            return InHand(mmap.mmap(self._file, _FILE_BYTES + _STAGE_BYTES))
        except (OSError, ValueError):
            return InHand(mmap.mmap(-1, _FILE_BYTES + _STAGE_BYTES))

    def fileno(self) -> int:
        """The open file, for a child to inherit."""
        assert self._file is not None, "only while it is held"
        return self._file

    def noted_stage(self) -> NotedStage | None:
        """Where the child noted last that it was; None where it noted nothing that can be read."""
        try:
            job_id, stage = json.loads(os.pread(self.fileno(), _STAGE_BYTES, _FILE_BYTES).partition(b"\n")[0])
            return NotedStage(int(job_id), str(stage))
        except (OSError, ValueError, TypeError):
            return None

    def settle(self, ledger: _FreesWorkers, end: WorkerEnd | None = None) -> int:
        """Free what a child has left that came to this `end`. Until the ledger has taken it, the file stays."""
        self._owes = True
        freed = ledger.release_worker(self.path.name.removesuffix(_SUFFIX), (), end=end)
        self._owes = False
        return freed

    def give_back(self, ledger: _FreesWorkers) -> None:
        """Give every lease back. Where the ledger cannot take them, on a full disk say, the file stays and tells the
        next one that comes that their owner is gone."""
        self._owes = True
        with contextlib.suppress(LedgerError):
            ledger.release_worker(self.path.name.removesuffix(_SUFFIX))
            self._owes = False

    def _own_file(self) -> int:
        # A newcomer may be looking at our file in the moment between its making and our lock; it lets go soon.
        for _ in range(TRIES):
            file = _locked_at(self.path, create=True)
            if file is not None:
                return file
            time.sleep(_PAUSE_S)
        raise LedgerError(f"another process is the worker {self.path.stem}; a worker id belongs to one process")


def free_dead(ledger: _FreesWorkers, ledger_path: str | Path | None = None) -> int:
    """Free the leases of every worker whose process is gone; how many jobs that were."""
    folder = _folder(Path(ledger_path or ledger.path))
    return sum(_free_if_dead(ledger, path) for path in sorted(folder.glob("*" + _SUFFIX)))


def _free_if_dead(ledger: _FreesWorkers, path: Path) -> int:
    file = _locked_at(path, create=False)
    if file is None:
        return 0
    try:
        # The file goes last: a crash in between leaves it for the next one to find.
        freed = ledger.release_worker(path.name.removesuffix(_SUFFIX), _were_in_hand(file))
        path.unlink(missing_ok=True)
        return freed
    finally:
        os.close(file)


def _were_in_hand(file: int) -> list[int] | None:
    """The jobs noted; None where the process could not note any."""
    content = os.pread(file, _FILE_BYTES, 0)
    if len(content) < _FILE_BYTES:
        return None
    noted = content.split(b"\n")[1:]
    numbers = [int(line) for line in noted if line.strip().isdigit() and len(line) < len(_BLANK)]
    return [number for number in numbers if number < 1 << 63]


def _folder(ledger_path: Path) -> Path:
    return ledger_path.with_name(ledger_path.name + ".workers")


def _locked_at(path: Path, *, create: bool) -> int | None:
    """The file at `path`, open and locked by us; None when another holds it or it is gone."""
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0), 0o644)
        except FileNotFoundError:
            return None
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, file)
            if not _lock(file):
                return None
            if _still_at(path, file):
                stack.pop_all()
                return file
        # The one who held it before us removed the file while we opened it; take the new one.


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _still_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False
