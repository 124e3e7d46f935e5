"""Bring the schema of a ledger's database up to date, while workers of the version before go on.

Knows the numbered migrations. Promises: of many that start at once one migrates and the others wait for it; a statement
that cannot have its lock soon gives way and is tried again; a schema that is newer than the program is used where its
last migration says that it may be, and left untouched otherwise.

A script says in its first lines `-- oldest program: 1` for the oldest program that may go on beside it, told by the
number of migrations it knows (without this line, only those that know the script itself), and `-- apart` when its
statements cannot be in a transaction, as CREATE INDEX CONCURRENTLY; each of them must bear being run again. Such an
index of the history, which lies in parts, is made part by part.
"""

from __future__ import annotations

import random
import re
import time
from typing import NamedTuple

import psycopg

from DocsToKG.Orchestrator.errors import LedgerTooNew, LedgerUnusable
from DocsToKG.Orchestrator.ledger import sql_files
from DocsToKG.Orchestrator.ledger.drivers.postgres import maintenance
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, Database, is_again, is_gone, run

_OLDEST = 140000
_LOCK = 0x446B4C31
_LOCK_TIMEOUT_MS = 500  # whoever waits for a lock on a table stops everyone who comes after
# A `$$` body may hold semicolons; outside of one, a semicolon at the end of a line ends the statement.
_STATEMENT = re.compile(r"(?:[^$;]|\$(?!\$)|\$\$.*?\$\$)+;", re.DOTALL)
_PARTED_INDEX = re.compile(
    r"CREATE INDEX CONCURRENTLY IF NOT EXISTS (?P<name>\w+) ON orchestrator\.job_history (?P<rest>.+);", re.DOTALL
)
_OLDEST_PROGRAM = re.compile(r"^-- oldest program: (\d+)$", re.MULTILINE)


class SchemaVersion(NamedTuple):
    """The number of a schema (0 where there is none), and the oldest program that may use it."""

    version: int
    oldest_program: int


def prepare(database: Database) -> int:
    """Make or migrate the schema; the ledger time in milliseconds as the database has it."""
    deadline = time.monotonic() + database.patience_s
    while True:
        try:
            with database.connect() as connection:
                return _prepare(connection, database, deadline)
        except psycopg.Error as error:
            if not (is_gone(error) or is_again(error)) or time.monotonic() >= deadline:
                raise database.translated(error) from error
        time.sleep(random.uniform(0.05, 0.2))


