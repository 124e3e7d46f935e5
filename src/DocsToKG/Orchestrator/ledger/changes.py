"""The changes a ledger knows, each as a function of the open transaction.

A change that is refused raises before it has written anything, so that others in the same
transaction stand. Each may be run again after a rollback, and so keeps nothing outside.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from DocsToKG.Orchestrator.errors import LeaseLost, UnknownJob
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger import any_engine, dependencies
from DocsToKG.Orchestrator.ledger.base import (
    Fail,
    FinishResult,
    JobFilter,
    LeasedJob,
    Progress,
    Release,
    WorkerEnd,
)
from DocsToKG.Orchestrator.ledger.chain import Move
from DocsToKG.Orchestrator.ledger.checks import End, host_name, result_text, short_error
from DocsToKG.Orchestrator.ledger.drivers.sqlite.policy_leasing import GovernedTurns
from DocsToKG.Orchestrator.ledger.filters import condition
from DocsToKG.Orchestrator.ledger.transaction import Transaction, answered

_LEDGER = "ledger"
_SWEEP = 1000
_ATTEMPTS, _TENANT, _JOB_TYPE = (LeasedJob._fields.index(name) for name in ("attempts", "tenant", "job_type"))


def lease(
    tx: Transaction,
    worker_id: str,
    limit: int,
    ttl_ms: int,
    job_type: str | None,
    begun: bool,
    turns: GovernedTurns,
    tenants: Collection[str] | None = None,
) -> list[LeasedJob]:
    if limit < 1 or is_paused(tx):
        return []
    expire_leases(tx, worker_id)
    tx.rows("wake_waiting", {"now": tx.now_ms, "limit": _SWEEP + limit})
    grant = {"until": tx.now_ms + ttl_ms, "token": f"lease_{secrets.token_hex(16)}_", "now": tx.now_ms}
    rows = turns.choose(tx, limit, job_type, grant, tenants)
    if rows:
        started = tx.now_ms if begun else None
        ids = json.dumps([row[0] for row in rows])
        tx.rows("grant", {**grant, "job_ids": ids, "worker": worker_id, "started": started})
        tx.moved_all("leased", [_leased(row, worker_id) for row in rows])
    return list(map(LeasedJob._make, rows))


def _leased(row: Sequence[Any], worker_id: str) -> Move:
    """The move of a row that is about to be a `LeasedJob`; by place, as one is made for every job."""
    return (row[0], row[_TENANT], row[_JOB_TYPE], "queued", "in_progress", row[1], row[_ATTEMPTS], worker_id, None)


def expire_leases(tx: Transaction, worker_id: str) -> int:
    rows = tx.rows("expire_leases", {"now": tx.now_ms, "worker": worker_id, "limit": _SWEEP})
    return _taken_back(tx, rows, "lease_expired")


def lease_suspect(tx: Transaction, worker_id: str, ttl_ms: int, job_type: str | None, begun: bool) -> list[LeasedJob]:
    if is_paused(tx):
        return []
    expire_leases(tx, worker_id)
    job_id = any_engine.queue_suspect(tx, job_type)
    if job_id is None:
        return []
    ids = json.dumps([job_id])
    grant = {"until": tx.now_ms + ttl_ms, "token": f"lease_{secrets.token_hex(16)}_", "now": tx.now_ms, "job_ids": ids}
    rows = tx.rows("due_among", grant)
    tx.rows("grant", {**grant, "worker": worker_id, "started": tx.now_ms if begun else None})
    tx.moved_all("leased", [_leased(row, worker_id) for row in rows])
    return list(map(LeasedJob._make, rows))


def release_worker(
    tx: Transaction, worker_id: str, in_hand: Collection[int] | None, end: WorkerEnd | None = None
) -> int:
    noted = None if in_hand is None else json.dumps(list(in_hand))
    values = {"now": tx.now_ms, "worker": worker_id, "in_hand": noted, **any_engine.end_values(end)}
    rows = tx.rows("free_worker", values)
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


def finish_many(tx: Transaction, ends: Sequence[End]) -> list[FinishResult | LeaseLost]:
    """Each end is fenced by itself: a lost lease among them is an answer and spoils none of the others."""
    names = [end[:3] for end in ends]
    if len(set(names)) < len(names):  # the first word of a lease counts
        words = list(dict(zip(reversed(names), reversed(ends), strict=True)).values())
    else:
        words = list(ends)
    rows = tx.write_rows("finish_all", words, (tx.now_ms,))
    applied = {row[:3]: row for row in rows}
    answers: list[FinishResult | LeaseLost] = ["applied"] * len(ends)
    moves: list[Move] = []
    late: list[int] = []
    for place, name in enumerate(names):
        row = applied.pop(name, None)
        if row is None:
            late.append(place)
        else:
            end = ends[place]
            moves.append((name[0], row[3], row[4], "in_progress", end[3], name[1], row[5], name[2], end[5]))
    tx.moved_all("finished", moves, answered=answered(ends) if tx.control_version else ())
    for place in late:
        answers[place] = _late_finish(tx, ends[place])
    return answers


def _late_finish(tx: Transaction, end: End) -> FinishResult | LeaseLost:
    try:
        return _already(tx, end._asdict(), {end.state})
    except LeaseLost as lost:
        return lost


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
    state = JobState(row[3])
    tx.moved("released", _by_lease(order, row, state, short_error(order.why)))
    return state


def progress_many(tx: Transaction, orders: Sequence[Progress]) -> list[LeaseLost | None]:
    """The last word of each lease is written; a lost lease is an answer and spoils none of the others."""
    words: dict[tuple[int, int, str], tuple[str, bool, str | None]] = {}
    for job_id, fence, lease_id, stage, begun, host in orders:
        name = (job_id, fence, lease_id)
        _, was_begun, known = words.get(name, ("", False, None))
        asked = None if host is None else host_name(host)
        words[name] = (stage[:64], was_begun or begun, asked or known)
    # Nearly all say no more than that the job has begun, and write no more than that.
    now = (tx.now_ms,)
    short = [(*name, word[0]) for name, word in words.items() if word[1:] == (True, None)]
    full = [(*name, *word) for name, word in words.items() if word[1:] != (True, None)]
    held = {*tx.write_rows("progress_all", short, now), *tx.write_rows("progress_hosts", full, now)}
    return [None if order[:3] in held else LeaseLost(order.job_id, order.fence) for order in orders]


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


def cancel_page(
    tx: Transaction, wanted: JobFilter, found: Sequence[int], reason: str, actor: str, ticket: str | None
) -> int:
    """Call off those of the jobs found that still fit and are not over; how many there were."""
    words, values = condition(wanted)
    page = tx.select(
        "SELECT id, tenant, job_type, state, fence + 1, attempts FROM jobs"
        f" WHERE id IN (SELECT value FROM json_each(:found)) AND +state IN ('pending', 'queued', 'in_progress')"
        f" AND {words}",
        {**values, "found": json.dumps(found)},
    )
    ids = json.dumps([row[0] for row in page])
    tx.rows("cancel_wanted", {"job_ids": ids, "reason": reason, "now": tx.now_ms})
    moves: list[Move] = [
        (job_id, tenant, job_type, state, "canceled", fence, attempts, actor, reason)
        for job_id, tenant, job_type, state, fence, attempts in page
    ]
    tx.moved_all("canceled", moves, ticket=ticket)
    return len(page)


def retry(tx: Transaction, found: Sequence[tuple[int, str]], actor: str, reason: str | None) -> int:
    by_needs = partial(dependencies.state_by_needs, tx) if dependencies.has_any(tx) else lambda job_id: JobState.QUEUED
    return any_engine.retry(tx, found, actor, reason, by_needs)


def is_paused(tx: Transaction) -> bool:
    return bool(tx.value("SELECT value = '1' FROM settings WHERE name = 'paused'"))


def _named(order: Fail | Release) -> dict[str, Any]:
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
