"""Jobs that wait for others: written when they are enqueued, moved on when one that they need changes.

Every transaction moves on a bounded number of dependents; what is left is kept in the table
`dependency_changes`, where the next transaction of any process finds it. Needs have lower ids than
their dependents, which the schema insists on, so that no circle can form and each is settled once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.jobs.dependencies import EVENTS, failed_words, next_state, wanted_state
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.checks import CheckedJob, short_error
from DocsToKG.Orchestrator.ledger.transaction import Transaction

PAGE = 500


def needs_first(jobs: Sequence[CheckedJob]) -> list[int]:
    """The places of the jobs in an order that has every need before its dependents; `BadJob` for a circle."""
    if not any(job.needs for job in jobs):
        return list(range(len(jobs)))
    places = {job.key: place for place, job in reversed(list(enumerate(jobs))) if job.replay_of is None}
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for place, job in enumerate(jobs):
        named = ((job.key[0], job.key[1], need) for need in job.needs if isinstance(need, str))
        sorter.add(place, *(places[key] for key in named if key in places))
    try:
        return list(sorter.static_order())
    except CycleError as error:
        circle = " -> ".join(jobs[place].key[2][:80] for place in error.args[1])
        raise BadJob(f"jobs that wait for each other would never run: {circle}") from None


def has_any(tx: Transaction) -> bool:
    """Whether any job waits for another; without one, finishing costs nothing more."""
    return bool(tx.value("SELECT EXISTS (SELECT 1 FROM job_dependencies)"))


def state_by_needs(tx: Transaction, job_id: int) -> JobState:
    """Where a job that is to run again belongs: queued, pending, or canceled while one that it needs has failed."""
    return wanted_state([JobState(state) for (state,) in tx.rows("need_states", (job_id,))])


def follow(tx: Transaction) -> None:
    """Move on the dependents of all jobs that ended or came back. Called once, before the history is written."""
    _remember(tx)
    budget = PAGE
    while (change := tx.row("next_dependency_change")) is not None:
        if budget <= 0:
            tx.unsettled = True
            return
        need, after = change
        page = tx.rows("dependents", {"need": need, "after": after, "limit": budget})
        for row in page:
            _follow_one(tx, row)
        tx.run_many(
            "advance_dependency_change" if len(page) == budget else "end_dependency_change",
            [(page[-1][0], need) if len(page) == budget else (need,)],
        )
        budget -= max(1, len(page))
        _remember(tx)


def _remember(tx: Transaction) -> None:
    if tx.turned and has_any(tx):
        tx.rows("begin_dependency_changes", (json.dumps(tx.turned),))
    tx.turned.clear()


def _follow_one(tx: Transaction, row: Sequence[Any]) -> None:
    job_id, tenant, job_type, state, outcome, fence, attempts, need_states, failed_need = row
    before = JobState(state)
    after = next_state(before, outcome, _states(need_states.split(",")))
    if after is None:
        return
    reason = short_error(_failed(tx, failed_need)) if after is JobState.CANCELED else None
    values = {"job_id": job_id, "state": after.value, "reason": reason, "now": tx.now_ms}
    tx.rows("follow", values)
    tx.moved(EVENTS[after], (job_id, tenant, job_type, before.value, after.value, fence, attempts, "ledger", reason))


def _states(names: Iterable[str]) -> set[JobState]:
    return {JobState(name) for name in names}


def _failed(tx: Transaction, need: int) -> str:
    [(artifact_id, state)] = tx.rows("name_and_state", (need,))
    return failed_words(need, artifact_id, state)
