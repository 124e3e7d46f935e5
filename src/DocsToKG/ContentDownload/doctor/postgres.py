"""A PostgreSQL server: reached, new enough, a primary, with room for us, and heard when it calls.

Does not know what lies in its databases (`tables`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.doctor import remote
from DocsToKG.ContentDownload.doctor.base import Finding, failed, missing_extra, ok, warning
from DocsToKG.ContentDownload.doctor.tables import Tables

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, Database

_OLDEST = 140000
_HEAR_S = 3.0
_FEW_CONNECTIONS = 10


@dataclass(slots=True)
class PostgresCheck:
    """The database at `url`, which `setting` names, with our `tables` in it."""

    name: str
    url: str
    setting: str
    tables: Tables
    needed: bool = True

    def look(self) -> Iterator[Finding]:
        try:
            import psycopg

            from DocsToKG.Orchestrator.errors import LedgerError
            from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database
        except ImportError:
            yield missing_extra("postgres")
            return
        try:
            database = Database(self.url, schema=self.tables.schema, patience_s=0.0)
        except LedgerError as error:
            yield failed("address", str(error), f"write {self.setting} as postgresql://user@host:5432/database")
            return
        step = "reachable"
        try:
            with database.connect() as connection:
                yield ok("reachable", database.name)
                step = "permissions"
                yield from self._look(connection, database)
        except psycopg.Error as error:
            advice = _advice(error) or f"see to the server, its firewall and {self.setting}"
            yield failed(step, str(database.translated(error)), advice)

    def _look(self, connection: Connection, database: Database) -> Iterator[Finding]:
        info = connection.info
        yield _version(info.server_version)
        encrypted = bool(connection.pgconn.ssl_in_use)
        yield remote.encryption(info.host, encrypted, f"add ?sslmode=verify-full to {self.setting}")
        yield remote.clock(*remote.ask_time(lambda: _server_time(connection)))
        [(standby,)] = connection.execute("SELECT pg_is_in_recovery()").fetchall()
        if standby:
            yield failed("role", "a standby, which cannot be written to", f"name the primary in {self.setting}")
            return
        yield _room(connection)
        yield from self.tables.look(connection, database)


@dataclass(slots=True)
class ListenCheck:
    """Whether wake-ups arrive by LISTEN and NOTIFY. Without them workers find work by asking, a second later."""

    name: str
    url: str
    setting: str
    needed: bool = False

    def look(self) -> Iterator[Finding]:
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
            database = Database(self.url, schema="orchestrator", patience_s=0.0)
            with database.connect() as listener, database.connect() as sender:
                listener.execute(f"LISTEN {channel}")
                sender.execute("SELECT pg_notify(%s, 'probe')", (channel,))
                heard = next(listener.notifies(timeout=_HEAR_S, stop_after=1), None)
                listener.execute(f"UNLISTEN {channel}")
        except (psycopg.Error, LedgerError) as error:
            said = str(error if isinstance(error, LedgerError) else database.translated(error))
            yield warning("wake-ups", said, f"see to {self.setting}; meanwhile work is found by asking")
            return
        if heard is None:
            yield warning("wake-ups", "a NOTIFY was sent and not heard; work is found by asking", advice)
        else:
            yield ok("wake-ups", "a NOTIFY was sent and heard")


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
