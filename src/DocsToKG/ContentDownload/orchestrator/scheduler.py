"""The orchestrator of one process: leases jobs, feeds the frontier, keeps leases alive, stops without loss.

Knows the ledger, the worker and the frontier; knows nothing of papers. Event-driven: it sleeps until work arrives,
room is free or a time has come. Promises: at most `max_workers` jobs run and `lookahead` are held; a lost lease cuts
its job; on stop, running jobs finish within the grace and everything else goes back to the ledger.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import RunError
from DocsToKG.ContentDownload.frontier.frontier import Frontier
from DocsToKG.ContentDownload.frontier.task import Ended
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.workers import JobRetry, OnOutcome, Worker
from DocsToKG.ContentDownload.pipeline import ResolverPipeline
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.core.ids import new_worker_id
from DocsToKG.Orchestrator.ledger.base import LeasedJob

_POLL_S = 1.0  # how long a wake-up from another process may go unnoticed
_WAITING = ("queued", "in_progress", "pending")


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
    ) -> None:
        settings = cfg.orchestrator
        self.worker_id = worker_id or new_worker_id()
        self._clock = clock or SystemClock()
        self._ledger = queue.ledger
        self._ttl_s = float(settings.lease_ttl_seconds)
        self._heartbeat_s = float(settings.heartbeat_seconds)
        self._lookahead = settings.leases_held
        self._handover = 2 * settings.max_workers
        self._frontier = Frontier(
            gate=pipeline.gate, clock=self._clock, threads=settings.max_workers, name=self.worker_id[:12]
        )
        self._worker = Worker(
            self.worker_id,
            ledger=self._ledger,
            pipeline=pipeline,
            telemetry=telemetry,
            retry=JobRetry(settings.max_job_attempts, settings.retry_backoff_seconds, settings.jitter_seconds),
            relative_path=relative_path,
            on_outcome=on_outcome,
            on_fault=self._fail,
        )
        self._run_token = CancelToken()
        self._lock = threading.Lock()
        self._moved = threading.Condition(self._lock)  # a job ended, or the run is stopping
        self._held: dict[str, tuple[LeasedJob, CancelToken]] = {}
        self._ends = 0
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._guard, args=(loop,), name=f"{loop.__name__.strip('_')}", daemon=True)
            for loop in (self._dispatch, self._beat)
        ]
        telemetry.on_failure(self._fail)

    def start(self) -> None:
        self._frontier.start()
        for thread in self._threads:
            thread.start()

    def stop(self, grace_s: float = 8.0) -> None:
        """Lease no more, let running jobs finish for `grace_s`, give the rest back. Raises what made the run fail."""
        self.halt()
        self._frontier.stop(grace_s=grace_s)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        with self._lock:
            while self._held and self._failure is None:
                self._moved.wait(timeout=_POLL_S)
        if self._failure is not None:
            raise self._failure

    def halt(self) -> None:
        """Take no more work. Running jobs go on; `stop` gives the rest back."""
        self._stopping.set()
        self._wake()

    def wait_until_stopping(self) -> None:
        """Return when the run takes no more work: it was told to stop, or it failed."""
        self._stopping.wait()

    def wait_until_drained(self, patience_s: float | None = None) -> None:
        """Return when nothing is queued, delayed or running; a pause or a failure also ends the wait.

        With `patience_s`, jobs that may only go on later than that are not waited for; they stay on the ledger.
        """
        while not self._stopping.is_set():
            with self._lock:
                ends = self._ends
            if self._failure is not None or self._is_drained(patience_s):
                return
            with self._lock:
                if self._ends == ends:
                    self._moved.wait(timeout=_POLL_S)

    @property
    def active(self) -> int:
        return self._frontier.active

    def waits(self) -> dict[str, int]:
        """What parked jobs wait for, most first."""
        return dict(self._frontier.waits().most_common())

    # loops

    def _dispatch(self) -> None:
        while not self._stopping.is_set():
            room = self._frontier.room(most_live=self._lookahead, most_fresh=self._handover, wait_s=_POLL_S)
            room = min(room, self._places())
            if room == 0:
                continue
            jobs = self._ledger.lease(self.worker_id, room, self._ttl_s)
            for job in jobs:
                self._begin(job)
            if not jobs:
                self._ledger.wait_for_work(_POLL_S, unless=self._stopping.is_set)

    def _beat(self) -> None:
        while not self._stopping.wait(self._heartbeat_s):
            with self._lock:
                held = dict(self._held)  # before the question: what is leased while it is answered is not lost
            still_ours = self._ledger.heartbeat(self.worker_id, self._ttl_s)
            lost = [token for lease, (_, token) in held.items() if lease not in still_ours]
            for token in lost:
                token.cancel()

    def _guard(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except Exception as error:
            self._fail(error)

    # one job

    def _begin(self, job: LeasedJob) -> None:
        token = CancelToken(parent=self._run_token)
        with self._lock:
            self._held[job.lease_id] = (job, token)
        self._frontier.submit(self._worker.steps(job, token), cancel=token, on_done=lambda ended: self._end(job, ended))

    def _end(self, job: LeasedJob, ended: Ended) -> None:
        if isinstance(ended.error, RunError):
            self._fail(ended.error)
        try:
            self._worker.close_job(job, ended, then=lambda: self._let_go(job))
        except Exception as error:
            self._fail(error)

    def _let_go(self, job: LeasedJob) -> None:
        with self._lock:
            self._held.pop(job.lease_id, None)
            self._ends += 1
            self._moved.notify_all()

    # waiting

    def _places(self) -> int:
        """How many more leases may be held; a job counts until the ledger has its end. Waits a while for one."""
        with self._lock:
            self._moved.wait_for(lambda: len(self._held) < self._lookahead or self._stopping.is_set(), _POLL_S)
            return self._lookahead - len(self._held)

    def _is_drained(self, patience_s: float | None) -> bool:
        if self._held:
            return False
        stats = self._ledger.stats()
        if self._ledger.is_paused() or not any(stats[state] for state in _WAITING):
            return True
        soonest = self._ledger.next_eligible_at()
        too_late = soonest is not None and patience_s is not None and soonest - self._clock.now() > patience_s
        return too_late and not stats["in_progress"]

    def _fail(self, error: BaseException) -> None:
        """The run cannot go on: remember why, and stop taking work. Whoever waits for the run finds out."""
        with self._lock:
            self._failure = self._failure or error
        self.halt()

    def _wake(self) -> None:
        with self._lock:
            self._moved.notify_all()
        self._ledger.wake()
