"""Bulk actions: preview, cancel or retry the jobs that a filter finds.

Promises: a preview changes nothing; an action touches only jobs of the tenant that existed at the preview, a bounded
number per call, and returns where to continue, so that repeated calls reach the end; it writes one audit row of its
own, and one for every job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Unpack

from DocsToKG.Orchestrator.control import paging
from DocsToKG.Orchestrator.control.inputs import ReasonedDecision
from DocsToKG.Orchestrator.control.jobs.pages import JobQuery, last_of
from DocsToKG.Orchestrator.control.jobs.service import JobService, ServedLedger
from DocsToKG.Orchestrator.control.jobs.views import JobView
from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.jobs.status import OVER, JobStatus
from DocsToKG.Orchestrator.ledger.base import JobFilter
from DocsToKG.Orchestrator.views import View

Action = Literal["cancel", "retry"]
MOST_AT_ONCE = 500
MOST_COUNTED = 10_000
_PAGE = paging.MAX_PAGE_SIZE
_SAMPLE = 20
LOOKS = 60  # pages that are looked through for one answer
_FITTING: dict[str, frozenset[JobStatus]] = {
    "cancel": frozenset(JobStatus) - OVER,
    "retry": frozenset({JobStatus.FAILED, JobStatus.TIMED_OUT}),
}


@dataclass(frozen=True, slots=True)
class Preview(View):
    """What an action would touch: `count` jobs, or more where it is not `complete`; a sample of the newest; `upTo` goes
    with the action, so that later jobs are left alone."""

    action: str
    count: int
    complete: bool
    up_to: int
    sample: Sequence[JobView]


@dataclass(frozen=True, slots=True)
class BulkResult(View):
    """What an action has changed. While `more`, the same call with `upTo` goes on with the rest."""

    action: str
    changed: int
    more: bool
    up_to: int | None


class _Found(NamedTuple):
    """The newest jobs that fit, and the last one that was not looked at, if any."""

    jobs: list[JobView]
    up_to: int | None


class BulkService:
    """Decisions for many jobs of one ledger. Safe to share between threads."""

    def __init__(self, ledger: ServedLedger, jobs: JobService) -> None:
        self._ledger = ledger
        self._jobs = jobs

    def preview(self, tenant: str, action: Action, query: JobQuery) -> Preview:
        """How many jobs the action would touch now."""
        [(last,)] = self._ledger.read(lambda tx: tx.execute("SELECT coalesce(max(id), 0) FROM jobs"))
        found = self._found(tenant, action, query, int(last), MOST_COUNTED)
        return Preview(action, len(found.jobs), found.up_to is None, int(last), found.jobs[:_SAMPLE])

    def cancel(self, tenant: str, query: JobQuery, *, up_to: int, **by: Unpack[ReasonedDecision]) -> BulkResult:
        """Call off those that are not over."""
        ids, rest = self._start(tenant, "cancel", query, up_to, **by)
        wanted = JobFilter(tenant=tenant, job_ids=ids)
        changed = self._ledger.cancel_many(wanted, **by) if ids else 0
        return BulkResult("cancel", changed, rest is not None, rest)

    def retry(self, tenant: str, query: JobQuery, *, up_to: int, **by: Unpack[ReasonedDecision]) -> BulkResult:
        """Queue those again that failed for good or ran out of time, with their attempts reset."""
        ids, rest = self._start(tenant, "retry", query, up_to, **by)
        states = (JobState.ERROR, JobState.TIMED_OUT)
        changed = (
            self._ledger.retry_failed(job_ids=ids, states=states, actor=by["actor"], reason=by["reason"]) if ids else 0
        )
        return BulkResult("retry", changed, rest is not None, rest)

    def _start(
        self, tenant: str, action: Action, query: JobQuery, up_to: int, **by: Unpack[ReasonedDecision]
    ) -> tuple[list[int], int | None]:
        """The jobs to touch, and the last one that was not looked at."""
        if not by["reason"].strip():
            raise BadJob("an action on many jobs needs a reason")
        found = self._found(tenant, action, query, up_to, MOST_AT_ONCE)
        ids = [job.job_id for job in found.jobs]
        if ids:
            detail = {"jobs": len(ids), "first": min(ids), "last": max(ids)}
            self._ledger.write(lambda tx: tx.note(tenant, event=f"bulk_{action}", detail=detail, **by))
        return ids, found.up_to

    def _found(self, tenant: str, action: Action, query: JobQuery, up_to: int, most: int) -> _Found:
        """A bounded part of the ledger is looked through, from the newest job that is meant."""
        fitting = _fitting(query, action)
        if fitting is None:
            return _Found([], None)
        found: list[JobView] = []
        token: str | None = None
        for _ in range(LOOKS):
            page = self._jobs.list(tenant, replace(fitting, up_to=up_to), page_size=_PAGE, page_token=token)
            found += page.jobs
            token = page.next_page_token
            if len(found) > most:
                return _Found(found[:most], found[most].job_id)
            if token is None:
                return _Found(found, None)
        return _Found(found, last_of(token) if token is not None else None)


def _fitting(query: JobQuery, action: Action) -> JobQuery | None:
    """The question narrowed to jobs that the action can touch; None when it can touch none."""
    fits = _FITTING[action]
    wanted = set(query.statuses) & fits if query.statuses else set(fits)
    return replace(query, statuses=tuple(sorted(wanted))) if wanted else None
