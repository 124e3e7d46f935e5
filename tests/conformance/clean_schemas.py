"""Schemas with the tables of a ledger, used by one test after another: making one takes longer than most tests do."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
from psycopg.sql import SQL, Identifier

from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

Rows = list[tuple[Any, ...]]
_RELATIONS = "SELECT relkind::text, relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) ORDER BY 1, 2"
_MONTHS = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r' AND relispartition"


class CleanSchemas:
    """Gives each schema to one test at a time. One whose relations, without months of history, are not those of a new
    one is dropped."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._clean: list[str] = []
        self._new_relations: Rows = []
        self._new_rows: dict[str, Rows] = {}

    def take(self) -> str:
        if self._clean:
            return self._clean.pop()
        name = f"c_{uuid4().hex[:20]}"
        with PostgresLedger(self._url, schema_name=name):
            pass
        if not self._new_relations:
            with self._connection(name) as connection:
                self._new_relations = connection.execute(_RELATIONS, (name,)).fetchall()
                self._new_rows = self._rows(connection)
        return name

    def give_back(self, name: str) -> None:
        with self._connection(name) as connection:
            months = {month for (month,) in connection.execute(_MONTHS, (name,))} - set(self._tables())
            for month in months:
                connection.execute(SQL("DROP TABLE {}").format(Identifier(month)))
            if connection.execute(_RELATIONS, (name,)).fetchall() != self._new_relations:
                connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))
                return
            self._wipe(connection)
        self._clean.append(name)

    def _connection(self, name: str) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            self._url, autocommit=True, options=f"-c search_path={name} -c session_replication_role=replica"
        )

    def _tables(self) -> list[str]:
        return [name for kind, name in self._new_relations if kind == "r"]

    def _rows(self, connection: psycopg.Connection[tuple[Any, ...]]) -> dict[str, Rows]:
        """By table: its rows, where it has any."""
        has_rows = SQL(" UNION ALL ").join(
            SQL("SELECT {} WHERE EXISTS (SELECT 1 FROM {})").format(name, Identifier(name)) for name in self._tables()
        )
        filled = [name for [name] in connection.execute(has_rows).fetchall()]
        return {name: connection.execute(SQL("TABLE {}").format(Identifier(name))).fetchall() for name in filled}

    def _wipe(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """What differs from a new one is emptied and written as it was. Triggers do not hear of it."""
        rows = self._rows(connection)
        changed = [name for name in {**rows, **self._new_rows} if rows.get(name) != self._new_rows.get(name)]
        if changed:
            tables = SQL(", ").join(map(Identifier, changed))
            connection.execute(SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(tables))
        for name in changed:
            for row in self._new_rows.get(name, ()):
                values = SQL(", ").join(SQL("%s") for _ in row)
                connection.execute(SQL("INSERT INTO {} VALUES ({})").format(Identifier(name), values), row)
        connection.execute(
            "SELECT setval(seqrelid, seqstart, false) FROM pg_sequence JOIN pg_class ON oid = seqrelid"
            " WHERE relnamespace = current_schema()::regnamespace"
        )
