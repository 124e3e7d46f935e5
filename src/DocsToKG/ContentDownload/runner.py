"""A run: works in, proved files and an honest row for each out.

`DownloadRun` is the Python interface and what every command drives: it enqueues on the ledger of the run, runs the
orchestrator, and tells how each work ended. Knows the order of these things, not how any of them is done.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Self

from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.types import DownloadOutcome, OutcomeClass, Reason, WorkArtifact
from DocsToKG.ContentDownload.bootstrap import Parts, database_path, open_parts, open_queue
from DocsToKG.ContentDownload.catalog.summary import Figures
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.config.settle import merge
from DocsToKG.ContentDownload.inputs import InputLine, coerce_works
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.orchestrator.workers import OnOutcome
from DocsToKG.ContentDownload.resolvers.openalex_query import MAX_PER_PAGE, page_of_works
from DocsToKG.ContentDownload.resolvers.openalex_record import DEFAULT_BASE_URL
from DocsToKG.ContentDownload.run_folder import AskedLine, RunFolder, SavedRun
from DocsToKG.ContentDownload.telemetry.manifest import ManifestRecord
from DocsToKG.ContentDownload.telemetry.results import ResultRow, write_results
from DocsToKG.core.clock import Clock, SystemClock, utc_iso
from DocsToKG.core.ids import new_worker_id
from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.ledger.base import Enqueued, JobRecord, NewJob
from DocsToKG.Orchestrator.services.presence import Presence, free_dead

_BATCH = 500
_ENDED = (JobState.DONE, JobState.SKIPPED, JobState.ERROR, JobState.CANCELED)
_GRACE_S = 8.0
_NOT_THE_JOBS_FAULT = ("worker_lost", "lease_expired")


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A look at a run in motion. `present` were obtained by an earlier run."""

    total: int
    present: int
    done: int
    skipped: int
    failed: int
    bytes: int
    active: int
    waits: Mapping[str, int]

    @property
    def left(self) -> int:
        return max(0, self.total - self.present - self.done - self.skipped - self.failed)


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended: one row per input line, and the counts of its works."""

    rows: tuple[ResultRow, ...]
    successful: int  # works whose file is there, also from earlier runs
    already: int  # of these, obtained before this run
    failed: int
    pending: int  # not begun or not finished: the run was stopped
    invalid: int  # lines that name no work
    folder: Path  # of the record
    files: Path  # the storage root

    @property
    def total_processed(self) -> int:
        return self.successful + self.failed

    @property
    def complete(self) -> bool:
        """Every line was obtained or already there."""
        return not (self.failed or self.pending or self.invalid)


@dataclass(slots=True)
class _Tally:
    total: int = 0
    present: int = 0
    ends: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OutcomeClass, 0))
    bytes: int = 0
    fetched: set[str] = field(default_factory=set)  # works obtained by this run


class DownloadRun:
    """One run in one folder. Use as a context manager; `on_outcome(work_id, outcome)` is told each final outcome."""

    def __init__(
        self,
        cfg: ContentDownloadConfig,
        *,
        on_outcome: OnOutcome | None = None,
        max_run_bytes: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._cfg = cfg
        self._clock = clock or SystemClock()
        self._told = on_outcome or (lambda work_id, outcome: None)
        self._max_run_bytes = max_run_bytes
        self._stack = ExitStack()
        self._tally = _Tally()
        self._tally_lock = threading.Lock()
        self._orchestrator: Orchestrator | None = None
        self.folder = RunFolder(Path(cfg.telemetry.manifest_path).parent.resolve())
        self.hit_byte_limit = False

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.folder)
            self._worker_id = new_worker_id()
            # The record closes before the ledger, so that what it has committed can still be acknowledged.
            self._queue: WorkQueue = stack.enter_context(open_queue(self._cfg, clock=self._clock))
            stack.enter_context(Presence(self._cfg.queue.path, self._worker_id))
            stack.callback(self._give_back)
            free_dead(self._queue.ledger)
            parts = open_parts(self._cfg, worker_id=self._worker_id, clock=self._clock)
            self._parts: Parts = stack.enter_context(parts)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        with self._stack:
            if self._orchestrator is not None:
                self._orchestrator.halt()
                self.stop(grace_s=0.0)

    @property
    def repairs(self) -> tuple[str, ...]:
        """What was put right in the record when it was opened."""
        return tuple(str(repair) for repair in self._parts.telemetry.repairs)

    def remember(self, config_file: str | None, overrides: Mapping[str, Any]) -> None:
        """Write down how this run was started, so that `resume`, `report` and `catalog` find everything."""
        movable = "manifest_path" in overrides.get("telemetry", {})
        places = {} if movable else _places(self._cfg)
        database = os.path.relpath(database_path(self._cfg), self.folder.root)
        self.folder.remember(SavedRun(config_file, merge(overrides, places), movable, database))

    def process_artifacts(
        self, artifacts: Iterable[str | Mapping[str, Any] | WorkArtifact], *, retry_failed: bool = True
    ) -> RunResult:
        """Obtain every work: identifiers, dicts and `WorkArtifact`s, mixed. Returns when all have ended."""
        if isinstance(artifacts, str | Mapping | WorkArtifact):
            artifacts = [artifacts]  # one is as good as many; its letters or keys are surely not meant
        self.enqueue(coerce_works(artifacts), retry_failed=retry_failed)
        self.start()
        try:
            self.wait()
        finally:
            self.stop()
        return self.result()

    def enqueue(
        self,
        lines: Iterable[InputLine],
        *,
        retry_failed: bool = True,
        watch: Callable[[int], None] = lambda count: None,
    ) -> int:
        """Put the works on the ledger; returns how many there are. Known ones stay; failed ones are tried again."""
        remembered = self.folder.remember_inputs(lines)
        while batch := list(islice(remembered, _BATCH)):
            watch(self._tally.total)
            self._enqueue_batch(
                [line.work for line in batch if line.work is not None and line.duplicate_of is None], retry_failed
            )
        return self._tally.total

    def others(self) -> int:
        """Open works of earlier commands in this folder, which are finished along with what was asked for."""
        stats = self._queue.ledger.stats()
        mine = self._tally.total - self._tally.present - self._tally.ends[OutcomeClass.ERROR]
        return max(0, stats["queued"] + stats["pending"] - mine)

    def start(self) -> None:
        self._orchestrator = Orchestrator(
            self._cfg,
            self._queue,
            self._parts.pipeline,
            self._parts.telemetry,
            relative_path=self._parts.recorded_path,
            worker_id=self._worker_id,
            on_outcome=self._on_outcome,
            clock=self._clock,
        )
        self._orchestrator.start()

    def wait(
        self,
        watch: Callable[[RunStatus], None] | None = None,
        *,
        patience_s: float | None = None,
        every_s: float = 0.2,
    ) -> None:
        """Return when all has ended, or may only go on later than `patience_s`; `watch` is shown how things stand."""
        assert self._orchestrator is not None, "start the run first"
        if watch is None:
            self._orchestrator.wait_until_drained(patience_s)
            return
        over = threading.Event()
        waiter = threading.Thread(target=self._drain_then, args=(over, patience_s), name="drain", daemon=True)
        waiter.start()
        while not over.wait(every_s):
            watch(self.status())
        watch(self.status())

    def wait_for_failure(self) -> None:
        """Return only when the run cannot go on."""
        assert self._orchestrator is not None, "start the run first"
        self._orchestrator.wait_until_stopping()

    def stop(self, grace_s: float = _GRACE_S) -> None:
        """End the run: running downloads finish within the grace, the rest stays on the ledger."""
        orchestrator, self._orchestrator = self._orchestrator, None
        if orchestrator is not None:
            orchestrator.stop(grace_s)

    def status(self) -> RunStatus:
        orchestrator = self._orchestrator
        with self._tally_lock:
            tally = self._tally
            return RunStatus(
                total=tally.total,
                present=tally.present,
                done=tally.ends[OutcomeClass.SUCCESS],
                skipped=tally.ends[OutcomeClass.SKIP],
                failed=tally.ends[OutcomeClass.ERROR],
                bytes=tally.bytes,
                active=orchestrator.active if orchestrator else 0,
                waits=orchestrator.waits() if orchestrator else {},
            )

    def result(self) -> RunResult:
        """How each input line ended; also written to `results.csv`."""
        rows = tuple(self._rows())
        write_results(self.folder.root / "results.csv", rows)
        return _counted(rows, self._tally.fetched, self.folder.root, self._parts.store.root)

    def figures(self) -> Figures:
        """The figures of this run so far."""
        self._parts.telemetry.flush()
        return self._parts.catalog.figures(self._parts.telemetry.run_id)

    def search(self, query: str, *, most: int | None = None) -> Iterator[InputLine]:
        """The works of an OpenAlex search or filter, a page at a time, as input lines."""
        call = Call(f"query:{query}")
        client = self._parts.network.clients["openalex"]
        base = self._cfg.resolvers.openalex.base_url or DEFAULT_BASE_URL
        cursor: str | None = None
        seen: dict[str, int] = {}
        while most is None or len(seen) < most:
            page = self._parts.pipeline.drive(
                page_of_works(query, cursor, MAX_PER_PAGE, client, call, base_url=base), call.cancel
            )
            for work in page.works[: None if most is None else most - len(seen)]:
                if work.work_id not in seen:
                    seen[work.work_id] = len(seen) + 1
                    yield InputLine(len(seen), "query", work.doi or work.work_id, work, None, None)
            cursor = page.next_cursor
            if cursor is None:
                return

    def take_up(self, *, verify: bool = False, again: str | None = None) -> int:
        """Take up what this folder was asked for: `verify` hashes the stored files and repeats what is damaged, `again`
        repeats all works that are `failed`, `ok` or `skipped`. Returns how many works there are."""
        states = {"failed": JobState.ERROR, "ok": JobState.DONE, "skipped": JobState.SKIPPED}
        lost = [job for job in self._jobs(JobState.ERROR) if (job.last_error or "").startswith(_NOT_THE_JOBS_FAULT)]
        if lost:
            ids = [job.job_id for job in lost]
            self._queue.ledger.retry_failed(job_ids=ids, actor="resume", reason="its worker was lost")
        if again is not None:
            self._repeat(list(self._jobs(states[again])), states[again], f"repeat {again}")
        for state in () if verify else (JobState.DONE, JobState.SKIPPED):
            gone = [job for job in self._jobs(state) if self._parts.is_there(job.artifact_id) is False]
            if gone:
                ids = [job.job_id for job in gone]
                self._queue.ledger.retry_failed(job_ids=ids, states=(state,), actor="resume", reason="the file is gone")
        if verify:
            for state in (JobState.DONE, JobState.SKIPPED):
                damaged = [job for job in self._jobs(state) if not self._is_whole(job)]
                self._repeat(damaged, state, "the file is damaged or gone")
        stats = self._queue.ledger.stats()
        with self._tally_lock:
            self._tally.total = stats["total"]
            self._tally.present = stats["done"] + stats["skipped"]
            self._tally.ends[OutcomeClass.ERROR] = stats["error"] + stats["canceled"]
        return stats["total"]

    def process_single_shot(self, lines: Iterable[InputLine]) -> RunResult:
        """One work after another through the plain pipeline, without the queue: for debugging."""
        outcomes: dict[str, ResultRow] = {}
        fetched: set[str] = set()
        asked = []
        for line in self.folder.remember_inputs(lines):
            asked.append(line)
            if _is_first(line):
                assert line.work is not None
                outcomes[line.work.work_id] = self._single(line.work, fetched)
        rows = tuple(_single_row(line, outcomes) for line in asked)
        write_results(self.folder.root / "results.csv", rows)
        return _counted(rows, fetched, self.folder.root, self._parts.store.root)

    # details

    def _enqueue_batch(self, works: list[WorkArtifact], retry_failed: bool) -> None:
        ledger = self._queue.ledger
        attempts = self._cfg.orchestrator.max_job_attempts
        jobs = [NewJob(work.work_id, work.to_dict(), max_attempts=attempts) for work in works]
        known = [entry for entry in ledger.enqueue_many(jobs, actor="pull") if not entry.created]
        standing = {entry.job_id: self._standing(entry) for entry in known}
        gone = [job_id for job_id, how in standing.items() if how == "gone"]
        missed = [job_id for job_id, how in standing.items() if how == "missed"]
        if gone:
            ledger.retry_failed(job_ids=gone, states=_ENDED, actor="pull", reason="the file is gone")
        if missed and retry_failed:
            ledger.retry_failed(job_ids=missed, states=_ENDED, actor="pull")
        with self._tally_lock:
            self._tally.total += len(works)
            self._tally.present += sum(how == "held" for how in standing.values())
            if not retry_failed:
                self._tally.ends[OutcomeClass.ERROR] += len(missed)

    def _give_back(self) -> None:
        """Whatever made the run end, no lease is left behind: the next run goes on at once."""
        with suppress(LedgerError):
            self._queue.ledger.release_worker(self._worker_id)

    def _standing(self, entry: Enqueued) -> str:
        """How a known work stands: `open`, `held` (its file is there), `gone` (it was), or `missed`."""
        if entry.state not in _ENDED:
            return "open"
        if self._parts.find_file(entry.artifact_id) is None:
            return "gone" if entry.state == JobState.DONE else "missed"
        # A file whose job did not end well was stored by a process that died before it could say so: adopt it.
        well = entry.state in (JobState.DONE, JobState.SKIPPED)
        return "held" if well and self._parts.is_there(entry.artifact_id) else "gone"

    def _jobs(self, state: JobState) -> Iterator[JobRecord]:
        after = 0
        while page := self._queue.ledger.list_jobs(state, limit=_BATCH, after_id=after):
            yield from page
            after = page[-1].job_id

    def _repeat(self, jobs: Collection[JobRecord], state: JobState, reason: str) -> None:
        """Put works back on the queue, to be fetched although a file of theirs may be known."""
        self._parts.refetch.update(job.artifact_id for job in jobs)
        if jobs:
            ids = [job.job_id for job in jobs]
            self._queue.ledger.retry_failed(job_ids=ids, states=(state,), actor="resume", reason=reason)

    def _is_whole(self, job: JobRecord) -> bool:
        """The work's file is there and hashes to its digest. A lost name is given back; damaged bytes are dropped."""
        found, store = self._parts.catalog.find_download(job.artifact_id), self._parts.store
        if found is None:
            return job.state != JobState.DONE  # a work that was skipped has no file to verify
        if not store.at(found.path).exists():
            store.adopt(found.sha256, found.path)
        intact = store.verify(found.sha256, found.path)
        if not intact:
            store.drop_damaged(found.sha256, found.path)
        self._parts.telemetry.verified(found.sha256, intact)
        return intact

    def _on_outcome(self, work_id: str, outcome: DownloadOutcome) -> None:
        with self._tally_lock:
            self._tally.ends[outcome.classification] += 1
            if outcome.ok:
                self._tally.fetched.add(work_id)
                self._tally.bytes += int(outcome.meta.get("size_bytes") or 0)
            over = self._max_run_bytes is not None and self._tally.bytes >= self._max_run_bytes
        if over and not self.hit_byte_limit and self._orchestrator is not None:
            self.hit_byte_limit = True
            self._orchestrator.halt()
        self._told(work_id, outcome)

    def _drain_then(self, over: threading.Event, patience_s: float | None) -> None:
        try:
            if self._orchestrator is not None:
                self._orchestrator.wait_until_drained(patience_s)
        finally:
            over.set()

    def _rows(self) -> Iterator[ResultRow]:
        paths: dict[tuple[str, int], str | None] = {}
        originals = {line.first for line in self.folder.asked() if line.first is not None}
        for line in self.folder.asked():
            row = self._row(line, paths)
            if (line.source, line.line) in originals:
                paths[line.source, line.line] = row.path
            yield row

    def _row(self, line: AskedLine, paths: Mapping[tuple[str, int], str | None]) -> ResultRow:
        if line.work_id is None:
            ending: tuple[str, str | None, str | None] = ("invalid", None, line.problem)
        elif line.first is not None:
            ending = ("duplicate", paths.get(line.first), _same_as(*line.first, here=line.source))
        else:
            ending = self._ending(self._queue.ledger.find(line.work_id))
        return ResultRow(line.line, line.text, line.work_id, *ending, source=line.source)

    def _ending(self, job: JobRecord | None) -> tuple[str, str | None, str | None]:
        """Outcome, path and reason of a job as it stands."""
        if job is None or job.state not in _ENDED:
            return "pending", None, _why_pending(job, self._clock.now())
        held = self._parts.find_file(job.artifact_id)
        if held is not None and job.state in (JobState.DONE, JobState.SKIPPED):
            return OutcomeClass.SUCCESS, self._shown(held), None
        return (OutcomeClass.SKIP if job.state == JobState.SKIPPED else OutcomeClass.ERROR), None, job.last_error

    def _single(self, work: WorkArtifact, fetched: set[str]) -> ResultRow:
        outcome = self._parts.pipeline.process(work)
        if outcome.ok:
            fetched.add(work.work_id)
        recorded = self._parts.recorded_path(outcome.path)
        record = ManifestRecord.of(work, outcome, worker_id=self._worker_id, path=recorded)
        self._parts.telemetry.finish(record)
        self._parts.telemetry.flush()
        self._told(work.work_id, outcome)
        has_file = outcome.ok or outcome.reason == Reason.ALREADY_PRESENT
        ending = OutcomeClass.SUCCESS if has_file else outcome.classification
        reason = None if has_file else str(outcome.meta.get("explanation") or outcome.reason)
        held = self._parts.find_file(work.work_id)
        return ResultRow(0, "", work.work_id, ending, self._shown(held) if held and has_file else None, reason)

    def _shown(self, path: Path) -> str:
        """A file as the results name it: below the run's folder where it lies there."""
        folder = self.folder.root
        return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def run_queue(cfg: ContentDownloadConfig, *, drain: bool, on_outcome: OnOutcome | None = None) -> int:
    """Work on the configured queue: until interrupted, or until it is drained. Returns the exit code."""
    with DownloadRun(cfg, on_outcome=on_outcome) as run:
        run.remember(None, {})
        run.start()
        with suppress(KeyboardInterrupt):
            run.wait() if drain else run.wait_for_failure()
        run.stop()
    return 0


