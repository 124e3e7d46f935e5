"""A run in several processes, with the face of an orchestrator.

The processes lease from one ledger, each under its own name; this one leases nothing, hears how works end, brings the
text files of the record up to date and frees at once what a dead one held. Knows nothing of how works are done.
"""

from __future__ import annotations

import pickle
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from DocsToKG.ContentDownload.api.types import DownloadOutcome
from DocsToKG.ContentDownload.bootstrap import Parts
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import RunError, told_error
from DocsToKG.ContentDownload.orchestrator.forking import Forked, fork_many, may_fork
from DocsToKG.ContentDownload.orchestrator.processes import Crew, Member, Word
from DocsToKG.ContentDownload.orchestrator.workers import OnOutcome
from DocsToKG.ContentDownload.runner.order import Order
from DocsToKG.ContentDownload.telemetry.metrics import QueueView, view_of
from DocsToKG.core.clock import Clock
from DocsToKG.core.interrupts import raise_if_wished
from DocsToKG.Orchestrator.control.workers.liveness import free_dead
from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE
from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger

_LOOK_S = 0.1
_POLL_S = 1.0
_PAUSE_S = 0.02
_FOLLOW_EVERY = 5  # looks
_HALT_GRACE_S = 8.0
_WAITING = ("queued", "in_progress", "pending")


class ManyProcesses:
    """`keep_open` are the files that hold the folder: it stays taken for as long as one of the processes lives."""

    def __init__(
        self,
        cfg: ContentDownloadConfig,
        ledger: DatabaseLedger,
        parts: Parts,
        *,
        keep_open: Sequence[int],
        on_outcome: OnOutcome,
        clock: Clock,
        copies: Sequence[Forked] = (),
    ) -> None:
        self._ledger = ledger
        self._telemetry = parts.telemetry
        self._observability, self._events = parts.observability, parts.events
        self._held: dict[Member, int] = {}  # leases, as each process said last
        self._shown: QueueView | None = None
        self._on_outcome = on_outcome
        self._clock = clock
        self._failure: BaseException | None = None
        self._stopping = threading.Event()
        self._moved = threading.Event()
        self._over = threading.Event()
        order = Order(cfg, parts.telemetry.run_id, frozenset(parts.refetch))
        self.crew = Crew(
            [sys.executable, "-m", "DocsToKG.ContentDownload.runner.member"],
            pickle.dumps(order),
            count=cfg.orchestrator.processes,
            on_word=self._hear,
            on_death=self._free,
            on_failure=self._member_failed,
            keep_open=[*keep_open, *parts.telemetry.locks],
            copies=copies,
        )
        self._follower = threading.Thread(target=self._follow, name="record-follower", daemon=True)
        parts.telemetry.on_failure(self._fail)

    def start(self) -> None:
        self._shown = view_of(
            self._ledger,
            held=lambda: sum(self._held.get(member, 0) for member in self.crew.members),
            active=lambda: self.active,
            clock=self._clock,
            processes=lambda: len(self.crew.members),
        )
        self._events.on_start(self._shown)
        self.crew.start()
        self._follower.start()

    def stop(self, grace_s: float = 8.0) -> None:
        """As `Orchestrator.stop`. Raises what made the run fail."""
        self._stopping.set()
        try:
            self.crew.stop(grace_s)
        finally:
            self._over.set()
            if self._shown is not None:
                self._events.on_stop(self._shown)
        self._follower.join()
        self._free()
        if self._failure is not None:
            raise self._failure

    def kill(self) -> None:
        """End the processes at once; what they held is free when this returns."""
        self._stopping.set()
        self._over.set()
        self.crew.kill()
        self._free()

    def halt(self) -> None:
        """Take no more work. What runs may finish until `stop`."""
        self._stopping.set()
        self._moved.set()
        self.crew.halt(_HALT_GRACE_S)

    def fail(self, error: BaseException) -> None:
        """Stop because of this error; `stop` raises it."""
        self._fail(error)

    def wait_until_stopping(self) -> None:
        while not self._stopping.wait(_POLL_S):
            raise_if_wished()

    def wait_until_drained(self, patience_s: float | None = None) -> None:
        """As `Orchestrator.wait_until_drained`, for all processes on this ledger."""
        while not self._stopping.is_set() and self._failure is None:
            self._moved.clear()
            try:
                if self._is_drained(patience_s):
                    return
            except LedgerError as error:
                self._fail(error)
            self._stopping.wait(_PAUSE_S)  # works end by the dozen
            self._moved.wait(_LOOK_S)
            raise_if_wished()

    @property
    def processes(self) -> tuple[int, ...]:
        """The ids of the processes that run now."""
        return tuple(member.process.pid for member in self.crew.members)

    @property
    def active(self) -> int:
        return sum(int(member.state.get("active", 0)) for member in self.crew.members)

    def waits(self) -> dict[str, int]:
        total: Counter[str] = Counter()
        for member in self.crew.members:
            total.update(member.state.get("waits", {}))
        return dict(total.most_common())

    def _is_drained(self, patience_s: float | None) -> bool:
        stats = self._ledger.stats(DEFAULT_JOB_TYPE)
        if stats["in_progress"]:
            return False
        if self._ledger.is_paused() or not any(stats[state] for state in _WAITING):
            return True
        soonest = self._ledger.next_eligible_at(DEFAULT_JOB_TYPE)
        return soonest is not None and patience_s is not None and soonest - self._clock.now() > patience_s

    def _hear(self, member: Member, word: Word) -> None:
        """Whoever is told of outcomes may fail, as with one process; a member that nobody hears any more would wait."""
        for work_id, fields in word.get("outcomes", ()):
            try:
                self._on_outcome(work_id, DownloadOutcome(**fields))
            except Exception as error:
                self._fail(error)
        try:
            self._take_in(member, word)
        except Exception as error:
            self._fail(error)
        self._moved.set()

    def _take_in(self, member: Member, word: Word) -> None:
        if "figures" in word:
            self._held[member] = word["held"]
            self._observability.merge(word["figures"])
        for note in word.get("notes", ()):
            self._telemetry.note(note)

    def _free(self) -> None:
        try:
            free_dead(self._ledger)
        except LedgerError as error:
            self._fail(error)

    def _follow(self) -> None:
        while not self._over.wait(_LOOK_S * _FOLLOW_EVERY):
            try:
                self._telemetry.follow()
            except RunError as error:
                self._fail(error)
                return

    def _member_failed(self, kind: str, text: str) -> None:
        self._fail(told_error(kind, text))

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
            self.halt()


@contextmanager
def copies_of_this_process(count: int) -> Iterator[list[Forked]]:
    """Copies that wait for their order, which share with this process what it has loaded; none where it must not be
    copied. Those that are not needed end with the block."""
    if not may_fork():
        yield []
        return
    from DocsToKG.ContentDownload.runner import member

    member.load_all()
    copies = fork_many(member.main, count)
    try:
        yield copies
    finally:
        for copy in copies:
            if copy.returncode is None:
                copy.dismiss()
