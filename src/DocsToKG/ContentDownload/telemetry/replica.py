"""Rows of a machine's own record put into the shared one: what is sent, in one transaction at a time.

The shared record knows how far it has each machine's rows, in the same transaction as the rows: a row arrives once,
however often it is sent. Knows what rows that arrive late must not undo: a file that is older than the takedown of its
work stands for nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from uuid import uuid4

import orjson

from DocsToKG.ContentDownload.catalog.selection import TAKEDOWN_STAGE
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.telemetry import attempts, manifest
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, run

MOST_ROWS = 1_000  # of each table in one transaction
_COLUMNS: Mapping[str, Sequence[str]] = {
    "manifests": manifest.COLUMNS,
    "fallback_attempts": attempts.SOURCE_COLUMNS,
    "http_events": attempts.COLUMNS,
    "rate_events": attempts.RATE_COLUMNS,
    "breaker_transitions": attempts.BREAKER_COLUMNS,
}
TABLES = tuple(_COLUMNS)
_WHOLE = frozenset(
    ("http_status", "elapsed_ms", "bytes_written", "content_length_hdr", "from_cache", "revalidated", "delay_ms")
) | frozenset(manifest.WHOLE_COLUMNS)
_REAL = frozenset({"retry_after_s", "reset_timeout_s"})
_STAGE = manifest.AT["stage"]
# Of a file's line: its work was taken down after it, or is refused, whatever the clocks say.
_LATER_TAKEDOWN = f"""(EXISTS (SELECT 1 FROM {{s}}.manifests t
   WHERE t.stage = '{TAKEDOWN_STAGE}' AND t.doc_id = a.doc_id AND t.created_at > a.created_at
     AND (t.cause = 'taken-down' OR (t.cause = 'file-rejected' AND t.sha256 = a.sha256)))
   OR EXISTS (SELECT 1 FROM {{s}}.takedowns k WHERE k.doc_id = a.doc_id AND k.stands))"""
_FILE = (
    *("doc_id", "sha256", "size_bytes", "path", "mime", "url", "canonical_url", "license", "oa_status", "version"),
    *("dedupe", "proof", "damaged", "version_doi", "run_id"),
)
_RENEWED = ", ".join(f"{name} = excluded.{name}" for name in (*_FILE[2:], "manifest_id", "created_at"))


def _kind(column: str) -> str:
    return "bigint" if column in _WHOLE else "double precision" if column in _REAL else "text"


def _sent(table: str) -> str:
    columns = ", ".join(f"{name} {_kind(name)}" for name in _COLUMNS[table])
    return f"json_to_recordset(%(rows)s::json) AS r ({columns})"


def _insert(table: str) -> str:
    names = ", ".join(_COLUMNS[table])
    return f"INSERT INTO {{s}}.{table} ({names}) SELECT {names} FROM {_sent(table)}"


# A line without a lease has no name of its own: the same line is the one that says the same at the same moment.
_LINES = f"""{_insert("manifests")}
   WHERE r.lease_id IS NOT NULL OR NOT EXISTS (
     SELECT 1 FROM {{s}}.manifests m WHERE m.doc_id = r.doc_id AND m.lease_id IS NULL AND m.status = r.status
        AND m.created_at = r.created_at AND m.run_id IS NOT DISTINCT FROM r.run_id)
  ON CONFLICT (doc_id, lease_id) WHERE lease_id IS NOT NULL DO NOTHING RETURNING *"""
# A file that arrives after a later one of its work stands behind it. The lines that came after their takedown.
_ENDS = f"""
WITH added AS ({_LINES}),
files AS (
  INSERT INTO {{s}}.downloads AS known ({", ".join(_FILE)}, manifest_id, created_at)
  SELECT DISTINCT ON (a.doc_id, a.sha256) {", ".join(f"a.{name}" for name in _FILE)},
         coalesce((SELECT min(d.manifest_id) - 1 FROM {{s}}.downloads d
                    WHERE d.doc_id = a.doc_id AND d.created_at > a.created_at), a.id), a.created_at
    FROM added a WHERE a.status = 'ok' AND NOT {_LATER_TAKEDOWN}
   ORDER BY a.doc_id, a.sha256, a.id DESC
  ON CONFLICT (doc_id, sha256) DO UPDATE SET {_RENEWED}, corrupt = 0 WHERE known.created_at <= excluded.created_at)
