"""How works ended, told by the record to a ledger that does not know them because it was lost.

Knows which last lines of the record are an end without a file. Promises: a work that the ledger knows is left alone, as
is one that the record has a file of; what the ledger learns counts no request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from DocsToKG.ContentDownload.api.types import OutcomeClass, WorkArtifact
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.resolvers.ids.identifier import BadIdentifier, parse_identifier, to_work
from DocsToKG.ContentDownload.run_folder import AskedLine
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, Finish, LeasedJob, Ledger, Release

# Above what is to be done, so that leasing finds those that have ended and nothing else.
ENDED_PRIORITY = 1
_LEASE_S = 60.0
# As the explanation of a miss says that another time may do.
_FOR_NOW = ("Temporary", "could not be asked")
_STATES = {OutcomeClass.ERROR: JobState.ERROR, OutcomeClass.SKIP: JobState.SKIPPED}

Ends = Mapping[str, Mapping[str, Any]]


def unknown_ends(ledger: Ledger, catalog: Catalog, works: Sequence[WorkArtifact]) -> Ends:
    """The last lines, by work, of those that ended without a file and that the ledger does not know."""
    ends = catalog.ends_without_file([work.work_id for work in works])
    return {line["doc_id"]: line for line in ends if ledger.find(line["doc_id"]) is None}


def tell(ledger: Ledger, worker_id: str, ends: Ends) -> None:
    """End the jobs of these works, just enqueued, as the record says that they have ended."""
    left = set(ends)
    while left:
        leased = ledger.lease(worker_id, len(left), _LEASE_S, job_type=DEFAULT_JOB_TYPE)
        ours = [job for job in leased if job.artifact_id in left]
        for job in leased:
            if job.artifact_id not in left:
                ledger.submit_release(Release(job.job_id, job.fence, job.lease_id)).result()
        ledger.submit_finishes([_finish(job, ends[job.artifact_id]) for job in ours]).result()
        if not ours:
            return  # the queue is paused, or somebody else was faster: they are tried again
        left.difference_update(job.artifact_id for job in ours)


def lost(ledger: Ledger, asked: Iterable[AskedLine]) -> list[WorkArtifact]:
    """The works that were asked for and that the ledger does not know."""
    firsts = (line for line in asked if line.work_id is not None and line.first is None)
    return [_work(line) for line in firsts if ledger.find(line.work_id or "") is None]


def _work(line: AskedLine) -> WorkArtifact:
    """What was written says more than the id where both mean the same work."""
    from DocsToKG.ContentDownload.runner.listing import named

    try:
        work = to_work(parse_identifier(line.text))
    except BadIdentifier:
        return named(line.work_id or "")
    return work if work.work_id == line.work_id else named(line.work_id or "")


def _finish(job: LeasedJob, line: Mapping[str, Any]) -> Finish:
    reason, cause, explanation = line["reason"], line["cause"], line["explanation"]
    token = f"{reason} ({cause})" if cause and cause != reason else str(reason)
    for_now = any(words in (explanation or "") for words in _FOR_NOW)
    result = {"outcome": line["outcome"], "reason": reason, "path": None, "cause": cause, "explanation": explanation}
    return Finish(
        job.job_id,
        job.fence,
        job.lease_id,
        state=_STATES[OutcomeClass(line["outcome"])],
        last_error=f"{token}: {explanation}" if explanation else token,
        result=result | {"candidates": [{"transient": for_now}]},
        outcome=line["outcome"],
    )
