"""Suspects are tried alone: one process beside the others, with one job at a time, watched by the run that started it.

A suspect is a job that two workers in a row were at work on when they ended. Being killed from outside proves nothing,
so it is tried once more where nothing else is in flight. Knows processes, the ledger and the record; does not know how
a job is done. Promises: at most one such process of a run at a time, and only while a suspect is due; its end counts
against the job only when nobody asked for it and this process lives on; what ends it twice is put aside with the
signal, the stage and the bytes, and everything else goes on meanwhile.
"""

from __future__ import annotations

import json
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.api.types import DownloadOutcome, OutcomeClass, Reason, WorkArtifact
from DocsToKG.ContentDownload.bootstrap import Parts
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import RunError, told_error
from DocsToKG.ContentDownload.orchestrator.queue import DOWNLOADS
from DocsToKG.ContentDownload.orchestrator.workers import OnOutcome
from DocsToKG.ContentDownload.runner.node import worker_id_of
from DocsToKG.ContentDownload.runner.order import Alone, Order
from DocsToKG.ContentDownload.telemetry.manifest import ManifestRecord
from DocsToKG.core.clock import Clock
from DocsToKG.Orchestrator.control.workers.liveness import Presence
from DocsToKG.Orchestrator.jobs.retry import ENDED_AFTER
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, JobRecord, WorkerEnd
from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.orchestrator.processes import Member, Word
    from DocsToKG.ContentDownload.runner.kept_bytes import BytesAtHand

_LOOK_S = 0.5
_FALSE_STARTS = 3
_PAGE = 1000
_AFTER_DEATH_S = 0.5  # whoever kills all of us may begin with the child: then this process is gone before it counts
_PATIENCE_S = 10.0
_ASKED_TO_STOP = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


