"""Checks of a PostgreSQL server: reached, new enough, a primary, with room for us, heard when it notifies, and with
tables of ours that fit this version and may be written to.

A check writes in a transaction that it rolls back: a job is added, leased under a lock and gone again. No number of a
sequence is used up, and no other machine ever sees the row.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from DocsToKG.core.checks import Finding, ask_time, clock, encryption, failed, missing_extra, ok, warning

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, Database

_OLDEST = 140000
_HEAR_S = 3.0
_FEW_CONNECTIONS = 10
_WAIT_MS = 3000
SCHEMA = "orchestrator"
MANY_EVENTS = 100_000
SAME_PROGRAM = "give this machine the version of the program that the other machines run"


Tables = Callable[["Connection", "Database"], Iterator[Finding]]


def check_queue(url: str, setting: str) -> Iterator[Finding]:
    """The database at `url`, which `setting` names, with the tables of the queue."""
    return check_database(url, setting, SCHEMA, partial(_queue_tables, setting))


def check_database(url: str, setting: str, schema: str, tables: Tables) -> Iterator[Finding]:
    """The database at `url`, which `setting` names, with our `tables` in it."""
    try:
        import psycopg

        from DocsToKG.Orchestrator.errors import LedgerError
        from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database
    except ImportError:
        yield missing_extra("postgres")
        return
    try:
        database = Database(url, schema=schema, patience_s=0.0)
    except LedgerError as error:
        yield failed("address", str(error), f"write {setting} as postgresql://user@host:5432/database")
        return
    step = "reachable"
    try:
        with database.connect() as connection:
            yield ok("reachable", database.name)
            step = "permissions"
            yield from _look(connection, database, setting, tables)
    except psycopg.Error as error:
        advice = _advice(error) or f"see to the server, its firewall and {setting}"
        yield failed(step, str(database.translated(error)), advice)


def _look(connection: Connection, database: Database, setting: str, tables: Tables) -> Iterator[Finding]:
    info = connection.info
    yield _version(info.server_version)
    encrypted = bool(connection.pgconn.ssl_in_use)
    yield encryption(info.host, encrypted, f"add ?sslmode=verify-full to {setting}")
    yield clock(*ask_time(lambda: _server_time(connection)))
    [(standby,)] = connection.execute("SELECT pg_is_in_recovery()").fetchall()
    if standby:
        yield failed("role", "a standby, which cannot be written to", f"name the primary in {setting}")
        return
    yield _room(connection)
    yield from tables(connection, database)


def check_listen(url: str, setting: str) -> Iterator[Finding]:
    """Whether wake-ups arrive by LISTEN and NOTIFY. Without them workers find work by polling, a second later."""
    try:
        import psycopg

        from DocsToKG.Orchestrator.errors import LedgerError
        from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database
    except ImportError:
        yield missing_extra("postgres")
        return
    advice = "behind a transaction-mode pooler name the server itself in queue.listen_connection_string"
    channel = f"docstokg_doctor_{secrets.token_hex(8)}"
    try:
        database = Database(url, schema=SCHEMA, patience_s=0.0)
        with database.connect() as listener, database.connect() as sender:
            listener.execute(f"LISTEN {channel}")
            sender.execute("SELECT pg_notify(%s, 'probe')", (channel,))
            heard = next(listener.notifies(timeout=_HEAR_S, stop_after=1), None)
            listener.execute(f"UNLISTEN {channel}")
    except (psycopg.Error, LedgerError) as error:
        said = str(error if isinstance(error, LedgerError) else database.translated(error))
        yield warning("wake-ups", said, f"see to {setting}; meanwhile work is found by asking")
        return
    if heard is None:
        yield warning("wake-ups", "a NOTIFY was sent and not heard; work is found by asking", advice)
    else:
        yield ok("wake-ups", "a NOTIFY was sent and heard")


def _queue_tables(setting: str, connection: Connection, database: Database) -> Iterator[Finding]:
    from DocsToKG.Orchestrator.errors import LedgerError, LedgerTooNew
    from DocsToKG.Orchestrator.ledger.drivers.postgres.schema import migrations, version

    try:
        have = version(connection, database)
    except LedgerTooNew as error:
        yield failed("schema", str(error), SAME_PROGRAM)
        return
    except LedgerError as error:
        yield failed("schema", str(error), f"name a database of its own in {setting}")
        return
    if have == 0:
        yield from check_may_create(connection, SCHEMA)
        return
    yield versions_finding(have, len(migrations()), is_owner(connection, SCHEMA))
    _try_a_job(connection, SCHEMA)
    yield ok("permissions", "a job was added, leased and rolled back")
    yield from _events(connection, SCHEMA)


_ADVICE = {
    "42501": "GRANT the missing right to this user, or let the owner of the schema run",
    "3D000": "create the database, or name another",
    "28P01": "see to the password; it is best kept in the environment",
    "28000": "see to the user, and to pg_hba.conf on the server",
    "53300": "raise max_connections on the server, or put a pooler before it",
    "57P03": "the server is starting or stopping; try again",
}
_WORDS = {
    "role ": _ADVICE["28000"],
    "does not exist": _ADVICE["3D000"],
    "password authentication failed": _ADVICE["28P01"],
    "no password supplied": _ADVICE["28P01"],
    "pg_hba.conf": _ADVICE["28000"],
    "too many clients": _ADVICE["53300"],
    "starting up": _ADVICE["57P03"],
    "shutting down": _ADVICE["57P03"],
}


def _advice(error: Exception) -> str | None:
    """By the code of the error; one that kept us from connecting has only words."""
    known = _ADVICE.get(getattr(error, "sqlstate", None) or "")
    return known or next((advice for words, advice in _WORDS.items() if words in str(error)), None)


def _version(number: int) -> Finding:
    text = f"PostgreSQL {number // 10000}.{number % 10000}"
    if number >= _OLDEST:
        return ok("server", text)
    return failed("server", f"{text} is too old", "upgrade the server to PostgreSQL 14 or newer")


def _server_time(connection: Connection) -> float:
    [(seconds,)] = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchall()
    return float(seconds)


def _room(connection: Connection) -> Finding:
    """Every process of a run has a handful of connections."""
    [(most, used)] = connection.execute(
        "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,"
        " (SELECT sum(numbackends)::int FROM pg_stat_database)"
    ).fetchall()
    seen = f"{most - used} of {most} are free"
    if most - used >= _FEW_CONNECTIONS:
        return ok("connections", seen)
    return warning("connections", seen, "raise max_connections, or put a pooler in transaction mode before the server")


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
        return warning("schema", f"{have}; this version knows {known} and can go on", SAME_PROGRAM)
    seen = f"{have}, and this version brings {known}"
    if is_owner:
        return warning("schema", seen, "the first run of this version migrates it, while the others work on")
    return failed("schema", seen, "let the owner of the schema run one command of this version, which migrates it")


def is_owner(connection: Connection, schema: str) -> bool:
    found = connection.execute(
        "SELECT pg_has_role(nspowner, 'MEMBER') FROM pg_namespace WHERE nspname = %s", (schema,)
    ).fetchall()
    return bool(found and found[0][0])


def check_may_create(connection: Connection, schema: str) -> Iterator[Finding]:
    """Nothing is there yet: the first command makes it, if it may."""
    name = f"docstokg_doctor_{secrets.token_hex(8)}"
    with connection.transaction(force_rollback=True):
        _hurry(connection)
        connection.execute(f"CREATE SCHEMA {name}")
        connection.execute(f"CREATE TABLE {name}.probe (at bigint PRIMARY KEY)")
        connection.execute(f"INSERT INTO {name}.probe VALUES (1)")
    yield ok("schema", f"none yet; the first run makes {schema}")
    yield ok("permissions", "a schema was made and rolled back")


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
