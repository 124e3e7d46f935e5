"""Why is a job not running? What a ledger knows of it at this moment.

Knows which reads answer that; the judging is done by `jobs.eligibility`. Moments are shown as this process's clock
will show them.
"""

from __future__ import annotations

from collections.abc import Callable

from DocsToKG.Orchestrator.jobs import eligibility
from DocsToKG.Orchestrator.jobs.eligibility import JobFacts, Why
from DocsToKG.Orchestrator.jobs.fair_share import Held
from DocsToKG.Orchestrator.jobs.retry import SUSPECT_AFTER
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.jobs.throttling import Lane
from DocsToKG.Orchestrator.ledger import control, policy_rows
from DocsToKG.Orchestrator.ledger.base import JobRecord
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime
from DocsToKG.Orchestrator.ledger.reads import Reader

Look = Callable[[Callable[[ControlTx], Held | None]], Held | None]


def why(job: JobRecord, reads: Reader, moments: LedgerTime, look: Look) -> Why:
    """What keeps a job from running, and when it may."""
    held = _held(job, look) if job.state is JobState.QUEUED else None
    queued = job.state is JobState.QUEUED
    return eligibility.why(
        JobFacts(
            job_id=job.job_id,
            state=job.state,
            now=moments.local_s(moments.now_ms()),
            paused=reads.is_paused(),
            pause_reason=reads.pause_reason(),
            eligible_at=_shown(moments, job.next_eligible_at),
            lease_until=None if job.lease_until is None else _shown(moments, job.lease_until),
            worker_id=job.worker_id,
            stage=job.stage,
            last_error=job.last_error,
            outcome=job.outcome,
            finished_at=job.finished_at,
            needs=reads.needs(job.job_id) if job.state is JobState.PENDING else (),
            ahead=reads.ahead(job) if queued else 0,
            host=job.host_key,
            given_back=reads.said_at_release(job.job_id) if queued else None,
            suspect=job.crashes >= SUSPECT_AFTER,
            held_by=None if held is None else held.by,
            held_words="" if held is None else held.words,
            held_until=None if held is None or held.until is None else moments.local_s(held.until),
        )
    )


def _held(job: JobRecord, look: Look) -> Held | None:
    lane = Lane(job.tenant, job.job_type, job.source or "")
    return look(lambda tx: policy_rows.held_lane(tx, lane) if control.version_of(tx) else None)


def _shown(moments: LedgerTime, ledger_s: float) -> float:
    return moments.local_s(round(ledger_s * 1000))
