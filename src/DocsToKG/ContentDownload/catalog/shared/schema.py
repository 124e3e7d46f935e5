"""Bring the schema of a shared record up to date, while machines with the version before go on.

Knows the numbered migrations: each only adds. Promises: of many that start at once one migrates and the others wait for
it; a statement that cannot have its lock soon gives way and is tried again; a newer schema that says that this version
may still write is used, any other is refused untouched.
"""

from __future__ import annotations

import re
from importlib.resources import files

from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, run

_LOCK = 0x446B5231
_LOCK_TIMEOUT_MS = 2000
_OLDEST_SERVER = 140000
_OLDEST_WRITER = 1  # programs that know this version of the schema may still write to the newest one
# A `$$` body may hold semicolons; outside of one, a semicolon ends the statement.
_STATEMENT = re.compile(r"(?:[^$;]|\$(?!\$)|\$\$.*?\$\$)+;", re.DOTALL)


def prepare(shared: SharedRecord) -> int:
    """Make or migrate the schema; returns its version."""
    return shared.again(lambda: _prepare(shared))


def check(connection: Connection, shared: SharedRecord) -> int:
    """The version of a schema that this program can read; refuses any other."""
    name = f"{shared.schema}.schema_version"
    if run(connection, "SELECT to_regclass(%s)", (name,)) == [(None,)]:
        raise RecordError(f"there is no record in {shared.name}: it is made by the first run with these settings")
    have, oldest = _version(connection, shared)
    _refuse(shared, have, oldest)
    if have < len(migrations()):
        raise RecordError(
            f"{shared.name} has schema version {have}, not {len(migrations())}: "
            "run once with this program to upgrade it"
        )
    return have


def migrations() -> list[str]:
    """The scripts in order; the first leads to version 1."""
    folder = files(__package__) / "sql"
    found = (entry for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [entry.read_text("utf-8") for entry in sorted(found, key=lambda entry: entry.name)]


def _prepare(shared: SharedRecord) -> int:
    with shared.connect() as connection:
        if connection.info.server_version < _OLDEST_SERVER:
            raise RecordError(f"{shared.name} is too old for a record; PostgreSQL 14 or newer is needed")
        if _version(connection, shared)[0] < len(migrations()):
            _migrate(connection, shared)
        have, oldest = _version(connection, shared)
        _refuse(shared, have, oldest)
        return have


def _migrate(connection: Connection, shared: SharedRecord) -> None:
    """All missing steps in one transaction; the lock goes with it, so that a pooler may stand between."""
    with connection.transaction():
        run(connection, "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_LOCK, shared.schema))
        run(connection, "SELECT set_config('lock_timeout', %s, true)", (str(_LOCK_TIMEOUT_MS),))
        run(connection, f"CREATE SCHEMA IF NOT EXISTS {shared.schema}")
        columns = "version integer NOT NULL, oldest_writer integer NOT NULL"
        run(connection, f"CREATE TABLE IF NOT EXISTS {shared.schema}.schema_version ({columns})")
        have, _ = _version(connection, shared)
        for number, script in enumerate(migrations()[have:], start=have + 1):
            for statement in _statements(script):
                run(connection, re.sub(r"\brecord\.", f"{shared.schema}.", statement))
            insert = f"INSERT INTO {shared.schema}.schema_version VALUES (%s, %s)"
            run(connection, insert, (number, _OLDEST_WRITER))


def _version(connection: Connection, shared: SharedRecord) -> tuple[int, int]:
    """The schema's number, and the oldest that may write to it; zeros where there is none yet."""
    name = f"{shared.schema}.schema_version"
    if run(connection, "SELECT to_regclass(%s)", (name,)) == [(None,)]:
        if run(connection, "SELECT to_regclass(%s)", (f"{shared.schema}.manifests",)) != [(None,)]:
            raise RecordError(f"{shared.name} has tables that are no record; name another with catalog.schema_name")
        return 0, 0
    latest = f"SELECT version, oldest_writer FROM {name} ORDER BY version DESC LIMIT 1"
    found = run(connection, latest)
    return (int(found[0][0]), int(found[0][1])) if found else (0, 0)


def _refuse(shared: SharedRecord, have: int, oldest: int) -> None:
    known = len(migrations())
    if have > known and oldest > known:
        raise RecordError(
            f"{shared.name} has schema version {have}, which needs a program that knows {oldest}; this one knows "
            f"{known}: use the newer program, or another catalog.schema_name"
        )


def _statements(script: str) -> list[str]:
    plain = re.sub(r"^--.*$", "", script, flags=re.MULTILINE)
    return [found.strip() for found in _STATEMENT.findall(plain)]
