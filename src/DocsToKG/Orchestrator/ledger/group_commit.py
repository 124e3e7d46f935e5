"""Group commit, whatever the database: changes are gathered and made together, one transaction at a time.

Knows who waits for which change, and nothing of what a change is. Promises: changes are handed on in the order they
came; an answer is given only after the commit; what was submitted is committed before the end. Futures are settled by
whoever commits, so a callback on one must not wait for the ledger.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar

from DocsToKG.Orchestrator.errors import LedgerClosed, LedgerError
from DocsToKG.Orchestrator.ledger.base import Callback

_MAX_BATCH = 512
_LIVELY_LINGERS = 4


@dataclass(slots=True)
class Change:
    """One change and who waits for it, or is only told of it. A patient one may wait for company."""

    patient: bool
    future: Future[Any] | None = field(default_factory=Future, kw_only=True)
    told: Callback | None = field(default=None, kw_only=True)


class Refused(NamedTuple):
    """An answer that is raised where it is waited for."""

    error: Exception


C = TypeVar("C", bound=Change)


class GroupCommit(ABC, Generic[C]):
    """Gathers for one database. The thread that commits starts with the first change that needs it.

    With `direct`, a caller who waits commits by itself while nobody else is there: that saves two changes of threads,
    which take longer than the rest. The main thread never does, since a signal may interrupt it anywhere.
    """

    def __init__(self, name: str, *, linger_s: float, direct: bool, lively_linger_s: float | None = None) -> None:
        """`lively_linger_s` is how long patient changes wait for company while others follow close on one another."""
        self._name = name
        self._linger_s = linger_s
        self._lively_linger_s = linger_s if lively_linger_s is None else lively_linger_s
        self._lively_until = float("-inf")
        self._direct = direct
        self._queue: SimpleQueue[C | None] = SimpleQueue()
        self._hurry = threading.Event()  # somebody waits for a change in the queue
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # held by whoever commits
        self._turn_of: int | None = None
        self._pending = 0  # changes that were put into the queue and are not committed yet
        self._thread: threading.Thread | None = None
        self._closed = False
        self._stopping = False

    @property
    def pending(self) -> int:
        """Changes that were submitted and are not committed yet, but for one that its caller commits by itself."""
        return self._pending

    @abstractmethod
    def _begin(self) -> None:
        """Whatever must be had before the first commit of the thread. A `LedgerError` refuses every change."""

    @abstractmethod
    def _commit(self, batch: Sequence[C]) -> None:
        """Make the changes and settle their futures. Raises nothing."""

    @abstractmethod
    def _end(self) -> None:
        """Nothing more will come. Safe to call twice."""

    def _wait(self, change: C) -> Any:
        """Have a change made, and wait for the commit."""
        if threading.current_thread() is self._thread or self._turn_of == threading.get_ident():
            raise LedgerError("a callback of the ledger cannot wait for the ledger; submit the change instead")
        assert change.future is not None
        if not self._made_here(change, change.future):
            self._put(change)
        return change.future.result()

    def _made_here(self, change: C, future: Future[Any]) -> bool:
        if not self._direct or threading.current_thread() is threading.main_thread():
            return False
        with self._lock:
            self._refuse_when_closed()
            if self._pending or not self._turn.acquire(blocking=False):
                return False
        self._turn_of = threading.get_ident()
        try:
            future.set_running_or_notify_cancel()
            self._commit([change])
            if self._closed and self._thread is None:
                self._end()  # closed by a callback
        finally:
            self._turn_of = None
            self._turn.release()
        return True

    def _promised(self, change: C) -> Future[Any]:
        """Have a change made with the next ones, and give what its answer will be in."""
        assert change.future is not None
        self._put(change)
        return change.future

    def _put(self, change: C) -> None:
        """Have a change made with the next ones."""
        with self._lock:
            self._refuse_when_closed()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
                self._thread.start()
            self._pending += 1
            self._queue.put(change)
            if not change.patient:
                self._hurry.set()

    def _put_again(self, change: C) -> None:
        """Something is left to do after a commit. Called by whoever commits; nothing once the end is near."""
        with contextlib.suppress(LedgerClosed):
            self._put(change)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise LedgerClosed(f"{self._name}: the ledger is closed")

    def close(self) -> None:
        """Commit what was submitted, then stop. Safe to call twice."""
        with self._lock:
            self._closed = True
            thread = self._thread
            self._queue.put(None)
            self._hurry.set()
        if thread is threading.current_thread() or self._turn_of == threading.get_ident():
            return
        if thread is not None:
            thread.join()
            return
        with self._turn:
            self._end()

    def _run(self) -> None:
        try:
            self._begin()
        except LedgerError as error:
            while batch := self._collect():
                settle(batch, [Refused(error)] * len(batch))
            return
        try:
            while batch := self._collect():
                with self._turn:
                    batch += self._there(len(batch))
                    self._commit(batch)
                with self._lock:
                    self._pending -= len(batch)
        finally:
            with self._turn:
                self._end()

    def _collect(self) -> list[C]:
        """The next changes: at once when someone waits for one of them, after a short linger otherwise.

        The linger is one sleep and not a wait for each newcomer, which would wake this thread for every change.
        """
        batch: list[C] = []
        while not batch and not self._stopping:
            self._take(self._queue.get(), batch)
            if batch and batch[0].patient and self._queue.qsize() < _MAX_BATCH:
                now = time.monotonic()
                self._hurry.wait(self._lively_linger_s if now < self._lively_until else self._linger_s)
                self._lively_until = now + _LIVELY_LINGERS * self._lively_linger_s
            self._hurry.clear()
            batch += self._there(len(batch))
        return batch

    def _there(self, have: int = 0) -> list[C]:
        batch: list[C] = []
        with contextlib.suppress(Empty):
            while not self._stopping and have + len(batch) < _MAX_BATCH:
                self._take(self._queue.get_nowait(), batch)
        return batch

    def _take(self, change: C | None, batch: list[C]) -> None:
        if change is None:
            self._stopping = True
        elif change.future is None or change.future.set_running_or_notify_cancel():
            batch.append(change)
        else:
            with self._lock:
                self._pending -= 1


def settle(batch: Sequence[Change], answers: Sequence[Any]) -> None:
    """Hand over the answers."""
    for change, answer in zip(batch, answers, strict=True):
        refused = answer.error if type(answer) is Refused else None
        if change.told is not None:
            change.told(refused)
        if change.future is None:
            continue
        if refused is not None:
            change.future.set_exception(refused)
        else:
            change.future.set_result(answer)
