"""One write transaction as the changes see it: the connection, the time, and what must be written along.

Collects history rows and count deltas while the changes run, and writes them before the commit,
so that a state change, its history row and its count are one transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from DocsToKG.Orchestrator.ledger.chain import NO_HASH, Entry, link_hash

_SHARD = 0


class Transaction:
    """Lives from BEGIN to COMMIT. `lanes` gathers the job types that may have work afterwards."""

    def __init__(self, connection: sqlite3.Connection, sql: Mapping[str, str], now_ms: int) -> None:
        self.now_ms = now_ms
        self.lanes: set[str] = set()
        self._connection = connection
        self._sql = sql
        self._rows: list[tuple[Any, ...]] = []
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def rows(self, query: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run a named query and give all its rows."""
        return self._connection.execute(self._sql[query], values).fetchall()

    def row(self, query: str, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
        found = self.rows(query, values)
        return found[0] if found else None

    def run_many(self, query: str, values: Sequence[Mapping[str, Any]]) -> None:
        """Run a named query that answers nothing for each of the values."""
        self._connection.executemany(self._sql[query], values)

    def value(self, statement: str) -> Any:
        """The single value of a short statement."""
        found = self._connection.execute(statement).fetchone()
        return found[0] if found else None

    def moved(
        self,
        job_id: int,
        tenant: str,
        job_type: str,
        *,
        event: str,
        before: str | None,
        after: str,
        fence: int,
        attempts: int,
        actor: str,
        reason: str | None = None,
        ticket: str | None = None,
    ) -> None:
        """A job changed its state: count it and write it down."""
        if before is not None:
            self._counts[tenant, job_type, before] -= 1
        self._counts[tenant, job_type, after] += 1
        if after == "queued":
            self.lanes.add(job_type)
        self.append(
            tenant,
            event=event,
            actor=actor,
            job_id=job_id,
            from_state=before,
            to_state=after,
            fence=fence,
            attempts=attempts,
            reason=reason,
            ticket=ticket,
        )

    def append(
        self,
        tenant: str,
        *,
        event: str,
        actor: str,
        job_id: int | None = None,
        from_state: str | None = None,
        to_state: str | None = None,
        fence: int | None = None,
        attempts: int | None = None,
        reason: str | None = None,
        ticket: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a link to the tenant's chain."""
        link, prev_hash = self._heads.get(tenant) or self._stored_head(tenant)
        detail_json = None if detail is None else json.dumps(detail, sort_keys=True)
        entry = Entry(
            tenant, _SHARD, link + 1, job_id, self.now_ms, event, from_state, to_state, fence, attempts, actor,
            reason, ticket, detail_json,
        )  # fmt: skip
        digest = link_hash(entry, prev_hash)
        self._heads[tenant] = (link + 1, digest)
        self._rows.append((*entry, prev_hash, digest))

    def write_along(self) -> None:
        """Write what was collected. Called once, before the commit."""
        self._connection.executemany(self._sql["append_history"], self._rows)
        heads = [(tenant, _SHARD, link, digest) for tenant, (link, digest) in self._heads.items()]
        self._connection.executemany(self._sql["move_head"], heads)
        counts = [(*key, change) for key, change in self._counts.items() if change]
        self._connection.executemany(self._sql["count"], counts)

    def _stored_head(self, tenant: str) -> tuple[int, bytes]:
        found = self._connection.execute(
            "SELECT link, hash FROM history_heads WHERE tenant = ? AND shard = ?", (tenant, _SHARD)
        ).fetchone()
        return (found[0], found[1]) if found else (0, NO_HASH)
