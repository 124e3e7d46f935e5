"""Take up what a folder was asked for: which works are put back on the queue, and why.

Knows how a known work stands (open, held, gone, missed) and how a stored file is verified. Does not run anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from DocsToKG.ContentDownload.bootstrap import Parts
from DocsToKG.ContentDownload.runner.rows import ENDED, missed_for_now
from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.ledger.base import Enqueued, JobRecord, Ledger

_BATCH = 500
_NOT_THE_JOBS_FAULT = ("worker_lost", "lease_expired")
_BY_WORD = {"failed": JobState.ERROR, "ok": JobState.DONE, "skipped": JobState.SKIPPED}


class TakingUp:
    """Looks at the works of one ledger and queues again what needs it."""

    def __init__(self, *, ledger: Ledger, parts: Parts) -> None:
        self._ledger = ledger
        self._parts = parts

    def standing(self, entry: Enqueued) -> str:
        """How a known work stands: `open`, `held` (its file is there), `gone` (it was), or `missed`."""
        if entry.state not in ENDED:
            return "open"
        if self._parts.find_file(entry.artifact_id) is None:
            return "gone" if entry.state == JobState.DONE else "missed"
        # A file whose job did not end well was stored by a process that died before it could say so: adopt it.
        well = entry.state in (JobState.DONE, JobState.SKIPPED)
        return "held" if well and self._parts.is_there(entry.artifact_id) else "gone"

    def requeue(self, *, verify: bool, again: str | None) -> None:
        """What lost its worker or its file comes back, and what was missed only because a service was away; `verify`
        hashes the stored files and repeats what is damaged, `again` repeats all works that are `failed`, `ok` or
        `skipped`."""
        for page in self._pages(JobState.ERROR):
            lost = [job for job in page if (job.last_error or "").startswith(_NOT_THE_JOBS_FAULT)]
            self._retry(lost, JobState.ERROR, "its worker was lost")
            self._retry([job for job in page if missed_for_now(job)], JobState.ERROR, "a service was away")
        if again is not None:
            self._repeat(list(self._jobs(_BY_WORD[again])), _BY_WORD[again], f"repeat {again}")
        for state in (JobState.DONE, JobState.SKIPPED):
            if verify:
                damaged = [job for job in self._jobs(state) if not self._is_whole(job)]
                self._repeat(damaged, state, "the file is damaged or gone")
            else:
                gone = [job for job in self._jobs(state) if self._parts.is_there(job.artifact_id) is False]
                self._retry(gone, state, "the file is gone")
        # What is known to be damaged is on record before its repaired copy can be.
        self._parts.telemetry.flush()

    def _jobs(self, state: JobState) -> Iterator[JobRecord]:
        return chain.from_iterable(self._pages(state))

    def _pages(self, state: JobState) -> Iterator[Sequence[JobRecord]]:
        after = 0
        while page := self._ledger.list_jobs(state, limit=_BATCH, after_id=after):
            yield page
            after = page[-1].job_id

    def _retry(self, jobs: Collection[JobRecord], state: JobState, reason: str) -> None:
        if jobs:
            ids = [job.job_id for job in jobs]
            self._ledger.retry_failed(job_ids=ids, states=(state,), actor="resume", reason=reason)

    def _repeat(self, jobs: Collection[JobRecord], state: JobState, reason: str) -> None:
        """Put works back on the queue, to be fetched although a file of theirs may be known."""
        self._parts.refetch.update(job.artifact_id for job in jobs)
        self._retry(jobs, state, reason)

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
