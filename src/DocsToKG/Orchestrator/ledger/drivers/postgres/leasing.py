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
from DocsToKG.Orchestrator.ledger.chain import Move
from DocsToKG.Orchestrator.ledger.drivers.postgres.transaction import Transaction

Rows = Sequence[tuple[Any, ...]]

_FIRST = (-(2**31), 0)
_LOOK_MS = 1000  # a job that another process made due before our place waits at most so long for its turn
_SWEEP_MS = 100
_MOST_PLACES = 100


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """One worker's wish. The token makes the lease ids its own."""

    worker_id: str
    limit: int
    ttl_ms: int
    job_type: str | None
    begun: bool
    token: str = field(default_factory=lambda: f"lease_{token_hex(16)}_")
    tenants: frozenset[str] | None = None

    @property
    def kind(self) -> tuple[int, str | None, bool]:
        """Requests of one kind can be answered by one statement."""
        return self.ttl_ms, self.job_type, self.begun

    @property
    def tenant(self) -> str | None:
        """The only one that is meant, if there is one."""
        return next(iter(self.tenants)) if self.tenants is not None and len(self.tenants) == 1 else None


@dataclass(slots=True)
class _Place:
    """Where due jobs begin, and when that was last looked at."""

    begin: tuple[int, int] = _FIRST
    looked_ms: int = 0


class Turns:
    """One process's place in the round. Used by the writer's thread alone."""

    def __init__(self) -> None:
        self._host = ""
        self._spare_to_hosts = False
        self._places: dict[str | None, _Place] = {}
        self._swept_ms = 0

    def forget(self) -> None:
        """Jobs became due in this process: they may come before the places that we know."""
        for place in self._places.values():
            place.begin = _FIRST

    def reset(self) -> None:
        """A transaction was undone, and with it what we thought was taken or looked through."""
        self.forget()
        self._swept_ms = 0

    def lease(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> list[list[LeasedJob]]:
        """One answer for each request. All are of one kind."""
        first, now = requests[0], tx.now_ms
        asked, sweep = self.asking(requests, now), now - self._swept_ms >= _SWEEP_MS
        started = now if first.begun else None
        rows = tx.rows("lease", {**asked, "now": now, "until": now + first.ttl_ms, "started": started, "sweep": sweep})
        _take_back(tx, [row for row in rows if row[0] == "expired"])
        leased = sorted((row for row in rows if row[0] == "leased"), key=lambda row: row[1:3])
        answers = jobs_of(requests, leased, now)
        moves: list[Move] = [
            (job.job_id, job.tenant, job.job_type, "queued", "in_progress", job.fence, job.attempts, worker, None)
            for worker, jobs in zip((request.worker_id for request in requests), answers, strict=True)
            for job in jobs
        ]
        tx.moved_all("leased", moves)
        self.given(requests, leased, [row for row in rows if row[0] == "turn"], now if sweep else None)
        return answers

    def asking(self, requests: Sequence[LeaseRequest], now: int) -> dict[str, Any]:
        """What the database is told: the requests and the place in the round."""
        first = requests[0]
        place = self._place(first.job_type)
        if now - place.looked_ms >= _LOOK_MS:
            place.begin, place.looked_ms = _FIRST, now
        begin = place.begin if first.tenant is None else _FIRST
        return {
            "ttl": first.ttl_ms,
            "begun": first.begun,
            "job_type": first.job_type,
            "workers": [request.worker_id for request in requests],
            "limits": [request.limit for request in requests],
            "tokens": [request.token for request in requests],
            "swept": self._swept_ms,
            "after_rank": begin[0],
            "after_id": begin[1],
            "after_host": self._host,
            "spare": self._spare_to_hosts,
            "tenant": first.tenant,
        }

    def given(self, requests: Sequence[LeaseRequest], leased: Rows, turn: Rows, swept_ms: int | None) -> None:
        """All of the type that came before the last job of a lease was taken, by us or by another."""
        for row in turn:
            self._host, self._spare_to_hosts = row[11], bool(row[2])
            self._swept_ms = swept_ms or self._swept_ms  # without this row nothing was looked at: the queue is paused
        by_age = [(-row[12], row[4]) for row in leased if row[11] is None]
        if requests[0].tenant is not None:
            return  # others' jobs may come before these
        if by_age and len(by_age) == len(leased):
            self._place(requests[0].job_type).begin = max(by_age)

    def _place(self, job_type: str | None) -> _Place:
        """Where the due jobs of a type begin; None is any type. Types are few, but they are what others name."""
        if job_type not in self._places and len(self._places) >= _MOST_PLACES:
            self._places.clear()
        return self._places.setdefault(job_type, _Place())


def jobs_of(requests: Sequence[LeaseRequest], leased: Rows, now: int) -> list[list[LeasedJob]]:
    """The jobs of each request, from rows in their order."""
    answers: list[list[LeasedJob]] = [[] for _ in requests]
    for row in leased:
        until_s = (now + requests[0].ttl_ms) / 1000
        answers[row[1] - 1].append(LeasedJob._make((*row[4:7], until_s, *row[7:23], row[23] / 1000, now / 1000)))
    return answers


def _take_back(tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
    tx.moved_all(
        "lease_expired",
        [(row[4], row[15], row[17], "in_progress", row[3], row[5], row[13], "ledger", row[8]) for row in rows],
    )
