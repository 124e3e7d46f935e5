"""One write transaction as the changes see it: the connection, the time, and what must be written along.

Collects history rows and count deltas while the changes run, and writes them before the commit,
so that a state change, its history row and its count are one transaction.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from DocsToKG.Orchestrator.jobs.states import TERMINAL, UNAVAILABLE
from DocsToKG.Orchestrator.ledger.chain import NO_HASH, Links, Move, Own, Shared, link_hash
from DocsToKG.Orchestrator.ledger.checks import End
from DocsToKG.Orchestrator.ledger.control import by_scope
from DocsToKG.Orchestrator.ledger.drivers.sqlite.many_rows import run_rows

_SHARD = 0
_ENDS = frozenset(state.value for state in TERMINAL)
_VERDICTS = {"done": True, "skipped": True, "error": False, "timed_out": False}

_KIND = itemgetter(1, 2, 3, 4)  # of a move: tenant, job type, state before, state after


def judged(
    event: str, moves: Iterable[Move], answered: Collection[int] = ()
) -> list[tuple[str, str, int, bool | None]]:
    """What an end says of its job type: tenant, job type, job, and whether it went well (None says nothing).

    `answered` are the jobs that failed with an answer: what they asked for is not to be had.
    """
    if event not in ("finished", "failed", "released"):
        return []
    return [
        (move[1], move[2], move[0], move[0] in answered or (event != "failed" and _VERDICTS.get(move[4])))
        for move in moves
    ]


def answered(ends: Iterable[End]) -> set[int]:
    return {end.job_id for end in ends if end.outcome == UNAVAILABLE}


class Transaction:
    """Lives from BEGIN to COMMIT.

    `lanes` gathers the job types that may have work afterwards, and `turned` the jobs that ended or came back.
    `unsettled` says that jobs which depend on others are left for a transaction of their own. `control_version` is the
    number of the rules, 0 where there are none; only with rules are ends gathered as `verdicts`.
    """

    def __init__(
        self, connection: sqlite3.Connection, sql: Mapping[str, str], now_ms: int, control_version: int = 0
    ) -> None:
        self.now_ms = now_ms
        self.control_version = control_version
        self.verdicts: list[tuple[str, str, int, bool | None]] = []
        self.lanes: set[str] = set()
        self.turned: list[int] = []
        self.unsettled = False
        self.scope: str | None = None  # by whose right this part of it is done
        self._connection = connection
        self._sql = sql
        self._links: list[tuple[Shared, list[Own]]] = []
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def rows(self, query: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a named query and give all its rows."""
        return self._connection.execute(self._sql[query], values).fetchall()

    def select(self, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a statement whose condition was put together here; its values are bound."""
        return self._connection.execute(statement, values).fetchall()

    def row(self, query: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> tuple[Any, ...] | None:
        found = self.rows(query, values)
        return found[0] if found else None

    def run_many(self, query: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a named query that answers nothing for each of the values."""
        self._connection.executemany(self._sql[query], values)

    def write_rows(
        self, query: str, rows: Sequence[Sequence[Any]], shared: Sequence[Any] = ()
    ) -> list[tuple[Any, ...]]:
        """Run a named query that has one list of values for many rows at once; what it returns."""
        return run_rows(self._connection, self._sql[query], rows, shared)

    def value(self, statement: str) -> Any:
        """The single value of a short statement."""
        found = self._connection.execute(statement).fetchone()
        return found[0] if found else None

    def moved(self, event: str, move: Move, *, ticket: str | None = None) -> None:
        """A job changed its state: count it and write it down."""
        self.moved_all(event, [move], ticket=ticket)

    def moved_all(
        self, event: str, moves: Sequence[Move], *, ticket: str | None = None, answered: Collection[int] = ()
    ) -> None:
        """Many jobs did the same. Every change of every job passes here: what neighbours share is done once."""
        for kind, group in groupby(moves, _KIND):
            alike = list(group)
            tenant, _, before, after = kind
            links = Links(tenant, _SHARD, self.now_ms, event, before, after, ticket, by_scope(None, self.scope))
            self._append(links.shared, links.make(*self._head(tenant), alike))
            self._count(kind, alike)
        if self.control_version:
            self.verdicts += judged(event, moves, answered)

    def _count(self, kind: tuple[str, str, str | None, str], moves: Sequence[Move]) -> None:
        """These jobs went from one state to another."""
        tenant, job_type, before, after = kind
        if before is not None:
            self._counts[tenant, job_type, before] -= len(moves)
        self._counts[tenant, job_type, after] += len(moves)
        if after == "queued":
            self.lanes.add(job_type)
        if after in _ENDS or before in _ENDS:
            self.turned += [move[0] for move in moves]

    def ask(self, statement: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows of a statement of the control plane."""
        return self._connection.execute(statement, values or {}).fetchall()

    def note(
        self,
        tenant: str,
        *,
        event: str,
        actor: str,
        reason: str | None = None,
        ticket: str | None = None,
        detail: Mapping[str, Any] | None = None,
        job_id: int | None = None,
    ) -> None:
        """Add a link that tells of no change of state."""
        text = by_scope(detail, self.scope)
        last, prev_hash = self._head(tenant)
        link, at = last + 1, self.now_ms
        digest = link_hash(
            (tenant, _SHARD, link, job_id, at, event, None, None, None, None, actor, reason, ticket, text), prev_hash
        )
        shared = (tenant, _SHARD, at, event, None, None, ticket, text)
        self._append(shared, [(link, job_id, None, None, actor, reason, prev_hash, digest)])

    def write_along(self) -> None:
        """Write what was collected. Called once, before the commit."""
        for shared, rows in self._links:
            self.write_rows("append_history", rows, shared)
        heads = [(tenant, _SHARD, link, digest) for tenant, (link, digest) in self._heads.items()]
        self._connection.executemany(self._sql["move_head"], heads)
        counts = [(*key, change) for key, change in self._counts.items() if change]
        self._connection.executemany(self._sql["count"], counts)

    def _append(self, shared: Shared, rows: list[Own]) -> None:
        """Add links to the end of their chain, to be written with those before them where they share as much."""
        self._heads[shared[0]] = (rows[-1][0], rows[-1][-1])
        if self._links and self._links[-1][0] == shared:
            self._links[-1][1].extend(rows)
        else:
            self._links.append((shared, rows))

    def _head(self, tenant: str) -> tuple[int, bytes]:
        """The last link of a tenant's chain and its hash."""
        known = self._heads.get(tenant)
        if known is not None:
            return known
        found = self._connection.execute(
            "SELECT link, hash FROM history_heads WHERE tenant = ? AND shard = ?", (tenant, _SHARD)
        ).fetchone()
        return (found[0], found[1]) if found else (0, NO_HASH)
