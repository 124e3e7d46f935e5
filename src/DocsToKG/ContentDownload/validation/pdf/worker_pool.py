"""Worker processes that read and judge PDFs. What crashes, hangs or bloats one has a reason, and the run goes on.

Processes start when the first file must be read, as children that run `python -m`: nothing is forked from a process
with threads. Each worker has a thread of its own here that hands it one file after another, waits at most
`timeout_s`, and replaces it when it dies or has read `files_per_worker` files. Usable from threads, and from asyncio by
`asyncio.wrap_future`. Promises: every future ends; a failure of one file does not touch another.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.signs import NOWHERE, Origin
from DocsToKG.ContentDownload.validation.pdf.document import (
    HEADER,
    DocumentText,
    ReadOptions,
    TextFailure,
)
from DocsToKG.ContentDownload.validation.pdf.examination import Examination, conclude

Source = Path | bytes
Result = DocumentText | TextFailure | Examination

MAX_WORKERS = 4
# The current folder is not searched for modules.
_COMMAND = (sys.executable, "-P", "-m", "DocsToKG.ContentDownload.validation.pdf.worker")
_START_S = 30.0  # a loaded machine starts processes slowly
_END_S = 2.0
CLOSED = "text-engine-closed"
_CLOSED = TextFailure(CLOSED, "the run is ending")


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """What one file may cost. `workers` of 0: one for each processor, at most four."""

    workers: int = 0
    timeout_s: float = 20.0
    memory_bytes: int = 1 << 30
    max_reply_bytes: int = 4 << 20
    files_per_worker: int = 500

    def worker_count(self) -> int:
        return self.workers or max(1, min(MAX_WORKERS, os.cpu_count() or 1))


@dataclass(frozen=True, slots=True)
class _Task:
    """A file, and what is asked about it: with a `known` work the verdict on it, else its text."""

    source: Source
    options: ReadOptions
    known: KnownWork | None
    origin: Origin
    future: Future[Any]

    def request(self, max_reply: int) -> bytes:
        return orjson.dumps(
            {
                "options": self.options.to_json(),
                "known": self.known.to_json() if self.known is not None else None,
                "urls": self.origin.urls,
                "page_doi": self.origin.page_doi,
                "max_reply": max_reply,
            }
        )

    def result(self, reply: Any) -> Result:
        """The answer in a worker's reply. Raises `ValueError` when the reply is none."""
        if not isinstance(reply, dict):
            raise ValueError("the reply is no object")
        if "failure" in reply:
            return self.failed(TextFailure.from_json(reply))
        return DocumentText.from_json(reply) if self.known is None else Examination.from_json(reply)

    def failed(self, failure: TextFailure) -> Result:
        return failure if self.known is None else conclude(self.known, failure, self.origin)


class _Died(Exception):
    """The worker has ended or broken its protocol; `reason` as in `TextFailure`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class TextEngine:
    """Reads PDFs in worker processes. A context manager; also ends with the program."""

    def __init__(self, limits: PoolLimits | None = None, *, command: Sequence[str] = _COMMAND) -> None:
        self.limits = limits or PoolLimits()
        self._command = tuple(command)
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._workers: list[_Worker] = []
        self._idle = 0
        self._lock = threading.Lock()
        self._closed = False

    def read(self, source: Source, options: ReadOptions | None = None) -> Future[DocumentText | TextFailure]:
        """Read the file in a worker. The future never raises because of what the file holds."""
        task = _Task(source, options or ReadOptions(), None, NOWHERE, Future())
        self._submit(task)
        return task.future

    def examine(
        self, source: Source, known: KnownWork, options: ReadOptions | None = None, *, origin: Origin = NOWHERE
    ) -> Future[Examination]:
        """Read and judge the file in a worker. A path must stay until the future ends."""
        task = _Task(source, options or ReadOptions(), known, origin, Future())
        self._submit(task)
        return task.future

    def _submit(self, task: _Task) -> None:
        with self._lock:
            if self._closed:
                task.future.set_result(task.failed(_CLOSED))
                return
            self._tasks.put(task)
            if self._idle < self._tasks.qsize():
                self._add_worker()

    def close(self, *, kill: bool = False) -> None:
        """End the workers. Files that wait are answered with `text-engine-closed`; one that is being read is finished,
        or given up under `kill`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            threads, workers = list(self._threads), list(self._workers)
            for _ in threads:
                self._tasks.put(None)
        for worker in workers if kill else ():
            worker.kill()
        for thread in threads:
            thread.join(_END_S if kill else self.limits.timeout_s + _END_S)

    def __enter__(self) -> TextEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add_worker(self) -> bool:
        if len(self._threads) >= self.limits.worker_count():
            return False
        name = f"text-engine-{len(self._threads) + 1}"
        worker = _Worker(self.limits, self._command)
        thread = threading.Thread(target=self._serve, args=(worker,), name=name, daemon=True)
        self._workers.append(worker)
        self._threads.append(thread)
        thread.start()
        return True

    def _serve(self, worker: _Worker) -> None:
        try:
            with contextlib.suppress(_Died):  # the first file tells it
                worker.start()
            while (task := self._next()) is not None:
                if not task.future.set_running_or_notify_cancel():
                    continue
                if self._closed:
                    task.future.set_result(task.failed(_CLOSED))
                    continue
                try:
                    task.future.set_result(worker.answer(task))
                except BaseException as error:  # whatever it is, no one may wait for ever
                    worker.end()
                    failure = TextFailure("text-engine-failed", f"{type(error).__name__}: {error}")
                    task.future.set_result(task.failed(failure))
        finally:
            worker.end()

    def _next(self) -> _Task | None:
        with self._lock:
            self._idle += 1
        try:
            return self._tasks.get()
        finally:
            with self._lock:
                self._idle -= 1


