"""Check of the record that machines share: its tables, their version, and whether rows may be written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from DocsToKG.core.checks import Finding, failed, ok
from DocsToKG.Orchestrator.ledger.drivers.postgres.check import (
    SAME_PROGRAM,
    check_database,
    check_may_create,
    is_owner,
    versions_finding,
)

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, Database


def check_record(url: str, setting: str, schema: str) -> Iterator[Finding]:
    """The database at `url`, which `setting` names, with the tables of the record."""
    return check_database(url, setting, schema, partial(_tables, schema))


def _tables(schema: str, connection: Connection, database: Database) -> Iterator[Finding]:
    from DocsToKG.ContentDownload.catalog.shared.schema import migrations

    name = f"{schema}.schema_version"
    [(there,)] = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchall()
    if not there:
        yield from check_may_create(connection, schema)
        return
    latest = f"SELECT version, oldest_writer FROM {name} ORDER BY version DESC LIMIT 1"
    [(have, oldest)] = connection.execute(latest).fetchall() or [(0, 0)]
    known = len(migrations())
    if have > known and oldest > known:
        seen = f"{have}, which needs a program that knows {oldest}; this one knows {known}"
        yield failed("schema", seen, SAME_PROGRAM)
        return
    yield versions_finding(have, known, is_owner(connection, schema))
    yield _rights(connection, schema)


def _rights(connection: Connection, schema: str) -> Finding:
    """Of each table, whether rows may be read and written."""
    rows = connection.execute(
        "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relkind IN ('r', 'p')"
        " AND NOT (SELECT bool_and(has_table_privilege(c.oid, word)) FROM unnest(%s::text[]) AS word) ORDER BY 1",
        (schema, ["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ).fetchall()
    if not rows:
        return ok("permissions", "rows may be read, added, changed and removed")
    shut = ", ".join(name for (name,) in rows[:5])
    return failed("permissions", f"may not read or write {shut}", f"GRANT SELECT, INSERT, UPDATE, DELETE in {schema}")
