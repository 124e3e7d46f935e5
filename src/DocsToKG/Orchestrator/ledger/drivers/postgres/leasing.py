"""Who gets which job: several requests for leases in one statement, and the place in the round over hosts.

The rules of choosing are in the database (`lease_v1`), where rows that others hold are stepped over. Kept in memory is
only what may be lost: whose turn it is, when leases were last looked through, and where the due jobs begin. The last is
what keeps a lease cheap while a long reader stops the database from removing what it has left behind: entries before
that place are not read again, except once in a while, or when they may be needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from DocsToKG.Orchestrator.jobs.fair_share import Lane
from DocsToKG.Orchestrator.ledger.base import LeasedJob
from DocsToKG.Orchestrator.ledger.leasing import LeaseRequest
from DocsToKG.Orchestrator.ledger.transaction import Transaction

Rows = Sequence[tuple[Any, ...]]

_FIRST = (-(2**31), 0)
_LOOK_MS = 1000  # a job that another process made due before our place waits at most so long for its turn
_SWEEP_MS = 100
_MOST_PLACES = 100
_EXPIRED = (4, 15, 17, 3, 5, 13, 8)  # the columns of a lease that ran out, as `taken_back` has them


@dataclass(slots=True)
class _Place:
    """Where due jobs begin, and when that was last looked at."""

    begin: tuple[int, int] = _FIRST
    looked_ms: int = 0


class HostChooser:
    """Finds due jobs and leases them; knows this process's place in the round. Used by the writer's thread alone."""

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
        answers: list[list[LeasedJob]] = []
        for _, group in groupby(requests, key=lambda request: request.kind):
            answers += self._lease(tx, list(group))
        return answers

    def sweep(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> None:
        """Leases of nothing: what they do beside is to look for these."""
        self.lease(tx, [replace(request, limit=0) for request in requests])

    def _lease(self, tx: Transaction, requests: Sequence[LeaseRequest]) -> list[list[LeasedJob]]:
        """One answer for each request. All are of one kind."""
        first, now = requests[0], tx.now_ms
        asked, sweep = self.asking(requests, now), now - self._swept_ms >= _SWEEP_MS
        started = now if first.begun else None
        rows = tx.rows("lease", {**asked, "now": now, "until": now + first.ttl_ms, "started": started, "sweep": sweep})
        expired = [row for row in rows if row[0] == "expired"]
        tx.taken_back("lease_expired", [(*(row[at] for at in _EXPIRED),) for row in expired])
        leased = sorted((row for row in rows if row[0] == "leased"), key=lambda row: row[1:3])
        self.given(requests, leased, [row for row in rows if row[0] == "turn"], now if sweep else None)
        return jobs_of(requests, leased, now)

    def lanes(self, tx: Transaction) -> PostgresLanes:
        return PostgresLanes(tx)

    def grant(
        self, tx: Transaction, requests: Sequence[LeaseRequest], picks: Sequence[Sequence[int]]
    ) -> list[list[LeasedJob]]:
        answers: list[list[LeasedJob]] = [[] for _ in requests]
        for kind in sorted({request.kind for request in requests}, key=repr):
            places = [place for place, request in enumerate(requests) if request.kind == kind and picks[place]]
            given = _grant(tx, [requests[place] for place in places], [picks[place] for place in places])
            for place, jobs in zip(places, given, strict=True):
                answers[place] = jobs
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
    return jobs_of(requests, sorted(rows, key=lambda row: row[1:3]), now)


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
