"""Who gets which job: by host and age, or by the rules where there are any.

Knows when rules have a say. The rules themselves are in `policy_leasing`; how jobs are found, locked and leased is the
driver's. Leases of one transaction are shared out together, so that every process takes its locks in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Protocol

from DocsToKG.Orchestrator.ledger import breaker_rows, control
from DocsToKG.Orchestrator.ledger.base import LeasedJob
from DocsToKG.Orchestrator.ledger.chain import Move
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.policy_leasing import Governor, Lanes
from DocsToKG.Orchestrator.ledger.transaction import Transaction

Answers = list[list[LeasedJob]]


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """What one worker asks for. The token makes the lease ids its own."""

    worker_id: str
    limit: int
    ttl_ms: int
    job_type: str | None
    begun: bool
    tenants: frozenset[str] | None = None
    token: str = field(default_factory=lambda: f"lease_{token_hex(16)}_")

    @property
    def kind(self) -> tuple[int, str | None, bool]:
        """Requests of one kind can be answered by one statement."""
        return self.ttl_ms, self.job_type, self.begun

    @property
    def tenant(self) -> str | None:
        """The only one that is meant, if there is one."""
        return next(iter(self.tenants)) if self.tenants is not None and len(self.tenants) == 1 else None


class Chooser(Protocol):
    """How a driver finds due jobs and leases them. An answer holds the jobs of each request, in their order."""

    def lease(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> Answers:
        """Lease by host and age. Leases that ran out and jobs whose time has come are looked for before."""
        ...

    def sweep(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> None:
        """Look for leases that ran out and for jobs whose time has come, and lease nothing."""
        ...

    def lanes(self, tx: Transaction) -> Lanes: ...

    def grant(self, tx: Transaction, requests: Sequence[LeaseRequest], picks: Sequence[Sequence[int]]) -> Answers:
        """Lease the jobs that were picked for each request."""
        ...

    def reset(self) -> None:
        """A transaction was undone, and with it what was thought to be taken."""
        ...


class Leasing:
    """Answers requests for leases. For one writer."""

    def __init__(self, chooser: Chooser, governor: Governor) -> None:
        self._chooser = chooser
        self._governor = governor

    @property
    def free_rules(self) -> int | None:
        """The number of the rules as they were last read, where they limit nothing."""
        return self._governor.free_rules

    def reset(self) -> None:
        """A transaction was undone."""
        self._chooser.reset()
        self._governor.forget()

    def lease(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> Answers:
        """One answer for each request. The verdicts of the transaction are told to the breakers on the way."""
        is_plain = not tx.control_version and all(request.tenants is None for request in requests)
        if is_plain:
            return self._plain(tx, requests) if requests and not tx.is_paused else [[] for _ in requests]
        opened = ControlTx(tx.now_ms, tx.execute)
        if not requests or tx.is_paused:
            breaker_rows.judge(opened, tx.verdicts)
            answers: Answers = [[] for _ in requests]
        else:
            answers = self._by_rules(tx, opened, requests)
        tx.verdicts = []
        control.settle(tx, opened)
        return answers

    def _plain(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> Answers:
        return write_leases(tx, requests, self._chooser.lease(tx, requests))

    def _by_rules(self, tx: Transaction, opened: ControlTx, requests: Sequence[LeaseRequest]) -> Answers:
        self._chooser.sweep(tx, requests)
        named = frozenset[str]().union(*(request.tenants for request in requests if request.tenants is not None))
        everyone = any(request.tenants is None for request in requests)
        lanes = self._chooser.lanes(tx)
        turn = self._governor.begin(opened, tx.control_version, lanes, tenants=named, everyone=everyone)
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
        return write_leases(tx, requests, self._chooser.grant(tx, requests, picks))


def write_leases(tx: Transaction, requests: Sequence[LeaseRequest], answers: Answers) -> Answers:
    """Write down which jobs were leased; the answers."""
    moves: list[Move] = [
        (
            job.job_id,
            job.tenant,
            job.job_type,
            "queued",
            "in_progress",
            job.fence,
            job.attempts,
            request.worker_id,
            None,
        )
        for request, jobs in zip(requests, answers, strict=True)
        for job in jobs
    ]
    tx.moved_all("leased", moves)
    return answers