def _why_pending(job: JobRecord | None, now: float) -> str:
    if job is None or job.next_eligible_at <= now:
        return "not finished; `content resume` goes on"
    why = f": {job.last_error}" if job.last_error else ""
    return f"may be had from {utc_iso(job.next_eligible_at)} on{why}"


def _places(cfg: ContentDownloadConfig) -> dict[str, Any]:
    """Where this run keeps things, whatever folder it is resumed from."""
    return {
        "telemetry": {"manifest_path": str(Path(cfg.telemetry.manifest_path).resolve())},
        "storage": {"root_dir": str(Path(cfg.storage.root_dir).resolve())},
        "queue": {"path": str(Path(cfg.queue.path).resolve())},
        "hishel": {
            "base_path": str(Path(cfg.hishel.base_path).resolve()),
            "sqlite_path": str(Path(cfg.hishel.sqlite_path).resolve()),
        },
    }


def _is_first(line: InputLine) -> bool:
    return line.work is not None and line.duplicate_of is None


def _same_as(source: str, line: int, *, here: str) -> str:
    return f"same as line {line}" + ("" if source == here else f" of {source}")


def _single_row(line: InputLine, outcomes: Mapping[str, ResultRow]) -> ResultRow:
    if line.work is None:
        return ResultRow(line.line_no, line.text, None, "invalid", None, line.problem, line.source)
    row = outcomes[line.work.work_id]
    if line.duplicate_of is not None:
        reason = _same_as(line.duplicate_source or line.source, line.duplicate_of, here=line.source)
        return ResultRow(line.line_no, line.text, row.id, "duplicate", row.path, reason, line.source)
    return ResultRow(line.line_no, line.text, row.id, row.outcome, row.path, row.reason, line.source)


def _counted(rows: Collection[ResultRow], fetched: Collection[str], folder: Path, files: Path) -> RunResult:
    ends = [row.outcome for row in rows]
    already = [row.id for row in rows if row.outcome == OutcomeClass.SUCCESS and row.id not in fetched]
    return RunResult(
        rows=tuple(rows),
        successful=ends.count(OutcomeClass.SUCCESS),
        already=len(already),
        failed=ends.count(OutcomeClass.ERROR) + ends.count(OutcomeClass.SKIP),
        pending=ends.count("pending"),
        invalid=ends.count("invalid"),
        folder=folder,
        files=files,
    )
