"""One write transaction on PostgreSQL as the changes see it: statements, the time, and what must be written along.

Writers run beside each other, so each takes for every tenant a chain of the history that nobody else writes to at that
moment. History rows and count changes are collected while the changes run and written before the commit, so that a
state change, its history row and its count are one transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson

from DocsToKG.Orchestrator.jobs.states import TERMINAL
from DocsToKG.Orchestrator.ledger.chain import NO_HASH, Entry, Move, link_hash
from DocsToKG.Orchestrator.ledger.control import by_scope
from DocsToKG.Orchestrator.ledger.drivers.postgres import control_sql
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, run
from DocsToKG.Orchestrator.ledger.transaction import judged

_ENDS = frozenset(state.value for state in TERMINAL)


class Head:
    """The end of a chain that this transaction has locked."""

    __slots__ = ("at", "hash", "link", "moved", "shard")

    def __init__(self, shard: int, link: int, digest: bytes, at: int) -> None:
        self.shard = shard
        self.link = link
        self.hash = digest
        self.at = at
        self.moved = False


class Transaction:
    """Lives from BEGIN to COMMIT.

    `lanes` gathers the job types that may have work afterwards, and `turned` the jobs that ended or came back.
    `control_version` is the number of the rules, 0 where there are none; only with rules are ends gathered as
    `verdicts`. `is_paused` says whether leasing was halted when it began.
    """

    def __init__(
        self,
        connection: Connection,
        sql: Mapping[str, str],
        now_ms: int,
        heads: dict[str, Head],
        control_version: int = 0,
        *,
        is_paused: bool = False,
    ) -> None:
        self.now_ms = now_ms
        self.control_version = control_version
        self.is_paused = is_paused
        self.scope: str | None = None  # by whose right this part of it is done
        self.verdicts: list[tuple[str, str, int, bool | None]] = []
        self.lanes: set[str] = set()
        self.turned: list[int] = []
        self.heads = heads
        self._connection = connection
        self._sql = sql
        self._rows: list[tuple[Any, ...]] = []
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def rows(self, query: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run a named query and give all its rows."""
        return run(self._connection, self._sql[query], values)

    def row(self, query: str, values: Mapping[str, Any] | None = None) -> tuple[Any, ...] | None:
        found = self.rows(query, values)
        return found[0] if found else None

    def select(self, query: str, wanted: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run a named query with a condition of this package's own making; its values are bound."""
        return run(self._connection, self._sql[query].replace("{wanted}", wanted), values)

    def copy(self, query: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write many rows by a named COPY in the binary format."""
        with self._connection.cursor() as cursor, cursor.copy(self._sql[query]) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def moved(self, event: str, move: Move, *, ticket: str | None = None) -> None:
        """A job changed its state: count it and write it down."""
        self.moved_all(event, [move], ticket=ticket)

    def moved_all(
        self, event: str, moves: Sequence[Move], *, ticket: str | None = None, answered: Collection[int] = ()
    ) -> None:
        """Many jobs did the same. Every change of every job passes here, so this loop is kept lean."""
        if self.control_version:
            self.verdicts += judged(event, moves, answered)
        counts, rows, detail = self._counts, self._rows, by_scope(None, self.scope)
        for job_id, tenant, job_type, before, after, fence, attempts, actor, reason in moves:
            if before is not None:
                counts[tenant, job_type, before] -= 1
            counts[tenant, job_type, after] += 1
            if after == "queued":
                self.lanes.add(job_type)
            if after in _ENDS or before in _ENDS:
                self.turned.append(job_id)
            head = self.heads.get(tenant) or self._head(tenant)
            head.link += 1
            entry: Entry = (
                tenant, head.shard, head.link, job_id, head.at, event, before, after, fence, attempts, actor, reason,
                ticket, detail,
            )  # fmt: skip
            digest = link_hash(entry, head.hash)
            rows.append((*entry, head.hash.hex(), digest.hex()))
            head.hash, head.moved = digest, True

    def ask(self, statement: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows of a portable statement of the control plane, whose tables have no schema in their names."""
        return control_sql.ask(self._connection, statement, values)

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
        head = self.heads.get(tenant) or self._head(tenant)
        head.link += 1
        entry: Entry = (
            tenant, head.shard, head.link, job_id, head.at, event, None, None, None, None, actor, reason, ticket, text,
        )  # fmt: skip
        digest = link_hash(entry, head.hash)
        self._rows.append((*entry, head.hash.hex(), digest.hex()))
        head.hash, head.moved = digest, True

    def written(self) -> dict[str, Any]:
        """What is to be written along, as the values of the query `write`. Asked once, before the commit."""
        moved = [(t, h.shard, h.link, h.hash.hex(), h.at) for t, h in self.heads.items() if h.moved]
        counts = [(*key, change) for key, change in sorted(self._counts.items()) if change]
        return {
            "history": as_json("tsljmebafnwrkdph", self._rows),
            "heads": as_json("tslhm", moved),
            "counts": as_json("tjsn", counts),
            "turned": sorted(set(self.turned)) or None,
        }

    def proof(self) -> tuple[str, int, int, bytes] | None:
        """A link that is there if, and only if, this transaction was committed."""
        for tenant, head in self.heads.items():
            if head.moved:
                return tenant, head.shard, head.link, head.hash
        return None

    def _head(self, tenant: str) -> Head:
        found = heads_of(self.rows("lock_heads", {"tenants": [tenant]}), self.now_ms)
        while tenant not in found:
            added = self.row("new_head", {"tenant": tenant, "hash": NO_HASH})
            if added is not None:
                found[tenant] = Head(int(added[0]), 0, NO_HASH, self.now_ms)
        self.heads.update(found)
        return found[tenant]


def heads_of(rows: Iterable[tuple[Any, ...]], now_ms: int) -> dict[str, Head]:
    """Rows of `lock_heads`. Time within a chain never steps back, whatever the writers' order was."""
    return {
        tenant: Head(shard, link, bytes.fromhex(digest), max(at, now_ms)) for tenant, shard, link, digest, at in rows
    }


def as_json(names: str, rows: Iterable[Sequence[Any]]) -> str | None:
    """Rows as a JSON array of objects with names of one letter, or None without rows.

    A text is written and read many times faster than the arrays of columns that the driver would make.
    """
    made = [dict(zip(names, row, strict=True)) for row in rows]
    return orjson.dumps(made).decode() if made else None
