"""Governed leasing on SQLite: lanes found by stepping through an index that exists once rules do.

The writer is alone, so nothing is locked. A ledger without rules goes by hosts and age as ever.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

from DocsToKG.Orchestrator.jobs.fair_share import Lane
from DocsToKG.Orchestrator.ledger import breaker_rows, control
from DocsToKG.Orchestrator.ledger.control import OpenControl
from DocsToKG.Orchestrator.ledger.drivers.sqlite.host_fairness import HostTurns
from DocsToKG.Orchestrator.ledger.policy_leasing import Governor
from DocsToKG.Orchestrator.ledger.transaction import Transaction

# Made with the first rule, so that a ledger without any does not write them along with every job.
INDEXES = (
    "CREATE INDEX IF NOT EXISTS jobs_by_lane ON jobs (tenant, job_type, coalesce(source, ''), -priority, id)"
    " WHERE state = 'queued' AND due = 1",
    "CREATE INDEX IF NOT EXISTS jobs_running ON jobs (tenant, job_type, coalesce(source, ''), lease_until)"
    " WHERE state = 'in_progress'",
)
_DUE = "FROM jobs INDEXED BY jobs_by_lane WHERE state = 'queued' AND due = 1"


class GovernedTurns:
    """Chooses the jobs of a lease: by the rules where there are any, by host and age otherwise."""

    def __init__(self) -> None:
        self.governor = Governor()
        self._hosts = HostTurns()

    def choose(
        self,
        tx: Transaction,
        limit: int,
        job_type: str | None,
        lease: dict[str, Any],
        tenants: Collection[str] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Up to `limit` due jobs as rows of a leased job; of these tenants only, where some are named."""
        if not tx.control_version and tenants is None:
            return self._hosts.choose(tx, limit, job_type, lease)
        _make_indexes(tx)
        opened = OpenControl(tx.now_ms, tx.ask)
        turn = self.governor.begin(
            opened, tx.control_version, SqliteLanes(tx.ask), tenants=tenants or (), everyone=tenants is None
        )
        if turn.is_plain and tenants is None:
            self.governor.held_until = 0
            return self._hosts.choose(tx, limit, job_type, lease)
        ids = [job_id for _, job_id in turn.take(limit, job_type, tenants)]
        turn.close()
        control.settle(tx, opened)
        rows = {row[0]: row for row in tx.rows("due_among", {**lease, "job_ids": json.dumps(ids)})} if ids else {}
        return [rows[job_id] for job_id in ids]


def _make_indexes(tx: Transaction) -> None:
    if not tx.value("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = 'jobs_running'"):
        for statement in INDEXES:
            tx.ask(statement)


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


def judge(tx: Transaction) -> None:
    """Tell the breakers how jobs ended in this transaction."""
    opened = OpenControl(tx.now_ms, tx.ask)
    breaker_rows.judge(opened, tx.verdicts)
    control.settle(tx, opened)
