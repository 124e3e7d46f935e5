"""The record of a run: one writer for the database and for the files that follow it.

Knows the order of things: the database first, in one transaction; then the text files; then whoever waits for
the commit. Does not know where rows come from or what a job is.
Promises: what a completion callback has been told is on disk; nothing is dropped silently: when writing fails,
every caller gets the reason; after a crash the files catch up with the database at the next start.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Unpack

from DocsToKG.ContentDownload.api.ports import Change, Whose
from DocsToKG.ContentDownload.api.types import Attempt, SourceAttempt
from DocsToKG.ContentDownload.catalog.paths import DATABASE, MANIFEST
from DocsToKG.ContentDownload.catalog.slo import gates
from DocsToKG.ContentDownload.errors import RecordDamaged, RunError
from DocsToKG.ContentDownload.telemetry import attempts, exports
from DocsToKG.ContentDownload.telemetry.events import Listener
from DocsToKG.ContentDownload.telemetry.folder import locked, record_error, record_errors
from DocsToKG.ContentDownload.telemetry.group_commit import AfterCommit, Batch, CommitQueue, Item
from DocsToKG.ContentDownload.telemetry.manifest import AT, ManifestRecord, manifest_values
from DocsToKG.ContentDownload.telemetry.recovery import (
    Restored,
    is_corrupt,
    is_damaged,
    last_set_aside,
    restore,
    restore_attempts,
    set_aside,
    version_of,
)
from DocsToKG.ContentDownload.telemetry.rollup import Rollup
from DocsToKG.ContentDownload.telemetry.run_summary import Judge, begin_run, finish_run
from DocsToKG.ContentDownload.telemetry.schema import open_database, refuse_newer
from DocsToKG.ContentDownload.telemetry.snapshots import Repair, mend_summary, refresh_snapshots
from DocsToKG.ContentDownload.telemetry.text import storable, storable_int
from DocsToKG.ContentDownload.telemetry.writer import Counts, RecordWriter, run_callbacks
from DocsToKG.core.clock import Clock, utc_iso

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
    from DocsToKG.ContentDownload.telemetry.replication import Replicator

SINKS = ("csv", "jsonl", "sqlite")


class RunTelemetry(Listener):
    """Takes every row of a run, from any thread. Use as a context manager.

    `sinks` choose the files; without `sqlite` the database is a private one that vanishes with the run. `database`
    moves it out of the folder; `notes` are sentences that the summary of the run carries; `judge` says which service
    levels it kept. `repairs` says what was put right when the record was opened.

    Several processes keep one record so: one of them is the `host`, holds the folder and writes the text files and the
    summary; the others are `guest`s, who write to the database alone and may die at any time.

    Several machines keep one record so: each has all of this in a folder of its own, and what it commits there is sent
    to the `shared` record, under the name of its `node`, before anybody is told.
    """

    def __init__(
        self,
        root: Path,
        *,
        run_id: str,
        config_hash: str,
        clock: Clock,
        sinks: Sequence[str] = SINKS,
        worker_id: str = "",
        database: Path | None = None,
        notes: Sequence[str] = (),
        share: Literal["host", "guest"] | None = None,
        judge: Judge = gates,
        shared: SharedRecord | None = None,
        node: str = "",
        capacity: int = 2_000,
        batch_window_s: float = 0.005,
        busy_window_s: float = 0.2,
        patience_s: float = 0.25,
    ) -> None:
        if unknown := set(sinks) - set(SINKS):
            raise ValueError(f"unknown sinks: {', '.join(sorted(unknown))}; known are {', '.join(SINKS)}")
        self.root = root
        self.run_id = run_id
        self.repairs: tuple[Repair, ...] = ()
        self.restored = 0
        self.locks: list[int] = []  # open files that hold the folder for as long as anybody has them open
        self._config_hash = config_hash
        self._known = ((AT["run_id"], run_id), (AT["config_hash"], config_hash), (AT["worker_id"], worker_id))
        self._notes = list(notes)
        self._share = share
        self._judge = judge
        self._clock = clock
        self._sinks = tuple(sinks)
        self._database = (database or root / DATABASE) if "sqlite" in sinks else None
        self._replicator: Replicator | None = None
        if shared is not None:
            from DocsToKG.ContentDownload.telemetry.replication import Replicator

            self._replicator = Replicator(shared, node=node, clock=clock, fail=self._fail)
        self._queue = CommitQueue(
            capacity=capacity,
            window_s=batch_window_s,
            busy_window_s=max(batch_window_s, busy_window_s),
            patience_s=patience_s,
        )
        self._thread = threading.Thread(target=self._write_all, name="record-writer", daemon=True)
        self._resources = contextlib.ExitStack()
        self._is_open = False
        self._db: sqlite3.Connection
        self._writer: RecordWriter
        self._rollup: Rollup | None = None

    def open(self) -> None:
        """Take the folder, bring database and files up to date, start the writer."""
        with record_errors(self.root), contextlib.ExitStack() as opened:
            if self._share == "guest":
                self._db = open_database(self._database)
                opened.callback(self._db.close)
                self._writer = RecordWriter(self._db, files={}, clock=self._clock)
            else:
                self._take_folders(opened)
                self._open_or_fill(opened)
            self._open_replicator(opened)
            self._resources = opened.pop_all()
        self._is_open = True
        self._thread.start()

    def _open_or_fill(self, opened: contextlib.ExitStack) -> None:
        """Open the files; a database that turns out damaged is put aside, and a new one filled from the others."""
        try:
            self._open_files(opened, self._without_damage())
        except sqlite3.DatabaseError as error:
            if self._database is None or not is_corrupt(error):
                raise
            self._open_files(opened, last_set_aside(self._database))

    def _open_files(self, opened: contextlib.ExitStack, damaged: Path | None) -> None:
        """Open the database and what follows it; `damaged` is where the one before it is now, if it was put aside."""
        with contextlib.ExitStack() as tried:
            tried.push(self._set_aside_if_damaged)  # when it is closed
            self._db = open_database(self._database)
            tried.callback(self._db.close)
            self._catch_up(tried, damaged)
            begin_run(self._db, run_id=self.run_id, started_at=self._now(), config_hash=self._config_hash)
            self._rollup = Rollup(self._db)
            opened.push(tried.pop_all())

    def _set_aside_if_damaged(self, kind: object, error: BaseException | None, trace: object) -> None:
        """What was found damaged at work is out of the way of the next run, which fills a new one."""
        if self._database is not None and (is_corrupt(error) or isinstance(error, RecordDamaged)):
            set_aside(self._database)

    def _open_replicator(self, opened: contextlib.ExitStack) -> None:
        if self._replicator is None:
            return
        assert self._database is not None, "what is shared is kept here first"
        is_guest = self._share == "guest"
        self._replicator.open(self._database, self._db, is_guest=is_guest)
        opened.callback(self._replicator.close)
        if not is_guest:
            self._replicator.send_runs()
        self._queue.teller = self._replicator.start()

    def _take_folders(self, opened: contextlib.ExitStack) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.locks.append(opened.enter_context(locked(self.root)))
        if self._database is not None:
            home = self._database.parent.resolve()
            home.mkdir(parents=True, exist_ok=True)
            if home != self.root.resolve():
                # A catalog may lie elsewhere; it has one writer too.
                self.locks.append(opened.enter_context(locked(home)))

    def attempt(self, attempt: Attempt) -> None:
        """One network or cache decision."""
        self._queue.put("http_events", attempts.attempt_row(attempt, self.run_id))

    def source_attempt(self, tried: SourceAttempt) -> None:
        """One source of a tier was tried for a work."""
        self._queue.put("fallback_attempts", attempts.source_row(tried, self.run_id))

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **whose: Unpack[Whose]) -> None:
        """A work waited for one of our own limits (`host:...` or `resolver:...`)."""
        words = (storable(whose.get("work_id")), storable(whose.get("resolver")), storable(whose.get("role")))
        self._queue.put(
            "rate_events", (self._now(), self.run_id, storable(key), storable(why), storable_int(delay_ms), *words)
        )

    def breaker_transition(self, key: str, old_state: str, new_state: str, **change: Unpack[Change]) -> None:
        """A circuit breaker changed its state."""
        states = (storable(key), storable(old_state), storable(new_state), storable(change.get("reason")))
        self._queue.put("breaker_transitions", (self._now(), self.run_id, *states, change.get("reset_timeout_s")))

    def finish(self, record: ManifestRecord, *, then: Callable[[], None] | None = None) -> None:
        """A processing attempt of a work ended. `then` runs in the writer's thread, after the commit.

        A record whose lease is known already adds nothing, and its `then` still runs: the acknowledgement may have
        been lost on the way.
        """
        self._queue.finish(self._values(record), None if then is None else _call_each, then)

    def finish_together(self, record: ManifestRecord, together: AfterCommit[Item], item: Item) -> None:
        """The same for many works: after each commit `together` runs once, with the items of all that it was for."""
        self._queue.finish(self._values(record), together, item)

    def _values(self, record: ManifestRecord) -> list[Any]:
        values = manifest_values(record)
        for place, known in self._known:
            values[place] = values[place] or known
        return values

    def verified(self, sha256: str, intact: bool) -> None:
        """A stored file was hashed again; one that is not intact counts as corruption until it is obtained anew."""
        self._queue.place(lambda batch: batch.verified.append((sha256, intact)))

    def note(self, text: str) -> None:
        """One more sentence for the summary."""
        if text not in self._notes:
            self._notes.append(text)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def admit_guests(self) -> None:
        """Be the host from now on, if nobody was: other processes write to the database beside this one."""
        if self._share is None:
            self._share = "host"
            self._writer.follow_others()

    def follow(self) -> None:
        """As host: let the text files catch up with what guests have written."""
        self._queue.place(lambda batch: None)

    def counts(self) -> Counts:
        """Where the run stands, as of the last commit. Cheap, from any thread."""
        return self._writer.counts

    def hurry(self) -> None:
        """Write what was handed over without waiting for more."""
        self._queue.hurry()

    def flush(self) -> None:
        """Wait until everything handed over so far is written and told."""
        self._queue.settle()

    def on_failure(self, watcher: Callable[[RunError], None]) -> None:
        """Call `watcher` once when writing fails: callbacks handed to `finish` may then never run."""
        self._queue.on_failure(watcher)

    def close(self) -> None:
        """Write what is left, the summary and the snapshots; let go of the folder. Raises when writing failed."""
        if not self._is_open:
            return
        self._is_open = False
        if self._replicator is not None:
            with contextlib.suppress(RunError):
                self._queue.settle()  # what follows a commit may have something to write
        self._queue.close()
        self._thread.join()
        if self._replicator is not None:
            self._replicator.stop()
        with self._resources, record_errors(self.root):
            self._queue.check()
            if self._share != "guest":
                self._finish()

    def __enter__(self) -> RunTelemetry:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What ended the block is the news; a failing record would only hide it.
        with contextlib.suppress(RunError) if error is not None else contextlib.nullcontext():
            self.close()

    def _without_damage(self) -> Path | None:
        """Make room for a new database where there is a damaged one; returns where that is now."""
        found = self._database
        if found is None or not is_damaged(found):
            return None
        refuse_newer(version_of(found), str(found))
        return set_aside(found)

    def _catch_up(self, opened: contextlib.ExitStack, damaged: Path | None) -> None:
        # A process that died while it filled the new database leaves the old one aside and this one empty.
        left = damaged or (self._database and last_set_aside(self._database))
        restored = restore(self._db, self.root, damaged=left)
        self.restored = restored.rows
        if restored.rows and self._database is not None and self._replicator is None:  # a shared record has its own
            restore_attempts(self._db, self.root)
        files, repairs = exports.catch_up(self._db, self.root, self._sinks, opened)
        self._writer = RecordWriter(self._db, files=files, clock=self._clock, others=self._share == "host")
        mended = mend_summary(self._db, self.root)
        self.repairs = (*self._told_of(restored, damaged), *repairs, *([mended] if mended else []))

    def _told_of(self, restored: Restored, damaged: Path | None) -> list[Repair]:
        """What the user hears about a database that was lost; one that is not kept is none."""
        torn = [Repair(MANIFEST, torn_bytes=restored.torn_bytes)] if restored.torn_bytes else []
        if self._database is None or not (restored.rows or damaged):
            return torn
        kept = f"it was damaged and is kept as {damaged.name}; " if damaged else ""
        read = f"{restored.rows} lines read back" + (f" from {' and '.join(restored.sources)}" if restored.rows else "")
        return [*torn, Repair(self._database.name, note=kept + read)]

    def _write_all(self) -> None:
        while (batch := self._next_batch()) is not None:
            try:
                self._writer.commit(batch)
                if self._replicator is not None:
                    self._replicator.put(batch)
                    continue
                run_callbacks(batch)
            except Exception as error:
                self._fail(error, batch)
                return
            for done in batch.settled:
                done.set()

    def _next_batch(self) -> Batch | None:
        """Between two batches, when all who waited have been told, there is time to count."""
        if self._rollup is not None:
            self._rollup.step()
        return self._queue.take()

    def _fail(self, error: Exception, batch: Batch) -> None:
        self._queue.fail(record_error(error, self.root), batch)

    def _finish(self) -> None:
        if self._share == "host":
            self._writer.follow()
        self._writer.save_positions()
        if self._rollup is not None:
            self._rollup.catch_up()
        finish_run(
            self._db,
            self.root,
            run_id=self.run_id,
            finished_at=self._now(),
            config_hash=self._config_hash,
            commit_ms=self._writer.commit_ms,
            notes=self._notes,
            judge=self._judge,
        )
        refresh_snapshots(self._db, self.root, last="csv" in self._sinks)
        if self._replicator is not None:
            self._replicator.send_runs()

    def _now(self) -> str:
        return utc_iso(self._clock.now())


def _call_each(callbacks: Iterable[Callable[[], None]]) -> None:
    """Every one, also after one has failed: what they speak of is committed."""
    failures: list[Exception] = []
    for then in callbacks:
        try:
            then()
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]