SELECT a.id FROM added a WHERE a.status = 'ok' AND {_LATER_TAKEDOWN}
"""
_TAKEDOWNS = f"""
WITH added AS ({_LINES}),
gone AS (DELETE FROM {{s}}.downloads d USING added a
          WHERE a.cause IN ('taken-down', 'file-rejected') AND d.doc_id = a.doc_id AND d.created_at <= a.created_at)
SELECT 1 WHERE false
"""
_REPEATED = ", ".join("t.lease_id || '/' || a.id" if name == "lease_id" else f"t.{name}" for name in manifest.COLUMNS)
_REPEAT_TAKEDOWN = f"""
INSERT INTO {{s}}.manifests ({", ".join(manifest.COLUMNS)})
SELECT {_REPEATED} FROM {{s}}.manifests a CROSS JOIN LATERAL (
  SELECT * FROM {{s}}.manifests t WHERE t.stage = '{TAKEDOWN_STAGE}' AND t.doc_id = a.doc_id
   ORDER BY t.id DESC LIMIT 1) t WHERE a.id = ANY(%(late)s)
ON CONFLICT (doc_id, lease_id) WHERE lease_id IS NOT NULL DO NOTHING
"""
_KNOWN = f"SELECT {', '.join(TABLES)}, last_line FROM {{s}}.journals WHERE journal = %(journal)s FOR UPDATE"
_NEW = "INSERT INTO {s}.journals (journal, node) VALUES (%(journal)s, %(node)s) ON CONFLICT DO NOTHING"
_ARRIVED = f"""
UPDATE {{s}}.journals SET seen_at = now(), node = %(node)s, last_line = %(last_line)s,
       {", ".join(f"{name} = %({name})s" for name in TABLES)} WHERE journal = %(journal)s
"""
_MARK = """
UPDATE {s}.downloads d SET verified_at = r.at, corrupt = r.corrupt
  FROM json_to_recordset(%(rows)s::json) AS r (sha256 text, corrupt bigint, at text) WHERE d.sha256 = r.sha256
