"""Jobs: submit, show, list, cancel, replay, retry.

Knows the rules of the public contract, and the ledger by its protocol. Promises: every method takes the tenant first
and neither shows nor changes a job of another tenant, which is the same as one that does not exist; a decision of an
operator is audited before it is carried out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Protocol, Unpack

from DocsToKG.Orchestrator.control import paging
from DocsToKG.Orchestrator.control.inputs import Decision, ReasonedDecision, plain_name
from DocsToKG.Orchestrator.control.jobs import pages, reads
from DocsToKG.Orchestrator.control.jobs.pages import JobQuery
from DocsToKG.Orchestrator.control.jobs.views import (
    HistoryPage,
    JobDetail,
    JobPage,
    JobView,
    lease_spans,
    metrics_of,
)
from DocsToKG.Orchestrator.control.tenants import refuse_blocked
from DocsToKG.Orchestrator.errors import BadJob, Conflict, LeaseLost
from DocsToKG.Orchestrator.jobs.eligibility import Why
from DocsToKG.Orchestrator.jobs.states import TERMINAL, JobState
from DocsToKG.Orchestrator.jobs.status import JobStatus
from DocsToKG.Orchestrator.ledger import checks
from DocsToKG.Orchestrator.ledger.base import Enqueued, Ledger, NewJob, Release
from DocsToKG.Orchestrator.ledger.control import ControlLedger, ControlTx

REPLAY_PRIORITY = 1000
SHOWN_HISTORY = 100  # rows that come with a job's detail; all of them come page by page
MAX_SUBMIT = 1000
_DIGEST = 2  # its place among the columns of a checked job


class ServedLedger(Ledger, ControlLedger, Protocol):
    """A ledger with its control plane, which is what every service stands on."""


class JobService:
    """The jobs of one ledger. Safe to share between threads."""

    def __init__(self, ledger: ServedLedger) -> None:
        self._ledger = ledger

    def submit(self, tenant: str, jobs: Sequence[NewJob], *, actor: str) -> list[Enqueued]:
        """Put jobs on the ledger, whatever tenant they name. A known artifact or idempotency key makes no second job;
        a key that came with another payload before is a `Conflict`."""
        if not 1 <= len(jobs) <= MAX_SUBMIT:
            raise BadJob(f"submit between 1 and {MAX_SUBMIT} jobs at once")
        plain_name("tenant", tenant)
        ours = [replace(job, tenant=tenant) for job in jobs]
        digests = _digests(ours)
        self._ledger.read(lambda tx: _refuse_foreign(tx, tenant, ours, digests))
        answers = self._ledger.enqueue_many(ours, actor=actor)
        if not all(answer.created for answer in answers):
            # Somebody may have come between with a key of ours.
            self._ledger.read(lambda tx: _refuse_other_payload(tx, tenant, digests))
        return answers

    def list(
        self,
        tenant: str,
        query: JobQuery | None = None,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> JobPage:
        """Jobs that fit, newest first."""
        size = paging.page_size(page_size)
        return self._ledger.read(lambda tx: pages.page(tx, tenant, query or JobQuery(), size, page_token))

    def counts(self, tenant: str, *, job_type: str | None = None) -> dict[str, int]:
        """How many jobs the tenant has of each status, from the counters: no job is read."""
        return self._ledger.read(lambda tx: reads.counts(tx, tenant, job_type))

    def get(self, tenant: str, job_id: int) -> JobView:
        return self._ledger.read(lambda tx: reads.view(tx, tenant, job_id))

    def detail(self, tenant: str, job_id: int) -> JobDetail:
        """All there is to say of a job, as of one moment but for `why`."""
        job, more = self._ledger.read(lambda tx: (reads.view(tx, tenant, job_id), reads.more(tx, tenant, job_id)))
        spans = lease_spans(more["history"])
        return JobDetail(
            **{each.name: getattr(job, each.name) for each in fields(job) if each.init},
            payload=more["payload"],
            result=more["result"],
            lease_history=spans,
            metrics=metrics_of(job, spans, more["crashes"]),
            history=more["history"][-SHOWN_HISTORY:],
            replay_chain=more["chain"],
            replays=more["replays"],
            dependencies=more["needs"],
            why=self._why(job_id),
        )

    def why(self, tenant: str, job_id: int) -> Why:
        """What keeps a job from running, and when it may."""
        self.get(tenant, job_id)
        return self._why(job_id)

    def _why(self, job_id: int) -> Why:
        # A job that is due has no moment to wait for; the moment of the request would make equal responses differ.
        why = self._ledger.why(job_id)
        return replace(why, at=None) if why.reason == "queued" else why

    def history(
        self, tenant: str, job_id: int, *, page_size: int | None = None, page_token: str | None = None
    ) -> HistoryPage:
        """What happened to a job, oldest first."""
        size = paging.page_size(page_size)
        return self._ledger.read(lambda tx: reads.history(tx, tenant, job_id, size, page_token))

    def cancel(self, tenant: str, job_id: int, **by: Unpack[ReasonedDecision]) -> JobView:
        """Call a job off. One that is over already stays as it is; its worker hears of it at the next renewal."""
        self.get(tenant, job_id)
        self._ledger.cancel(job_id, **by)
        return self.get(tenant, job_id)

    def replay(
        self,
        tenant: str,
        job_id: int,
        priority: int = REPLAY_PRIORITY,
        trace_context: str | None = None,
        **by: Unpack[ReasonedDecision],
    ) -> JobView:
        """Run an ended job once more as a copy: same payload and digest, high priority, and the way back to it."""
        if not by["reason"].strip():
            raise BadJob("a replay needs a reason")
        job = self.get(tenant, job_id)
        if JobState(job.state) not in TERMINAL:
            raise Conflict(f"job {job_id} is not over; only ended jobs can be replayed")
        self._ledger.read(lambda tx: refuse_blocked(tx, tenant))
        self._note(tenant, job_id, "replay_requested", **by)
        known = self._ledger.job(job_id)
        copy = NewJob(
            artifact_id=known.artifact_id,
            payload=known.artifact_json,
            payload_digest=known.payload_digest,
            resolver_hint=known.resolver_hint,
            priority=priority,
            max_attempts=known.max_attempts,
            tenant=tenant,
            project=known.project,
            job_type=known.job_type,
            source=known.source,
            host_key=known.host_key,
            correlation_id=known.correlation_id,
            trace_context=trace_context or known.trace_context,
            replay_of=job_id,
        )
        [answer] = self._ledger.enqueue_many([copy], actor=by["actor"])
        return self.get(tenant, answer.job_id)

    def clear_lease(self, tenant: str, job_id: int, **by: Unpack[ReasonedDecision]) -> JobView:
        """Take a stuck job from its worker, whose later words are then refused; it may be leased again at once."""
        if not by["reason"].strip():
            raise BadJob("clearing a lease needs a reason")
        job = self.get(tenant, job_id)
        known = self._ledger.job(job_id)
        if known.state is not JobState.IN_PROGRESS or known.lease_id is None:
            raise Conflict(f"job {job_id} has no lease to clear; it is {job.status.value}")
        self._note(tenant, job_id, "lease_cleared", **by)
        try:
            self._ledger.submit_release(Release(job_id, known.fence, known.lease_id, why=by["reason"])).result()
        except LeaseLost:
            raise Conflict(f"job {job_id} has moved on meanwhile") from None
        return self.get(tenant, job_id)

    def dead_letters(
        self, tenant: str, *, job_type: str | None = None, page_size: int | None = None, page_token: str | None = None
    ) -> JobPage:
        """Jobs that failed for good or ran out of time, newest first."""
        query = JobQuery(statuses=(JobStatus.FAILED, JobStatus.TIMED_OUT), job_type=job_type)
        return self.list(tenant, query, page_size=page_size, page_token=page_token)

    def retry_dead_letters(
        self, tenant: str, job_ids: Collection[int], **by: Unpack[ReasonedDecision]
    ) -> Sequence[JobView]:
        """Queue dead letters again, as themselves and with their attempts reset. All of them, or none where one of
        them is no dead letter of this tenant."""
        wanted = sorted(set(job_ids))
        if not by["reason"].strip() or not 1 <= len(wanted) <= MAX_SUBMIT:
            raise BadJob(f"a retry needs a reason and names between 1 and {MAX_SUBMIT} jobs")
        for job_id in wanted:
            if self.get(tenant, job_id).status not in (JobStatus.FAILED, JobStatus.TIMED_OUT):
                raise Conflict(f"job {job_id} is no dead letter")
        for job_id in wanted:
            self._note(tenant, job_id, "retry_requested", **by)
        states = (JobState.ERROR, JobState.TIMED_OUT)
        self._ledger.retry_failed(job_ids=wanted, states=states, actor=by["actor"], reason=by["reason"])
        return [self.get(tenant, job_id) for job_id in wanted]

    def _note(self, tenant: str, job_id: int, event: str, **by: Unpack[ReasonedDecision]) -> None:
        audit_fields: Decision = {**by, "reason": by["reason"][:500]}
        self._ledger.write(lambda tx: tx.note(tenant, job_id=job_id, event=event, **audit_fields))


def _digests(jobs: Sequence[NewJob]) -> dict[str, str]:
    """The digest of the payload that comes with each idempotency key."""
    digests: dict[str, str] = {}
    for job in jobs:
        if job.idempotency_key is not None:
            digest = str(checks.checked_job(job).columns[_DIGEST])
            if digests.setdefault(job.idempotency_key, digest) != digest:
                raise Conflict("one idempotency key comes with two payloads")
    return digests


def _refuse_foreign(tx: ControlTx, tenant: str, jobs: Sequence[NewJob], digests: Mapping[str, str]) -> None:
    """A job names only jobs of its own tenant, and a key only for its own payload; a blocked tenant submits nothing."""
    refuse_blocked(tx, tenant)
    named = {need for job in jobs for need in job.depends_on if isinstance(need, int)}
    named |= {job.replay_of for job in jobs if job.replay_of is not None}
    for job_id in sorted(named):
        reads.view(tx, tenant, job_id)
    _refuse_other_payload(tx, tenant, digests)


def _refuse_other_payload(tx: ControlTx, tenant: str, digests: Mapping[str, str]) -> None:
    for key, digest in digests.items():
        known = tx.execute(
            "SELECT id, payload_digest FROM jobs WHERE tenant = :tenant AND idempotency_key = :key"
            " AND idempotency_key IS NOT NULL",
            {"tenant": tenant, "key": key},
        )
        if known and known[0][1] != digest:
            raise Conflict(f"the idempotency key was used for job {known[0][0]} with another payload")
