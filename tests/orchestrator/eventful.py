"""A ledger to which everything a bundle tells of has happened, in known steps of time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.audit.export import Exported, export
from DocsToKG.Orchestrator.audit.range_reader import Range
from DocsToKG.Orchestrator.control.backfills import BackfillService
from DocsToKG.Orchestrator.control.incidents import IncidentService
from DocsToKG.Orchestrator.control.quotas import QuotaService
from DocsToKG.Orchestrator.control.throttles import ThrottleService
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, NewJob
from DocsToKG.Orchestrator.signing.keys import Signer, Trust

BY = {"actor": "ann", "reason": "more room", "ticket": "OPS-7"}


def morning(ledger: Any, clock: ManualClock, jobs: int = 3) -> None:
    """Jobs come and are worked on; one fails, one is left leased; operators act."""
    ledger.enqueue_many([NewJob(f"doi:10.1/{n}", {"n": n}, tenant="a", project="p") for n in range(jobs)])
    clock.advance(1)
    QuotaService(ledger).set("a", "content.download", 5, 50, 2, **BY)
    ThrottleService(ledger).apply("a", source="crossref", max_active=1, **BY)
    leased = ledger.lease("w-1", 2, 600.0)
    clock.advance(1)
    finish(ledger, leased[0])
    fail(ledger, leased[1])
    clock.advance(1)


def afternoon(ledger: Any, clock: ManualClock) -> None:
    """What failed is tried again and ends well; what was throttled is let go; a job is called off."""
    clock.advance(3600)
    ledger.retry_failed()
    for job in ledger.lease("w-2", 10, 600.0):
        finish(ledger, job)
    throttles = ThrottleService(ledger)
    for held in throttles.list("a"):
        throttles.lift("a", held.throttle_id, **BY)
    incident = IncidentService(ledger).raise_("a", "host:example.org", "error", "it is away")
    IncidentService(ledger).resolve("a", incident.incident_id, **BY)
    BackfillService(ledger).start(
        "b", job_type="t", from_at=0, to_at=3, step_s=1, actor="ann", reason="lost", ticket="OPS-9"
    )
    ledger.cancel(ledger.list_jobs(limit=10)[-1].job_id, "not needed", ticket="OPS-8")
    clock.advance(1)


def finish(ledger: Any, job: Any) -> None:
    ledger.submit_finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE)).result(60)


def fail(ledger: Any, job: Any) -> None:
    ledger.submit_fail(Fail(job.job_id, job.fence, job.lease_id, 1.0, 1, "away")).result(60)


def ms(clock: ManualClock) -> int:
    return int(clock.now() * 1000)


def bundle(
    ledger: Any, start: int, end: int, target: Path, signers: list[Signer], tenant: str | None = None
) -> Exported:
    return export(ledger, Range(start, end, tenant), signers, target, wait=lambda _: None)


def trust(clock: ManualClock, *signers: Signer, threshold: int = 1) -> Trust:
    return Trust([signer.key for signer in signers], clock.now(), threshold)
