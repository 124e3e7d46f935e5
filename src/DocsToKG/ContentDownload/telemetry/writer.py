"""Write one batch of rows: database, then text files, then those who wait.

Runs in the record's one writer thread. Knows the tables and which files follow them.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from DocsToKG.ContentDownload.catalog.summary import HELD_REASONS
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.telemetry import attempts, manifest
from DocsToKG.ContentDownload.telemetry.exports import TextFile, follow, save_position
from DocsToKG.ContentDownload.telemetry.group_commit import Batch
from DocsToKG.ContentDownload.telemetry.schema import Insert, newest_id, transaction
from DocsToKG.core.clock import Clock, utc_iso

_INSERTS = {
    "http_events": Insert("http_events", attempts.COLUMNS),
    "fallback_attempts": Insert("fallback_attempts", attempts.SOURCE_COLUMNS),
    "rate_events": Insert("rate_events", attempts.RATE_COLUMNS),
    "breaker_transitions": Insert("breaker_transitions", attempts.BREAKER_COLUMNS),
}
_SAVE_EVERY_S = 1.0
_RUN_ID, _DOC_ID, _STATUS, _REASON, _BYTES, _CREATED_AT, _ATTEMPT = (
    manifest.AT[name] for name in ("run_id", "doc_id", "status", "reason", "bytes", "created_at", "attempt")
)
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_TRIED_BEFORE = "SELECT MAX(attempt) FROM manifests WHERE doc_id = ? AND run_id <> ?"


@dataclass(frozen=True, slots=True)
class Counts:
    """Where the run stands now. A work that failed and then succeeded is done."""

    done: int = 0
    skipped: int = 0
    failed: int = 0
    bytes: int = 0
    requests: int = 0
    http_429: int = 0


class RecordWriter:
    """`files` are the text files of each table. Where `others` write to the same database, the files get what is in it,
    else what this writer has just put there."""

    def __init__(
        self,
        db: sqlite3.Connection,
        *,
        files: Mapping[str, Sequence[TextFile]],
        clock: Clock,
        others: bool = False,
    ) -> None:
        self._db = db
        self._files = files
        self._others = others
        self._clock = clock
        self._failed: set[str] = set()
        self._full_sync = False
        self._next_save = 0.0
        last_line = db.execute("SELECT created_at FROM manifests ORDER BY id DESC LIMIT 1").fetchone()
        self._stamp = _time_of(last_line[0]) if last_line else ""
        self._has_past = last_line is not None
        self._tried: dict[str, int] = {}  # tries of earlier runs, of works whose tries are counted anew
        self.counts = Counts()
        self.commit_ms: deque[float] = deque(maxlen=10_000)

    def commit(self, batch: Batch) -> None:
        """Commit, then follow; `run_callbacks` comes after it. Raises what went wrong."""
        begun = time.perf_counter()
        # A file that is acknowledged must survive a power cut; other rows may lose their last moments.
        self._sync_fully("ok" in [values[_STATUS] for values in batch.finished])
        with transaction(self._db):
            lines = self._insert_finished(batch)
            self._insert_rows(batch)
            self._save_positions_at_times(begun)
        self.commit_ms.append((time.perf_counter() - begun) * 1000)
        if self._others:
            self.follow()
        else:
            self._append("manifests", lines)
            self._append("http_events", batch.rows.get("http_events", []))
        self._count(batch, lines)

    def follow_others(self) -> None:
        """Others write to the same database from now on."""
        self._others = True

    def follow(self) -> None:
        """Bring the files up to what the database holds."""
        for files in self._files.values():
            follow(files)

    def _save_positions_at_times(self, now: float) -> None:
        """Now and then is enough: where the next start begins to compare, it finds the lines after it as well."""
        if now >= self._next_save:
            self._next_save = now + _SAVE_EVERY_S
            self.save_positions()

    def save_positions(self) -> None:
        """Note how far the files have come. What they get after this commit is noted with a later one."""
        for files in self._files.values():
            for file in files:
                save_position(self._db, file.name, file.position)

    def _sync_fully(self, wanted: bool) -> None:
        if wanted != self._full_sync:
            self._db.execute(f"PRAGMA synchronous = {'FULL' if wanted else 'NORMAL'}")
            self._full_sync = wanted

    def _insert_finished(self, batch: Batch) -> Sequence[Sequence[Any]]:
        """Add manifest and download rows; returns those that were not there yet."""
        rows = batch.finished
        if not rows:
            return rows
        # Never earlier than the line before, so that lines stand in time order also when the clock steps back.
        self._stamp = max(self._stamp, utc_iso(self._clock.now()))
        for values in rows:
            values[_CREATED_AT] = self._stamp
            if self._has_past and values[_ATTEMPT]:
                values[_ATTEMPT] += self._tried_before(values)
        before, changes = newest_id(self._db, "manifests"), self._db.total_changes
        manifest.insert_manifests(self._db, rows)
        are_all_new = self._db.total_changes - changes == len(rows)
        if self._full_sync:
            self._db.execute(manifest.INSERT_DOWNLOADS, (before,))
        return rows if are_all_new else [row[1:] for row in self._db.execute(manifest.SELECT_MANIFESTS, (before,))]

    def _tried_before(self, values: Sequence[Any]) -> int:
        """How many tries of the work its job does not know of: one that is repeated begins to count anew."""
        doc_id = values[_DOC_ID]
        if doc_id not in self._tried:
            before = self._db.execute(_TRIED_BEFORE, (doc_id, values[_RUN_ID])).fetchone()[0] or 0
            self._tried[doc_id] = before if values[_ATTEMPT] <= before else 0
        return self._tried[doc_id]

    def _insert_rows(self, batch: Batch) -> None:
        for table, rows in batch.rows.items():
            _INSERTS[table](self._db, rows)
        if batch.verified:
            now = utc_iso(self._clock.now())
            self._db.executemany(
                "UPDATE downloads SET verified_at = ?, corrupt = ? WHERE sha256 = ?",
                [(now, int(not intact), sha256) for sha256, intact in batch.verified],
            )

    def _append(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        files = self._files.get(table, ())
        if rows and files:
            last_id = newest_id(self._db, table)
            for file in files:
                file.append(rows, last_id)

    def _count(self, batch: Batch, lines: Sequence[Sequence[Any]]) -> None:
        done = skipped = size = 0
        for line in lines:
            held = line[_STATUS] == "skipped" and line[_REASON] in HELD_REASONS
            if line[_STATUS] != "ok" and not held:
                self._failed.add(line[_DOC_ID])
                continue
            self._failed.discard(line[_DOC_ID])
            done, skipped = done + (not held), skipped + held
            size += (line[_BYTES] or 0) if not held else 0
        now, events = self.counts, batch.rows.get("http_events", ())
        # Replaced as a whole: a reader in another thread sees one moment, without a lock.
        self.counts = replace(
            now,
            done=now.done + done,
            skipped=now.skipped + skipped,
            failed=len(self._failed),
            bytes=now.bytes + size,
            requests=now.requests + attempts.requests_in(events),
            http_429=now.http_429 + attempts.refusals_in(events),
        )


def _time_of(stamp: Any) -> str:
    """The stamp, if it is one: a line that somebody else wrote may say anything, and all later ones would repeat it."""
    return stamp if isinstance(stamp, str) and _STAMP.fullmatch(stamp) else ""


def run_callbacks(batch: Batch) -> None:
    """Call all who wait, also after one has failed: what they are told is committed."""
    failures: list[Exception] = []
    for together, items in batch.after_commit.items():
        try:
            together(items)
        except Exception as error:
            failures.append(error)
    if failures:
        raise RecordError(f"what was to follow a commit failed: {failures[0]}") from failures[0]
