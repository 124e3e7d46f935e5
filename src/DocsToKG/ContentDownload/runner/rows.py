"""What became of every input line, as rows for people.

Knows how a job's state, its file and the lines that name the same work come together in one row. Reads the ledger and
the catalog; changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.api.types import OutcomeClass, Reason
from DocsToKG.ContentDownload.bootstrap import Parts
from DocsToKG.ContentDownload.catalog.store import Download
from DocsToKG.ContentDownload.catalog.summary import HELD_REASONS
from DocsToKG.ContentDownload.inputs import InputLine
from DocsToKG.ContentDownload.run_folder import AskedLine, RunFolder
from DocsToKG.ContentDownload.telemetry.snapshots import ResultRow
from DocsToKG.core.clock import Clock, utc_iso
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import JobRecord, Ledger

_TRY_AGAIN = "Run `content pull` or `content resume` again."
_DARE_IT = "`content resume --force --filter status=failed` tries it once more"
LATER = "may be had from"  # how the reason of a work begins that was tried and waits for a time
# What versions before wrote of works whose process was killed three times, by whomever: that proves nothing.
ENDED_BEFORE = "ended_worker: the worker process ended while it was at work on this"
ENDED = (JobState.DONE, JobState.SKIPPED, JobState.ERROR, JobState.CANCELED)


class ResultRows:
    """The rows of one folder. Made anew for each look."""

    def __init__(self, *, folder: RunFolder, ledger: Ledger, parts: Parts, clock: Clock) -> None:
        self._folder = folder
        self._ledger = ledger
        self._parts = parts
        self._clock = clock
        self._holders: dict[str, str] = {}  # by content: the first work of the input that has it

    def __iter__(self) -> Iterator[ResultRow]:
        paths: dict[tuple[str, int], str | None] = {}
        originals = {line.first for line in self._folder.asked() if line.first is not None}
        for line in self._folder.asked():
            row = self._row(line, paths)
            if (line.source, line.line) in originals:
                paths[line.source, line.line] = row.path
            yield row

    def _row(self, line: AskedLine, paths: Mapping[tuple[str, int], str | None]) -> ResultRow:
        row = ResultRow(line.line, line.text, line.work_id, source=line.source)
        if line.work_id is None:
            return replace(row, outcome="invalid", reason=line.problem)
        if line.first is not None:
            first = same_as(*line.first, here=line.source)
            return replace(row, outcome="duplicate", path=paths.get(line.first), reason=first)
        job = self._ledger.find(line.work_id)
        held = self._held(job)
        if held is None:
            outcome, reason = self._miss(job)
            return replace(row, outcome=outcome, reason=reason)
        path = shown_path(self._parts.store.at(held.path), self._folder.root)
        reason = self._same_file(held.doc_id, held.sha256)
        found = replace(row, outcome=OutcomeClass.SUCCESS, path=path, reason=reason, mark=held.mark)
        return replace(found, version=held.version, version_doi=held.version_doi)

    def _held(self, job: JobRecord | None) -> Download | None:
        """The file of a job that has ended; of one that failed, a file from before or one that a person accepted."""
        if job is None or job.state not in ENDED:
            return None
        return self._parts.catalog.find_download(job.artifact_id)

    def _miss(self, job: JobRecord | None) -> tuple[str, str | None]:
        """Outcome and reason of a job without a file, as it stands."""
        if job is None or job.state not in ENDED:
            return "pending", _why_pending(job, self._clock.now())
        way_on = f" {_TRY_AGAIN}" if missed_for_now(job) else f"; {_DARE_IT}" if ended_its_process(job) else ""
        outcome = OutcomeClass.SKIP if job.state == JobState.SKIPPED else OutcomeClass.ERROR
        return outcome, job.last_error and f"{job.last_error}{way_on}"

    def _same_file(self, work_id: str, sha256: str) -> str | None:
        """One paper given by several of its names is one content; the later rows say whose it is."""
        holder = self._holders.setdefault(sha256, work_id)
        return None if holder == work_id else f"same file as {holder}"


def missed_for_now(job: JobRecord) -> bool:
    """Whether an ended work was missed while a server or a source was away, so that another time may do."""
    candidates = _result(job).get("candidates") if job.state == JobState.ERROR else None
    tried = candidates if isinstance(candidates, list) else []
    return any(isinstance(one, dict) and one.get("transient") is True for one in tried)


def ended_its_process(job: JobRecord) -> bool:
    """Whether the work is shown to end its process."""
    said = job.last_error or ""
    return said.startswith(Reason.ENDED_WORKER) and not said.startswith(ENDED_BEFORE)


def had_file(job: JobRecord) -> bool:
    """Whether a work ended with a file: it was obtained, or skipped because it was there."""
    return job.state == JobState.DONE or (job.state == JobState.SKIPPED and _result(job).get("reason") in HELD_REASONS)


def _result(job: JobRecord) -> dict[str, Any]:
    result = json.loads(job.result_json) if job.result_json is not None else None
    return result if isinstance(result, dict) else {}


def single_row(line: InputLine, outcomes: Mapping[str, ResultRow]) -> ResultRow:
    """The row of a line whose work was obtained without the queue."""
    if line.work is None:
        return ResultRow(line.line_no, line.text, None, "invalid", None, line.problem, line.source)
    row = outcomes[line.work.work_id]
    if line.duplicate_of is not None:
        reason = same_as(line.duplicate_source or line.source, line.duplicate_of, here=line.source)
        return ResultRow(line.line_no, line.text, row.id, "duplicate", row.path, reason, line.source)
    return replace(row, line=line.line_no, input=line.text, source=line.source)


def shown_path(path: Path, folder: Path) -> str:
    """A file as the results name it: below the run's folder where it lies there."""
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def same_as(source: str, line: int, *, here: str) -> str:
    return f"same as line {line}" + ("" if source == here else f" of {source}")


def _why_pending(job: JobRecord | None, now: float) -> str:
    if job is None or job.next_eligible_at <= now:
        return "not finished; `content resume` goes on"
    why = f": {job.last_error}" if job.last_error else ""
    return f"{LATER} {utc_iso(job.next_eligible_at)} on with `content resume`{why}"
