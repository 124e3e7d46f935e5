"""Rows on their way to the record's writer: collected by many threads, taken by one.

Promises: bounded (a producer waits for room); rows of one kind keep their order; once the writer has failed,
every producer is told so and nothing waits for ever.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from DocsToKG.ContentDownload.errors import RecordError, RunError

_LIVELY_WINDOWS = 4


@dataclass(slots=True)
class Batch:
    """What one transaction takes: finished works with what to do after the commit, and plain rows by table."""

    finished: list[tuple[list[Any], Callable[[], None] | None]] = field(default_factory=list)
    rows: defaultdict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))
    verified: list[tuple[str, bool]] = field(default_factory=list)
    settled: list[threading.Event] = field(default_factory=list)
    requests: int = 0
    http_429: int = 0
    size: int = 0

    @property
    def is_awaited(self) -> bool:
        """Somebody goes on only after the commit."""
        return bool(self.finished or self.settled)


class Intake:
    """The bounded meeting place of producers and the writer."""

    def __init__(
        self, *, capacity: int, window_s: float, patience_s: float = 0.0, lively_window_s: float | None = None
    ) -> None:
        self._capacity = capacity
        self._window_s = window_s
        # While works end one after another, a commit that waits longer for company serves many of them.
        self._lively_window_s = window_s if lively_window_s is None else lively_window_s
        self._lively_until = float("-inf")
        # Rows that nobody waits for gather longer: a commit writes whole pages, however few rows it has.
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._hurry = threading.Event()
        self._batch = Batch()
        self._closed = False
        self._is_idle = False
        self._failure: RunError | None = None
        self._watchers: list[Callable[[RunError], None]] = []
        self._writer: int | None = None
        self.teller: int | None = None  # the thread that runs callbacks, where the writer does not

    def put(self, place: Callable[[Batch], None]) -> None:
        """Let `place` add to the next batch; waits while it is full."""
        with self._changed:
            # What the writer's own callbacks add may exceed the bound and come after the close: it still takes them,
            # and waiting for itself it would wait for ever.
            is_writer = threading.get_ident() == self._writer
            while self._batch.size >= self._capacity and self._open() and not is_writer:
                self._hurry.set()
                self._changed.wait()
            self.check()
            if self._closed and not is_writer:
                raise RecordError("the record is closed: nothing more can be written to it")
            was_urgent = self._is_urgent()
            place(self._batch)
            self._batch.size += 1
            if self._is_idle or (not was_urgent and self._is_urgent()):
                self._changed.notify_all()

    def take(self) -> Batch | None:
        """The next batch, after a short while for others to join it; None when all is taken and closed."""
        with self._changed:
            self._writer = threading.get_ident()
            # While rows keep coming, the first of them does not wake the writer; the first that is waited for does.
            if not self._changed.wait_for(self._is_urgent, timeout=self._patience_s):
                self._wait_for_rows()
        self._hurry.wait(self._lively_window_s if time.monotonic() < self._lively_until else self._window_s)
        with self._changed:
            taken, self._batch = self._batch, Batch()
            if taken.finished:
                self._lively_until = time.monotonic() + _LIVELY_WINDOWS * self._lively_window_s
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

    def settle(self) -> None:
        """Wait until everything put so far is written."""
        if threading.get_ident() in (self._writer, self.teller):
            raise RecordError("what follows a commit cannot wait for the next one: do not flush in a callback")
        done = threading.Event()
        self.put(lambda batch: batch.settled.append(done))
        self._hurry.set()
        done.wait()
        self.check()

    def close(self) -> None:
        """Take nothing more. The writer still gets what is there."""
        with self._changed:
            self._closed = True
            self._hurry.set()
            self._changed.notify_all()

    def fail(self, failure: RunError, taken: Batch) -> None:
        """The writer could not write `taken` and does not go on: everyone is told, those who wait are woken."""
        with self._changed:
            self._failure = failure
            for done in (*taken.settled, *self._batch.settled):
                done.set()
            self._changed.notify_all()
            watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher(failure)

    def on_failure(self, watcher: Callable[[RunError], None]) -> None:
        """Call `watcher` once when the writer fails; at once when it has."""
        with self._changed:
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
