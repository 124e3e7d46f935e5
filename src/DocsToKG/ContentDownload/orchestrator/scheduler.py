"""The orchestrator of one process: leases jobs, runs each as a task, keeps leases alive, stops without loss.

Knows the ledger, the worker and where tasks wait; knows nothing of papers. One event loop runs the tasks; a thread of
its own leases, since the ledger blocks, and another keeps the leases alive, which no busy loop can starve. Promises: at
most `max_workers` exchanges run and `lookahead` jobs are held; jobs that fill the lookahead and only wait make room for
others; a slow disk makes it lease less; a lease that is lost, or may be because the ledger does not answer, cuts its
job; on stop, running jobs finish within the grace, their leases alive, and everything else goes back to the ledger.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from DocsToKG.ContentDownload.api.waits import WorkWaits
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import RunError
from DocsToKG.ContentDownload.net.limits.queues import Overflow
from DocsToKG.ContentDownload.orchestrator.pressure import Pressure
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.stages import Hands, NoteStage
from DocsToKG.ContentDownload.orchestrator.workers import Ended, JobRetry, OnOutcome, Worker
from DocsToKG.ContentDownload.pipeline import ResolverPipeline
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.ContentDownload.telemetry.events import Listener
from DocsToKG.ContentDownload.telemetry.metrics import QueueView, view_of
from DocsToKG.ContentDownload.telemetry.observability import events_of_process
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.core.ids import new_worker_id
from DocsToKG.core.interrupts import raise_if_wished
from DocsToKG.core.tasks import called_off_by
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, LeasedJob

_STAGES_S = 1.0  # how often the ledger is told where jobs are that stay at a stage
_CHOSEN_LOOK_S = 0.2  # how often jobs are asked for that a `lease` chooses
_POLL_S = 1.0  # how long a wake-up from another process may go unnoticed
# How often to see whether there is room for more. To be told of every job that begins or ends would cost each of them a
# change of threads; those that can begin at once bridge the time. While nothing moves, looks become rarer.
_FIRST_LOOK_S, _BUSY_LOOK_S, _LAST_LOOK_S = 0.002, 0.01, 0.05
_FIRST_PAUSE_S = 0.02
_WIND_DOWN_LOOK_S = 0.05
# For how long jobs are held that can begin at once, and how many for each worker at most: where works take
# milliseconds, two for each do not last until the ledger has answered. Ends are known many at a time, so they are
# counted over a while.
_AHEAD_S, _MOST_AHEAD = 0.15, 8
_COUNTED_S = 0.25
# Sending works away costs the ledger two rows each. What is not known yet is worth a look, though ever less often;
# what was sent away for the same host before is not.
_SLOWER_UNKNOWN, _LONGEST_UNKNOWN_S = 1.25, 5.0
_SLOWER_KNOWN, _LONGEST_KNOWN_S = 2.0, 60.0
_WAITING = ("queued", "in_progress", "pending")
Lease = Callable[[int], list[LeasedJob]]


@dataclass(slots=True, eq=False)
class _Held:
    """A job of ours: how to call it off, whether it has met the network, and why it was sent away if it was."""

    job: LeasedJob
    token: CancelToken
    leased_at: float  # by our own clock, before the ledger was asked
    waits: WorkWaits
    begun: bool = False
    crowded: Overflow | None = None


class Orchestrator:
    """Runs the jobs of one queue through one pipeline."""

    def __init__(
        self,
        cfg: ContentDownloadConfig,
        queue: WorkQueue,
        pipeline: ResolverPipeline,
        telemetry: RunTelemetry,
        *,
        relative_path: Callable[[str | None], str | None] = lambda path: path,
        worker_id: str | None = None,
        on_outcome: OnOutcome | None = None,
        clock: Clock | None = None,
        events: Listener | None = None,
        in_hand: Hands | None = None,
        lease: Lease | None = None,
        note_stage: NoteStage | None = None,
    ) -> None:
        """`lease` gives the jobs to work on, at most as many as asked for, in place of all that are due; `note_stage`
        hears at once where each job is."""
        settings = cfg.orchestrator
        self.worker_id = worker_id or new_worker_id()
        self._clock = clock or SystemClock()
        self._events = events or events_of_process(self._clock)
        self._ledger = queue.ledger
        self._lease = lease
        self._ttl_s = float(settings.lease_ttl_seconds)
        self._heartbeat_s = float(settings.heartbeat_seconds)
        self._lookahead = settings.leases_held
        self._workers = settings.max_workers
        self._spare = min(self._workers, self._lookahead // 8)  # more are leased once so many places are free
        self._fresh = 2 * self._workers  # how many jobs that could begin at once are held at most
        self.pressure = Pressure()
        self._telemetry = telemetry
        self._next_parting = 0.0
        self._parting_pause_s = _FIRST_PAUSE_S
        self._loop = pipeline.loop
        self._gates = pipeline.gates
        self._tasks: set[asyncio.Task[None]] = set()
        self._live = 0  # leased jobs whose task has not ended
        self._worker = Worker(
            self.worker_id,
            ledger=self._ledger,
            pipeline=pipeline,
            telemetry=telemetry,
            retry=JobRetry(settings.max_job_attempts, settings.retry_backoff_seconds, settings.jitter_seconds),
            relative_path=relative_path,
            on_outcome=on_outcome,
            on_fault=self._fail,
            pressure=self.pressure,
            clock=self._clock,
            events=self._events,
            more_to_come=lambda: self._live > 1,  # one may be about to go
            note_stage=note_stage,
            in_hand=in_hand,
        )
        self._run_token = CancelToken()
        self._lock = threading.Lock()
        self._moved = threading.Condition(self._lock)  # the last job that was held ended, or the run is stopping
        self._held: dict[str, _Held] = {}
        self._ends = 0
        self._counted, self._counted_at = 0, self._clock.monotonic()
        self._renewed_at = 0.0  # when the ledger was asked that renewed the leases last
        self._seen: dict[str, int] = {}  # of the ledger, while others hold what is left
        self._still_since = 0.0
        self._stopping = threading.Event()
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._shown: QueueView | None = None
        self._dispatcher, self._heartbeat, self._doubter = (
            threading.Thread(target=self._guard, args=(loop,), name=f"{loop.__name__.strip('_')}", daemon=True)
            for loop in (self._dispatch, self._beat, self._doubt)
        )
        telemetry.on_failure(self._fail)

    def start(self) -> None:
        self._shown = self._view()
        self._events.on_start(self._shown)
        self._dispatcher.start()
        self._heartbeat.start()
        self._doubter.start()

    def stop(self, grace_s: float = 8.0) -> None:
        """Lease no more, let running jobs finish for `grace_s`, give the rest back. Raises what made the run fail."""
        self.halt()
        try:
            _join(self._dispatcher)
            self._loop.run(self._wind_down(grace_s))
            with self._lock:
                self._moved.wait_for(lambda: not self._held or self._failure is not None)
        finally:
            # Until here leases are kept alive: what is still running is not to be handed to somebody else.
            self._over.set()
            if self._shown is not None:
                self._events.on_stop(self._shown)
        _join(self._heartbeat)
        _join(self._doubter)
        if self._failure is not None:
            raise self._failure

    def halt(self) -> None:
        """Take no more work. Running jobs go on; `stop` gives the rest back."""
        self._stopping.set()
        self._wake()

    def fail(self, error: BaseException) -> None:
        """Stop because of this error; `stop` raises it."""
        self._fail(error)

    def wait_until_stopping(self) -> None:
        """Return when the run takes no more work: it was told to stop, or it failed."""
        while not self._stopping.wait(_POLL_S):
            raise_if_wished()

    def wait_until_drained(self, patience_s: float | None = None) -> None:
        """Return when no download is queued, delayed or running; a pause or a failure also ends the wait.

        With `patience_s`, jobs that may only go on later than that are not waited for, nor those that others hold while
        nothing has moved for so long; they stay on the ledger.
        """
        while not self._stopping.is_set():
            with self._lock:
                ends = self._ends
            if self._failure is not None or self._is_drained(patience_s):
                return
            with self._lock:
                if self._ends == ends:
                    self._moved.wait(timeout=_POLL_S)
            raise_if_wished()

    @property
    def active(self) -> int:
        """Jobs that have an exchange under way."""
        return self._gates.used if self._gates is not None else self._live

    @property
    def held(self) -> int:
        """Leases, those of parked jobs included."""
        return len(self._held)

    def waits(self) -> dict[str, int]:
        """What parked jobs wait for, most first."""
        slow = self.pressure.words()
        held_back = self._lookahead - self._allowed()
        waits = self._gates.waits().most_common() if self._gates is not None else ()
        return {**({slow: held_back} if slow else {}), **dict(waits)}

    def _view(self) -> QueueView:
        return view_of(self._ledger, held=lambda: len(self._held), active=lambda: self.active, clock=self._clock)

    # loops

    def _dispatch(self) -> None:
        pause_s, ends = _FIRST_LOOK_S, 0
        while not self._stopping.is_set():
            room = self._room()
            if room <= 0:
                self._make_room()
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, _LAST_LOOK_S if self._ends == ends else _BUSY_LOOK_S)
                ends = self._ends
                continue
            pause_s = _FIRST_LOOK_S
            asked_at = self._clock.monotonic()
            jobs = self._lease(room) if self._lease is not None else self._lease_due(room)
            self._events.on_lease(jobs, self._clock.monotonic() - asked_at)
            self._look_ahead(asked_at)
            if jobs:
                self._begin(jobs, asked_at)
            if not jobs and self._lease is None:
                self._ledger.wait_for_work(_POLL_S, unless=self._stopping.is_set, job_type=DEFAULT_JOB_TYPE)
            elif not jobs:
                self._stopping.wait(_CHOSEN_LOOK_S)

    def _lease_due(self, room: int) -> list[LeasedJob]:
        return self._ledger.lease(self.worker_id, room, self._ttl_s, job_type=DEFAULT_JOB_TYPE)

    def _beat(self) -> None:
        rest_s, rested_s = min(_STAGES_S, self._heartbeat_s), 0.0
        while not self._over.wait(rest_s):
            self._worker.write_stages()
            rested_s += rest_s
            if rested_s >= self._heartbeat_s:
                rested_s = 0.0
                self._renew_leases()

    def _doubt(self) -> None:
        """A ledger that does not answer cannot say that a lease is over, but the time can: another node may have the
        job then, so nothing more is stored for it here."""
        while not self._over.wait(min(_STAGES_S, self._ttl_s / 4)):
            over_at = self._clock.monotonic() - self._ttl_s
            if self._renewed_at > over_at:
                continue
            with self._lock:
                doubtful = [ours for ours in self._held.values() if ours.leased_at <= over_at]
            for ours in doubtful:
                ours.token.cancel()

    def _renew_leases(self) -> None:
        with self._lock:
            held = dict(self._held)  # before the question: what is leased while it is answered is not lost
        asked_at = self._clock.monotonic()
        still_ours = self._ledger.heartbeat(self.worker_id, self._ttl_s)
        self._renewed_at = asked_at
        self._events.on_heartbeat(len(still_ours))
        lost = [ours for lease, ours in held.items() if lease not in still_ours]
        for ours in lost:
            ours.token.cancel()

    def _make_room(self) -> None:
        """Threads are idle while everything we may hold waits: part with those at the end of the longest queues.

        Others in the ledger may be for hosts that are free. Where that was not so, the next look is later. A slow disk
        allows fewer, and those are full sooner.
        """
        allowed = self._allowed()
        if self._gates is None or self._gates.used >= min(self._workers, allowed):
            self._parting_pause_s = _FIRST_PAUSE_S
            return
        is_full = len(self._held) >= min(allowed, self._lookahead - self._spare)  # from there on no more are leased
        if not (is_full and self._is_starved and self._clock.monotonic() >= self._next_parting):
            return
        with self._lock:
            waiting = {ours.token: ours for ours in self._held.values() if not ours.begun}
        crowds = self._loop.run(self._crowds(allowed // 2, waiting))
        if not crowds:
            return
        known = True
        for crowded in crowds:
            ours = waiting[crowded.cancel]
            known &= ours.job.fence > 1 and ours.job.host_key == crowded.host  # leased before, and for this host
            ours.crowded = crowded
            ours.token.cancel()
        self._next_parting = self._clock.monotonic() + self._parting_pause_s
        slower, longest_s = (_SLOWER_KNOWN, _LONGEST_KNOWN_S) if known else (_SLOWER_UNKNOWN, _LONGEST_UNKNOWN_S)
        self._parting_pause_s = min(slower * self._parting_pause_s, longest_s)

    def _guard(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except Exception as error:
            self._fail(error)

    # one job

    def _begin(self, jobs: list[LeasedJob], leased_at: float) -> None:
        held = [_Held(job, CancelToken(parent=self._run_token), leased_at, WorkWaits(self._clock)) for job in jobs]
        with self._lock:
            self._held.update((ours.job.lease_id, ours) for ours in held)
            self._live += len(held)
        if self._stopping.is_set():  # they were leased while it was told to stop
            for ours in held:
                ours.token.cancel()
        self._loop.call(self._start_tasks, held)

    def _start_tasks(self, held: list[_Held]) -> None:
        loop = asyncio.get_running_loop()
        for ours in held:
            task = loop.create_task(self._run(ours))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, ours: _Held) -> None:
        job, waits = ours.job, ours.waits
        try:
            self._events.on_job_start(job)
            working = self._worker.run_job(job, ours.token, waits, partial(setattr, ours, "begun", True))
            ended = Ended(await called_off_by(ours.token, working), None, waits.shut_host)
        except asyncio.CancelledError:
            ended = Ended(error=Cancelled("stopped"))
        except BaseException as error:
            ended = Ended(error=error)
        self._end(ours, ended)

    def _end(self, ours: _Held, ended: Ended) -> None:
        if isinstance(ended.error, RunError):
            self._fail(ended.error)
        ours.token.close()
        try:
            self._worker.close_job(ours.job, ended, partial(self._let_go, ours.job), crowded=ours.crowded)
            with self._lock:
                self._live -= 1
            if self._live == 0:  # nobody comes after this one
                self._telemetry.hurry()
        except Exception as error:
            self._fail(error)

    async def _wind_down(self, grace_s: float | None) -> None:
        """Jobs that wait go back at once, running ones may finish for `grace_s`; then they are cut."""
        until = None if grace_s is None else self._clock.monotonic() + grace_s
        if self._gates is not None:
            self._gates.is_closing = True
        while self._tasks:
            with self._lock:
                held = list(self._held.values())
            is_over = until is not None and self._clock.monotonic() >= until
            for ours in held:
                if is_over or ours.waits.is_parked:
                    ours.token.cancel()
            await asyncio.wait(set(self._tasks), timeout=_WIND_DOWN_LOOK_S)
        if self._gates is not None:
            self._gates.is_closing = False

    async def _crowds(self, keep: int, waiting: dict[CancelToken, _Held]) -> list[Overflow]:
        return self._gates.crowds(keep, waiting.__contains__) if self._gates is not None else []

    @property
    def _is_starved(self) -> bool:
        """More exchanges could be under way, and every job that is held waits."""
        gates = self._gates
        return gates is not None and gates.is_idle and gates.waiting >= self._live - gates.used

    def _let_go(self, job: LeasedJob) -> None:
        with self._lock:
            self._held.pop(job.lease_id, None)
            self._ends += 1
            if not self._held:
                self._moved.notify_all()

    # waiting

    def _room(self) -> int:
        """How many more jobs to lease; a job counts until the ledger has its end. 0 until it is worth a question."""
        gates, live = self._gates, self._live
        startable = live - (gates.used + gates.blocked if gates is not None else 0)
        if live >= self._lookahead - self._spare or startable >= max(2, self._fresh // 2):
            return 0
        return min(self._lookahead - live, self._fresh - startable, self._allowed() - len(self._held))

    def _look_ahead(self, now: float) -> None:
        """Hold as many fresh jobs as have ended lately in the time that they are to last."""
        since_s = now - self._counted_at
        if since_s < _COUNTED_S:
            return
        soon = int(_AHEAD_S * (self._ends - self._counted) / since_s)
        self._fresh = min(max(2 * self._workers, soon), _MOST_AHEAD * self._workers)
        self._counted, self._counted_at = self._ends, now

    def _allowed(self) -> int:
        """How many leases may be held now: fewer while the disk is slow."""
        return self.pressure.allowed(self._lookahead, workers=self._workers)

    def _is_drained(self, patience_s: float | None) -> bool:
        if self._held:
            return False
        stats = self._ledger.stats(DEFAULT_JOB_TYPE)
        if self._ledger.is_paused() or not any(stats[state] for state in _WAITING):
            return True
        soonest = self._ledger.next_eligible_at(DEFAULT_JOB_TYPE)
        too_late = soonest is not None and patience_s is not None and soonest - self._clock.now() > patience_s
        if not stats["in_progress"]:
            return too_late
        return patience_s is not None and (soonest is None or too_late) and self._stood_still_s(stats) > patience_s

    def _stood_still_s(self, stats: dict[str, int]) -> float:
        """How long the ledger has looked like this."""
        now = self._clock.monotonic()
        if stats != self._seen:
            self._seen, self._still_since = stats, now
        return now - self._still_since

    def _fail(self, error: BaseException) -> None:
        """The run cannot go on: remember why, and stop taking work. Whoever waits for the run finds out."""
        with self._lock:
            self._failure = self._failure or error
        self.halt()

    def _wake(self) -> None:
        with self._lock:
            self._moved.notify_all()
        self._ledger.wake()


def _join(thread: threading.Thread) -> None:
    if thread.ident is not None:
        thread.join()
