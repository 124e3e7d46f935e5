"""Changes that are the same whichever engine makes them, each as a function of the open transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.jobs.throttling import Lane
from DocsToKG.Orchestrator.ledger import policy_rows
from DocsToKG.Orchestrator.ledger.base import DEFAULT_TENANT, WorkerEnd
from DocsToKG.Orchestrator.ledger.chain import Move
from DocsToKG.Orchestrator.ledger.checks import result_text, short_error
from DocsToKG.Orchestrator.ledger.control import OpenControl


class _Transaction(Protocol):
    """An engine's transaction, as far as it is used here."""

    now_ms: int
    control_version: int
    lanes: set[str]

    def ask(self, statement: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]: ...

    def row(self, query: str, values: Mapping[str, Any]) -> tuple[Any, ...] | None: ...

    def moved(self, event: str, move: Move) -> None: ...

    def note(self, tenant: str, *, event: str, actor: str, reason: str | None) -> None: ...


def retry(
    tx: _Transaction,
    found: Sequence[tuple[int, str]],
    actor: str,
    reason: str | None,
    by_needs: Callable[[int], JobState],
) -> int:
    """A job whose need has failed stays as it is: the need must come back first, and brings the job along."""
    count = 0
    for job_id, state in found:
        after = by_needs(job_id)
        values = {"job_id": job_id, "state": state, "after": after.value, "now": tx.now_ms}
        row = tx.row("retry", values) if after is not JobState.CANCELED else None
        if row is not None:
            tenant, job_type, fence = row
            tx.moved("retried", (job_id, tenant, job_type, state, after.value, fence, 0, actor, reason))
            count += 1
    return count


def set_paused(tx: _Transaction, paused: bool, actor: str, reason: str | None) -> None:
    values = {"name": "paused", "value": "1" if paused else "0", "actor": actor, "reason": reason, "now": tx.now_ms}
    if tx.row("set_switch", values) is not None:
        tx.note(DEFAULT_TENANT, event="paused" if paused else "resumed", actor=actor, reason=reason)
    if not paused:
        tx.lanes.add("")


def queue_suspect(tx: _Transaction, job_type: str | None) -> int | None:
    """Queue the suspect that is next, for whoever leases it in this transaction; None where there is none, or rules
    hold it back."""
    found = tx.row("next_suspect", {"now": tx.now_ms, "job_type": job_type})
    if found is None:
        return None
    job_id, tenant, its_type, source, fence, attempts = found
    lane = Lane(tenant, its_type, source)
    if tx.control_version and policy_rows.held_lane(OpenControl(tx.now_ms, tx.ask), lane) is not None:
        return None
    tx.row("queue_suspect", {"job_id": job_id})
    tx.moved("isolated", (job_id, tenant, its_type, "pending", "queued", fence, attempts, "ledger", None))
    return int(job_id)


def end_values(end: WorkerEnd | None) -> dict[str, Any]:
    """What a worker's parent tells of its end, as the values of `free_worker`."""
    return {"how": end and short_error(end.reason), "result": end and result_text(end.result)}
