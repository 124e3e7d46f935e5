"""The floor on PostgreSQL: the rows that a ledger writes for its jobs, written by the plainest SQL and nothing else.

Same tables, indexes, columns and batches on one connection; statements are prepared. No checks, no objects, no hash
chain (a hash is a constant here), no sweep for leases that ran out, no turns over hosts, no second thread.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psycopg

ENQUEUE_BATCH = 2000
_HASH = bytes(32)

_ADD = """
INSERT INTO {s}.jobs (
  artifact_id, artifact_json, payload_digest, tenant, job_type, priority, state, due, max_attempts, next_eligible_at,
  created_at, updated_at
)
SELECT a, j, d, 'default', 'content.download', 0, 'queued', true, 3, %(now)s, %(now)s, %(now)s
FROM unnest(%(ids)s::text[], %(payloads)s::text[], %(digests)s::text[]) AS v (a, j, d)
ON CONFLICT DO NOTHING
RETURNING id, 0, 'producer'
"""
_LEASE = """
UPDATE {s}.jobs AS j SET
  state = 'in_progress', stage = 'scheduled', fence = j.fence + 1, lease_until = %(until)s, worker_id = 'floor',
  lease_id = 'lease_' || md5(random()::text) || '_' || j.id, started_at = NULL, updated_at = %(now)s
FROM (
  SELECT id FROM {s}.jobs WHERE state = 'queued' AND due AND host_key IS NULL
  ORDER BY -priority, id LIMIT %(most)s FOR UPDATE SKIP LOCKED
) AS c
WHERE j.id = c.id
RETURNING j.id, j.fence, j.lease_id, j.lease_until, j.artifact_id, j.artifact_json, j.payload_digest
"""
_FINISH = """
UPDATE {s}.jobs AS j SET
  state = 'done', outcome = 'success', last_error = NULL, result_json = '{{"x":1}}', stage = NULL, lease_until = NULL,
  worker_id = NULL, finished_at = %(now)s, updated_at = %(now)s
FROM unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(lease_ids)s::text[]) AS v (id, fence, lease_id)
WHERE j.id = v.id AND j.fence = v.fence AND j.lease_id = v.lease_id AND j.state || '' = 'in_progress'
"""
_HISTORY = """
INSERT INTO {s}.job_history (
  tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, prev_hash, hash
)
SELECT
  'default', {shard}, v.link, v.job_id, %(now)s, %(event)s, %(before)s, %(after)s, v.fence, 0, v.actor, %(hash)s,
  %(hash)s
FROM unnest(%(links)s::bigint[], %(ids)s::bigint[], %(fences)s::bigint[], %(actors)s::text[])
  AS v (link, job_id, fence, actor)
"""
_HEAD = """
INSERT INTO {s}.history_heads (tenant, shard, link, hash, at) VALUES ('default', {shard}, %(link)s, %(hash)s, %(now)s)
ON CONFLICT (tenant, shard) DO UPDATE SET link = excluded.link, hash = excluded.hash, at = excluded.at
"""
_COUNT = """
INSERT INTO {s}.count_changes (tenant, job_type, state, n)
SELECT 'default', 'content.download', v.state, v.n FROM unnest(%(states)s::text[], %(ns)s::bigint[]) AS v (state, n)
"""


class Floor:
    """One connection to a ledger's schema, which the ledger itself has made. Several at once have a chain each."""

    def __init__(self, url: str, schema: str, *, shard: int = 0) -> None:
        self._db: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True, prepare_threshold=1)
        for name in ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"):
            self._db.execute(f"SET {name} = off")
        self._sql = {
            name: text.format(s=schema, shard=shard)
            for name, text in (("add", _ADD), ("lease", _LEASE), ("finish", _FINISH), ("history", _HISTORY),
                               ("head", _HEAD), ("count", _COUNT))
        }  # fmt: skip
        self._head = f"SELECT link FROM {schema}.history_heads WHERE tenant = 'default' AND shard = {shard} FOR UPDATE"

    def __enter__(self) -> Floor:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._db.close()

    def enqueue(self, jobs: Sequence[tuple[str, str, str]]) -> None:
        """Add (artifact id, payload, digest) in batches."""
        for start in range(0, len(jobs), ENQUEUE_BATCH):
            ids, payloads, digests = (list(column) for column in zip(*jobs[start : start + ENQUEUE_BATCH], strict=True))
            now = _now_ms()
            with self._db.transaction():
                values = {"ids": ids, "payloads": payloads, "digests": digests, "now": now}
                self._write_along("enqueued", None, "queued", self._rows("add", values), now)

    def work_off(self, most: int, *, batch: int) -> int:
        """Lease and finish up to `most` jobs, one transaction each per batch; how many there were."""
        done = 0
        while done < most and (leased := self._lease(min(batch, most - done))):
            self._finish(leased)
            done += len(leased)
        return done

    def end_all(self) -> None:
        """Bring every waiting job to its end, to have a ledger with as many finished ones."""
        while self.work_off(20_000, batch=5000):
            pass

    def _lease(self, most: int) -> list[tuple[Any, ...]]:
        now = _now_ms()
        with self._db.transaction():
            rows = self._rows("lease", {"until": now + 60_000, "now": now, "most": most})
            if rows:
                self._write_along("leased", "queued", "in_progress", [(r[0], r[1], "floor") for r in rows], now)
        return rows

    def _finish(self, rows: Sequence[tuple[Any, ...]]) -> None:
        now = _now_ms()
        ids, fences, leases = ([row[n] for row in rows] for n in range(3))
        with self._db.transaction():
            self._db.execute(self._sql["finish"], {"ids": ids, "fences": fences, "lease_ids": leases, "now": now})
            self._write_along("finished", "in_progress", "done", [row[:3] for row in rows], now)

    def _write_along(
        self, event: str, before: str | None, after: str, jobs: Sequence[tuple[Any, ...]], now: int
    ) -> None:
        """History, its head and counts: what goes into the same transaction."""
        head = self._db.execute(self._head).fetchone()
        link = 0 if head is None else int(head[0])
        ids, fences, actors = ([job[n] for job in jobs] for n in range(3))
        links = list(range(link + 1, link + 1 + len(jobs)))
        words = {"now": now, "event": event, "before": before, "after": after, "hash": _HASH}
        self._db.execute(
            self._sql["history"], {**words, "links": links, "ids": ids, "fences": fences, "actors": actors}
        )
        self._db.execute(self._sql["head"], {"link": links[-1], "hash": _HASH, "now": now})
        changes = [(after, len(jobs)), *([(before, -len(jobs))] if before else [])]
        self._db.execute(self._sql["count"], {"states": [c[0] for c in changes], "ns": [c[1] for c in changes]})

    def _rows(self, query: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._db.execute(self._sql[query], values).fetchall()


def _now_ms() -> int:
    return int(time.time() * 1000)
