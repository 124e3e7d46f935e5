"""The changes beside leasing and ending, each as a function of the open transaction.

A change that is refused raises before it has written anything, so that others in the same transaction stand. Each may
be run again after a rollback, and so keeps nothing outside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from DocsToKG.Orchestrator.errors import UnknownJob
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.jobs.throttling import Lane
from DocsToKG.Orchestrator.ledger import policy_rows
from DocsToKG.Orchestrator.ledger.base import DEFAULT_TENANT, LeasedJob, WorkerEnd
from DocsToKG.Orchestrator.ledger.chain import Move
from DocsToKG.Orchestrator.ledger.checks import result_text, short_error
from DocsToKG.Orchestrator.ledger.control import ControlTx, Note
from DocsToKG.Orchestrator.ledger.dependencies import states_by_needs
from DocsToKG.Orchestrator.ledger.leasing import Chooser, LeaseRequest, write_leases
from DocsToKG.Orchestrator.ledger.transaction import Transaction

_SWEEP = 1000
Wanted = tuple[str, dict[str, Any]]  # a condition that `filters` has made, and its values


def lease_suspect(tx: Transaction, request: LeaseRequest, chooser: Chooser) -> list[LeasedJob]:
    """One suspect that is due, unless rules hold it back. It is queued on its way to the lease."""
    if tx.is_paused:
        return []
    expired = tx.rows("expire_leases", {"now": tx.now_ms, "worker": request.worker_id, "limit": _SWEEP})
    tx.taken_back("lease_expired", expired)
    found = tx.row("next_suspect", {"now": tx.now_ms, "job_type": request.job_type})
    if found is None:
        return []
    job_id, tenant, job_type, source, fence, attempts = found
    lane = Lane(tenant, job_type, source)
    if tx.control_version and policy_rows.held_lane(ControlTx(tx.now_ms, tx.execute), lane) is not None:
        return []
    tx.row("queue_suspect", {"job_id": job_id})
    tx.moved("isolated", (job_id, tenant, job_type, "pending", "queued", fence, attempts, "ledger", None))
    return write_leases(tx, [request], chooser.grant(tx, [request], [[job_id]]))[0]


def release_worker(
    tx: Transaction, worker_id: str, in_hand: Collection[int] | None, end: WorkerEnd | None = None
) -> int:
    noted = None if in_hand is None else list(in_hand)
    how, result = (short_error(end.reason), result_text(end.result)) if end else (None, None)
    values = {"now": tx.now_ms, "worker": worker_id, "in_hand": noted, "how": how, "result": result}
    return tx.taken_back("worker_lost", tx.rows("free_worker", values))


def heartbeat(tx: Transaction, worker_id: str, ttl_ms: int) -> set[str]:
    rows = tx.rows("heartbeat", {"worker": worker_id, "now": tx.now_ms, "until": tx.now_ms + ttl_ms})
    for tenant, n in sorted(Counter(tenant for _, tenant in rows).items()):
        tx.note(Note(tenant, "renewed", worker_id, detail={"leases": n}))
    return {lease_id for lease_id, _ in rows}


def cancel(tx: Transaction, job_id: int, reason: str, actor: str, ticket: str | None) -> bool:
    if not tx.rows("states_of", {"job_ids": [job_id]}):
        raise UnknownJob(job_id)
    return cancel_page(tx, [job_id], ("true", {}), reason, actor, ticket) == 1


def cancel_page(
    tx: Transaction,
    found: Sequence[int],
    wanted: Wanted,
    reason: str,
    actor: str,
    ticket: str | None,
) -> int:
    """Call off those of the jobs found that still fit and are not over; how many there were."""
    words, values = wanted
    page = tx.session.select("open_among", words, {**values, "job_ids": list(found)})
    if page:
        tx.rows("cancel", {"job_ids": [row[0] for row in page], "reason": reason, "now": tx.now_ms})
    moves: list[Move] = [
        (job_id, tenant, job_type, state, "canceled", fence, attempts, actor, reason)
        for job_id, tenant, job_type, state, fence, attempts in page
    ]
    tx.moved_all("canceled", moves, ticket=ticket)
    return len(page)


def retry(tx: Transaction, found: Sequence[tuple[int, str]], actor: str, reason: str | None) -> int:
    """A job whose need has failed stays as it is: the need must come back first, and brings the job along."""
    count, by_needs = 0, states_by_needs(tx)
    for job_id, state in found:
        after = by_needs(job_id)
        values = {"job_id": job_id, "state": state, "after": after.value, "now": tx.now_ms}
        row = tx.row("retry", values) if after is not JobState.CANCELED else None
        if row is not None:
            tenant, job_type, fence = row
            tx.moved("retried", (job_id, tenant, job_type, state, after.value, fence, 0, actor, reason))
            count += 1
    return count


def set_paused(tx: Transaction, paused: bool, actor: str, reason: str | None) -> None:
    values = {"name": "paused", "value": "1" if paused else "0", "actor": actor, "reason": reason, "now": tx.now_ms}
    if tx.row("set_switch", values) is not None:
        tx.note(Note(DEFAULT_TENANT, "paused" if paused else "resumed", actor, reason))
    tx.is_paused = paused
    if not paused:
        tx.lanes.add("")
