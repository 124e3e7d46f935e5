"""The changes a ledger knows, each as a function of the open transaction.

A change that is refused raises before it has written anything, so that others in the same
transaction stand. Each may be run again after a rollback, and so keeps nothing outside.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.errors import LeaseLost, UnknownJob
from DocsToKG.Orchestrator.ledger.base import (
    DEFAULT_TENANT,
    Enqueued,
    Fail,
    FinishResult,
    LeasedJob,
    Progress,
    Release,
)
from DocsToKG.Orchestrator.ledger.checks import CheckedJob, result_text, short_error
from DocsToKG.Orchestrator.ledger.transaction import Transaction

_LEDGER = "ledger"
_SWEEP = 1000


def enqueue(tx: Transaction, jobs: Sequence[CheckedJob], actor: str) -> list[Enqueued]:
    for job in jobs:
        _check_replayed(tx, job)
    return [_enqueue_one(tx, job, actor) for job in jobs]


def _check_replayed(tx: Transaction, job: CheckedJob) -> None:
    replayed = job.columns["replay_of"]
    if replayed is not None and tx.value(f"SELECT 1 FROM jobs WHERE id = {int(replayed)}") is None:
        raise UnknownJob(replayed)


def _enqueue_one(tx: Transaction, job: CheckedJob, actor: str) -> Enqueued:
    eligible = tx.now_ms + job.delay_ms
    values = {**job.columns, "now": tx.now_ms, "next_eligible_at": eligible, "due": int(job.delay_ms == 0)}
    row = tx.row("enqueue", values)
    if row is None:
        return _known(tx, values)
    tx.moved(
        row[0], values["tenant"], values["job_type"], event="enqueued", before=None, after="queued", fence=0,
        attempts=0, actor=actor,
    )  # fmt: skip
    return Enqueued(row[0], values["artifact_id"], True, JobState.QUEUED)


def _known(tx: Transaction, values: dict[str, Any]) -> Enqueued:
    row = tx.row("known_job", values)
    assert row is not None, "a refused insert has a row that refused it"
    return Enqueued(row[0], row[1], False, JobState(row[2]))


def lease(
    tx: Transaction, worker_id: str, limit: int, ttl_ms: int, job_type: str | None, begun: bool
) -> list[LeasedJob]:
    if limit < 1 or is_paused(tx):
        return []
    expire_leases(tx, worker_id)
    tx.rows("wake_waiting", {"now": tx.now_ms, "limit": _SWEEP + limit})
    values = {"worker": worker_id, "limit": limit, "job_type": job_type, "now": tx.now_ms}
    rows = tx.rows("lease", {**values, "until": tx.now_ms + ttl_ms, "started": tx.now_ms if begun else None})
    jobs = sorted((LeasedJob(*row) for row in rows), key=lambda job: (-job.priority, job.job_id))
    for job in jobs:
        tx.moved(
            job.job_id, job.tenant, job.job_type, event="leased", before="queued", after="in_progress",
            fence=job.fence, attempts=job.attempts, actor=worker_id,
        )  # fmt: skip
    return jobs


def expire_leases(tx: Transaction, worker_id: str) -> int:
    rows = tx.rows("expire_leases", {"now": tx.now_ms, "worker": worker_id, "limit": _SWEEP})
    return _taken_back(tx, rows, "lease_expired")


def release_worker(tx: Transaction, worker_id: str) -> int:
    rows = tx.rows("free_worker", {"now": tx.now_ms, "worker": worker_id})
    return _taken_back(tx, rows, "worker_lost")


def _taken_back(tx: Transaction, rows: Sequence[tuple[Any, ...]], event: str) -> int:
    for job_id, tenant, job_type, state, fence, attempts, last_error in rows:
        tx.moved(
            job_id, tenant, job_type, event=event, before="in_progress", after=state, fence=fence,
            attempts=attempts, actor=_LEDGER, reason=last_error,
        )  # fmt: skip
    return len(rows)


def heartbeat(tx: Transaction, worker_id: str, ttl_ms: int) -> set[str]:
    rows = tx.rows("heartbeat", {"worker": worker_id, "now": tx.now_ms, "until": tx.now_ms + ttl_ms})
    for tenant, n in Counter(tenant for _, tenant in rows).items():
        tx.append(tenant, event="renewed", actor=worker_id, detail={"leases": n})
    return {lease_id for lease_id, _ in rows}


def finish(tx: Transaction, values: dict[str, Any]) -> FinishResult:
    """`values` are those of `checks.finish_values`."""
    row = tx.row("finish", {**values, "now": tx.now_ms})
    if row is None:
        return _already(tx, values, {values["state"]})
    _ended(tx, values, *row)
    return "applied"


def finish_many(tx: Transaction, orders: Sequence[dict[str, Any]]) -> list[FinishResult | LeaseLost]:
    """Each end is fenced by itself: a lost lease among them is an answer and spoils none of the others.

    One look at all the jobs tells who still owns what, which the write lock then keeps true.
    """
    ids = json.dumps([values["job_id"] for values in orders])
    leases = {(row[0], row[1], row[2]): row for row in tx.rows("leases_among", {"job_ids": ids})}
    owned: list[dict[str, Any]] = []
    answers: list[FinishResult | LeaseLost | None] = []
    for values in orders:
        lease = leases.pop((values["job_id"], values["fence"], values["lease_id"]), None)
        answers.append(None if lease is None else "applied")
        if lease is not None:
            owned.append({**values, "now": tx.now_ms})
            _ended(tx, values, lease[3], lease[4], lease[5])
    tx.run_many("finish_owned", owned)
    return [answer or _late_finish(tx, values) for answer, values in zip(answers, orders, strict=True)]


def _late_finish(tx: Transaction, values: dict[str, Any]) -> FinishResult | LeaseLost:
    try:
        return _already(tx, values, {values["state"]})
    except LeaseLost as lost:
        return lost


def _ended(tx: Transaction, values: dict[str, Any], tenant: str, job_type: str, attempts: int) -> None:
    tx.moved(
        values["job_id"], tenant, job_type, event="finished", before="in_progress", after=values["state"],
        fence=values["fence"], attempts=attempts, actor=values["lease_id"], reason=values["last_error"],
    )  # fmt: skip


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
    _moved_by_lease(tx, order, row, event="failed", after=state, reason=values["last_error"])
    return state


def release(tx: Transaction, order: Release, delay_ms: int) -> JobState:
    values = {
        **_named(order),
        "counted": int(order.count_attempt),
        "host_key": order.host_key,
        "eligible": tx.now_ms + delay_ms,
        "due": int(delay_ms == 0),
        "now": tx.now_ms,
    }
    row = tx.row("release", values)
    if row is None:
        raise LeaseLost(order.job_id, order.fence)
    _moved_by_lease(tx, order, row, event="released", after=JobState.QUEUED, reason=short_error(order.why))
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
    tx.moved(
        job_id, tenant, job_type, event="canceled", before=before, after="canceled", fence=fence,
        attempts=attempts, actor=actor, reason=reason, ticket=ticket,
    )  # fmt: skip
    return True


def retry(tx: Transaction, found: Sequence[tuple[int, str]], actor: str, reason: str | None) -> int:
    count = 0
    for job_id, state in found:
        row = tx.row("retry", {"job_id": job_id, "state": state, "now": tx.now_ms})
        if row is None:
            continue
        tenant, job_type, fence = row
        tx.moved(
            job_id, tenant, job_type, event="retried", before=state, after="queued", fence=fence, attempts=0,
            actor=actor, reason=reason,
        )  # fmt: skip
        count += 1
    return count


def set_paused(tx: Transaction, paused: bool, actor: str, reason: str | None) -> None:
    values = {"name": "paused", "value": "1" if paused else "0", "actor": actor, "reason": reason, "now": tx.now_ms}
    if tx.row("set_switch", values) is not None:
        tx.append(DEFAULT_TENANT, event="paused" if paused else "resumed", actor=actor, reason=reason)
    if not paused:
        tx.lanes.add("")


def is_paused(tx: Transaction) -> bool:
    return bool(tx.value("SELECT value = '1' FROM settings WHERE name = 'paused'"))


def _named(order: Fail | Release | Progress) -> dict[str, Any]:
    return {"job_id": order.job_id, "fence": order.fence, "lease_id": order.lease_id}


def _moved_by_lease(
    tx: Transaction,
    order: Fail | Release,
    row: Sequence[Any],
    *,
    event: str,
    after: JobState,
    reason: str | None,
) -> None:
    tx.moved(
        order.job_id, row[0], row[1], event=event, before="in_progress", after=after.value, fence=order.fence,
        attempts=row[2], actor=order.lease_id, reason=reason,
    )  # fmt: skip


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
