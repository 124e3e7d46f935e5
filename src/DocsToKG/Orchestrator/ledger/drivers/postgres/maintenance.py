"""What someone must do now and then, whoever it is: fold counts, write the time, keep the months of the history.

Each part waits for nobody and may be done by several at once. Months are made ahead, so that rows do not gather in the
rest; a month that is too old is removed as a whole, after the place where each chain goes on was written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, Database, run

_FOLD = 20_000
_LOCK = 0x446B4C33
_DAY_MS = 24 * 3600 * 1000
_NAME = "job_history_%Y_%m"
_REST = "job_history_rest"


def keep_up(connection: Connection, sql: Mapping[str, str], now_ms: int) -> None:
    """One round of what is needed every few seconds, in short transactions of its own."""
    run(connection, sql["fold_counts"], {"limit": _FOLD})
    run(connection, sql["push_time"], {"now": now_ms})


def keep_months(connection: Connection, database: Database, now_ms: int, retain_days: int | None) -> None:
    """What is needed once a day."""
    with connection.transaction():
        [(ours,)] = run(connection, "SELECT pg_try_advisory_xact_lock(%s, hashtext(%s))", (_LOCK, database.schema))
        if ours:
            run(connection, "SELECT set_config('lock_timeout', '200', true)")
            make_months(connection, database, now_ms)
            if retain_days is not None:
                remove_months(connection, database, now_ms - retain_days * _DAY_MS, now_ms)


def make_months(connection: Connection, database: Database, now_ms: int) -> None:
    """The month of this moment and the next one."""
    have = {name for name, _ in months(connection, database)}
    for start, end in (_month(now_ms), _month(_month(now_ms)[1])):
        name = datetime.fromtimestamp(start / 1000, UTC).strftime(_NAME)
        rest = f"SELECT 1 FROM {database.schema}.{_REST} WHERE at >= {start} AND at < {end} LIMIT 1"
        # Rows that came before their month was made stay in the rest: to move them would be to change the history.
        if name not in have and not run(connection, rest):
            table = f"{database.schema}.{name}"
            run(connection, f"CREATE TABLE {table} (LIKE {database.schema}.job_history INCLUDING DEFAULTS)")
            run(connection, f"ALTER TABLE {database.schema}.job_history ATTACH PARTITION {table} {_span(start, end)}")
            run(
                connection,
                f"CREATE TRIGGER is_not_emptied BEFORE TRUNCATE ON {table} FOR EACH STATEMENT {_refuse(database)}",
            )


def months(connection: Connection, database: Database) -> list[tuple[str, int]]:
    """The months that there are, by name, each with the moment at which it ends."""
    rows = run(
        connection,
        "SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = to_regclass(%s) ORDER BY c.relname",
        (f"{database.schema}.job_history",),
    )
    return [(name, _end(name)) for (name,) in rows if name != _REST]


def parts_without(connection: Connection, database: Database, index: str) -> list[str]:
    """The parts of the history that have none of the index of this name, the rest among them."""
    rows = run(
        connection,
        "SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = to_regclass(%s) AND NOT EXISTS (SELECT 1 FROM pg_inherits AS a"
        " JOIN pg_index AS x ON x.indexrelid = a.inhrelid"
        " WHERE a.inhparent = to_regclass(%s) AND x.indrelid = c.oid) ORDER BY c.relname",
        (f"{database.schema}.job_history", index),
    )
    return [name for (name,) in rows]


def remove_months(connection: Connection, database: Database, before_ms: int, now_ms: int) -> int:
    """Remove the months that ended before a moment; how many there were. So goes the rest, once all of it is as old."""
    old = [name for name, end in months(connection, database) if end <= before_ms]
    newest = run(connection, f"SELECT max(at) FROM {database.schema}.{_REST}")
    if newest != [(None,)] and newest[0][0] < before_ms:
        old.append(_REST)
    for name in old:
        run(
            connection,
            f"INSERT INTO {database.schema}.history_anchors (tenant, shard, link, hash, removed_at)"
            f" SELECT DISTINCT ON (tenant, shard) tenant, shard, link, hash, %s FROM {database.schema}.{name}"
            " ORDER BY tenant, shard, link DESC ON CONFLICT DO NOTHING",
            (now_ms,),
        )
        run(connection, f"DROP TABLE {database.schema}.{name}")
    if _REST in old:
        run(connection, f"CREATE TABLE {database.schema}.{_REST} PARTITION OF {database.schema}.job_history DEFAULT")
    return len(old)


def _month(moment_ms: int) -> tuple[int, int]:
    day = datetime.fromtimestamp(moment_ms / 1000, UTC)
    start = datetime(day.year, day.month, 1, tzinfo=UTC)
    end = datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=UTC)
    return int(start.timestamp() * 1000), int(end.timestamp() * 1000)


def _end(name: str) -> int:
    start = datetime.strptime(name, _NAME).replace(tzinfo=UTC)
    return _month(int(start.timestamp() * 1000))[1]


def _span(start: int, end: int) -> str:
    return f"FOR VALUES FROM ({start}) TO ({end})"


def _refuse(database: Database) -> str:
    return f"EXECUTE FUNCTION {database.schema}.refuse_change('job_history is append-only')"
