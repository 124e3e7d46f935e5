"""One job: from its lease to its acknowledgement.

Knows how an outcome becomes a job state, and the order record first, ledger after. Runs a job as a coroutine for the
scheduler, or as a plain call. Promises: every write names the lease's fence; a job that was called off is given back
and counts no attempt; an exception of the pipeline costs one attempt and never a thread.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from DocsToKG.ContentDownload.api.stages import INDEX
from DocsToKG.ContentDownload.api.types import DownloadOutcome, OutcomeClass, Reason, WorkArtifact
from DocsToKG.ContentDownload.api.waits import WorkWaits
from DocsToKG.ContentDownload.errors import RunError
from DocsToKG.ContentDownload.net.limits.queues import Overflow
from DocsToKG.ContentDownload.orchestrator.pressure import Pressure
from DocsToKG.ContentDownload.orchestrator.stages import Hands, JobStages, NoteStage
from DocsToKG.ContentDownload.pipeline import JobContext, ResolverPipeline
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.ContentDownload.telemetry.events import Events, Listener, end_of
from DocsToKG.ContentDownload.telemetry.manifest import ManifestRecord
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.core.urls import mask_text
from DocsToKG.Orchestrator.errors import LeaseLost
from DocsToKG.Orchestrator.jobs.retry import RELEASE_CAP_S, job_backoff_s
from DocsToKG.Orchestrator.jobs.states import UNAVAILABLE, JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, LeasedJob, Ledger, Release

# A job that made room for others comes back in time for its turn, by what is known of the queue it stood in.
_SHORTEST_RETURN_S = 0.5
_LONGEST_RETURN_S = 60.0


@dataclass(frozen=True, slots=True)
class JobRetry:
    """How often a job is tried, and how long it waits in between."""

    max_attempts: int = 3
    backoff_s: float = 60.0
    jitter_s: float = 15.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How the work on a job ended: with an outcome, or with the exception that left it; `shut_host` is the last host
    that was shut for long."""

    value: Any = None
    error: BaseException | None = None
    shut_host: str | None = None


# Told once per work, when its outcome is final and safe on disk.
OnOutcome = Callable[[str, DownloadOutcome], None]
Then = Callable[[], object]
Order = Finish | Fail | Release
# A job whose end is on record: its outcome, the host that was shut to it, what follows, and when it was handed over.
Recorded = tuple[LeasedJob, DownloadOutcome, str | None, Then, float]
# An order that is with the ledger: whose, what came of the work if that is known, and what follows the answer.
Ordered = tuple[LeasedJob, Order, DownloadOutcome | None, Then]


