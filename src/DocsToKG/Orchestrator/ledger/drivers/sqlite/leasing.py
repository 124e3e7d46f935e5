"""Leasing on SQLite: jobs by host and age, or from lanes found by stepping through an index that exists once rules do.

The writer is alone, so nothing is locked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from DocsToKG.Orchestrator.jobs.fair_share import Lane
from DocsToKG.Orchestrator.ledger.base import LeasedJob
from DocsToKG.Orchestrator.ledger.drivers.sqlite.host_fairness import HostTurns
from DocsToKG.Orchestrator.ledger.leasing import LeaseRequest
from DocsToKG.Orchestrator.ledger.transaction import Rows, Transaction

_SWEEP = 1000
# Made with the first rule, so that a ledger without any does not write them along with every job.
INDEXES = (
    "CREATE INDEX IF NOT EXISTS jobs_by_lane ON jobs (tenant, job_type, coalesce(source, ''), -priority, id)"
    " WHERE state = 'queued' AND due = 1",
    "CREATE INDEX IF NOT EXISTS jobs_running ON jobs (tenant, job_type, coalesce(source, ''), lease_until)"
    " WHERE state = 'in_progress'",
)
_DUE = "FROM jobs INDEXED BY jobs_by_lane WHERE state = 'queued' AND due = 1"


class HostChooser:
    """Finds due jobs and leases them, one request after the other."""

    def __init__(self) -> None:
        self._hosts = HostTurns()

    def lease(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> list[list[LeasedJob]]:
        answers: list[list[LeasedJob]] = []
        for request in requests:
            self.sweep(tx, [request])
            terms = _terms(tx, request)
            answers.append(_grant(tx, request, terms, self._hosts.choose(tx, request.limit, request.job_type, terms)))
        return answers

    def sweep(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> None:
        for request in requests:
            values = {"now": tx.now_ms, "worker": request.worker_id, "limit": _SWEEP}
            tx.taken_back("lease_expired", tx.rows("expire_leases", values))
            tx.rows("wake_waiting", {"now": tx.now_ms, "limit": _SWEEP + request.limit})

    def lanes(self, tx: Transaction) -> SqliteLanes:
        _make_indexes(tx)
        return SqliteLanes(tx.execute)

    def grant(
        self, tx: Transaction, requests: Sequence[LeaseRequest], picks: Sequence[Sequence[int]]
    ) -> list[list[LeasedJob]]:
        answers: list[list[LeasedJob]] = []
        for request, ids in zip(requests, picks, strict=True):
            terms = _terms(tx, request)
            rows = {row[0]: row for row in tx.rows("due_among", {**terms, "job_ids": list(ids)})} if ids else {}
            answers.append(_grant(tx, request, terms, [rows[job_id] for job_id in ids]))
        return answers

    def reset(self) -> None:
        """The place in the round over hosts may be lost or kept: it only says where to begin."""


def _terms(tx: Transaction, request: LeaseRequest) -> dict[str, Any]:
    return {"until": tx.now_ms + request.ttl_ms, "token": request.token, "now": tx.now_ms}


def _grant(tx: Transaction, request: LeaseRequest, terms: dict[str, Any], rows: Rows) -> list[LeasedJob]:
    """Lease the jobs of these rows, which are as they will be then."""
    if rows:
        started = tx.now_ms if request.begun else None
        ids = [row[0] for row in rows]
        tx.rows("grant", {**terms, "job_ids": ids, "worker": request.worker_id, "started": started})
    return list(map(LeasedJob._make, rows))


def _make_indexes(tx: Transaction) -> None:
    if not tx.execute("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = 'jobs_running'"):
        for statement in INDEXES:
            tx.execute(statement)


class SqliteLanes:
    """Lanes by steps through the index, one for each."""

    leased = "jobs INDEXED BY jobs_running"

    def __init__(self, ask: Callable[[str, dict[str, Any]], list[tuple[Any, ...]]]) -> None:
        self._ask = ask

    def due(self, after: Lane, most: int) -> list[Lane]:
        found: list[Lane] = []
        lane = self._next(after)
        while lane is not None and len(found) < most:
            found.append(lane)
            lane = self._next(lane)
        return found

    def _next(self, lane: Lane) -> Lane | None:
        """The lane after this one: of its type, else of its tenant, else of the next."""
        values = {"tenant": lane.tenant, "job_type": lane.job_type, "source": lane.source}
        for words in (
            "AND tenant = :tenant AND job_type = :job_type AND coalesce(source, '') > :source",
            "AND tenant = :tenant AND job_type > :job_type",
            "AND tenant > :tenant",
        ):
            order = "ORDER BY tenant, job_type, coalesce(source, '') LIMIT 1"
            rows = self._ask(f"SELECT tenant, job_type, coalesce(source, '') {_DUE} {words} {order}", values)
            if rows:
                return Lane(*rows[0])
        return None

    def queues(self, lanes: Sequence[Lane], count: int) -> dict[Lane, list[tuple[int, int]]]:
        words = "AND tenant = :tenant AND job_type = :job_type AND coalesce(source, '') = :source"
        statement = f"SELECT -priority, id {_DUE} {words} ORDER BY -priority, id LIMIT :count"
        return {
            lane: [(row[0], row[1]) for row in self._ask(statement, {**lane._asdict(), "count": count})]
            for lane in lanes
        }
