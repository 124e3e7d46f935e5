"""The floor: the rows that a ledger writes for its jobs, written by the plainest SQL and nothing else.

Same file, tables, indexes and columns, the same batches and the same durability; no checks, no objects, no hash chain
(a hash is a constant here), no second thread. What the ledger takes longer than this is its own doing.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ENQUEUE_BATCH = 2000
_HASH = bytes(32)

_ADD = """
INSERT INTO jobs (
  artifact_id, artifact_json, payload_digest, tenant, job_type, priority, state, due, max_attempts, next_eligible_at,
  created_at, updated_at
) VALUES (?, ?, ?, 'default', 'content.download', 0, 'queued', 1, 3, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
_LEASE = """
UPDATE jobs SET
  state = 'in_progress', stage = 'scheduled', fence = fence + 1, lease_until = ?, worker_id = 'floor',
  lease_id = 'lease_' || lower(hex(randomblob(16))), started_at = NULL, updated_at = ?
WHERE id IN (
  SELECT id FROM jobs INDEXED BY jobs_due WHERE state = 'queued' AND due = 1 AND host_key IS NULL
  ORDER BY priority DESC, id LIMIT ?
)
RETURNING id, fence, lease_id, lease_until, artifact_id, artifact_json, payload_digest
"""
_FINISH = """
UPDATE jobs SET
  state = 'done', outcome = 'success', last_error = NULL, result_json = ?, stage = NULL, lease_until = NULL,
  worker_id = NULL, finished_at = ?, updated_at = ?
WHERE id = ? AND fence = ? AND lease_id = ? AND state = 'in_progress'
"""
_HISTORY = """
INSERT INTO job_history (
  tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, reason, ticket, detail_json,
  prev_hash, hash
) VALUES ('default', 0, ?, ?, ?, ?, ?, ?, ?, 0, ?, NULL, NULL, NULL, ?, ?)
"""
_HEAD = """
INSERT INTO history_heads (tenant, shard, link, hash) VALUES ('default', 0, ?, ?)
ON CONFLICT (tenant, shard) DO UPDATE SET link = excluded.link, hash = excluded.hash
"""
_COUNT = """
INSERT INTO job_counts (tenant, job_type, state, n) VALUES ('default', 'content.download', ?, ?)
ON CONFLICT (tenant, job_type, state) DO UPDATE SET n = n + excluded.n
"""


class Floor:
    """One connection to a ledger's file, which the ledger itself has made."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.execute("PRAGMA cache_size = -32768")

    def __enter__(self) -> Floor:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._db.close()

    def enqueue(self, jobs: Sequence[tuple[str, str, str]], *, durable: bool = True) -> None:
        """Add (artifact id, payload, digest) in batches; each is on the disk when the next begins."""
        self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
        for start in range(0, len(jobs), ENQUEUE_BATCH):
            self._begin()
            now = _now_ms()
            first = self._value("SELECT coalesce(max(id), 0) FROM jobs") + 1
            batch = jobs[start : start + ENQUEUE_BATCH]
            self._db.executemany(_ADD, [(*job, now, now, now) for job in batch])
            added = [(first + n, 0, "producer") for n in range(len(batch))]
            self._write_along("enqueued", None, "queued", added, now)

    def work_off(self, most: int, *, batch: int) -> int:
        """Lease and finish up to `most` jobs, one transaction each per batch; how many there were."""
        self._db.execute("PRAGMA synchronous = NORMAL")
        done = 0
        while done < most and (leased := self._lease(min(batch, most - done))):
            self._finish(leased)
            done += len(leased)
        return done

    def end_all(self) -> None:
        """Bring every waiting job to its end by the shortest way, to have a ledger with as many finished ones."""
        self._db.execute("PRAGMA synchronous = OFF")
        while self.work_off(20_000, batch=5000):
            pass

    def _lease(self, most: int) -> list[tuple[Any, ...]]:
        self._begin()
        now = _now_ms()
        rows = self._db.execute(_LEASE, (now + 60_000, now, most)).fetchall()
        self._write_along("leased", "queued", "in_progress", [(row[0], row[1], "floor") for row in rows], now)
        return rows

    def _finish(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._begin()
        now = _now_ms()
        self._db.executemany(_FINISH, [('{"x":1}', now, now, row[0], row[1], row[2]) for row in rows])
        self._write_along("finished", "in_progress", "done", [(row[0], row[1], row[2]) for row in rows], now)

    def _begin(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._value("SELECT high_water_ms FROM ledger_time")

    def _write_along(
        self, event: str, before: str | None, after: str, jobs: Sequence[tuple[int, int, str]], now: int
    ) -> None:
        """History, its head, counts and time: what goes into the same transaction."""
        link = self._value("SELECT coalesce(max(link), 0) FROM history_heads") + 1
        rows = [
            (link + n, job, now, event, before, after, fence, actor, _HASH, _HASH)
            for n, (job, fence, actor) in enumerate(jobs)
        ]
        self._db.executemany(_HISTORY, rows)
        self._db.execute(_HEAD, (link - 1 + len(rows), _HASH))
        changes = [(after, len(rows)), *([(before, -len(rows))] if before else [])]
        self._db.executemany(_COUNT, changes)
        self._db.execute("UPDATE ledger_time SET high_water_ms = max(high_water_ms, ?)", (now,))
        self._db.execute("COMMIT")

    def _value(self, statement: str) -> int:
        return int(self._db.execute(statement).fetchone()[0])


def _now_ms() -> int:
    return int(time.time() * 1000)
