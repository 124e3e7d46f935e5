"""Which lines of a record count, and what can only be told from several of them together.

Knows that a work may have many lines, of which one decides. Reads only.
Promises: memory does not grow with the record; a time is nearest-rank and exact to the millisecond.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any

import orjson

from DocsToKG.ContentDownload.api.types import AttemptStatus
from DocsToKG.ContentDownload.catalog.aggregates import OBTAINED, SHARED
from DocsToKG.ContentDownload.catalog.connection import Db, stream
from DocsToKG.ContentDownload.catalog.selection import TAKEDOWN_STAGE
from DocsToKG.core.clock import utc_iso

_TEMPORARY = {
    "several": "doc_id TEXT, work INTEGER",
    "lines": "id INTEGER PRIMARY KEY, work INTEGER, ours INTEGER, decides INTEGER, is_ok INTEGER, is_file INTEGER",
    "fates": "work INTEGER PRIMARY KEY, fate INTEGER, files INTEGER, first_file INTEGER",
    "superseded": "id INTEGER PRIMARY KEY, is_file INTEGER",
    "again": "work INTEGER PRIMARY KEY, first_file INTEGER",
}
_POINTS = 60
_MOST_CHECKED = 200_000  # exchanges looked at for a broken Retry-After
_SOON_S = 0.1  # clocks and rounding
_QUICK_S = 5.0  # a request that took less and ended so long after a pause had not begun in it
_NO_PAUSE = (math.inf, 0.0, "")
SENT = (AttemptStatus.HTTP_HEAD, AttemptStatus.HTTP_GET, AttemptStatus.ROBOTS_FETCH, AttemptStatus.RETRY)
# Works with several lines, by the number of their first one. All that is asked of a line stands in the index, unless
# only some lines count. The order of joins is forced.
_SEVERAL = """INSERT INTO temp.several (doc_id, work)
  SELECT doc_id, MIN(id) FROM manifests GROUP BY doc_id HAVING COUNT(*) > 1"""
_LINES = f"""INSERT INTO temp.lines (id, work, ours, decides, is_ok, is_file)
  SELECT m.id, d.work, CASE WHEN {{ours}} THEN 1 ELSE 0 END,
         CASE WHEN m.status = 'ok' OR m.stage = '{TAKEDOWN_STAGE}' THEN 1 ELSE 0 END,
         CASE WHEN m.status = 'ok' THEN 1 ELSE 0 END, CASE WHEN {OBTAINED} THEN 1 ELSE 0 END
    FROM temp.several d CROSS JOIN manifests m ON m.doc_id = d.doc_id"""
_FATES = """INSERT INTO temp.fates (work, fate, files, first_file)
  SELECT work, COALESCE(MAX(CASE WHEN ours = 1 AND decides = 1 THEN id END), MAX(CASE WHEN ours = 1 THEN id END)),
         SUM(is_ok), MIN(CASE WHEN is_ok = 1 THEN id END)
    FROM temp.lines GROUP BY work"""
_SUPERSEDED = """INSERT INTO temp.superseded (id, is_file)
  SELECT n.id, n.is_file FROM temp.lines n JOIN temp.fates d ON d.work = n.work AND d.fate <> n.id WHERE n.ours = 1"""
_AGAIN = """INSERT INTO temp.again (work, first_file)
  SELECT work, first_file FROM temp.fates WHERE files > 1"""
_SHARED_AGAIN = f"""SELECT COUNT(*), SUM(m.size_bytes) FROM temp.fates d CROSS JOIN manifests m ON m.id = d.fate
  WHERE d.files > 1 AND {SHARED} AND {OBTAINED}"""
_RERUN = """
SELECT m.run_id, COUNT(DISTINCT n.work)
  FROM temp.lines n CROSS JOIN temp.again a ON a.work = n.work CROSS JOIN manifests m ON m.id = n.id
 WHERE n.is_ok = 1 AND (:run_id IS NULL OR m.run_id = :run_id)
   AND n.id > a.first_file
   AND ((SELECT e.run_id FROM manifests e WHERE e.id = a.first_file) <> m.run_id
        OR EXISTS (SELECT 1 FROM manifests e
                    WHERE e.doc_id = m.doc_id AND e.id < m.id AND e.status = 'ok' AND e.run_id <> m.run_id))
 GROUP BY m.run_id ORDER BY MAX(m.id) DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which lines count: those of one run, those since a moment (in the record's own spelling), or all."""

    run_id: str | None = None
    since: str | None = None

    def where(self, moment: str, *, of: str = "") -> str:
        """The condition; `moment` is the table's column of time, `of` a prefix of its columns."""
        tests = ["1 = 1"]
        if self.run_id is not None:
            tests.append(f"{of}run_id = :run_id")
        if self.since is not None:
            tests.append(f"{of}{moment} >= :since")
        return " AND ".join(tests)

    @property
    def values(self) -> dict[str, Any]:
        return {"run_id": self.run_id, "since": self.since}


@contextmanager
def read_transaction(db: Db) -> Iterator[None]:
    """All that is asked meanwhile is answered from one state of the record. A server's connection is in one already."""
    if not isinstance(db, sqlite3.Connection) or db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


class Distribution:
    """How values lie: any of their percentiles, without keeping each of them."""

    def __init__(self, counted: Mapping[int, int] | None = None) -> None:
        self.counted: Counter[int] = Counter(counted or {})

    def __len__(self) -> int:
        return self.counted.total()

    def percentile(self, share: float) -> int | None:
        """The nearest-rank percentile; None when there are no values."""
        values = sorted(self.counted)
        if not values:
            return None
        wanted = max(1, math.ceil(share * len(self)))
        reached = accumulate(self.counted[value] for value in values)
        return next(value for value, count in zip(values, reached, strict=True) if count >= wanted)

    def steps(self, edges: tuple[int, ...]) -> list[int]:
        """How many values are below each edge and not below the one before; the last number is of the rest."""
        found = [0] * (len(edges) + 1)
        for value, count in self.counted.items():
            found[next((place for place, edge in enumerate(edges) if value < edge), len(edges))] += count
        return found


def find_superseded(db: Db, scope: Scope) -> None:
    """Fill `temp.superseded` with the lines of the scope that do not decide about their work: a later one does, or one
    that says that the file was obtained or taken down; and `temp.again` with works that were obtained several times."""
    for table, columns in _TEMPORARY.items():
        db.execute(f"CREATE TEMP TABLE IF NOT EXISTS {table} ({columns})")
        db.execute(f"DELETE FROM temp.{table}")
    ours = scope.where("created_at", of="m.")
    for sql in (_SEVERAL, _LINES, _FATES, _SUPERSEDED, _AGAIN):
        db.execute(sql.format(ours=ours), scope.values)


def word(value: object) -> str:
    return "unknown" if value is None else str(value)


def shared_again(db: Db) -> tuple[int, int]:
    """Of the works that were obtained several times: how many got bytes that were there already, and how many bytes. It
    was the same work that had brought them. After `find_superseded`."""
    count, size = db.execute(_SHARED_AGAIN).fetchone()
    return int(count), int(size or 0)


def rerun(db: Db, scope: Scope) -> tuple[str, int] | None:
    """The latest run that obtained works again which an earlier one had obtained, and how many. After
    `find_superseded`."""
    found = db.execute(_RERUN, {"run_id": scope.run_id}).fetchone()
    return (str(found[0]), int(found[1])) if found else None


_SUPERSEDED_BETWEEN = "SELECT COUNT(*) FROM temp.superseded WHERE id > ? AND id <= ?"


def progress(db: Db, scope: Scope) -> list[tuple[str, int]]:
    """When how many works had ended: some moments from first to last. Lines stand in the order of time; a work counts
    with the line that decides about it. After `find_superseded`."""
    # One end at a time: both at once would read the whole index.
    where = scope.where("created_at")
    first, last = (
        db.execute(f"SELECT {end}(id) FROM manifests WHERE {where}", scope.values).fetchone()[0]
        for end in ("MIN", "MAX")
    )
    if first is None:
        return []
    # Lines of one run, or since a moment, may be fewer than their numbers say; all lines of a file are not.
    count = last - first + 1
    if scope != Scope() or not isinstance(db, sqlite3.Connection):
        count = int(db.execute(f"SELECT COUNT(*) FROM manifests WHERE {where}", scope.values).fetchone()[0])
    if count < 2:
        return []
    places = sorted({first + (last - first) * step // _POINTS for step in range(_POINTS + 1)})
    found = []
    superseded, before, moment = 0, first - 1, ""
    for place in places:
        row = db.execute("SELECT created_at FROM manifests WHERE id >= ? ORDER BY id LIMIT 1", (place,)).fetchone()
        lines = 1 + round((place - first) / max(1, last - first) * (count - 1))
        superseded += int(db.execute(_SUPERSEDED_BETWEEN, (before, place)).fetchone()[0])
        before = place
        moment = max(moment, str(row[0]))  # the clocks of several machines differ
        found.append((moment, max(0, lines - superseded)))
    return found


def broken_pauses(db: Db, scope: Scope, hosts: Sequence[str]) -> int:
    """How many requests went to hosts before the moment at which they had said to come back."""
    if not hosts:
        return 0
    sent = ", ".join(f"'{status}'" for status in SENT)
    rows = stream(
        db,
        f"""SELECT host, ts, COALESCE(elapsed_ms, 0) / 1000.0, retry_after_s
              FROM http_events WHERE status IN ({sent}) AND {scope.where("ts")}
               AND host IN (SELECT value FROM json_each(:hosts)) ORDER BY id LIMIT {_MOST_CHECKED}""",
        {**scope.values, "hosts": orjson.dumps(hosts).decode()},
    )
    pauses: dict[str, tuple[float, float, str]] = {}
    broken = 0
    for host, moment, took, retry_after in rows:
        since, until, long_over = pauses.get(host, _NO_PAUSE)
        if retry_after is None and took < _QUICK_S and moment > long_over:
            continue
        ended = datetime.fromisoformat(moment).timestamp()
        # One that had begun before the host spoke is none that broke its word.
        broken += since + _SOON_S < ended - took < until - _SOON_S
        if retry_after is not None and ended + retry_after > until:
            until = ended + retry_after
            pauses[host] = (ended, until, utc_iso(until + _QUICK_S))
    return broken
