"""Reads of a tenant's jobs inside a transaction of the caller: one job, its history, counts.

Promises: a job of another tenant is the same as one that does not exist; every read is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from DocsToKG.Orchestrator.control import paging
from DocsToKG.Orchestrator.control.history.chains import COLUMNS
from DocsToKG.Orchestrator.control.jobs import pages
from DocsToKG.Orchestrator.control.jobs.views import HistoryPage, JobView
from DocsToKG.Orchestrator.errors import BadPage, UnknownJob
from DocsToKG.Orchestrator.jobs.status import by_status
from DocsToKG.Orchestrator.ledger.base import HistoryRow
from DocsToKG.Orchestrator.ledger.control import ControlTx

_CHAIN = 50
_SHOWN_HISTORY = 1000
_HISTORY = "history"
_HISTORY_ROWS = f"SELECT {COLUMNS} FROM job_history"


def view(tx: ControlTx, tenant: str, job_id: int) -> JobView:
    rows = []
    if 0 < job_id < 2**63:
        named = {"job_id": job_id, "tenant": tenant}
        rows = tx.execute(f"{pages.SELECT} WHERE id = :job_id AND tenant = :tenant", named)
    if not rows:
        raise UnknownJob(job_id)
    return pages.view(rows[0], pages.held_lanes(tx, tenant))


def more(tx: ControlTx, tenant: str, job_id: int) -> dict[str, Any]:
    """What a list does not show of a job that is known to be the tenant's."""
    named = {"job_id": job_id, "tenant": tenant}
    [(payload, result, crashes)] = tx.execute(
        "SELECT artifact_json, result_json, crashes FROM jobs WHERE id = :job_id", {"job_id": job_id}
    )
    replays = tx.execute(
        f"SELECT id FROM jobs WHERE replay_of = :job_id AND tenant = :tenant ORDER BY id LIMIT {_CHAIN}", named
    )
    needs = tx.execute(
        f"SELECT needs_job_id FROM job_dependencies WHERE job_id = :job_id ORDER BY needs_job_id LIMIT {_CHAIN}",
        {"job_id": job_id},
    )
    return {
        "payload": json.loads(payload),
        "result": None if result is None else json.loads(result),
        "crashes": crashes,
        "chain": _chain(tx, tenant, job_id),
        "replays": [row[0] for row in replays],
        "needs": [row[0] for row in needs],
        "history": _last_rows(tx, job_id),
    }


def _chain(tx: ControlTx, tenant: str, job_id: int) -> list[int]:
    """What the job is a copy of, and that one in turn."""
    chain: list[int] = []
    while len(chain) < _CHAIN:
        named = {"job_id": chain[-1] if chain else job_id, "tenant": tenant}
        found = tx.execute("SELECT replay_of FROM jobs WHERE id = :job_id AND tenant = :tenant", named)
        if not found or found[0][0] is None:
            break
        chain.append(found[0][0])
    return chain


def _last_rows(tx: ControlTx, job_id: int) -> list[HistoryRow]:
    rows = tx.execute(
        f"{_HISTORY_ROWS} WHERE job_id = :job_id ORDER BY seq DESC LIMIT {_SHOWN_HISTORY}", {"job_id": job_id}
    )
    return [history_row(row) for row in reversed(rows)]


def history(tx: ControlTx, tenant: str, job_id: int, size: int, page_token: str | None) -> HistoryPage:
    view(tx, tenant, job_id)
    after = paging.number(_HISTORY, page_token) or 0
    values = {"job_id": job_id, "after": after, "limit": size + 1}
    rows = tx.execute(f"{_HISTORY_ROWS} WHERE job_id = :job_id AND seq > :after ORDER BY seq LIMIT :limit", values)
    if page_token is not None and not rows:
        raise BadPage("this page token lies beyond the history; begin again without one")
    shown = [history_row(row) for row in rows[:size]]
    return HistoryPage(shown, paging.token(_HISTORY, shown[-1].seq) if len(rows) > size else None)


def history_row(row: Sequence[Any]) -> HistoryRow:
    """A row of the history as it is kept, for reading."""
    words = list(row)
    words[5] /= 1000
    words[-2:] = [bytes(digest).hex() for digest in words[-2:]]
    return HistoryRow(*words)


def counts(tx: ControlTx, tenant: str, job_type: str | None) -> dict[str, int]:
    return by_status(totals(tx, tenant, job_type), pages.held_lanes(tx, tenant))


def totals(tx: ControlTx, tenant: str, job_type: str | None = None) -> Mapping[tuple[str, str], int]:
    """How many jobs a tenant has, by job type and state."""
    only = "" if job_type is None else " AND job_type = :job_type"
    values = {"tenant": tenant} | ({} if job_type is None else {"job_type": job_type})
    rows = tx.execute(
        f"SELECT job_type, state, sum(n) FROM job_totals WHERE tenant = :tenant{only} GROUP BY job_type, state", values
    )
    return {(kind, state): int(count) for kind, state, count in rows}
