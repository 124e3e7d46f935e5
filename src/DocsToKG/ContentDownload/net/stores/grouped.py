"""Heads of entries that have no body here, many in one file: a paper's bytes are in the CAS, its entry is a few lines.

Knows when rows are written together: one that comes alone at once, those that follow close on it as one transaction.
What waits is seen by this process and lost with it, which costs a request. The file is made with the first row.
"""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.stores.base import Entry, StoreFailed
from DocsToKG.ContentDownload.net.stores.sqlite import Put, SqliteBackend
from DocsToKG.core.clock import Clock, SystemClock

_TOGETHER = 64
_SOON_S = 0.1


class GroupedHeads:
    """The heads in the file `path`."""

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        self._path = str(path)
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._rows: SqliteBackend | None = None
        self._waiting: dict[uuid.UUID, Put] = {}
        self._written_at = float("-inf")
        self._timer: threading.Timer | None = None
        self._closed = False

    def heads(self, key: str) -> list[tuple[uuid.UUID, bytes]]:
        with self._lock:
            waiting = {entry.id: entry.head for entry, _ in self._waiting.values() if entry.key == key}
            gone = {entry_id for entry, replaced in self._waiting.values() if entry.key == key for entry_id in replaced}
        rows = self._open(make=False)
        written = dict(rows.heads(key)) if rows is not None else {}
        return [(entry_id, head) for entry_id, head in (written | waiting).items() if entry_id not in gone]

    def put(self, entry: Entry, *, replaced: Iterable[uuid.UUID]) -> None:
        with self._lock:
            self._waiting[entry.id] = (entry, (*self._replaced_by(entry.id), *replaced))
            is_alone = self._clock.monotonic() - self._written_at >= _SOON_S
            is_due = is_alone or len(self._waiting) >= _TOGETHER or self._closed
            if not is_due and self._timer is None:
                self._timer = threading.Timer(_SOON_S, self._write_late)
                self._timer.daemon = True
                self._timer.start()
        if is_due:
            self.write()

    def write(self) -> None:
        """Everything that waits is in the file afterwards; what cannot be written is lost, and raises `StoreFailed`."""
        with self._writing:
            with self._lock:
                puts = list(self._waiting.values())
                self._written_at = self._clock.monotonic()
            try:
                if puts and (rows := self._open(make=True)) is not None:
                    rows.put_all(puts)
            finally:
                with self._lock:
                    for put in puts:
                        # One that was put anew in the meantime waits for the next time.
                        if self._waiting.get(put[0].id) is put:
                            del self._waiting[put[0].id]

    def rewrite(self, entry: Entry) -> bool:
        """False when the entry is not here."""
        if all(entry_id != entry.id for entry_id, _ in self.heads(entry.key)):
            return False
        self.put(entry, replaced=())
        self.write()
        return True

    def delete(self, key: str, entry_ids: Iterable[uuid.UUID]) -> None:
        gone = list(entry_ids)
        with self._writing:
            with self._lock:
                for entry_id in gone:
                    # Those that it replaces are hidden so far, and would come back with it gone.
                    gone += self._replaced_by(entry_id)
                    self._waiting.pop(entry_id, None)
            rows = self._open(make=False) if gone else None
            if rows is not None:
                rows.delete(key, gone)

    def sweep(self, shard: int, *, now: float, ttl_s: float) -> None:
        if (rows := self._open(make=False)) is not None:
            rows.sweep(shard, now=now, ttl_s=ttl_s)

    def walk(self) -> Iterator[bytes]:
        self.write()
        if (rows := self._open(make=False)) is not None:
            yield from rows.walk()

    def clear(self) -> int:
        self.write()
        rows = self._open(make=False)
        return rows.clear() if rows is not None else 0

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
        with contextlib.suppress(StoreFailed):  # what is not there is asked for again
            self.write()
        with self._writing, self._lock:
            rows, self._rows = self._rows, None
        if rows is not None:
            rows.close()

    def _replaced_by(self, entry_id: uuid.UUID) -> tuple[uuid.UUID, ...]:
        """Of an entry that waits: what goes when it is written."""
        waiting = self._waiting.get(entry_id)
        return tuple(waiting[1]) if waiting is not None else ()

    def _write_late(self) -> None:
        with self._lock:
            self._timer = None
            if self._closed:
                return
        with contextlib.suppress(StoreFailed):  # the next one that is put says so
            self.write()

    def _open(self, *, make: bool) -> SqliteBackend | None:
        rows = self._rows
        if rows is not None or not (make or os.path.exists(self._path)):
            return rows
        with self._lock:
            if self._rows is None:
                try:
                    self._rows = SqliteBackend(Path(self._path))
                except ConfigError as error:
                    raise StoreFailed(str(error)) from None
            return self._rows
