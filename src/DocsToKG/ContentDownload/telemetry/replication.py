"""The way of a machine's own record to the one that many machines share, in a thread of its own.

What is committed here is sent there, and only then told to whoever waits: what the queue is told to be done, every
machine can look up. Promises: a server that is away stops nobody from writing here; jobs that have ended meanwhile stay
leased, so that a machine takes no more than it may hold; what was not sent is sent at the next start; when the patience
is over, every caller gets the reason.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import psycopg

from DocsToKG.ContentDownload.catalog.shared.schema import prepare
from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
from DocsToKG.ContentDownload.errors import RecordError, RunError
from DocsToKG.ContentDownload.telemetry.group_commit import Batch
from DocsToKG.ContentDownload.telemetry.replica import Replica, journal_of
from DocsToKG.ContentDownload.telemetry.schema import open_database
from DocsToKG.ContentDownload.telemetry.writer import run_callbacks
from DocsToKG.core.clock import Clock, utc_iso
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection

_T = TypeVar("_T")


def send_now(shared: SharedRecord, database: Path, *, node: str, clock: Clock) -> None:
    """Send what a machine's own record, which no run is writing, has more than the shared one."""
    if not database.is_file():
        return
    replicator = Replicator(shared, node=node, clock=clock, fail=lambda error, batch: None)
    with contextlib.closing(open_database(database)) as db:
        replicator.open(database, db, is_guest=False)
        replicator.close()


class Replicator:
    """`fail` is told once when sending has failed for good, with what was not sent."""

    def __init__(
        self, shared: SharedRecord, *, node: str, clock: Clock, fail: Callable[[RunError, Batch], None]
    ) -> None:
        self._shared = shared
        self._node = node
        self._clock = clock
        self._fail = fail
        self._changed = threading.Condition()
        self._waiting: list[Batch] = []
        self._closed = False
        self._failed = False
        self._thread = threading.Thread(target=self._send_all, name="record-replicator", daemon=True)
        self._connection: Connection | None = None
        self._local: sqlite3.Connection
        self._replica: Replica

    def open(self, database: Path, db: sqlite3.Connection, *, is_guest: bool) -> None:
        """Find the shared record, and send what it lacks of this machine's. `db` is open for writing."""
        prepare(self._shared)
        uri = f"{database.resolve().as_uri()}?mode=ro"
        self._local = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            self._replica = self._of(journal_of(db))
            if not is_guest:
                if not self._asked(self._replica.stands):
                    self._replica = self._of(journal_of(db, anew=True))
                self._send()
        except BaseException:
            self._let_go()
            raise

    def start(self) -> int | None:
        """Returns the thread that tells."""
        self._thread.start()
        return self._thread.ident

    def put(self, batch: Batch) -> None:
        """A batch that is committed here: send it, then tell."""
        batch.rows.clear()  # they are read from the record
        with self._changed:
            self._waiting.append(batch)
            self._changed.notify_all()
            if self._failed:
                self._give_up()

    def send_runs(self) -> None:
        """Send how the runs stand. Not while the thread runs."""
        self._send()
        self._asked(self._replica.send_runs)

    def stop(self) -> None:
        """Send what is left, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def close(self) -> None:
        self.stop()
        self._let_go()

    def _of(self, journal: str) -> Replica:
        return Replica(self._local, schema=self._shared.schema, journal=journal, node=self._node)

    def _send_all(self) -> None:
        while batches := self._take():
            try:
                self._send(batches)
                for batch in batches:
                    run_callbacks(batch)
            except Exception as error:
                failure = error if isinstance(error, RunError) else RecordError(f"the shared record: {error}")
                self._end_with(failure, batches)
                return
            for batch in batches:
                for done in batch.settled:
                    done.set()

    def _take(self) -> list[Batch]:
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            taken, self._waiting = self._waiting, []
        return taken

    def _end_with(self, failure: RunError, batches: Sequence[Batch]) -> None:
        """The reason first: whoever is woken before it is known would take what it waited for as sent."""
        with self._changed:
            left, self._waiting = [*batches, *self._waiting], []
        self._fail(failure, Batch(settled=[done for batch in left for done in batch.settled]))
        with self._changed:
            self._failed = True
            self._give_up()

    def _give_up(self) -> None:
        """Nobody waits for ever; what was to follow does not."""
        for batch in self._waiting:
            for done in batch.settled:
                done.set()
        self._waiting.clear()

    def _send(self, batches: Sequence[Batch] = ()) -> None:
        # Up to what is here now: other processes of this machine may be writing without a pause.
        wanted = self._replica.newest()
        while not self._asked(lambda connection: self._replica.send(connection, wanted)):
            pass
        verified = [mark for batch in batches for mark in batch.verified]
        if verified:
            now = utc_iso(self._clock.now())
            self._asked(lambda connection: self._replica.mark(connection, verified, now))

    def _asked(self, ask: Callable[[Connection], _T]) -> _T:
        return self._shared.again(lambda: self._try(ask))

    def _try(self, ask: Callable[[Connection], _T]) -> _T:
        if self._connection is None:
            self._connection = self._shared.connect()
        try:
            return ask(self._connection)
        except psycopg.Error:
            self._connection.close()
            self._connection = None
            raise

    def _let_go(self) -> None:
        self._local.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
