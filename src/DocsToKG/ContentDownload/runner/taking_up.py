"""Take up what a folder was asked for: which works are put back on the queue, and why.

Knows how a known work stands (open, held, gone, missed) and how a stored file is verified. Does not run anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from DocsToKG.ContentDownload.bootstrap import Parts
from DocsToKG.ContentDownload.catalog.store import Download
from DocsToKG.ContentDownload.errors import StorageError, TransientFailure
from DocsToKG.ContentDownload.orchestrator.queue import DOWNLOADS
from DocsToKG.ContentDownload.runner.again import Again
from DocsToKG.ContentDownload.runner.rows import (
    ENDED,
    ENDED_BEFORE,
    ended_its_process,
    had_file,
    missed_for_now,
)
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Enqueued, JobRecord, Ledger

_BATCH = 500
_NOT_THE_JOBS_FAULT = ("worker_lost", "lease_expired", ENDED_BEFORE)


class TakingUp:
    """Looks at the works of one ledger and queues again what needs it."""

    def __init__(self, *, ledger: Ledger, parts: Parts) -> None:
        self._ledger = ledger
        self._parts = parts

    def standing(self, entry: Enqueued) -> str:
        """How a known work stands: `open`, `held` (its file is there), `gone` (it was), `missed`, or `deadly`: it
        ended the process that was alone at work on it."""
        if entry.state not in ENDED:
            return "open"
        if self._parts.find_file(entry.artifact_id) is None and not self._mended(entry.artifact_id):
            if entry.state == JobState.ERROR and ended_its_process(self._ledger.job(entry.job_id)):
                return "deadly"
            return "gone" if entry.state == JobState.DONE else "missed"
        # A file whose job did not end well was stored by a process that died before it could say so: adopt it.
        well = entry.state in (JobState.DONE, JobState.SKIPPED)
        return "held" if well and self._parts.is_there(entry.artifact_id) else "gone"

    def requeue(self, *, verify: bool, again: Again | None) -> int:
        """What lost its worker or its file comes back, and what was missed only because a service was away; `verify`
        hashes the stored files and repeats what is damaged, `again` repeats works that have ended: returns how many."""
        repeated = 0
        # A check has found these damaged or missing.
        self.repair([file.doc_id for file in self._parts.catalog.damaged()])
        for page in self._pages(JobState.ERROR):
            lost = [job for job in page if (job.last_error or "").startswith(_NOT_THE_JOBS_FAULT)]
            self._retry(lost, JobState.ERROR, "its worker was lost")
            self._retry([job for job in page if missed_for_now(job)], JobState.ERROR, "a service was away")
        if again is not None:
            repeated = self._once_more(again)
        for state in (JobState.DONE, JobState.SKIPPED):
            if verify:
                damaged = [job for job in self._jobs(state) if not self._is_whole(job)]
                self._repeat(damaged, state, "the file is damaged or gone")
            else:
                gone = [job for job in self._jobs(state) if self._is_gone(job)]
                self._retry(gone, state, "the file is gone")
        # What is known to be damaged is on record before its repaired copy can be.
        self._parts.telemetry.flush()
        return repeated

    def _once_more(self, again: Again) -> int:
        self._parts.telemetry.flush()
        works, count = again.works(self._parts.catalog), 0
        for state in again.states:
            jobs = [job for job in self._jobs(state) if works is None or job.artifact_id in works]
            self._repeat(jobs, state, f"repeat {state}")
            count += len(jobs)
        return count

    def repair(self, work_ids: Iterable[str]) -> list[str]:
        """Queue those works again whose file is not whole; a name that was lost is given back at once. Returns the
        works that no job is known of."""
        unknown = []
        for work_id in work_ids:
            job = self._ledger.find(work_id)
            if job is None:
                unknown.append(work_id)
            elif job.state in ENDED and not all(map(self._is_good, self._parts.catalog.downloads_of(work_id)[:1])):
                self._repeat([job], job.state, "the file is damaged or gone")
        self._parts.telemetry.flush()
        return unknown

    def put_names_away(self) -> int:
        """Works that were fetched again may have got other bytes, or another name: the earlier names go. The objects
        stay in the store until `catalog gc` is asked to remove them. Returns how many names went."""
        self._parts.telemetry.flush()
        gone = 0
        for work_id in self._parts.refetch:
            found = self._parts.catalog.find_download(work_id)
            if found is not None and self._parts.store.size_of(found.path) is not None:
                earlier = self._parts.catalog.earlier_names(work_id)
                gone += sum(self._parts.store.drop_name(sha256, path) for sha256, path in earlier)
        return gone

    def _jobs(self, state: JobState) -> Iterator[JobRecord]:
        return chain.from_iterable(self._pages(state))

    def _pages(self, state: JobState) -> Iterator[Sequence[JobRecord]]:
        after = 0
        while page := self._ledger.list_jobs(state, limit=_BATCH, after_id=after, wanted=DOWNLOADS):
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

    def _is_gone(self, job: JobRecord) -> bool:
        """The work's file is not in its place, or no record knows any more where that is."""
        there = self._parts.is_there(job.artifact_id)
        return had_file(job) if there is None else not there

    def _is_whole(self, job: JobRecord) -> bool:
        """The work's file is there and hashes to its digest. A lost name is given back; damaged bytes are dropped."""
        found = self._parts.catalog.find_download(job.artifact_id)
        if found is None:
            return not had_file(job)  # a work that was skipped for a reason of its own has no file to verify
        return self._is_good(found)

    def _mended(self, work_id: str) -> bool:
        """A file that a check has found damaged or missing, and that is whole after all. A damaged one gives up its
        name here, so that the one that is fetched can have it."""
        found = self._parts.catalog.find_damaged(work_id)
        if found is None or not self._is_good(found):
            return False
        self._parts.telemetry.flush()
        return True

    def _is_good(self, found: Download) -> bool:
        try:
            return self._restored(found)
        except TransientFailure as away:  # outside of a job there is nobody to come back later
            raise StorageError(away.detail) from None

    def _restored(self, found: Download) -> bool:
        store = self._parts.store
        if store.size_of(found.path) is None:
            store.adopt(found.sha256, found.path)
        intact = store.verify(found.sha256, found.path)
        if not intact:
            store.drop_damaged(found.sha256, found.path)
        self._parts.telemetry.verified(found.sha256, intact)
        return intact
