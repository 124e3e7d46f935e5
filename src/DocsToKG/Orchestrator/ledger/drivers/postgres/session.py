"""An open transaction of PostgreSQL: statements with their values, many rows in one, and what is written along.

Many rows go as one JSON text: it is written and read many times faster than the arrays of columns that the driver would
make. Its columns have names of one letter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase
from typing import Any

import orjson

from DocsToKG.Orchestrator.ledger.chain import NO_HASH
from DocsToKG.Orchestrator.ledger.drivers.postgres import control_sql
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, run
from DocsToKG.Orchestrator.ledger.transaction import Head, Rows, Transaction, Values

_COPY_FROM = 50  # for fewer, its round trips cost more than they save
_JOB_TYPES = ["int8", *["text"] * 9, *["int4"] * 2, *["text"] * 3, "int8", "text", "bool", *["int8"] * 3]
END_COLUMNS = "iflsoer"  # of `finish_v1` and `work_v4`: job, fence, lease, state, outcome, error, result


class PostgresSession:
    """The writing connection. Writers run beside each other, so each takes for every tenant a chain of the history that
    nobody else writes to at that moment."""

    def __init__(self, connection: Connection, statements: Mapping[str, str]) -> None:
        self._connection = connection
        self._statements = statements

    def rows(self, query: str, values: Values | None = None) -> Rows:
        return run(self._connection, self._statements[query], values)

    def select(self, query: str, wanted: str, values: Values) -> Rows:
        return run(self._connection, self._statements[query].replace("{wanted}", wanted), values)

    def write_rows(self, query: str, rows: Sequence[Sequence[Any]], now_ms: int) -> Rows:
        columns = END_COLUMNS if query == "finish" else ascii_lowercase[: len(rows[0])]
        return self.rows(query, {"rows": as_json(columns, rows), "now": now_ms})

    def write_jobs(self, rows: Sequence[Sequence[Any]]) -> None:
        # In the order of the unique index, so that two who add the same jobs do not wait for each other in a circle.
        ordered = sorted(rows, key=lambda row: (row[4], row[6], row[1]))
        if len(ordered) >= _COPY_FROM:
            with self._connection.cursor() as cursor, cursor.copy(self._statements["enqueue_many"]) as copy:
                copy.set_types(_JOB_TYPES)
                for row in ordered:
                    copy.write_row(row)
        elif ordered:
            self.write_rows("enqueue", ordered, 0)

    def new_ids(self, most: int) -> Iterable[int]:
        return [row[0] for row in self.rows("new_ids", {"count": most})] if most else ()

    def execute(self, statement: str, values: Values | None = None) -> Rows:
        """The statement has no schema in the names of its tables."""
        return control_sql.execute(self._connection, statement, values)

    def head(self, tenant: str, now_ms: int) -> Head:
        found = heads_of(self.rows("lock_heads", {"tenants": [tenant]}), now_ms)
        while tenant not in found:
            added = self.rows("new_head", {"tenant": tenant, "hash": NO_HASH})
            if added:
                found[tenant] = Head(int(added[0][0]), 0, NO_HASH, now_ms)
        return found[tenant]


def heads_of(rows: Iterable[Sequence[Any]], now_ms: int) -> dict[str, Head]:
    """Rows of `lock_heads`."""
    return {
        tenant: Head(shard, link, bytes.fromhex(digest), max(at, now_ms)) for tenant, shard, link, digest, at in rows
    }


def heads_in(text: str | None, now_ms: int) -> dict[str, Head]:
    """The same as a JSON text."""
    return heads_of(json.loads(text or "[]"), now_ms)


def written(tx: Transaction) -> dict[str, Any]:
    """What is to be written along, as the values of the query `write`. Asked once, before the commit."""
    history = [
        {
            "t": tenant, "s": shard, "l": link, "j": job_id, "m": at, "e": event, "b": before, "a": after, "f": fence,
            "n": attempts, "w": actor, "r": reason, "k": ticket, "d": detail, "p": prev_hash.hex(), "h": digest.hex(),
        }
        for (tenant, shard, at, event, before, after, ticket, detail), rows in tx.links
        for link, job_id, fence, attempts, actor, reason, prev_hash, digest in rows
    ]  # fmt: skip
    heads = [(tenant, head.shard, head.link, head.hash.hex(), head.at) for tenant, head in tx.moved_heads]
    return {
        "history": orjson.dumps(history).decode() if history else None,
        "heads": as_json("tslhm", heads),
        "counts": as_json("tjsn", tx.counts),
        "turned": sorted(set(tx.turned)) or None,
    }


def as_json(columns: str, rows: Iterable[Sequence[Any]]) -> str | None:
    """Rows as a JSON array of objects with names of one letter, or None without rows."""
    made = [dict(zip(columns, row, strict=True)) for row in rows]
    return orjson.dumps(made).decode() if made else None