class Worker:
    """Runs leased jobs through the pipeline and reports how each ended."""

    def __init__(
        self,
        worker_id: str,
        *,
        ledger: Ledger,
        pipeline: ResolverPipeline,
        telemetry: RunTelemetry,
        retry: JobRetry,
        relative_path: Callable[[str | None], str | None] = lambda path: path,
        on_outcome: OnOutcome | None = None,
        on_fault: Callable[[BaseException], None] = lambda error: None,
        pressure: Pressure | None = None,
        clock: Clock | None = None,
        events: Listener | None = None,
        more_to_come: Callable[[], bool] = lambda: True,
        note_stage: NoteStage | None = None,
        in_hand: Hands | None = None,
    ) -> None:
        self._more_to_come = more_to_come
        self.worker_id = worker_id
        self._ledger = ledger
        self._pipeline = pipeline
        self._telemetry = telemetry
        self._retry = retry
        self._relative_path = relative_path
        self._on_outcome = on_outcome or (lambda work_id, outcome: None)
        self._on_fault = on_fault
        self._pressure = pressure or Pressure()
        self._clock = clock or SystemClock()
        self._monotonic = monotonic = self._clock.monotonic
        self._events = events or Events()
        self._works: dict[str, WorkArtifact] = {}  # by the leases under which they are worked on
        self._stages = JobStages(
            submit=ledger.tell_progress, monotonic=monotonic, on_refused=self._blame, note=note_stage, in_hand=in_hand
        )

    async def run_job(
        self, job: LeasedJob, cancel: CancelToken, waits: WorkWaits, on_begin: Then | None = None
    ) -> DownloadOutcome:
        """The job's work. `on_begin` is told when it has met the network."""
        work = self._works[job.lease_id] = _artifact(job)
        if self._events.hears("on_wait"):
            waits.on_slot_wait = partial(self._events.on_wait, job)
        outcome = await self._pipeline.obtain(work, self.context(job, cancel, on_begin, waits))
        self._events.on_work_end(job, outcome)
        return outcome

    def run_one(self, job: LeasedJob) -> DownloadOutcome | None:
        """The whole job while the caller waits. None when the job itself failed; what stops the run is raised, after
        the job was given back."""
        self._events.on_job_start(job)
        try:
            ended = Ended(value=self._pipeline.process(_artifact(job), self.context(job, CancelToken(), at_once=True)))
            self._events.on_work_end(job, ended.value)
        except Exception as error:
            ended = Ended(error=error)
        self.close_job(job, ended)
        if isinstance(ended.error, RunError):
            raise ended.error
        return ended.value if ended.error is None else None

    def write_stages(self) -> None:
        """Tell the ledger where the jobs are that have stayed at one stage for a while; to be called every second."""
        self._stages.write()

    def context(
        self,
        job: LeasedJob,
        cancel: CancelToken,
        on_begin: Then | None = None,
        waits: WorkWaits | None = None,
        *,
        at_once: bool = False,
    ) -> JobContext:
        """A job counts as begun once it has met the network: one that only stood before a gate when its process died
        is no suspect."""
        on_tier = partial(self._events.on_stage, job) if self._events.hears("on_stage") else None
        place = self._stages.enter(job, at_once=at_once, on_begin=on_begin, on_tier=on_tier)
        return JobContext(cancel, on_stage=place.come_to, on_begin=place.begin, is_first=job.fence == 1, waits=waits)

    def close_job(
        self, job: LeasedJob, ended: Ended, then: Then = lambda: None, *, crowded: Overflow | None = None
    ) -> None:
        """Record how the job ended, then tell the ledger; `then` follows when the ledger has answered. A job that was
        called off because it was `crowded` out goes back with its host and the time it would have waited."""
        error, work = ended.error, self._works.pop(job.lease_id, None)
        if error is None:
            self._record(job, work, ended, then)
        elif isinstance(error, Cancelled | RunError):
            self._stages.leave(job)
            release = _given_back(job, error, crowded)
            self._order((job, release, None, then), self._ledger.submit_release, release)
        else:
            self._record(job, work, Ended(value=_fault(error)), then)

    def _record(self, job: LeasedJob, work: WorkArtifact | None, ended: Ended, then: Then) -> None:
        outcome: DownloadOutcome = ended.value
        record = ManifestRecord.of(
            work or _readable(job),
            outcome,
            attempt=job.attempts + 1,
            lease_id=job.lease_id,
            worker_id=self.worker_id,
            path=self._relative_path(outcome.path),
        )
        recorded: Recorded = (job, outcome, ended.shut_host, then, self._monotonic())
        self._stages.come_to(job, INDEX)
        self._telemetry.finish_together(record, self._acknowledge, recorded)

    def _acknowledge(self, recorded: Sequence[Recorded]) -> None:
        """The record is committed; now the ledger may know, of all that are over with one word."""
        now, over = self._monotonic(), []
        for job, outcome, shut_host, then, handed_over in recorded:
            self._pressure.took("the record", now - handed_over)
            self._stages.leave(job)
            if outcome.classification == OutcomeClass.ERROR and outcome.meta.get("retryable"):
                self._send_back(job, outcome, shut_host, then)
            else:
                over.append((job, _finish(job, outcome), outcome, then))
        if over:
            self._tell_completing(over)
            finishes = [finish for _, finish, _, _ in over]
            done = self._ledger.submit_finishes(finishes, patient=self._more_to_come())
            done.add_done_callback(partial(self._all_answered, over))

    def _send_back(self, job: LeasedJob, outcome: DownloadOutcome, shut_host: str | None, then: Then) -> None:
        if outcome.meta.get("only_waited"):
            # Our own gates sent it away before anything was asked: that is no try of the paper.
            release = self._come_back(job, outcome, shut_host)
            self._order((job, release, outcome, then), self._ledger.submit_release, release)
        else:
            fail = self._fail(job, outcome)
            self._order((job, fail, outcome, then), self._ledger.submit_fail, fail)

    def _order(self, ordered: Ordered, submit: Callable[[Any], Future[JobState]], order: Order) -> None:
        self._tell_completing([ordered])
        submit(order).add_done_callback(lambda done: self._answered(ordered, done.exception() or done.result()))

    def _tell_completing(self, orders: Sequence[Ordered]) -> None:
        if self._events.hears("on_completing"):
            for job, order, _, _ in orders:
                self._events.on_completing(job, recorded=not isinstance(order, Release))

    def _all_answered(self, orders: Sequence[Ordered], done: Future[Sequence[Any]]) -> None:
        error = done.exception()
        for ordered, answer in zip(orders, done.result() if error is None else [error] * len(orders), strict=True):
            self._answered(ordered, answer)

    def _answered(self, ordered: Ordered, answer: Any) -> None:
        """A ledger write is over. A lost lease is no fault: the job is another's, and that one's word counts."""
        job, order, outcome, then = ordered
        is_refused = isinstance(answer, Exception)
        try:
            try:
                self._events.on_job_end(job, *end_of(order, answer), outcome)
                if outcome is not None and not is_refused and answer != JobState.QUEUED:
                    self._on_outcome(job.artifact_id, outcome)
            finally:
                then()
        except Exception as raised:
            self._on_fault(raised)
        if is_refused:
            self._blame(answer)

    def _blame(self, refused: BaseException) -> None:
        if not isinstance(refused, LeaseLost):
            self._on_fault(refused)

    def _come_back(self, job: LeasedJob, outcome: DownloadOutcome, host: str | None) -> Release:
        delay_s = min(max(1.0, float(outcome.meta.get("retry_after_s") or self._retry.backoff_s)), RELEASE_CAP_S)
        return Release(job.job_id, job.fence, job.lease_id, delay_s=delay_s, host_key=host, why=_error_text(outcome))

    def _fail(self, job: LeasedJob, outcome: DownloadOutcome) -> Fail:
        delay_s = job_backoff_s(
            job.attempts + 1, base_s=self._retry.backoff_s, jitter_s=self._retry.jitter_s, random=random.random
        )
        return Fail(
            job.job_id,
            job.fence,
            job.lease_id,
            delay_s=min(max(delay_s, float(outcome.meta.get("retry_after_s") or 0.0)), RELEASE_CAP_S),
            max_attempts=self._retry.max_attempts,
            last_error=_error_text(outcome),
            result=_result(outcome),
        )


