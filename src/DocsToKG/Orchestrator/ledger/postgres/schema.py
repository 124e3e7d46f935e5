"""Bring the schema of a ledger's database up to date, while workers of the version before go on.

Knows the numbered migrations. Promises: of many that start at once one migrates and the others wait for it; a statement
that cannot have its lock soon gives way and is tried again; a newer schema is left untouched.
"""

from __future__ import annotations

import re
import time
from importlib.resources import files

import psycopg

from DocsToKG.Orchestrator.errors import LedgerTooNew, LedgerUnusable
from DocsToKG.Orchestrator.ledger.postgres import upkeep
from DocsToKG.Orchestrator.ledger.postgres.database import Connection, Database, is_again, is_gone, run

_OLDEST = 140000
_LOCK = 0x446B4C31
_LOCK_TIMEOUT_MS = 2000
# A `$$` body may hold semicolons; outside of one, a semicolon at the end of a line ends the statement.
_STATEMENT = re.compile(r"(?:[^$;]|\$(?!\$)|\$\$.*?\$\$)+;", re.DOTALL)


def prepare(database: Database) -> int:
    """Make or migrate the schema; the ledger time in milliseconds as the database has it."""
    deadline = time.monotonic() + database.patience_s
    while True:
        try:
            with database.connect() as connection:
                return _prepare(connection, database)
        except psycopg.Error as error:
            if not (is_gone(error) or is_again(error)) or time.monotonic() >= deadline:
                raise database.translated(error) from error
        time.sleep(0.1)


def _prepare(connection: Connection, database: Database) -> int:
    if connection.info.server_version < _OLDEST:
        raise LedgerUnusable(f"{database.name} is too old for the ledger; PostgreSQL 14 or newer is needed")
    [(now,)] = run(connection, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    if version(connection, database) < len(migrations()):
        _migrate(connection, database, int(now))
    return int(now)


def _migrate(connection: Connection, database: Database, now_ms: int) -> None:
    """All missing steps in one transaction; the lock goes with it, so that a pooler may stand between."""
    with connection.transaction():
        run(connection, "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_LOCK, database.schema))
        run(connection, "SELECT set_config('lock_timeout', %s, true)", (str(_LOCK_TIMEOUT_MS),))
        run(connection, f"CREATE SCHEMA IF NOT EXISTS {database.schema}")
        run(connection, f"CREATE TABLE IF NOT EXISTS {database.schema}.schema_version (version integer NOT NULL)")
        have = version(connection, database)
        for number, script in enumerate(migrations()[have:], start=have + 1):
            for statement in statements(script):
                run(connection, database.sql(statement))
            run(connection, f"INSERT INTO {database.schema}.schema_version VALUES (%s)", (number,))
        upkeep.make_months(connection, database, now_ms)


def version(connection: Connection, database: Database) -> int:
    """The schema's number; 0 where there is none yet."""
    name = f"{database.schema}.schema_version"
    if run(connection, "SELECT to_regclass(%s)", (name,)) == [(None,)]:
        if run(connection, "SELECT to_regclass(%s)", (f"{database.schema}.jobs",)) != [(None,)]:
            raise LedgerUnusable(f"{database.name} has tables in {database.schema} that are no ledger; name another")
        return 0
    [(number,)] = run(connection, f"SELECT coalesce(max(version), 0) FROM {name}")
    if number > len(migrations()):
        raise LedgerTooNew(
            f"{database.name} has schema {number}, this program knows {len(migrations())}; "
            "use the newer version of the program"
        )
    return int(number)


def migrations() -> list[str]:
    """The scripts in order; the file named 0001 leads to version 1."""
    folder = files(__package__) / "sql" / "migrations"
    return [entry.read_text("utf-8") for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)]


def statements(script: str) -> list[str]:
    """The single statements of a script."""
    plain = re.sub(r"^--.*$", "", script, flags=re.MULTILINE)
    return [found.strip() for found in _STATEMENT.findall(plain)]
