"""A run: works in, proved files and an honest row for each out.

`DownloadRun` is the Python interface and what every command drives: it enqueues on the ledger of the run, runs the
orchestrator, and tells how each work ended. Knows the order of these things, not how any of them is done. For programs
with an event loop it does the same in threads.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from DocsToKG.ContentDownload.api.types import DownloadOutcome, OutcomeClass, Reason, WorkArtifact
from DocsToKG.ContentDownload.bootstrap import Parts, database_path, open_parts, open_queue
from DocsToKG.ContentDownload.catalog.paths import RESULTS
from DocsToKG.ContentDownload.config.merge import merge
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.inputs import InputLine, coerce_works
from DocsToKG.ContentDownload.orchestrator.queue import DOWNLOADS, WorkQueue, first_host
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.orchestrator.workers import OnOutcome
from DocsToKG.ContentDownload.run_folder import RunFolder, SavedRun
from DocsToKG.ContentDownload.runner import recall
from DocsToKG.ContentDownload.runner.node import reporter_of, worker_id_of
from DocsToKG.ContentDownload.runner.order import private_limits, shared_limits
from DocsToKG.ContentDownload.runner.rows import ENDED, ResultRows, shown_path, single_row
from DocsToKG.ContentDownload.runner.status import RunResult, RunStatus, Tally, counted
from DocsToKG.ContentDownload.runner.taking_up import TakingUp
from DocsToKG.ContentDownload.telemetry.manifest import ManifestRecord
from DocsToKG.ContentDownload.telemetry.snapshots import ResultRow, write_results
from DocsToKG.core.cancel import Cancelled
from DocsToKG.core.clock import Clock, SystemClock, utc_iso
from DocsToKG.core.interrupts import raise_if_wished
from DocsToKG.core.tasks import finished, not_before
from DocsToKG.Orchestrator.control.workers.liveness import Presence, free_dead
from DocsToKG.Orchestrator.errors import LedgerDamaged
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import NewJob

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.summary import Figures
    from DocsToKG.ContentDownload.orchestrator.forking import Forked
    from DocsToKG.ContentDownload.resolvers.openalex_query import WorksQuery
    from DocsToKG.ContentDownload.runner.again import Again
    from DocsToKG.ContentDownload.runner.isolation import Isolation
    from DocsToKG.ContentDownload.runner.listing import Listing
    from DocsToKG.ContentDownload.runner.many import ManyProcesses

_BATCH = 500
_GRACE_S = 8.0


class DownloadRun:
    """One run in one folder. Use as a context manager, with `with` or `async with`; `on_outcome(work_id, outcome)` is
    told each final outcome, from a thread of the run."""

    def __init__(
        self,
        cfg: ContentDownloadConfig,
        *,
        on_outcome: OnOutcome | None = None,
        max_run_bytes: int | None = None,
        clock: Clock | None = None,
        run_id: str | None = None,
    ) -> None:
        self.folder = RunFolder(Path(cfg.telemetry.manifest_path).parent.resolve())
        self._cfg = private_limits(cfg, self.folder.state)
        self._clock = clock or SystemClock()
        self._told = on_outcome or (lambda work_id, outcome: None)
        self._max_run_bytes = max_run_bytes
        self._run_id = run_id
        self._stack = ExitStack()
        self._reports = ExitStack()
        self._tally = Tally()
        self._tally_lock = threading.Lock()
        self._orchestrator: Orchestrator | ManyProcesses | None = None
        self._isolation: Isolation | None = None
        self._copies: list[Forked] = []
        self._missed = 0
        self._before: dict[str, int] | None = None  # of the ledger, when several processes began
        self._listing: Listing | None = None
        self._called_off = threading.Event()
        self.hit_byte_limit = False
        self.repeated = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if self.is_in_many:  # before there is any thread
                from DocsToKG.ContentDownload.runner.many import copies_of_this_process

                self._copies = stack.enter_context(copies_of_this_process(self._cfg.orchestrator.processes))
            stack.enter_context(self.folder)
            self._worker_id = worker_id_of(self._cfg)
            # The record closes before the ledger, so that what it has committed can still be acknowledged.
            self._queue: WorkQueue = stack.enter_context(self._opened_queue())
            self._here = here = stack.enter_context(Presence(self._cfg.queue.path, self._worker_id))
            # Whatever makes the run end, no lease is left behind: the next run goes on at once.
            stack.callback(here.give_back, self._queue.ledger)
            free_dead(self._queue.ledger)
            if self._queue.ledger.next_suspect_at() is not None:
                self._cfg = shared_limits(self._cfg, self.folder.state)
            share: Literal["host"] | None = "host" if self.is_in_many else None
            parts = open_parts(
                self._cfg, worker_id=self._worker_id, clock=self._clock, run_id=self._run_id, share=share
            )
            self._parts: Parts = stack.enter_context(parts)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        with self._stack:
            if self._orchestrator is not None:
                self._orchestrator.halt()
                self.stop(grace_s=0.0)

    async def __aenter__(self) -> Self:
        entering = asyncio.ensure_future(asyncio.to_thread(self.__enter__))
        try:
            return await asyncio.shield(entering)
        except asyncio.CancelledError:
            with suppress(Exception):
                await finished(entering)
                await finished(asyncio.to_thread(self.__exit__, None, None, None))
            raise

    async def __aexit__(self, *exc_info: object) -> None:
        await not_before(asyncio.to_thread(self.__exit__, *exc_info))

    @contextmanager
    def _opened_queue(self) -> Iterator[WorkQueue]:
        with ExitStack() as stack:
            try:
                queue = stack.enter_context(open_queue(self._cfg, clock=self._clock))
            except LedgerDamaged as error:
                if Path(self._cfg.queue.path).resolve().parent != self.folder.state:
                    raise
                raise LedgerDamaged(
                    f"{error}. Moving it away, with the -wal and -shm files beside it, is safe here: the next run "
                    "makes a new one, and knows from the record what had ended"
                ) from error
            yield queue

    @property
    def is_in_many(self) -> bool:
        """The work is done by processes that this one starts."""
        return self._cfg.orchestrator.processes > 1

    @property
    def repairs(self) -> tuple[str, ...]:
        """What was put right in the record when it was opened."""
        return tuple(str(repair) for repair in self._parts.telemetry.repairs)

    @property
    def run_id(self) -> str:
        """The name of this run in the record."""
        return self._parts.telemetry.run_id

    @property
    def worker_id(self) -> str:
        """The name under which this process leases."""
        return self._worker_id

    @property
    def queue(self) -> WorkQueue:
        """The ledger of this run."""
        return self._queue

    @property
    def processes(self) -> tuple[int, ...]:
        """The ids of the processes that do the work; none when this one does it alone."""
        if not self.is_in_many:
            return ()
        from DocsToKG.ContentDownload.runner.many import ManyProcesses

        return self._orchestrator.processes if isinstance(self._orchestrator, ManyProcesses) else ()

    @property
    def metrics_address(self) -> str | None:
        """Where the figures of this run are served, if they are."""
        return self._parts.observability.address

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
            self.stop(0.0 if self._called_off.is_set() else _GRACE_S)
        return self.result()

    async def aprocess_artifacts(
        self, artifacts: Iterable[str | Mapping[str, Any] | WorkArtifact], *, retry_failed: bool = True
    ) -> RunResult:
        """`process_artifacts` while the caller's event loop goes on. Cancelling it stops the run: what runs is cut, the
        rest stays on the ledger, and nothing stays leased."""
        self._called_off.clear()
        working = asyncio.ensure_future(asyncio.to_thread(self.process_artifacts, artifacts, retry_failed=retry_failed))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            self._call_off()
            with suppress(Exception):
                await finished(working)
            raise

    def _call_off(self) -> None:
        self._called_off.set()
        if (orchestrator := self._orchestrator) is not None:
            orchestrator.halt()

    def enqueue(
        self,
        lines: Iterable[InputLine],
        *,
        retry_failed: bool = True,
        watch: Callable[[int], None] = lambda count: None,
    ) -> int:
        """Put the works on the ledger; returns how many there are. Known ones stay; failed ones are tried again."""
        self._listing = None
        self._enqueue_lines(self.folder.remember_inputs(self._known_in_bulk(lines)), retry_failed, watch)
        return self._tally.total

    def enqueue_query(
        self,
        query: WorksQuery,
        *,
        most: int | None = None,
        retry_failed: bool = True,
        watch: Callable[[int, int | None], None] = lambda count, total: None,
    ) -> str | None:
        """Put the works of an OpenAlex query on the ledger, page by page. A list that was begun and not worked off goes
        on at its cursor. Returns why the list had to stop early; None when it is whole."""
        from DocsToKG.ContentDownload.runner.listing import Listing

        self._listing = Listing.begin(self.folder, query, most)
        self._enqueue_lines(self._listing.lines(), retry_failed, lambda count: watch(count, None))
        return self.list_on(watch=watch, retry_failed=retry_failed)

    def list_on(
        self,
        *,
        retry_failed: bool = True,
        watch: Callable[[int, int | None], None] = lambda count, total: None,
    ) -> str | None:
        """Go on listing where it stopped; returns as `enqueue_query`. Does nothing in a folder without a query."""
        from DocsToKG.ContentDownload.runner.query_pages import QueryPages, ServiceSilent

        listing = self._listing
        if listing is None:
            return None
        asked: set[str | None] = set()
        pages = QueryPages.of(self._cfg, self._parts.pipeline, self._parts.network)
        while not listing.at.complete:
            asked.add(listing.at.cursor)
            try:
                page = pages.page(listing.at.query, listing.at.cursor)
            except ServiceSilent as silent:
                if not listing.at.works:
                    raise
                return f"{silent}; {listing.at.works} works are listed, and the same command goes on there"
            works = listing.fresh(page.works)
            # First the ledger, then the list and its cursor: a kill in between repeats a page that is known.
            self._enqueue_batch(works, retry_failed)
            # A cursor that leads back would never end.
            cursor = page.next_cursor if page.next_cursor not in asked else None
            listing.add(works, cursor=cursor, total=page.total)
            watch(listing.at.works, page.total)
        return None

    def others(self) -> int:
        """Open works of earlier commands in this folder, which are finished along with what was asked for."""
        stats = self._queue.stats()
        mine = self._tally.total - self._tally.present - self._tally.ends[OutcomeClass.ERROR]
        return max(0, stats["queued"] + stats["pending"] - mine)

    def start(self) -> None:
        self._orchestrator = self._many() if self.is_in_many else self._alone()
        self._orchestrator.start()
        self._isolation = self._isolating(self._orchestrator)
        self._isolation.start()
        if self._called_off.is_set():  # while it began
            self._orchestrator.halt()
        if isinstance(self._orchestrator, Orchestrator):
            self._reports.enter_context(reporter_of(self._cfg, self._queue.ledger, self._orchestrator, self._parts))

    def _isolating(self, orchestrator: Orchestrator | ManyProcesses) -> Isolation:
        from DocsToKG.ContentDownload.runner.isolation import Isolation

        return Isolation(
            self._cfg,
            self._queue.ledger,
            self._parts,
            kept=self.folder.state / "ended_worker",
            keep_open=[self.folder.lock],
            on_outcome=self._count_outcome,
            on_failure=orchestrator.fail,
            clock=self._clock,
        )

    def _many(self) -> ManyProcesses:
        from DocsToKG.ContentDownload.runner.many import ManyProcesses

        self._parts.telemetry.flush()  # what was found by looking at the files is on record before others write
        self._before, self._missed = self._queue.stats(), self._tally.ends[OutcomeClass.ERROR]
        copies, self._copies = self._copies, []
        return ManyProcesses(
            self._cfg,
            self._queue.ledger,
            self._parts,
            keep_open=[self.folder.lock],
            on_outcome=self._count_outcome,
            clock=self._clock,
            copies=copies,
        )

    def _alone(self) -> Orchestrator:
        orchestrator = Orchestrator(
            self._cfg,
            self._queue,
            self._parts.pipeline,
            self._parts.telemetry,
            relative_path=self._parts.recorded_path,
            worker_id=self._worker_id,
            on_outcome=self._count_outcome,
            clock=self._clock,
            events=self._parts.events,
            in_hand=self._here.in_hand(),
        )
        self._parts.store.on_stored(lambda seconds: orchestrator.pressure.took("storage", seconds))
        return orchestrator

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
        over, failures = threading.Event(), list[Exception]()
        waiter = threading.Thread(target=self._drain_then, args=(over, patience_s, failures), name="drain", daemon=True)
        waiter.start()
        while not over.wait(every_s):
            raise_if_wished()
            watch(self.status())
        if failures:
            raise failures[0]
        watch(self.status())

    def wait_for_failure(self) -> None:
        """Return only when the run cannot go on."""
        assert self._orchestrator is not None, "start the run first"
        self._orchestrator.wait_until_stopping()

    def stop(self, grace_s: float = _GRACE_S) -> None:
        """End the run: running downloads finish within the grace, the rest stays on the ledger."""
        orchestrator, self._orchestrator = self._orchestrator, None
        isolation, self._isolation = self._isolation, None
        with self._reports:  # the last word comes when nothing runs any more
            if isolation is not None:
                isolation.halt(grace_s)
            try:
                if orchestrator is not None:
                    orchestrator.stop(grace_s)
            finally:
                if isolation is not None:
                    isolation.stop(grace_s)

    def status(self) -> RunStatus:
        orchestrator = self._orchestrator
        ends, waits = self._ends(), self._waits()
        with self._tally_lock:
            tally = self._tally
            return RunStatus(
                total=tally.total,
                present=tally.present,
                done=ends[OutcomeClass.SUCCESS],
                skipped=ends[OutcomeClass.SKIP],
                failed=ends[OutcomeClass.ERROR],
                bytes=tally.bytes,
                active=orchestrator.active if orchestrator else 0,
                waits=waits,
            )

    def result(self) -> RunResult:
        """How each input line ended; also written to `results.csv`."""
        if self._parts.refetch:
            TakingUp(ledger=self._queue.ledger, parts=self._parts).put_names_away()
        made = ResultRows(folder=self.folder, ledger=self._queue.ledger, parts=self._parts, clock=self._clock)
        result = self._written(tuple(made), self._fetched())
        if self._listing is not None and self._listing.at.complete and not result.pending:
            self._listing.close()
        return result

    def figures(self) -> Figures:
        """The figures of this run so far."""
        self._parts.telemetry.flush()
        return self._parts.catalog.figures(self._parts.telemetry.run_id)

    def take_up(self, *, verify: bool = False, again: Again | None = None) -> int:
        """Take up what this folder was asked for: `verify` hashes the stored files and repeats what is damaged, `again`
        repeats works that have ended, `repeated` of them. Works that the ledger has lost come back as the record knows
        them. Returns how many works there are."""
        from DocsToKG.ContentDownload.runner.listing import Listing

        lost = iter(recall.lost(self._queue.ledger, self.folder.asked()))
        while batch := list(islice(lost, _BATCH)):
            self._enqueue_batch(batch, retry_failed=False)
        self.repeated = TakingUp(ledger=self._queue.ledger, parts=self._parts).requeue(verify=verify, again=again)
        self._listing = Listing.of(self.folder)
        return self._count_ledger()

    def repair(self, work_ids: Iterable[str]) -> None:
        """Queue works again whose stored file is damaged or gone; what is fetched is the run's to decide."""
        unknown = TakingUp(ledger=self._queue.ledger, parts=self._parts).repair(work_ids)
        self._parts.refetch.update(unknown)
        works = [line.work for line in coerce_works(unknown) if line.work is not None]
        self._enqueue_batch(works, retry_failed=True)
        self._count_ledger()

    def lacking(self, work_ids: Iterable[str]) -> list[str]:
        """Those of the works that have no file in its place, in its full size."""
        self._parts.telemetry.flush()
        return [work_id for work_id in work_ids if not self._parts.is_there(work_id)]

    def _count_ledger(self) -> int:
        stats = self._queue.stats()
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
            if line.work is not None and line.duplicate_of is None:
                outcomes[line.work.work_id] = self._single(line.work, fetched)
        return self._written(tuple(single_row(line, outcomes) for line in asked), fetched)

    def _ends(self) -> dict[str, int]:
        """How many works ended how. What a process said before it died may be lost; the ledger knows."""
        with self._tally_lock:
            ends = dict(self._tally.ends)
        if self._before is None:
            return ends
        now, before = self._queue.stats(), self._before
        ended = {word: now[word] - before[word] for word in before}
        return {
            OutcomeClass.SUCCESS: ended["done"],
            OutcomeClass.SKIP: ended["skipped"],
            OutcomeClass.ERROR: self._missed + ended["error"] + ended["canceled"],
        }

    def _waits(self) -> Mapping[str, int]:
        """What the works wait for; and until when others have them, when none is ours."""
        orchestrator = self._orchestrator
        waits = orchestrator.waits() if orchestrator is not None else {}
        if orchestrator is None or waits or orchestrator.active or self.is_in_many:
            return waits
        leased = self._queue.ledger.list_jobs(JobState.IN_PROGRESS, limit=_BATCH, wanted=DOWNLOADS)
        theirs = [job for job in leased if job.worker_id != self._worker_id]
        if not theirs:
            return waits
        until = utc_iso(max(job.lease_until or 0.0 for job in theirs))
        return {f"another process that may have them until {until}": len(theirs)}

    def _fetched(self) -> set[str]:
        """The works that this run has obtained."""
        if self._before is None:
            return self._tally.fetched
        self._parts.telemetry.flush()
        return self._parts.catalog.obtained(self._parts.telemetry.run_id)

    def _written(self, rows: tuple[ResultRow, ...], fetched: set[str]) -> RunResult:
        write_results(self.folder.root / RESULTS, rows)
        return counted(rows, fetched, self.folder.root, self._parts.store.root)

    def _known_in_bulk(self, lines: Iterable[InputLine]) -> Iterable[InputLine]:
        """The lines with what the offline index knows of their works, where one is configured."""
        if self._cfg.index.path is None:
            return lines
        from DocsToKG.ContentDownload.index.engine import Limits
        from DocsToKG.ContentDownload.index.joining import joined
        from DocsToKG.ContentDownload.index.manifest import read_manifest

        root = Path(self._cfg.index.path).expanduser()
        if (manifest := read_manifest(root)) is not None:
            self._parts.telemetry.note(f"open copies were looked up in an index built at {manifest.built_at}")
        return joined(lines, root, limits=Limits(self._cfg.index.memory_bytes, spill=self.folder.state / "spill"))

    def _enqueue_lines(self, lines: Iterable[InputLine], retry_failed: bool, watch: Callable[[int], None]) -> None:
        remembered = iter(lines)
        while batch := list(islice(remembered, _BATCH)):
            if self._called_off.is_set():
                raise Cancelled
            watch(self._tally.total)
            works = [line.work for line in batch if line.work is not None and line.duplicate_of is None]
            self._enqueue_batch(works, retry_failed)

    def _enqueue_batch(self, works: list[WorkArtifact], retry_failed: bool) -> None:
        ledger, taking_up = self._queue.ledger, TakingUp(ledger=self._queue.ledger, parts=self._parts)
        attempts, trace = self._cfg.orchestrator.max_job_attempts, self._parts.observability.trace_of
        ended = {} if retry_failed else recall.unknown_ends(ledger, self._parts.catalog, works)
        jobs = [
            NewJob(
                work.work_id,
                work.to_dict(),
                priority=recall.ENDED_PRIORITY if work.work_id in ended else 0,
                max_attempts=attempts,
                host_key=first_host(work.work_id),
                trace_context=trace(work.work_id),
            )
            for work in works
        ]
        known = [entry for entry in ledger.enqueue_many(jobs, actor="pull") if not entry.created]
        recall.tell(ledger, self._worker_id, ended)
        standing = {entry.job_id: taking_up.standing(entry) for entry in known}
        gone = [job_id for job_id, how in standing.items() if how == "gone"]
        missed = [job_id for job_id, how in standing.items() if how == "missed"]
        if gone:
            ledger.retry_failed(job_ids=gone, states=ENDED, actor="pull", reason="the file is gone")
        if missed and retry_failed:
            ledger.retry_failed(job_ids=missed, states=ENDED, actor="pull")
        with self._tally_lock:
            self._tally.total += len(works)
            self._tally.present += sum(how == "held" for how in standing.values())
            self._tally.ends[OutcomeClass.ERROR] += sum(how == "deadly" for how in standing.values())
            if not retry_failed:
                self._tally.ends[OutcomeClass.ERROR] += len(missed) + len(ended)

    def _count_outcome(self, work_id: str, outcome: DownloadOutcome) -> None:
        """Of any process of this run; each has told its own part of what it asked of hosts."""
        with self._tally_lock:
            self._tally.ends[outcome.classification] += 1
            if outcome.ok:
                self._tally.fetched.add(work_id)
                self._tally.bytes += int(outcome.meta.get("size_bytes") or 0)
            over = self._max_run_bytes is not None and self._tally.bytes >= self._max_run_bytes
        if over and not self.hit_byte_limit and self._orchestrator is not None:
            self.hit_byte_limit = True
            self._orchestrator.halt()
            if self._isolation is not None:
                self._isolation.halt(_GRACE_S)
        self._told(work_id, outcome)

    def _drain_then(self, over: threading.Event, patience_s: float | None, failures: list[Exception]) -> None:
        """In a thread of its own; what goes wrong there is for whoever waits."""
        try:
            if self._orchestrator is not None:
                self._orchestrator.wait_until_drained(patience_s)
        except Exception as error:
            failures.append(error)
        finally:
            over.set()

    def _single(self, work: WorkArtifact, fetched: set[str]) -> ResultRow:
        outcome = self._parts.pipeline.process(work)
        if outcome.ok:
            fetched.add(work.work_id)
        recorded = self._parts.recorded_path(outcome.path)
        record = ManifestRecord.of(work, outcome, worker_id=self._worker_id, path=recorded)
        self._parts.telemetry.finish(record)
        self._parts.telemetry.flush()
        self._told(work.work_id, outcome)
        has_file = outcome.ok or outcome.reason in (Reason.ALREADY_PRESENT, Reason.NOT_MODIFIED)
        ending = OutcomeClass.SUCCESS if has_file else outcome.classification
        explanation = outcome.meta.get("explanation")
        reason = None if has_file else f"{outcome.reason}: {explanation}" if explanation else str(outcome.reason)
        held = self._parts.catalog.find_download(work.work_id) if has_file else None
        path = shown_path(self._parts.store.at(held.path), self.folder.root) if held else None
        row = ResultRow(0, "", work.work_id, ending, path, reason)
        return replace(row, mark=held.mark, version=held.version, version_doi=held.version_doi) if held else row


def run_queue(
    cfg: ContentDownloadConfig,
    *,
    drain: bool,
    on_outcome: OnOutcome | None = None,
    on_start: Callable[[DownloadRun], None] = lambda run: None,
    config_file: str | None = None,
) -> int:
    """Work on the configured queue: until interrupted, or until it is drained. Returns the exit code. `config_file` is
    where the settings came from, so that other commands find them by the folder."""
    with DownloadRun(cfg, on_outcome=on_outcome) as run:
        run.remember(config_file, {})
        run.start()
        on_start(run)
        with suppress(KeyboardInterrupt):
            run.wait() if drain else run.wait_for_failure()
        run.stop(cfg.orchestrator.drain_seconds)
    return 0


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