def _prepare(connection: Connection, database: Database, deadline: float) -> int:
    if connection.info.server_version < _OLDEST:
        raise LedgerUnusable(f"{database.name} is too old for the ledger; PostgreSQL 14 or newer is needed")
    [(now,)] = run(connection, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    scripts = migrations()
    have = version(connection, database)
    is_new = have == 0
    while have < len(scripts):
        try:
            done = _migrate(connection, database, scripts, int(now), is_new)
        except psycopg.errors.InsufficientPrivilege as error:
            raise LedgerUnusable(
                f"{database.name} has schema {have}, this program needs {len(scripts)}, and this user may not change "
                "it; run `contentdownload queue stats` once as the owner of the schema"
            ) from error
        if not done and time.monotonic() >= deadline:
            raise LedgerUnusable(
                f"{database.name} has schema {have} and is being migrated to {len(scripts)} by another process; "
                "try again when it is through"
            )
        if not done:
            time.sleep(random.uniform(0.02, 0.1))
        have = version(connection, database)
    return int(now)


def _migrate(connection: Connection, database: Database, scripts: list[str], now_ms: int, is_new: bool) -> bool:
    """The next step, in one transaction; False while another does it. The lock goes with the transaction, and is not
    waited for, so that a pooler with few sessions may stand between."""
    with connection.transaction():
        held = "SELECT pg_try_advisory_xact_lock(%s, hashtext(%s))"
        if run(connection, held, (_LOCK, database.schema)) != [(True,)]:
            return False
        run(connection, "SELECT set_config('lock_timeout', %s, true)", (str(_LOCK_TIMEOUT_MS),))
        run(connection, f"CREATE SCHEMA IF NOT EXISTS {database.schema}")
        run(connection, f"CREATE TABLE IF NOT EXISTS {database.schema}.schema_version (version integer NOT NULL)")
        number = version(connection, database) + 1
        if number > len(scripts):
            return True
        script = scripts[number - 1]
        if _is_apart(script) and not is_new:
            _run_apart(database, script)
        else:
            for statement in statements(script):
                run(connection, database.sql(statement.replace(" CONCURRENTLY", "")))
        _note(connection, database, number, script)
        maintenance.make_months(connection, database, now_ms)
    return True


def _run_apart(database: Database, script: str) -> None:
    """On a connection beside the one that holds the lock. An index that was not finished before is made anew."""
    with database.connect() as connection:
        halves = run(
            connection,
            "SELECT c.oid::regclass::text, c.relkind = 'I' FROM pg_index AS i"
            " JOIN pg_class AS c ON c.oid = i.indexrelid"
            " WHERE NOT i.indisvalid AND c.relnamespace = to_regnamespace(%s)",
            (database.schema,),
        )
        for name, is_of_parts in halves:
            if not is_of_parts:  # that of the whole is as good as its parts, which are looked at again
                run(connection, f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        for statement in statements(script):
            index = _PARTED_INDEX.match(statement)
            if index is None:
                run(connection, database.sql(statement))
            else:
                _index_by_parts(connection, database, index["name"], index["rest"])


def _index_by_parts(connection: Connection, database: Database, name: str, rest: str) -> None:
    """An index on the history that holds nobody up: first one of the whole that stands for nothing yet, so that parts
    made from now on have theirs; then that of every part, beside the work; the last one makes the whole valid."""
    whole = f"{database.schema}.{name}"
    _run_briefly(connection, f"CREATE INDEX IF NOT EXISTS {name} ON ONLY {database.schema}.job_history {rest}")
    for part in maintenance.parts_without(connection, database, whole):
        mine = f"{part}_{name.removeprefix('job_history_')}"
        run(connection, f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {mine} ON {database.schema}.{part} {rest}")
        _run_briefly(connection, f"ALTER INDEX {whole} ATTACH PARTITION {database.schema}.{mine}")


def _run_briefly(connection: Connection, statement: str) -> None:
    """In a transaction of its own that gives way where it cannot have its lock soon."""
    with connection.transaction():
        run(connection, "SELECT set_config('lock_timeout', %s, true)", (str(_LOCK_TIMEOUT_MS),))
        run(connection, statement)


def _note(connection: Connection, database: Database, number: int, script: str) -> None:
    if number == 1:  # there the column is not made yet
        run(connection, f"INSERT INTO {database.schema}.schema_version (version) VALUES (1)")
        return
    values = (number, oldest_program(number, script))
    run(connection, f"INSERT INTO {database.schema}.schema_version (version, oldest_program) VALUES (%s, %s)", values)


def version(connection: Connection, database: Database) -> int:
    """The schema's number; 0 where there is none yet. Raises where this program is too old for it."""
    found, known = schema_version(connection, database), len(migrations())
    if found.version > known and found.oldest_program > known:
        raise LedgerTooNew(
            f"{database.name} has schema {found.version}, which needs a program that knows schema "
            f"{found.oldest_program}; this one knows {known}: install the version of the program that the other "
            "workers run, or give this one a queue of its own"
        )
    return found.version


def schema_version(connection: Connection, database: Database) -> SchemaVersion:
    """What the schema says of itself."""
    name = f"{database.schema}.schema_version"
    # In this order, since another process may make both at this moment, in one transaction.
    has_jobs = run(connection, "SELECT to_regclass(%s)", (f"{database.schema}.jobs",)) != [(None,)]
    if run(connection, "SELECT to_regclass(%s)", (name,)) == [(None,)]:
        if has_jobs:
            raise LedgerUnusable(f"{database.name} has tables in {database.schema} that are no ledger; name another")
        return SchemaVersion(0, 0)
    # The first schema had no column for the program.
    oldest = "coalesce((to_jsonb(v) ->> 'oldest_program')::integer, 1)"
    rows = run(connection, f"SELECT coalesce(max(v.version), 0), coalesce(max({oldest}), 0) FROM {name} AS v")
    return SchemaVersion(*rows[0])


def migrations() -> list[str]:
    """The scripts in order; the file named 0001 leads to version 1."""
    return list(sql_files.migrations("postgres", "orchestrator."))


def oldest_program(number: int, script: str) -> int:
    said = _OLDEST_PROGRAM.search(script)
    return number if said is None else int(said[1])


def _is_apart(script: str) -> bool:
    return re.search(r"^-- apart$", script, re.MULTILINE) is not None


def statements(script: str) -> list[str]:
    """The single statements of a script."""
    plain = re.sub(r"^--.*$", "", script, flags=re.MULTILINE)
    return [found.strip() for found in _STATEMENT.findall(plain)]