class _Worker:
    """One process and the socket to it. Started when a file comes; used by one thread."""

    def __init__(self, limits: PoolLimits, command: Sequence[str]) -> None:
        self._limits, self._command = limits, command
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._files = 0
        self._is_over = False

    def answer(self, task: _Task) -> Result:
        with _opened(task.source) as descriptor:
            if isinstance(descriptor, TextFailure):
                return task.failed(descriptor)
            while True:
                was_fresh = self._files == 0
                try:
                    reply = self._exchange(descriptor, task)
                    break
                except _Died as death:
                    self.end()
                    if self._is_over:
                        return task.failed(_CLOSED)
                    # A worker that has read other files may have died of one of them.
                    if was_fresh or death.reason != "text-engine-crashed":
                        return task.failed(TextFailure(death.reason, str(death)))
        if self._files >= self._limits.files_per_worker:
            self.end()
        return reply

    def kill(self) -> None:
        """End for good, from another thread."""
        self._is_over = True
        process = self._process
        if process is not None:
            process.kill()

    def end(self) -> None:
        process, self._process = self._process, None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._files = 0
        if process is not None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)

    def _exchange(self, descriptor: int, task: _Task) -> Result:
        if self._process is None:
            self.start()
        assert self._socket is not None
        request = task.request(self._limits.max_reply_bytes)
        try:
            # A new process first loads its libraries.
            self._socket.settimeout(self._limits.timeout_s + (0 if self._files else _START_S))
            socket.send_fds(self._socket, [HEADER.pack(len(request)) + request], [descriptor])
            (length,) = HEADER.unpack(self._receive(HEADER.size))
            if length > self._limits.max_reply_bytes:
                raise _Died("text-engine-output", f"a reply of {length} bytes")
            body = self._receive(length)
        except TimeoutError:
            raise _Died("text-engine-timeout", f"no answer within {self._limits.timeout_s:g} s") from None
        except OSError as error:
            raise _Died("text-engine-crashed", self._how_it_ended() or str(error)) from error
        self._files += 1
        try:
            return task.result(orjson.loads(body))
        except ValueError as error:
            raise _Died("text-engine-output", f"not a reply: {error}"[:200]) from error

    def _receive(self, count: int) -> bytes:
        assert self._socket is not None
        parts: list[bytes] = []
        while count:
            piece = self._socket.recv(min(count, 1 << 20))
            if not piece:
                raise _Died("text-engine-crashed", self._how_it_ended() or "the process closed its socket")
            parts.append(piece)
            count -= len(piece)
        return b"".join(parts)

    def start(self) -> None:
        """Start the process; it loads its libraries while this one goes on."""
        ours, theirs = socket.socketpair()
        limits = {"memory_bytes": self._limits.memory_bytes, "timeout_s": self._limits.timeout_s}
        try:
            self._process = subprocess.Popen(
                [*self._command, orjson.dumps(limits).decode()],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                close_fds=True,
            )
        except OSError as error:
            ours.close()
            raise _Died("text-engine-crashed", f"no process could be started: {error}") from error
        finally:
            theirs.close()
        self._socket, self._files = ours, 0

    def _how_it_ended(self) -> str:
        """The signal or status of a process that has gone. It may still be going."""
        if self._process is None:
            return ""
        try:
            status = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return ""
        if status >= 0:
            return f"ended with status {status}"
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-status).name}"
        return f"ended by signal {-status}"


@contextlib.contextmanager
def _opened(source: Source) -> Iterator[int | TextFailure]:
    """A descriptor of the file. Bytes go through a file without a name, in memory where the system has such."""
    if isinstance(source, bytes):
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("document")
            try:
                _write(descriptor, source)
                yield descriptor
            finally:
                os.close(descriptor)
            return
        with tempfile.TemporaryFile() as file:
            _write(file.fileno(), source)
            yield file.fileno()
        return
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        yield TextFailure("text-unreadable", f"the file cannot be opened: {error.strerror}")
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _environment() -> dict[str, str]:
    """What a Python needs to find its modules, and no secrets."""
    kept = ("PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LANG", "LC_ALL", "HOME", "TMPDIR", "LD_LIBRARY_PATH")
    return {name: os.environ[name] for name in kept if name in os.environ}


_shared_lock = threading.Lock()
_shared: dict[PoolLimits, TextEngine] = {}


def shared_engine(limits: PoolLimits | None = None) -> TextEngine:
    """The engine of this process under these limits. It starts nothing until a file is read, and ends with the
    program."""
    limits = limits or PoolLimits()
    with _shared_lock:
        if limits not in _shared:
            _shared[limits] = TextEngine(limits)
            atexit.register(_shared[limits].close, kill=True)
        return _shared[limits]
