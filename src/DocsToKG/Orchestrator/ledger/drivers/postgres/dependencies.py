"""Jobs that wait for others are moved on in a transaction of their own, after the change that frees them is committed.

Two needs of one job may end at the same moment in two transactions that do not see each other; whoever follows after
both commits sees both. One follows at a time. A bounded number of dependents is moved on; what is left is kept in the
table `dependency_changes`, where the next transaction of any process finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from DocsToKG.Orchestrator.jobs.dependencies import EVENTS, failed_words, next_state
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.checks import short_error
from DocsToKG.Orchestrator.ledger.drivers.postgres.transaction import Transaction

PAGE = 500


def follow(tx: Transaction) -> bool:
    """Move on the dependents of jobs that ended or came back; whether there are more."""
    budget = PAGE
    while (change := tx.row("next_dependency_change")) is not None:
        if budget <= 0:
            return True
        need, after = change
        page = tx.rows("dependents", {"need": need, "after": after, "limit": budget})
        for row in page:
            _follow_one(tx, row)
        if len(page) == budget:
            tx.rows("advance_dependency_change", {"after": page[-1][0], "need": need})
        else:
            tx.rows("end_dependency_change", {"need": need})
        budget -= max(1, len(page))
        remember(tx)
    return False


def remember(tx: Transaction) -> bool:
    """Write down which jobs that others wait for have ended or come back; whether there were any."""
    found = tx.rows("begin_dependency_changes", {"turned": sorted(set(tx.turned))}) if tx.turned else []
    tx.turned.clear()
    return bool(found)


def _follow_one(tx: Transaction, row: Sequence[Any]) -> None:
    job_id, tenant, job_type, state, outcome, _, attempts, need_states, failed_need = row
    before = JobState(state)
    after = next_state(before, outcome, {JobState(name) for name in need_states.split(",")})
    if after is None:
        return
    reason = short_error(_failed(tx, failed_need)) if after is JobState.CANCELED else None
    values = {"job_id": job_id, "state": after.value, "before": state, "reason": reason, "now": tx.now_ms}
    moved = tx.row("follow", values)
    if moved is not None:
        move = (job_id, tenant, job_type, before.value, after.value, moved[0], attempts, "ledger", reason)
        tx.moved(EVENTS[after], move)


def _failed(tx: Transaction, need: int) -> str:
    [(artifact_id, state)] = tx.rows("name_and_state", {"job_id": need})
    return failed_words(need, artifact_id, state)
