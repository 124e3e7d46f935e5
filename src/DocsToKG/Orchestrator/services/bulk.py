"""One decision for many jobs: count those that a question finds, call them off, or queue them again.

Knows lists of jobs and the decisions that can be made of each. Promises: a preview changes nothing; an action touches
only jobs of the tenant that were there when the preview was made, at most a bounded number at once, and says whether
there are more; it leaves one audit row of its own, and one for every job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.domain.status import OVER, JobStatus
from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.ledger.base import JobFilter
from DocsToKG.Orchestrator.services import paging
from DocsToKG.Orchestrator.services.job_pages import JobQuery
from DocsToKG.Orchestrator.services.job_views import JobView
from DocsToKG.Orchestrator.services.jobs import JobService, ServedLedger

Action = Literal["cancel", "retry"]
MOST_AT_ONCE = 500
MOST_COUNTED = 10_000
_PAGE = paging.MAX_PAGE_SIZE
_SAMPLE = 20
_LOOKS = 60  # pages that are looked through for one answer
_FITTING: dict[str, frozenset[JobStatus]] = {
    "cancel": frozenset(JobStatus) - OVER,
    "retry": frozenset({JobStatus.FAILED, JobStatus.TIMED_OUT}),
}


@dataclass(frozen=True, slots=True)
class Preview:
    """What an action would touch: `count` jobs, or more where it is not `complete`; the newest of them; and the last
    job that is meant, so that what comes later is left alone."""

    action: str
    count: int
    complete: bool
    up_to: int
    sample: Sequence[JobView]


@dataclass(frozen=True, slots=True)
class Done:
    """What an action has changed; `more` says that it is to be asked for again."""

    action: str
    changed: int
    more: bool


class BulkService:
    """Decisions for many jobs of one ledger. Safe to share between threads."""

    def __init__(self, ledger: ServedLedger, jobs: JobService) -> None:
        self._ledger = ledger
        self._jobs = jobs

    def preview(self, tenant: str, action: Action, query: JobQuery) -> Preview:
        """How many jobs the action would touch now."""
        [(last,)] = self._ledger.look(lambda tx: tx.ask("SELECT coalesce(max(id), 0) FROM jobs"))
        found, complete = self._found(tenant, action, query, int(last), MOST_COUNTED)
        return Preview(action, len(found), complete, int(last), found[:_SAMPLE])

    def cancel(self, tenant: str, query: JobQuery, *, up_to: int, actor: str, reason: str, ticket: str | None) -> Done:
        """Call off those that are not over."""
        found, complete = self._start(tenant, "cancel", query, up_to, actor, reason, ticket)
        if not found:
            return Done("cancel", 0, not complete)
        wanted = JobFilter(tenant=tenant, job_ids=[job.job_id for job in found])
        changed = self._ledger.cancel_many(wanted, reason, actor=actor, ticket=ticket)
        return Done("cancel", changed, not complete)

    def retry(self, tenant: str, query: JobQuery, *, up_to: int, actor: str, reason: str, ticket: str | None) -> Done:
        """Queue those again that failed for good or ran out of time, with their attempts reset."""
        found, complete = self._start(tenant, "retry", query, up_to, actor, reason, ticket)
        if not found:
            return Done("retry", 0, not complete)
        states = (JobState.ERROR, JobState.TIMED_OUT)
        ids = [job.job_id for job in found]
        changed = self._ledger.retry_failed(job_ids=ids, states=states, actor=actor, reason=reason)
        return Done("retry", changed, not complete)

    def _start(
        self, tenant: str, action: Action, query: JobQuery, up_to: int, actor: str, reason: str, ticket: str | None
    ) -> tuple[list[JobView], bool]:
        if not reason.strip():
            raise BadJob("an action on many jobs needs a reason")
        found, complete = self._found(tenant, action, query, up_to, MOST_AT_ONCE)
        if found:
            said: dict[str, Any] = {"event": f"bulk_{action}", "actor": actor, "reason": reason, "ticket": ticket}
            ids = [job.job_id for job in found]
            detail = {"jobs": len(ids), "first": min(ids), "last": max(ids)}
            self._ledger.change(lambda tx: tx.note(tenant, detail=detail, **said))
        return found, complete

    def _found(self, tenant: str, action: Action, query: JobQuery, up_to: int, most: int) -> tuple[list[JobView], bool]:
        """The newest jobs that fit, and whether these are all; a bounded part of the ledger is looked through."""
        fitting = _fitting(query, action)
        if fitting is None:
            return [], True
        found: list[JobView] = []
        token: str | None = None
        for _ in range(_LOOKS):
            page = self._jobs.list(tenant, replace(fitting, up_to=up_to), page_size=_PAGE, page_token=token)
            found += page.jobs
            token = page.next_page_token
            if token is None or len(found) > most:
                break
        return found[:most], token is None and len(found) <= most


def _fitting(query: JobQuery, action: Action) -> JobQuery | None:
    """The question narrowed to jobs that the action can touch; None when it can touch none."""
    fits = _FITTING[action]
    wanted = set(query.statuses) & fits if query.statuses else set(fits)
    return replace(query, statuses=tuple(sorted(wanted))) if wanted else None
