"""An open transaction of SQLite: statements with their values, many rows in one, and what is written along."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from DocsToKG.Orchestrator.ledger import dependencies
from DocsToKG.Orchestrator.ledger.chain import NO_HASH
from DocsToKG.Orchestrator.ledger.drivers.sqlite.many_rows import run_rows
from DocsToKG.Orchestrator.ledger.transaction import Head, Rows, Transaction, Values


class SqliteSession:
    """The writing connection. The writer is alone, so nothing is locked, and a tenant has one chain."""

    def __init__(self, connection: sqlite3.Connection, statements: Mapping[str, str]) -> None:
        self._connection = connection
        self._statements = statements

    def rows(self, query: str, values: Values | None = None) -> Rows:
        return self._connection.execute(self._statements[query], bound(values)).fetchall()

    def select(self, query: str, wanted: str, values: Values) -> Rows:
        statement = self._statements[query].replace("{wanted}", wanted)
        return self._connection.execute(statement, bound(values)).fetchall()

    def write_rows(self, query: str, rows: Sequence[Sequence[Any]], now_ms: int) -> Rows:
        statement = self._statements[query]
        return run_rows(self._connection, statement, rows, (now_ms,) if "?1" in statement else ())

    def write_jobs(self, rows: Sequence[Sequence[Any]]) -> None:
        run_rows(self._connection, self._statements["enqueue"], rows)

    def new_ids(self, most: int) -> Iterable[int]:
        """Under the write lock nobody else can add a job."""
        [(last,)] = self.rows("last_id")
        return range(last + 1, last + 1 + most)

    def execute(self, statement: str, values: Values | None = None) -> Rows:
        return self._connection.execute(statement, values or {}).fetchall()

    def head(self, tenant: str, now_ms: int) -> Head:
        found = self.rows("head", {"tenant": tenant})
        link, digest = found[0] if found else (0, NO_HASH)
        return Head(0, link, digest, now_ms)

    def write_along(self, tx: Transaction) -> None:
        """Write what the changes have left. Called once, before the commit."""
        for shared, rows in tx.links:
            run_rows(self._connection, self._statements["append_history"], rows, shared)
        heads = [(tenant, head.shard, head.link, head.hash) for tenant, head in tx.moved_heads]
        self._connection.executemany(self._statements["move_head"], heads)
        self._connection.executemany(self._statements["count"], tx.counts)
        tx.unsettled |= dependencies.remember(tx)
        self._connection.execute("UPDATE ledger_time SET high_water_ms = ?", (tx.now_ms,))


def bound(values: Values | None) -> Values:
    """Lists as JSON, which is how a statement takes them."""
    if values is None:
        return {}
    if any(type(value) is list for value in values.values()):
        return {name: json.dumps(value) if type(value) is list else value for name, value in values.items()}
    return values
