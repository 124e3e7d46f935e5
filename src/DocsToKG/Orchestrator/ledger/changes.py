"""The changes a ledger knows, each as a function of the open transaction.

A change that is refused raises before it has written anything, so that others in the same
transaction stand. Each may be run again after a rollback, and so keeps nothing outside.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Sequence
from typing import Any

from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.errors import LeaseLost, UnknownJob
from DocsToKG.Orchestrator.ledger import dependencies
from DocsToKG.Orchestrator.ledger.base import DEFAULT_TENANT, Fail, FinishResult, LeasedJob, Progress, Release
from DocsToKG.Orchestrator.ledger.checks import End, host_name, result_text, short_error
from DocsToKG.Orchestrator.ledger.transaction import Move, Transaction
from DocsToKG.Orchestrator.ledger.turns import HostTurns

_LEDGER = "ledger"
_SWEEP = 1000


def lease(
    tx: Transaction, worker_id: str, limit: int, ttl_ms: int, job_type: str | None, begun: bool, turns: HostTurns
) -> list[LeasedJob]:
    if limit < 1 or is_paused(tx):
        return []
    expire_leases(tx, worker_id)
    tx.rows("wake_waiting", {"now": tx.now_ms, "limit": _SWEEP + limit})
    grant = {"until": tx.now_ms + ttl_ms, "token": f"lease_{secrets.token_hex(16)}_"}
    jobs = list(map(LeasedJob._make, turns.choose(tx, limit, job_type, grant)))
    if jobs:
        started = tx.now_ms if begun else None
        ids = json.dumps([job.job_id for job in jobs])
        tx.rows("grant", {**grant, "job_ids": ids, "worker": worker_id, "started": started, "now": tx.now_ms})
        tx.moved_all("leased", [_leased(job, worker_id) for job in jobs])
    return jobs


def _leased(job: LeasedJob, worker_id: str) -> Move:
    return (job.job_id, job.tenant, job.job_type, "queued", "in_progress", job.fence, job.attempts, worker_id, None)


def expire_leases(tx: Transaction, worker_id: str) -> int:
    rows = tx.rows("expire_leases", {"now": tx.now_ms, "worker": worker_id, "limit": _SWEEP})
    return _taken_back(tx, rows, "lease_expired")


def release_worker(tx: Transaction, worker_id: str) -> int:
    rows = tx.rows("free_worker", {"now": tx.now_ms, "worker": worker_id})
    return _taken_back(tx, rows, "worker_lost")


def _taken_back(tx: Transaction, rows: Sequence[tuple[Any, ...]], event: str) -> int:
    tx.moved_all(
        event,
        [
            (job_id, tenant, job_type, "in_progress", state, fence, attempts, _LEDGER, last_error)
            for job_id, tenant, job_type, state, fence, attempts, last_error in rows
        ],
    )
    return len(rows)


def heartbeat(tx: Transaction, worker_id: str, ttl_ms: int) -> set[str]:
    rows = tx.rows("heartbeat", {"worker": worker_id, "now": tx.now_ms, "until": tx.now_ms + ttl_ms})
    for tenant, n in Counter(tenant for _, tenant in rows).items():
        tx.note(tenant, event="renewed", actor=worker_id, detail={"leases": n})
    return {lease_id for lease_id, _ in rows}


def finish(tx: Transaction, end: End) -> FinishResult:
    row = tx.row("finish", {**end._asdict(), "now": tx.now_ms})
    if row is None:
        return _already(tx, end._asdict(), {end.state})
    tx.moved("finished", _ended(end, *row))
    return "applied"


def finish_many(tx: Transaction, ends: Sequence[End]) -> list[FinishResult | LeaseLost]:
    """Each end is fenced by itself: a lost lease among them is an answer and spoils none of the others.

    One look at all the jobs tells who still owns what, which the write lock then keeps true.
    """
    ids = json.dumps([end.job_id for end in ends])
    leases = {(row[0], row[1], row[2]): row for row in tx.rows("leases_among", {"job_ids": ids})}
    now = tx.now_ms
    moves: list[Move] = []
    writes: list[tuple[Any, ...]] = []
    late: list[int] = []
    for place, end in enumerate(ends):
        job_id, fence, lease_id, state, outcome, last_error, result_json = end
        lease = leases.pop((job_id, fence, lease_id), None)
        if lease is None:
            late.append(place)
        else:
            writes.append((state, outcome, last_error, result_json, now, now, job_id, fence, lease_id))
            moves.append(_ended(end, lease[3], lease[4], lease[5]))
    tx.run_many("finish_owned", writes)
    tx.moved_all("finished", moves)
    answers: list[FinishResult | LeaseLost] = ["applied"] * len(ends)
    for place in late:
        answers[place] = _late_finish(tx, ends[place])
    return answers


def _late_finish(tx: Transaction, end: End) -> FinishResult | LeaseLost:
    try:
        return _already(tx, end._asdict(), {end.state})
    except LeaseLost as lost:
        return lost


def _ended(end: End, tenant: str, job_type: str, attempts: int) -> Move:
    job_id, fence, lease_id, state, _, last_error, _ = end
    return (job_id, tenant, job_type, "in_progress", state, fence, attempts, lease_id, last_error)


def fail(tx: Transaction, order: Fail, delay_ms: int) -> JobState:
    values = {
        **_named(order),
        "max_attempts": order.max_attempts,
        "last_error": short_error(order.last_error),
        "result_json": result_text(order.result),
        "eligible": tx.now_ms + delay_ms,
        "due": int(delay_ms == 0),
        "now": tx.now_ms,
    }
    row = tx.row("fail", values)
    if row is None:
        _already(tx, values, {JobState.QUEUED, JobState.ERROR})
        return JobState(_state_of_lease(tx, values)[0])
    state = JobState(row[3])
    tx.moved("failed", _by_lease(order, row, state, str(values["last_error"])))
    return state


def release(tx: Transaction, order: Release, delay_ms: int) -> JobState:
    values = {
        **_named(order),
        "counted": int(order.count_attempt),
        "host_key": host_name(order.host_key),
        "eligible": tx.now_ms + delay_ms,
        "due": int(delay_ms == 0),
        "now": tx.now_ms,
    }
    row = tx.row("release", values)
    if row is None:
        raise LeaseLost(order.job_id, order.fence)
    tx.moved("released", _by_lease(order, row, JobState.QUEUED, short_error(order.why)))
    return JobState.QUEUED


def progress(tx: Transaction, order: Progress) -> None:
    if tx.row("progress", {**_named(order), "stage": order.stage[:64], "now": tx.now_ms}) is None:
        raise LeaseLost(order.job_id, order.fence)


def cancel(tx: Transaction, job_id: int, reason: str, actor: str, ticket: str | None) -> bool:
    before = tx.value(f"SELECT state FROM jobs WHERE id = {int(job_id)}")
    if before is None:
        raise UnknownJob(job_id)
    row = tx.row("cancel", {"job_id": job_id, "reason": reason, "now": tx.now_ms})
    if row is None:
        return False
    tenant, job_type, attempts, fence = row
    move = (job_id, tenant, job_type, before, "canceled", fence, attempts, actor, reason)
    tx.moved("canceled", move, ticket=ticket)
    return True


def retry(tx: Transaction, found: Sequence[tuple[int, str]], actor: str, reason: str | None) -> int:
    """A job whose need has failed stays as it is: the need must come back first, and brings the job along."""
    with_needs, count = dependencies.has_any(tx), 0
    for job_id, state in found:
        after = dependencies.state_by_needs(tx, job_id) if with_needs else JobState.QUEUED
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
        tx.note(DEFAULT_TENANT, event="paused" if paused else "resumed", actor=actor, reason=reason)
    if not paused:
        tx.lanes.add("")


def is_paused(tx: Transaction) -> bool:
    return bool(tx.value("SELECT value = '1' FROM settings WHERE name = 'paused'"))


def _named(order: Fail | Release | Progress) -> dict[str, Any]:
    return {"job_id": order.job_id, "fence": order.fence, "lease_id": order.lease_id}


def _by_lease(order: Fail | Release, row: Sequence[Any], after: JobState, reason: str | None) -> Move:
    return (order.job_id, row[0], row[1], "in_progress", after.value, order.fence, row[2], order.lease_id, reason)


def _already(tx: Transaction, values: dict[str, Any], states: set[str]) -> FinishResult:
    """The same answer given twice is no harm: the first reply may have been lost on the way."""
    state, last_error, result_json = _state_of_lease(tx, values)
    same = state in states and last_error == values["last_error"] and result_json == values["result_json"]
    if not same:
        raise LeaseLost(values["job_id"], values["fence"])
    return "already"


def _state_of_lease(tx: Transaction, values: dict[str, Any]) -> tuple[Any, ...]:
    row = tx.row("lease_of", values)
    if row is None:
        raise LeaseLost(values["job_id"], values["fence"])
    return row