class Isolation:
    """Looks for suspects, and has them tried. `kept` is the folder for what ended a process; `on_failure` hears what
    stops the whole run."""

    def __init__(
        self,
        cfg: ContentDownloadConfig,
        ledger: DatabaseLedger,
        parts: Parts,
        *,
        kept: Path,
        keep_open: Sequence[int],
        on_outcome: OnOutcome,
        on_failure: Callable[[BaseException], None],
        clock: Clock,
    ) -> None:
        self._cfg = cfg
        self._ledger = ledger
        self._parts = parts
        self._kept = kept
        self._keep_open = tuple(keep_open)
        self._on_outcome = on_outcome
        self._on_failure = on_failure
        self._clock = clock
        self._lock = threading.Lock()
        self._member: Member | None = None
        self._stopping = threading.Event()
        self._false_starts = 0
        self._has_failed = False  # it has told what stops the whole run
        self._thread = threading.Thread(target=self._watch, name="isolation", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def halt(self, grace_s: float) -> None:
        """Take no more; what runs stops within the grace."""
        with self._lock:
            self._stopping.set()
            if self._member is not None:
                self._member.stop(grace_s)

    def stop(self, grace_s: float) -> None:
        """Halt, and return when the process is gone; one that is not a while after the grace is killed."""
        self.halt(grace_s)
        self._thread.join(grace_s + _PATIENCE_S)
        with self._lock:
            if self._member is not None:
                self._member.process.kill()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            try:
                if self._is_wanted():
                    self._try_alone()
            except Exception as error:
                self._on_failure(error)
                return

    def _is_wanted(self) -> bool:
        at = self._ledger.next_suspect_at(DEFAULT_JOB_TYPE)
        return at is not None and at <= self._clock.now() and not self._ledger.is_paused()

    def _try_alone(self) -> None:
        """Start the process, hear it out, and settle what it leaves."""
        worker_id = worker_id_of(self._cfg)
        with Presence(self._cfg.queue.path, worker_id) as here:
            member = self._seat(Alone(worker_id, here.fileno()))
            if member is None:
                return
            code = member.hear(self._hear)
            with self._lock:
                self._member = None
            is_unasked = self._is_unasked(code)
            suspect = self._held_by(worker_id) if is_unasked else None
            here.settle(self._ledger, None if suspect is None else self._end(suspect, code, here))
        self._false_starts = self._false_starts + 1 if is_unasked and suspect is None else 0
        if self._false_starts >= _FALSE_STARTS:
            raise RunError(f"the process for works that are tried alone ends before it begins ({_how(code)})")

    def _seat(self, alone: Alone) -> Member | None:
        from DocsToKG.ContentDownload.orchestrator.processes import Member

        telemetry = self._parts.telemetry
        order = pickle.dumps(Order(self._cfg, telemetry.run_id, frozenset(self._parts.refetch), alone))
        telemetry.admit_guests()
        command = [sys.executable, "-m", "DocsToKG.ContentDownload.runner.member"]
        with self._lock:
            if self._stopping.is_set():
                return None
            self._member = Member(command, order, [*self._keep_open, *telemetry.locks, alone.presence])
            return self._member

    def _hear(self, word: Word) -> None:
        """The child's words. Whoever is told of them may fail; then the run does, and the child is heard on."""
        try:
            if failed := word.get("failed"):
                self._has_failed = True
                self._on_failure(told_error(failed["kind"], failed["text"]))
            for work_id, fields in word.get("outcomes", ()):
                self._on_outcome(work_id, DownloadOutcome(**fields))
            if "figures" in word:
                self._parts.observability.merge(word["figures"])
            for note in word.get("notes", ()):
                self._parts.telemetry.note(note)
        except Exception as error:
            self._on_failure(error)

    def _is_unasked(self, code: int) -> bool:
        """Whether nobody wanted the process to end: neither itself, nor we, nor whoever kills all of us."""
        if code == 0 or -code in _ASKED_TO_STOP or self._has_failed:
            return False
        return not self._stopping.wait(_AFTER_DEATH_S)

    def _held_by(self, worker_id: str) -> JobRecord | None:
        """The one job that the process had, if it had one."""
        after = 0
        while page := self._ledger.list_jobs(JobState.IN_PROGRESS, limit=_PAGE, after_id=after, wanted=DOWNLOADS):
            held = [job for job in page if job.worker_id == worker_id]
            if held:
                return held[0]
            after = page[-1].job_id
        return None

    def _end(self, job: JobRecord, code: int, here: Presence) -> WorkerEnd:
        """What is to be said of this end; with the last one, the bytes are kept and the record is told first."""
        from DocsToKG.ContentDownload.runner.kept_bytes import keep_bytes, measure

        noted = here.noted_stage()
        stage = noted.stage if noted is not None and noted.job_id == job.job_id else job.stage or "an unknown stage"
        how = _how(code)
        files = self._parts.store.temps_of(job.worker_id or "")
        at_hand = measure(files)
        if job.crashes + 1 < ENDED_AFTER:
            _remove(files)
            said = f"the process that worked on this alone ended by {how} at {stage}{_words(at_hand)}"
            return WorkerEnd(f"worker_lost: {said}")
        kept = None if at_hand is None else keep_bytes(at_hand, self._kept)
        _remove(files)
        result = {
            "outcome": OutcomeClass.ERROR,
            "reason": Reason.ENDED_WORKER,
            "signal": how,
            "stage": stage,
            **({"sha256": at_hand.sha256, "size_bytes": at_hand.size} if at_hand is not None else {}),
            **({"kept": str(kept)} if kept is not None else {}),
        }
        said = f"it ended the process that worked on it alone, twice, by {how} at {stage}{_words(at_hand, kept)}"
        self._record(job, said)
        return WorkerEnd(f"{Reason.ENDED_WORKER}: {said}", result)

    def _record(self, job: JobRecord, said: str) -> None:
        work = _work_of(job)
        meta = {"retryable": False, "explanation": said, "cause": str(Reason.ENDED_WORKER)}
        outcome = DownloadOutcome(False, OutcomeClass.ERROR, reason=Reason.ENDED_WORKER, meta=meta)
        self._parts.telemetry.finish(
            ManifestRecord.of(
                work, outcome, attempt=job.attempts + 1, lease_id=job.lease_id, worker_id=job.worker_id, path=None
            )
        )
        self._parts.telemetry.flush()
        self._on_outcome(job.artifact_id, outcome)


def _how(code: int) -> str:
    """A signal by its name, or the exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _words(at_hand: BytesAtHand | None, kept: Path | None = None) -> str:
    if at_hand is None:
        return ""
    where = f", kept in {kept}" if kept is not None else ""
    return f"; the bytes at hand were {at_hand.size}, sha256 {at_hand.sha256}{where}"


def _remove(files: Sequence[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _work_of(job: JobRecord) -> WorkArtifact:
    """The work for the record, also when what the job says of it cannot be read."""
    try:
        return WorkArtifact.from_dict({"work_id": job.artifact_id, **json.loads(job.artifact_json)})
    except (TypeError, ValueError):
        return WorkArtifact(job.artifact_id)
