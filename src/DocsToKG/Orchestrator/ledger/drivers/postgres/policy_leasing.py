"""Governed leasing on PostgreSQL: lanes by index, their jobs locked, and all that is counted locked before.

A ledger without rules goes by hosts and age as ever (`leasing`), and so does one whose rules limit nothing while a
single tenant waits. Leases of one transaction are shared out together, so that every process takes its locks in the
same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from DocsToKG.Orchestrator.jobs.fair_share import Lane
from DocsToKG.Orchestrator.ledger import breaker_rows, control
from DocsToKG.Orchestrator.ledger.base import LeasedJob
from DocsToKG.Orchestrator.ledger.chain import Move
from DocsToKG.Orchestrator.ledger.control import OpenControl
from DocsToKG.Orchestrator.ledger.drivers.postgres.leasing import LeaseRequest, Turns, jobs_of
from DocsToKG.Orchestrator.ledger.drivers.postgres.transaction import Transaction
from DocsToKG.Orchestrator.ledger.policy_leasing import Governor


class GovernedLeasing:
    """Answers requests for leases: by the rules where there are any."""

    def __init__(self, turns: Turns, governor: Governor | None = None) -> None:
        self._turns = turns
        self._governor = governor or Governor()

    @property
    def free_rules(self) -> int | None:
        """The number of the rules as they were last read, where they limit nothing."""
        return self._governor.free_rules

    def reset(self) -> None:
        """A transaction was undone."""
        self._turns.reset()
        self._governor.forget()

    def lease(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> list[list[LeasedJob]]:
        """One answer for each request. The verdicts of the transaction are told to the breakers on the way."""
        if not tx.control_version and all(request.tenants is None for request in requests):
            return self._plain(tx, requests)
        opened = OpenControl(tx.now_ms, tx.ask)
        if not requests or tx.is_paused:
            breaker_rows.judge(opened, tx.verdicts)
            answers: list[list[LeasedJob]] = [[] for _ in requests]
        else:
            answers = self._governed(tx, opened, requests)
        tx.verdicts = []
        control.settle(tx, opened)
        return answers

    def _plain(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> list[list[LeasedJob]]:
        answers: list[list[LeasedJob]] = []
        for _, group in groupby(requests, key=lambda request: request.kind):
            answers += self._turns.lease(tx, list(group))
        return answers

    def _governed(
        self, tx: Transaction, opened: OpenControl, requests: Sequence[LeaseRequest]
    ) -> list[list[LeasedJob]]:
        # Leases of nothing: what they do beside is to look for leases that ran out and for jobs whose time has come.
        self._plain(tx, [replace(request, limit=0) for request in requests])
        named = frozenset[str]().union(*(request.tenants for request in requests if request.tenants is not None))
        everyone = any(request.tenants is None for request in requests)
        turn = self._governor.begin(opened, tx.control_version, PostgresLanes(tx), tenants=named, everyone=everyone)
        if turn.is_plain and all(request.tenants is None for request in requests):
            self._governor.held_until = 0
            breaker_rows.judge(opened, tx.verdicts)
            return self._plain(tx, requests)
        if tx.verdicts:
            turn.lock(tx.verdicts)
        picks = [
            [job_id for _, job_id in turn.take(request.limit, request.job_type, request.tenants)]
            for request in requests
        ]
        turn.close()
        answers: list[list[LeasedJob]] = [[] for _ in requests]
        for kind in sorted({request.kind for request in requests}, key=repr):
            places = [place for place, request in enumerate(requests) if request.kind == kind and picks[place]]
            given = _grant(tx, [requests[place] for place in places], [picks[place] for place in places])
            for place, jobs in zip(places, given, strict=True):
                answers[place] = jobs
        return answers


def _grant(tx: Transaction, requests: Sequence[LeaseRequest], picks: Sequence[Sequence[int]]) -> list[list[LeasedJob]]:
    """Write the leases of requests of one kind."""
    if not requests:
        return []
    told = [(job_id, place) for place, ids in enumerate(picks, start=1) for job_id in ids]
    first, now = requests[0], tx.now_ms
    rows = tx.rows(
        "grant",
        {
            "ids": [job_id for job_id, _ in told],
            "requests": [place for _, place in told],
            "workers": [requests[place - 1].worker_id for _, place in told],
            "tokens": [requests[place - 1].token for _, place in told],
            "now": now,
            "until": now + first.ttl_ms,
            "started": now if first.begun else None,
        },
    )
    answers = jobs_of(requests, sorted(rows, key=lambda row: row[1:3]), now)
    moves: list[Move] = [
        (job.job_id, job.tenant, job.job_type, "queued", "in_progress", job.fence, job.attempts, worker, None)
        for worker, jobs in zip((request.worker_id for request in requests), answers, strict=True)
        for job in jobs
    ]
    tx.moved_all("leased", moves)
    return answers


class PostgresLanes:
    """Lanes by steps through the index; what is read of them is locked."""

    leased = "jobs"

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    def due(self, after: Lane, most: int) -> list[Lane]:
        return [Lane(*row) for row in self._tx.rows("due_lanes", {**after._asdict(), "most": most})]

    def queues(self, lanes: Sequence[Lane], count: int) -> dict[Lane, list[tuple[int, int]]]:
        found: dict[Lane, list[tuple[int, int]]] = {lane: [] for lane in lanes}
        values = {
            "tenants": [lane.tenant for lane in lanes],
            "job_types": [lane.job_type for lane in lanes],
            "sources": [lane.source for lane in lanes],
            "count": count,
        }
        for tenant, job_type, source, rank, job_id in self._tx.rows("lane_queues", values):
            found[Lane(tenant, job_type, source)].append((rank, job_id))
        return {lane: sorted(queue) for lane, queue in found.items()}
