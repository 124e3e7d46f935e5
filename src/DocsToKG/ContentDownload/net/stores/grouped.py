"""Heads of entries that have no body here, many in one file: a paper's bytes are in the CAS, its entry is a few lines.

Knows when rows are written together: one that comes alone at once, those that follow close on it as one transaction.
What waits is seen by this process and lost with it, which costs a request; so does what another process wrote within
the last second, which may not be seen yet. The file is made with the first row.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.stores.base import Entry, StoreFailed
from DocsToKG.ContentDownload.net.stores.sqlite import Put, SqliteBackend
from DocsToKG.core.clock import Clock, SystemClock

_TOGETHER = 512
_SOON_S = 0.25
_NEWS_S = 1.0
_LATE_S = 5.0  # by which others may write later than their rows say
_DIGITS = 5
_BYTES_A_LOOK = 8_000  # of the file: to read the keys of so many costs as much as to look for one


class GroupedHeads:
    """The heads in the file `path`."""

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        self._path = str(path)
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._rows: SqliteBackend | None = None
        self._waiting: dict[str, dict[str, Put]] = {}  # by key and id
        self._written_at = float("-inf")
        self._writer: threading.Thread | None = None
        self._due = threading.Event()  # something waits
        self._closing = threading.Event()
        self._maybe = bytearray(16**_DIGITS)  # by the beginning of a key: 1 where such a one may be in the file
        self._since = float("-inf")  # rows that are older are told of there
        self._asked_at = float("-inf")
        self._looks_first = 0

    def heads(self, key: str) -> list[tuple[str, bytes]]:
        with self._lock:
            puts = list(self._waiting.get(key, {}).values())
        rows = self._rows or self._open(make=False)
        written = rows.heads(key) if rows is not None and self._may_be_in(rows, key) else []
        if not puts:
            return written
        gone = {entry_id for _, replaced in puts for entry_id in replaced}
        seen = dict(written) | {entry.id: entry.head for entry, _ in puts}
        return [(entry_id, head) for entry_id, head in seen.items() if entry_id not in gone]

    def _may_be_in(self, rows: SqliteBackend, key: str) -> bool:
        """Most keys that are asked for are in no row, which is known here without asking the file each time."""
        if self._looks_first > 0:
            self._looks_first -= 1
            return True
        now = self._clock.monotonic()
        if now - self._asked_at >= _NEWS_S:
            asked_at = self._clock.now()
            for beginning in rows.beginnings(_DIGITS, since=self._since):
                self._maybe[int(beginning, 16)] = 1
            self._since, self._asked_at = asked_at - _LATE_S, now
        return bool(self._maybe[int(key[:_DIGITS], 16)])

    def put(self, entry: Entry, *, replaced: Iterable[str]) -> None:
        self._maybe[int(entry.key[:_DIGITS], 16)] = 1
        with self._lock:
            of_key = self._waiting.setdefault(entry.key, {})
            of_key[entry.id] = (entry, (*self._replaced_by(entry.key, entry.id), *replaced))
            is_alone = self._clock.monotonic() - self._written_at >= _SOON_S
            is_full = len(self._waiting) >= _TOGETHER
            if not (is_alone or is_full or self._due.is_set()):
                self._due.set()
                self._have_writer()
        if is_alone or is_full or self._closing.is_set():
            self.write()

    def write(self) -> None:
        """Everything that waits is in the file afterwards; what cannot be written is lost, and raises `StoreFailed`."""
        with self._writing:
            with self._lock:
                puts = [put for of_key in self._waiting.values() for put in of_key.values()]
                self._written_at = self._clock.monotonic()
            try:
                if puts and (rows := self._open(make=True)) is not None:
                    rows.put_all(puts)
            finally:
                with self._lock:
                    for put in puts:
                        # One that was put anew in the meantime waits for the next time.
                        if self._waiting.get(put[0].key, {}).get(put[0].id) is put:
                            self._no_longer_waits(put[0].key, put[0].id)

    def rewrite(self, entry: Entry) -> bool:
        """False when the entry is not here."""
        if all(entry_id != entry.id for entry_id, _ in self.heads(entry.key)):
            return False
        self.put(entry, replaced=())
        self.write()
        return True

    def delete(self, key: str, entry_ids: Iterable[str]) -> None:
        gone = list(entry_ids)
        with self._writing:
            with self._lock:
                for entry_id in gone:
                    # Those that it replaces are hidden so far, and would come back with it gone.
                    gone += self._replaced_by(key, entry_id)
                    self._no_longer_waits(key, entry_id)
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
        self._closing.set()
        self._due.set()
        with contextlib.suppress(StoreFailed):  # what is not there is asked for again
            self.write()
        with self._writing, self._lock:
            rows, self._rows = self._rows, None
        if rows is not None:
            rows.close()

    def _replaced_by(self, key: str, entry_id: str) -> tuple[str, ...]:
        """Of an entry that waits: what goes when it is written."""
        waiting = self._waiting.get(key, {}).get(entry_id)
        return tuple(waiting[1]) if waiting is not None else ()

    def _no_longer_waits(self, key: str, entry_id: str) -> None:
        of_key = self._waiting.get(key, {})
        of_key.pop(entry_id, None)
        if not of_key:
            self._waiting.pop(key, None)

    def _have_writer(self) -> None:
        """One thread for all that waits, since starting one costs more than a row does."""
        if self._writer is None:
            writer = threading.Thread(target=self._write_late, name="cache-heads", daemon=True)
            try:
                writer.start()
            except RuntimeError:  # the system gives no more threads; the next row asks again
                self._due.clear()
            else:
                self._writer = writer

    def _write_late(self) -> None:
        while not self._closing.is_set():
            self._due.wait()
            if self._closing.wait(_SOON_S):
                return
            self._due.clear()
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
                    self._looks_first = os.path.getsize(self._path) // _BYTES_A_LOOK
                except ConfigError as error:
                    raise StoreFailed(str(error)) from None
            return self._rows