"""


class Replica:
    """Sends from `local`, the machine's own record, to the tables in `schema`."""

    def __init__(self, local: sqlite3.Connection, *, schema: str, journal: str, node: str) -> None:
        self._local = local
        self._schema = schema
        self._whose = {"journal": journal, "node": node}

    def newest(self) -> dict[str, int]:
        """The last row of each table here."""
        return {table: self._newest(table) for table in TABLES}

    def send(self, connection: Connection, wanted: Mapping[str, int]) -> bool:
        """Send the next rows, whoever of this machine wrote them; whether all up to `wanted` have arrived."""
        with connection.transaction():
            known = self._known(connection)
            if not self._is_ours(known):
                raise RecordError(
                    "the shared record has rows that another machine sent under the name of this one's record, as a "
                    "copy of its folder does; start again, and this one gets a name of its own"
                )
            at = {table: int(known[place]) for place, table in enumerate(TABLES)}
            if all(at[table] >= wanted[table] for table in TABLES):
                return True
            rows = {table: self._rows_after(table, at[table]) for table in TABLES}
            last_line = known[-1]
            for table, found in rows.items():
                if found:
                    self._put(connection, table, [row[1:] for row in found])
                    at[table] = found[-1][0]
            if rows["manifests"]:
                last_line = line_name(rows["manifests"][-1][1:])
            run(connection, self._sql(_ARRIVED), {**self._whose, **at, "last_line": last_line})
        return all(at[table] >= wanted[table] for table in TABLES)

    def mark(self, connection: Connection, verified: Sequence[tuple[str, bool]], at: str) -> None:
        """Stored files were hashed again."""
        rows = [{"sha256": sha256, "corrupt": int(not intact), "at": at} for sha256, intact in verified]
        run(connection, self._sql(_MARK), {"rows": orjson.dumps(rows).decode()})

    def send_runs(self, connection: Connection) -> None:
        """How every run of this machine stands, in place of what was said of it before."""
        for table in ("run_summary", "summaries"):
            cursor = self._local.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            sql = f"""INSERT INTO {{s}}.{table} ({", ".join(names)}) SELECT {", ".join(names)}
                        FROM json_populate_recordset(NULL::{{s}}.{table}, %(rows)s::json)
                      ON CONFLICT (run_id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in names)}"""
            while rows := cursor.fetchmany(MOST_ROWS):
                sent = _json([dict(zip(names, row, strict=True)) for row in rows])
                run(connection, self._sql(sql), {"rows": sent})

    def stands(self, connection: Connection) -> bool:
        """Whether what has arrived of this journal is what the local record holds: a record that was put back from a
        copy, or copied to another machine, goes on differently."""
        with connection.transaction():
            return self._is_ours(self._known(connection))

    def _is_ours(self, known: Sequence[Any]) -> bool:
        if any(int(known[place]) > self._newest(table) for place, table in enumerate(TABLES)):
            return False
        if not known[0]:
            return True
        sql = f"SELECT {', '.join(manifest.COLUMNS)} FROM manifests WHERE id = ?"
        row = self._local.execute(sql, (known[0],)).fetchone()
        return row is not None and line_name(row) == known[-1]

    def _known(self, connection: Connection) -> tuple[Any, ...]:
        found = run(connection, self._sql(_KNOWN), self._whose)
        if not found:
            run(connection, self._sql(_NEW), self._whose)
            found = run(connection, self._sql(_KNOWN), self._whose)
        return found[0]

    def _rows_after(self, table: str, row_id: int) -> list[tuple[Any, ...]]:
        sql = f"SELECT id, {', '.join(_COLUMNS[table])} FROM {table} WHERE id > ? ORDER BY id LIMIT {MOST_ROWS}"
        return self._local.execute(sql, (row_id,)).fetchall()

    def _newest(self, table: str) -> int:
        return int(self._local.execute(f"SELECT COALESCE(MAX(id), 0) FROM {table}").fetchone()[0])

    def _put(self, connection: Connection, table: str, rows: Sequence[Sequence[Any]]) -> None:
        if table != "manifests":
            run(connection, self._sql(_insert(table)), {"rows": _objects(table, rows)})
            return
        for is_takedown, lines in _runs(rows):
            sql = self._sql(_TAKEDOWNS if is_takedown else _ENDS)
            late = [row_id for (row_id,) in run(connection, sql, {"rows": _objects(table, lines)})]
            if late:
                run(connection, self._sql(_REPEAT_TAKEDOWN), {"late": late})

    def _sql(self, text: str) -> str:
        return text.replace("{s}", self._schema)


def journal_of(db: sqlite3.Connection, *, anew: bool = False) -> str:
    """The name of a machine's own record, which it keeps for as long as it is the same; `anew` gives it another."""
    if anew:
        db.execute("DELETE FROM journal")
    db.execute("INSERT INTO journal (id) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM journal)", (uuid4().hex,))
    return str(db.execute("SELECT id FROM journal").fetchone()[0])


def line_name(values: Sequence[Any]) -> str:
    """What tells a line from others."""
    return " ".join(str(values[manifest.AT[name]]) for name in ("doc_id", "lease_id", "created_at"))


def _runs(rows: Sequence[Sequence[Any]]) -> Iterator[tuple[bool, list[Sequence[Any]]]]:
    """The lines in their order, takedowns apart from the others."""
    for is_takedown, lines in groupby(rows, key=lambda row: row[_STAGE] == TAKEDOWN_STAGE):
        if is_takedown:
            yield from ((True, [line]) for line in lines)
        else:
            yield False, list(lines)


def _objects(table: str, rows: Sequence[Sequence[Any]]) -> str:
    return _json([dict(zip(_COLUMNS[table], row, strict=True)) for row in rows])


def _json(rows: list[dict[str, Any]]) -> str:
    text = orjson.dumps(rows)
    if b"\\u0000" in text:
        # The server's texts hold any character but this one.
        text = orjson.dumps([{name: _without_nul(value) for name, value in row.items()} for row in rows])
    return text.decode()


def _without_nul(value: Any) -> Any:
    return value.replace("\0", "\ufffd").replace("\\u0000", "\\ufffd") if isinstance(value, str) else value
