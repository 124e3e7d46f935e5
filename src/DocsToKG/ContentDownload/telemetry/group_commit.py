"""Rows on their way to the record's writer: collected by many threads, taken by one.

Promises: bounded (a producer waits for room); rows of one kind keep their order; once the writer has failed,
every producer is told so and nothing waits for ever.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from DocsToKG.ContentDownload.errors import RecordError, RunError

_BUSY_WINDOWS = 4
Item = TypeVar("Item")
# What follows a commit, once for all works that ended in it: gets what each of them was handed over with.
AfterCommit = Callable[[Sequence[Item]], None]


@dataclass(slots=True)
class Batch:
    """What one transaction takes: finished works, what to do after the commit, and plain rows by table."""

    finished: list[list[Any]] = field(default_factory=list)
    after_commit: defaultdict[AfterCommit[Any], list[Any]] = field(default_factory=lambda: defaultdict(list))
    rows: defaultdict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))
    verified: list[tuple[str, bool]] = field(default_factory=list)
    settled: list[threading.Event] = field(default_factory=list)
    size: int = 0

    @property
    def is_awaited(self) -> bool:
        """Somebody goes on only after the commit."""
        return bool(self.finished or self.settled)


class CommitQueue:
    """The bounded meeting place of producers and the writer."""

    def __init__(
        self, *, capacity: int, window_s: float, patience_s: float = 0.0, busy_window_s: float | None = None
    ) -> None:
        self._capacity = capacity
        self._window_s = window_s
        # While works end one after another, a commit that waits longer for company serves many of them.
        self._busy_window_s = window_s if busy_window_s is None else busy_window_s
        self._busy_until = float("-inf")
        # Rows that nobody waits for gather longer: a commit writes whole pages, however few rows it has.
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._hurry = threading.Event()
        self._batch = Batch()
        self._closed = False
        self._is_idle = False
        self._failure: RunError | None = None
        self._hinders = False  # closed or failed
        self._watchers: list[Callable[[RunError], None]] = []
        self._writer: int | None = None
        self.teller: int | None = None  # the thread that runs callbacks, where the writer does not

    def put(self, table: str, row: tuple[Any, ...]) -> None:
        """Add a row to the next batch; waits while it is full."""
        with self._lock:
            if self._hinders or self._batch.size >= self._capacity:
                self._wait_for_room()
            batch = self._batch
            batch.rows[table].append(row)
            batch.size += 1
            if self._is_idle or batch.size == self._capacity:
                self._changed.notify_all()

    def finish(self, values: list[Any], together: AfterCommit[Item] | None = None, item: Item | None = None) -> None:
        """Add a finished work. `together` follows the commit, with the items of all works that it was given for."""
        with self._lock:
            if self._hinders or self._batch.size >= self._capacity:
                self._wait_for_room()
            batch = self._batch
            is_first = not batch.finished
            batch.finished.append(values)
            batch.size += 1
            if together is not None:
                batch.after_commit[together].append(item)
            if is_first or batch.size == self._capacity:
                self._changed.notify_all()

    def place(self, place: Callable[[Batch], None]) -> None:
        """Let `place` add whatever it wants to the next batch."""
        with self._lock:
            self._wait_for_room()
            place(self._batch)
            self._batch.size += 1
            self._changed.notify_all()

    def _wait_for_room(self) -> None:
        # What the writer's own callbacks add may exceed the bound and come after the close: it still takes them,
        # and waiting for itself it would wait for ever.
        is_writer = threading.get_ident() == self._writer
        while self._batch.size >= self._capacity and self._open() and not is_writer:
            self._hurry.set()
            self._changed.wait()
        self.check()
        if self._closed and not is_writer:
            raise RecordError("the record is closed: nothing more can be written to it")

    def take(self) -> Batch | None:
        """The next batch, after a short while for others to join it; None when all is taken and closed."""
        with self._lock:
            self._writer = threading.get_ident()
            # While rows keep coming, the first of them does not wake the writer; the first that is waited for does.
            if not self._changed.wait_for(self._is_urgent, timeout=self._patience_s):
                self._wait_for_rows()
        self._hurry.wait(self._busy_window_s if time.monotonic() < self._busy_until else self._window_s)
        with self._lock:
            taken, self._batch = self._batch, Batch()
            if taken.finished:
                self._busy_until = time.monotonic() + _BUSY_WINDOWS * self._busy_window_s
            if not self._closed:
                self._hurry.clear()
            self._changed.notify_all()
        return taken if taken.size else None

    def _wait_for_rows(self) -> None:
        """Sleep until there is something, then give others a while to join it."""
        if not self._batch.size:
            self._is_idle = True
            while not self._batch.size and not self._closed:
                self._changed.wait()
            self._is_idle = False
            self._changed.wait_for(self._is_urgent, timeout=self._patience_s)

    def hurry(self) -> None:
        """Nobody else is expected to join what is there."""
        self._hurry.set()

    def settle(self) -> None:
        """Wait until everything put so far is written."""
        if threading.get_ident() in (self._writer, self.teller):
            raise RecordError("what follows a commit cannot wait for the next one: do not flush in a callback")
        done = threading.Event()
        self.place(lambda batch: batch.settled.append(done))
        self._hurry.set()
        done.wait()
        self.check()

    def close(self) -> None:
        """Take nothing more. The writer still gets what is there."""
        with self._lock:
            self._closed = self._hinders = True
            self._hurry.set()
            self._changed.notify_all()

    def fail(self, failure: RunError, taken: Batch) -> None:
        """The writer could not write `taken` and does not go on: everyone is told, those who wait are woken."""
        with self._lock:
            self._failure, self._hinders = failure, True
            for done in (*taken.settled, *self._batch.settled):
                done.set()
            self._changed.notify_all()
            watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher(failure)

    def on_failure(self, watcher: Callable[[RunError], None]) -> None:
        """Call `watcher` once when the writer fails; at once when it has."""
        with self._lock:
            if self._failure is None:
                self._watchers.append(watcher)
                return
        watcher(self._failure)

    def check(self) -> None:
        """Raise what the writer failed with, if it has."""
        if self._failure is not None:
            raise type(self._failure)(str(self._failure)) from self._failure

    def _is_urgent(self) -> bool:
        return self._batch.is_awaited or self._closed or self._batch.size >= self._capacity

    def _open(self) -> bool:
        return not self._closed and self._failure is None
