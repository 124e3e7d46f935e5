"""Jobs that wait for others: put in order when they are enqueued, moved on when one that they need changes.

What ends or comes back is written down with its change. The jobs that wait for it are moved on in a transaction of
their own, after the commit: two needs of one job may end at the same moment in two transactions that do not see each
other, and whoever follows after both sees both. A bounded number is moved on at once; what is left is kept in the table
`dependency_changes`, where the next transaction of any process finds it. Needs have lower ids than their dependents,
which the schema insists on, so that no circle can form and each is settled once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    return bool(tx.rows("has_dependencies")[0][0])


def states_by_needs(tx: Transaction) -> Callable[[int], JobState]:
    """Where a job that is to run again belongs: queued, pending, or canceled while one that it needs has failed."""
    if not has_any(tx):
        return lambda job_id: JobState.QUEUED

    def state(job_id: int) -> JobState:
        return wanted_state([JobState(need) for (need,) in tx.rows("need_states", {"job_id": job_id})])

    return state


def remember(tx: Transaction) -> bool:
    """Write down which jobs that others wait for have ended or come back; whether there were any."""
    turned, tx.turned = sorted(set(tx.turned)), []
    return bool(turned) and has_any(tx) and bool(tx.rows("begin_dependency_changes", {"turned": turned}))


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


def _follow_one(tx: Transaction, row: Sequence[Any]) -> None:
    job_id, tenant, job_type, state, outcome, _, attempts, need_states, failed_need = row
    after = next_state(JobState(state), outcome, {JobState(name) for name in need_states.split(",")})
    if after is None:
        return
    reason = short_error(_failed(tx, failed_need)) if after is JobState.CANCELED else None
    values = {"job_id": job_id, "state": after.value, "before": state, "reason": reason, "now": tx.now_ms}
    moved = tx.row("follow", values)
    if moved is not None:
        tx.moved(EVENTS[after], (job_id, tenant, job_type, state, after.value, moved[0], attempts, "ledger", reason))


def _failed(tx: Transaction, need: int) -> str:
    [(artifact_id, state)] = tx.rows("name_and_state", {"job_id": need})
    return failed_words(need, artifact_id, state)