_decode = json.JSONDecoder().raw_decode


def _artifact(job: LeasedJob) -> WorkArtifact:
    text = job.artifact_json
    told, end = _decode(text)
    if end != len(text):
        raise ValueError("more than one value")
    return WorkArtifact.from_dict({"work_id": job.artifact_id, **told})


def _readable(job: LeasedJob) -> WorkArtifact:
    """The work for the record, also when what the job says of it cannot be read."""
    try:
        return _artifact(job)
    except (TypeError, ValueError):
        return WorkArtifact(job.artifact_id)


def _given_back(job: LeasedJob, error: BaseException, crowded: Overflow | None) -> Release:
    """Not the job's fault: the run is stopping, or others have to go first. It goes back as it was."""
    if crowded is None or isinstance(error, RunError):
        return Release(job.job_id, job.fence, job.lease_id, why=str(error) or "stopped")
    delay_s = min(max(_SHORTEST_RETURN_S, crowded.wait_s), _LONGEST_RETURN_S)
    return Release(job.job_id, job.fence, job.lease_id, delay_s, crowded.host, f"makes room: {crowded.why}")


_STATES: Mapping[str, JobState] = {
    OutcomeClass.SUCCESS: JobState.DONE,
    OutcomeClass.SKIP: JobState.SKIPPED,
    OutcomeClass.ERROR: JobState.ERROR,
}


def _finish(job: LeasedJob, outcome: DownloadOutcome) -> Finish:
    state = _STATES[outcome.classification]
    # A paper that is nowhere to be had is an answer; only a fault of ours tells against downloads as such.
    answer = state is JobState.ERROR and outcome.reason != Reason.WORKER_EXCEPTION
    return Finish(
        job.job_id,
        job.fence,
        job.lease_id,
        state=state,
        last_error=None if outcome.ok else _error_text(outcome),
        result=_result(outcome),
        outcome=UNAVAILABLE if answer else outcome.classification,
    )


def _fault(error: BaseException) -> DownloadOutcome:
    text = mask_text(f"{type(error).__name__}: {error}"[:500])
    meta = {"retryable": True, "explanation": text}
    return DownloadOutcome(False, OutcomeClass.ERROR, reason=Reason.WORKER_EXCEPTION, meta=meta)


def _error_text(outcome: DownloadOutcome) -> str:
    """The reason, what stood in the way where that says more, and the sentence for people."""
    explanation, cause = outcome.meta.get("explanation"), outcome.meta.get("cause")
    token = f"{outcome.reason} ({cause})" if cause and cause != outcome.reason else str(outcome.reason)
    return f"{token}: {explanation}" if explanation else token


_KEPT = (
    *("resolver", "tier", "sha256", "size_bytes", "license", "version", "cause", "explanation", "candidates"),
    *("title", "year"),
)


def _result(outcome: DownloadOutcome) -> dict[str, Any]:
    """The short outcome that stays with the job."""
    meta = outcome.meta
    kept = {key: meta[key] for key in _KEPT if meta.get(key)}
    return {"outcome": outcome.classification, "reason": outcome.reason, "path": outcome.path, **kept}
