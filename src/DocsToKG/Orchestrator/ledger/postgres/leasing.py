"""Who gets which job: several requests for leases in one statement, and the place in the round over hosts.

The rules of choosing are in the database (`lease_v1`), where rows that others hold are stepped over. Kept in memory is
only what may be lost: whose turn it is, when leases were last looked through, and where the due jobs begin. The last is
what keeps a lease cheap while a long reader stops the database from removing what it has left behind: entries before
that place are not read again, except once in a while, or when they may be needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from DocsToKG.Orchestrator.ledger.base import LeasedJob
from DocsToKG.Orchestrator.ledger.postgres.transaction import Transaction

_FIRST = (-(2**31), 0)
_LOOK_MS = 1000  # a job that another process made due before our place waits at most so long for its turn
_SWEEP_MS = 100


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """One worker's wish. The token makes the lease ids its own."""

    worker_id: str
    limit: int
    ttl_ms: int
    job_type: str | None
    begun: bool
    token: str = field(default_factory=lambda: f"lease_{token_hex(16)}_")


class Turns:
    """One process's place in the round. Used by the writer's thread alone."""

    def __init__(self) -> None:
        self._host = ""
        self._spare_to_hosts = False
        self._begin = _FIRST
        self._looked_ms = 0
        self._swept_ms = 0

    def forget(self) -> None:
        """Jobs became due in this process: they may come before the place that we know."""
        self._begin = _FIRST

    def reset(self) -> None:
        """A transaction was undone, and with it what we thought was taken or looked through."""
        self._begin, self._swept_ms = _FIRST, 0

    def lease(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> list[list[LeasedJob]]:
        """One answer for each request. All ask for the same job type, time and kind of start."""
        first, now = requests[0], tx.now_ms
        if now - self._looked_ms >= _LOOK_MS or first.job_type is not None:
            self._begin, self._looked_ms = _FIRST, now
        values = self._values(requests, now)
        rows = tx.rows("lease", values)
        if rows and values["sweep"]:
            self._swept_ms = now
        _take_back(tx, [row for row in rows if row[0] == "expired"])
        leased = sorted((row for row in rows if row[0] == "leased"), key=lambda row: row[1:3])
        answers: list[list[LeasedJob]] = [[] for _ in requests]
        until_s, now_s = (now + first.ttl_ms) / 1000, now / 1000
        moves = []
        for row in leased:
            job = LeasedJob._make((*row[4:7], until_s, *row[7:23], row[23] / 1000, now_s))
            worker = requests[row[1] - 1].worker_id
            answers[row[1] - 1].append(job)
            moves.append(
                (job.job_id, job.tenant, job.job_type, "queued", "in_progress", job.fence, job.attempts, worker, None)
            )
        tx.moved_all("leased", moves)
        self._advance(first.job_type, leased, [row for row in rows if row[0] == "turn"])
        return answers

    def _values(self, requests: Sequence[LeaseRequest], now: int) -> dict[str, Any]:
        first = requests[0]
        return {
            "now": now,
            "until": now + first.ttl_ms,
            "started": now if first.begun else None,
            "job_type": first.job_type,
            "workers": [request.worker_id for request in requests],
            "limits": [request.limit for request in requests],
            "tokens": [request.token for request in requests],
            "sweep": now - self._swept_ms >= _SWEEP_MS,
            "after_rank": self._begin[0],
            "after_id": self._begin[1],
            "after_host": self._host,
            "spare": self._spare_to_hosts,
        }

    def _advance(
        self, job_type: str | None, leased: Sequence[tuple[Any, ...]], turn: Sequence[tuple[Any, ...]]
    ) -> None:
        """All that came before the last job of a lease was taken, by us or by another."""
        for row in turn:
            self._host, self._spare_to_hosts = row[11], bool(row[2])
        by_age = [(-row[12], row[4]) for row in leased if row[11] is None]
        if job_type is None and by_age and len(by_age) == len(leased):
            self._begin = max(by_age)


def _take_back(tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
    tx.moved_all(
        "lease_expired",
        [(row[4], row[15], row[17], "in_progress", row[3], row[5], row[13], "ledger", row[8]) for row in rows],
    )
