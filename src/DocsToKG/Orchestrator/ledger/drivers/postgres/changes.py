"""The changes beside leasing and settling, each as a function of the open transaction.

A change that is refused raises before it has written anything, so that others in the same transaction stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from secrets import token_hex
from typing import Any

from DocsToKG.Orchestrator.errors import UnknownJob
from DocsToKG.Orchestrator.jobs.dependencies import wanted_state
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger import any_engine
from DocsToKG.Orchestrator.ledger.base import LeasedJob, WorkerEnd
from DocsToKG.Orchestrator.ledger.chain import Move
from DocsToKG.Orchestrator.ledger.drivers.postgres.complete import plain
from DocsToKG.Orchestrator.ledger.drivers.postgres.transaction import Transaction


def lease_suspect(tx: Transaction, worker_id: str, ttl_ms: int, job_type: str | None, begun: bool) -> list[LeasedJob]:
    if tx.is_paused:
        return []
    _taken_back(tx, tx.rows("expire_leases", {"now": tx.now_ms, "worker": worker_id}), "lease_expired")
    job_id = any_engine.queue_suspect(tx, job_type)
    if job_id is None:
        return []
    values = {
        "job_id": job_id,
        "worker": worker_id,
        "until": tx.now_ms + ttl_ms,
        "lease_id": f"lease_{token_hex(16)}_{job_id}",
        "started": tx.now_ms if begun else None,
        "now": tx.now_ms,
    }
    jobs = [LeasedJob._make(row) for row in tx.rows("lease_suspect", values)]
    moves: list[Move] = [
        (job.job_id, job.tenant, job.job_type, "queued", "in_progress", job.fence, job.attempts, worker_id, None)
        for job in jobs
    ]
    tx.moved_all("leased", moves)
    return jobs


def release_worker(
    tx: Transaction, worker_id: str, in_hand: Collection[int] | None, end: WorkerEnd | None = None
) -> int:
    noted = None if in_hand is None else list(in_hand)
    values = {"now": tx.now_ms, "worker": worker_id, "in_hand": noted, **any_engine.end_values(end)}
    values["how"] = plain(values["how"])
    return _taken_back(tx, tx.rows("free_worker", values), "worker_lost")


def _taken_back(tx: Transaction, rows: Sequence[tuple[Any, ...]], event: str) -> int:
    moves: list[Move] = [
        (job_id, tenant, job_type, "in_progress", state, fence, attempts, "ledger", last_error)
        for job_id, tenant, job_type, state, fence, attempts, last_error in rows
    ]
    tx.moved_all(event, moves)
    return len(rows)


def heartbeat(tx: Transaction, worker_id: str, ttl_ms: int) -> set[str]:
    rows = tx.rows("heartbeat", {"worker": worker_id, "now": tx.now_ms, "until": tx.now_ms + ttl_ms})
    for tenant, n in sorted(Counter(tenant for _, tenant in rows).items()):
        tx.note(tenant, event="renewed", actor=worker_id, detail={"leases": n})
    return {lease_id for lease_id, _ in rows}


def cancel(tx: Transaction, job_id: int, reason: str, actor: str, ticket: str | None) -> bool:
    if tx.row("state_for_change", {"job_id": job_id}) is None:
        raise UnknownJob(job_id)
    return cancel_page(tx, "true", {}, [job_id], reason, actor, ticket) == 1


def cancel_page(
    tx: Transaction,
    wanted: str,
    values: Mapping[str, Any],
    found: Sequence[int],
    reason: str,
    actor: str,
    ticket: str | None,
) -> int:
    """Call off those of the jobs found that still fit and are not over; how many there were."""
    rows = tx.select("cancel", wanted, {**values, "job_ids": list(found), "reason": reason, "now": tx.now_ms})
    moves: list[Move] = [
        (job_id, tenant, job_type, before, "canceled", fence, attempts, actor, reason)
        for job_id, tenant, job_type, before, fence, attempts in sorted(rows)
    ]
    tx.moved_all("canceled", moves, ticket=ticket)
    return len(rows)


def retry(tx: Transaction, found: Sequence[tuple[int, str]], actor: str, reason: str | None) -> int:
    def by_needs(job_id: int) -> JobState:
        return wanted_state([JobState(need) for (need,) in tx.rows("need_states", {"job_id": job_id})])

    return any_engine.retry(tx, found, actor, reason, by_needs)
