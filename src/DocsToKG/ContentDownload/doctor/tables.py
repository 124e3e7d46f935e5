"""What lies in a PostgreSQL database for us, the queue or the record: of which version, and may we write to it?

What is written to try it is written in a transaction that is rolled back: a job is added, leased under a lock and gone
again. No number of a sequence is used up, and no other machine ever sees the row.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from DocsToKG.ContentDownload.doctor.base import Finding, failed, ok, warning

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, Database

_WAIT_MS = 3000
MANY_EVENTS = 100_000
_SAME_PROGRAM = "give this machine the version of the program that the other machines run"


class Tables(Protocol):
    """Our tables in one database."""

    schema: str

    def look(self, connection: Connection, database: Database) -> Iterator[Finding]: ...


@dataclass(slots=True)
class QueueTables:
    """The queue: the ledger knows which versions go together."""

    setting: str
    schema: str = "orchestrator"

    def look(self, connection: Connection, database: Database) -> Iterator[Finding]:
        from DocsToKG.Orchestrator.errors import LedgerError, LedgerTooNew
        from DocsToKG.Orchestrator.ledger.drivers.postgres.schema import migrations, version

        try:
            have = version(connection, database)
        except LedgerTooNew as error:
            yield failed("schema", str(error), _SAME_PROGRAM)
            return
        except LedgerError as error:
            yield failed("schema", str(error), f"name a database of its own in {self.setting}")
            return
        if have == 0:
            yield from _may_create(connection, self.schema)
            return
        yield versions_finding(have, len(migrations()), _is_owner(connection, self.schema))
        _try_a_job(connection, self.schema)
        yield ok("permissions", "a job was added, leased and rolled back")
        yield from _events(connection, self.schema)


@dataclass(slots=True)
class RecordTables:
    """The record that machines share."""

    schema: str

    def look(self, connection: Connection, database: Database) -> Iterator[Finding]:
        from DocsToKG.ContentDownload.catalog.shared.schema import migrations

        name = f"{self.schema}.schema_version"
        [(there,)] = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchall()
        if not there:
            yield from _may_create(connection, self.schema)
            return
        latest = f"SELECT version, oldest_writer FROM {name} ORDER BY version DESC LIMIT 1"
        [(have, oldest)] = connection.execute(latest).fetchall() or [(0, 0)]
        known = len(migrations())
        if have > known and oldest > known:
            seen = f"{have}, which needs a program that knows {oldest}; this one knows {known}"
            yield failed("schema", seen, _SAME_PROGRAM)
            return
        yield versions_finding(have, known, _is_owner(connection, self.schema))
        yield _rights(connection, self.schema)


def _events(connection: Connection, schema: str) -> Iterator[Finding]:
    """Targets of events for which much has gathered: nothing is dropped while one is away."""
    # Whoever works jobs needs no rights on these tables, and then does not look.
    readable = connection.execute(
        "SELECT has_table_privilege(c.oid, 'SELECT') FROM pg_class AS c JOIN pg_namespace AS n"
        " ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname IN ('event_targets', 'events_outbox')",
        (schema,),
    ).fetchall()
    if readable != [(True,), (True,)]:
        return
    rows = connection.execute(
        f"SELECT t.name, (SELECT count(*) FROM (SELECT FROM {schema}.events_outbox AS o WHERE o.target = t.name"
        f" AND o.dead_at IS NULL LIMIT {MANY_EVENTS}) AS w) FROM {schema}.event_targets AS t ORDER BY t.name"
    ).fetchall()
    for name, waiting in rows:
        if waiting >= MANY_EVENTS:
            seen = f"{MANY_EVENTS:,} events or more wait for {name}, and none is dropped while it is away"
            advice = f"see to it (docstokg-orchestrator events status), or give it up: events forget {name}"
            yield warning("events", seen, advice)


def versions_finding(have: int, known: int, is_owner: bool) -> Finding:
    if have == known:
        return ok("schema", f"{have}, as this version wants it")
    if have > known:
        return warning("schema", f"{have}; this version knows {known} and can go on", _SAME_PROGRAM)
    seen = f"{have}, and this version brings {known}"
    if is_owner:
        return warning("schema", seen, "the first run of this version migrates it, while the others work on")
    return failed("schema", seen, "let the owner of the schema run one command of this version, which migrates it")


def _is_owner(connection: Connection, schema: str) -> bool:
    found = connection.execute(
        "SELECT pg_has_role(nspowner, 'MEMBER') FROM pg_namespace WHERE nspname = %s", (schema,)
    ).fetchall()
    return bool(found and found[0][0])


def _may_create(connection: Connection, schema: str) -> Iterator[Finding]:
    """Nothing is there yet: the first command makes it, if it may."""
    name = f"docstokg_doctor_{secrets.token_hex(8)}"
    with connection.transaction(force_rollback=True):
        _hurry(connection)
        connection.execute(f"CREATE SCHEMA {name}")
        connection.execute(f"CREATE TABLE {name}.probe (at bigint PRIMARY KEY)")
        connection.execute(f"INSERT INTO {name}.probe VALUES (1)")
    yield ok("schema", f"none yet; the first run makes {schema}")
    yield ok("permissions", "a schema was made and rolled back")


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


def _try_a_job(connection: Connection, schema: str) -> None:
    number = -secrets.randbelow(2**48) - 1
    with connection.transaction(force_rollback=True):
        _hurry(connection)
        connection.execute(
            f"INSERT INTO {schema}.jobs (id, artifact_id, artifact_json, payload_digest, job_type, state,"
            " next_eligible_at, created_at, updated_at) VALUES (%s, %s, '{}', '', 'doctor.probe', 'queued', 0, 0, 0)",
            (number, f"doctor:{number}"),
        )
        connection.execute(f"SELECT id FROM {schema}.jobs WHERE id = %s FOR UPDATE SKIP LOCKED", (number,))
        connection.execute(
            f"UPDATE {schema}.jobs SET state = 'in_progress', fence = fence + 1, lease_id = 'doctor', lease_until = 1,"
            " worker_id = 'doctor' WHERE id = %s",
            (number,),
        )


def _hurry(connection: Connection) -> None:
    """A lock that somebody holds is an answer too, and must not keep us."""
    connection.execute(
        "SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true)",
        (str(_WAIT_MS), str(_WAIT_MS)),
    )
