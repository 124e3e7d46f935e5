"""Counts over the tables of a record, for records of any size.

Knows that lines are only ever added, so that a table can be counted part by part: a few thousand rows are grouped while
they are in the processor's reach, where the database would otherwise sort a million. Reads only.
Promises: memory does not grow with the record; a time is nearest-rank and exact to the millisecond.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any

import orjson

from DocsToKG.ContentDownload.catalog.asking import Db, stream
from DocsToKG.ContentDownload.catalog.selection import FILE_HOST, STATE, TAKEDOWN_STAGE

_PART = 20_000
_TEMPORARY = {
    "several": "doc_id TEXT",
    "fates": "doc_id TEXT, fate INTEGER, files INTEGER",
    "passed": "id INTEGER PRIMARY KEY",
    "again": "doc_id TEXT PRIMARY KEY",
}
_POINTS = 60
_MOST_CHECKED = 200_000  # exchanges looked at for a broken Retry-After
_SOON_S = 0.1  # clocks and rounding
SENT = "('http-head', 'http-get', 'robots-fetch', 'retry')"
# With these a host says that it will not give the file to us, or that it has none.
_BARRED = (
    "'robots', 'challenge', 'cookie-wall', 'login-wall', 'paywall', 'interstitial', 'router', 'http-status', "
    "'html-instead-of-pdf', 'no_open_copy', 'unknown-identifier', 'security-policy', 'bad-url'"
)
_OPEN = """(COALESCE(oa_status, '') IN ('gold', 'diamond', 'hybrid', 'bronze', 'green')
            OR INSTR(COALESCE(candidates, ''), '"evidence":"') > 0)"""
_IN_REACH = f"""(COALESCE(explanation, '') LIKE 'Temporary:%' OR COALESCE(cause, reason, '') NOT IN ({_BARRED}))"""
_MISSED = f"""({STATE}), COALESCE(cause, reason), reason,
  CASE WHEN NOT {_OPEN} THEN 0 WHEN {_IN_REACH} THEN 2 ELSE 1 END, COUNT(*), json_group_array(year)"""
_APART = "\x1f"
_FILE_KIND = f" || '{_APART}' || ".join(
    f"COALESCE(CAST({name} AS TEXT), 'unknown')" for name in ("resolver", "tier", "evidence", "is_guess")
)
_FILE_LISTS = ("year", "COALESCE(license, license_raw)", FILE_HOST, _FILE_KIND, "ttfp_ms", "waited_ms", "duration_ms")
# Bytes that were there already, unless it was the same work that brought them.
_SHARED = """CASE WHEN COALESCE(dedupe, '') IN ('duplicate', 'adopted')
                  THEN m.doc_id NOT IN (SELECT doc_id FROM temp.again) ELSE 1 = 0 END"""
_FILES = f"""COUNT(*), SUM(COALESCE(size_bytes, 0)), SUM(CASE WHEN {_SHARED} THEN 1 ELSE 0 END),
  SUM(CASE WHEN {_SHARED} THEN COALESCE(size_bytes, 0) ELSE 0 END), SUM(COALESCE(is_guess, 0)),
  {", ".join(f"json_group_array({name})" for name in _FILE_LISTS)}"""
_OBTAINED = f"m.status = 'ok' AND COALESCE(m.stage, '') <> '{TAKEDOWN_STAGE}'"
_DECISIVE = f"(m.status = 'ok' OR m.stage = '{TAKEDOWN_STAGE}')"
_SEVERAL = "INSERT INTO temp.several (doc_id) SELECT doc_id FROM manifests GROUP BY doc_id HAVING COUNT(*) > 1"
_RERUN = """
SELECT m.run_id, COUNT(DISTINCT m.doc_id) FROM temp.again d CROSS JOIN manifests m ON m.doc_id = d.doc_id
 WHERE m.status = 'ok' AND (:run_id IS NULL OR m.run_id = :run_id)
   AND EXISTS (SELECT 1 FROM manifests e
                WHERE e.doc_id = m.doc_id AND e.id < m.id AND e.status = 'ok' AND e.run_id <> m.run_id)
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


class Spread:
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


def in_parts(
    db: Db, table: str, select: str, *, where: str, values: Mapping[str, Any], group: str = ""
) -> Iterator[tuple[Any, ...]]:
    """Rows of a question asked of one part of the table after another: whoever counts adds them up."""
    sql = f"SELECT {select} FROM {table} m WHERE m.id >= :start AND m.id < :end AND {where} {group}"
    start = _next_id(db, table, -(1 << 62))
    while start is not None:
        yield from db.execute(sql, {**values, "start": start, "end": start + _PART})
        start = _next_id(db, table, start + _PART)


def note_overtaken(db: Db, scope: Scope) -> None:
    """Fill `temp.passed` with the lines of the scope that do not decide about their work: a later one does, or one that
    says that the file was obtained or taken down; and `temp.again` with the works that were obtained several times."""
    for table, columns in _TEMPORARY.items():
        db.execute(f"CREATE TEMP TABLE IF NOT EXISTS {table} ({columns})")
        db.execute(f"DELETE FROM temp.{table}")
    db.execute(_SEVERAL)
    ours = scope.where("created_at", of="m.")
    # The order of the joins is forced: what has several lines is little, and found by the index.
    db.execute(
        f"""INSERT INTO temp.fates
            SELECT d.doc_id, COALESCE(MAX(CASE WHEN {ours} AND {_DECISIVE} THEN m.id END),
                                      MAX(CASE WHEN {ours} THEN m.id END)),
                   SUM(CASE WHEN m.status = 'ok' THEN 1 ELSE 0 END)
              FROM temp.several d CROSS JOIN manifests m ON m.doc_id = d.doc_id GROUP BY d.rowid, d.doc_id""",
        scope.values,
    )
    db.execute(
        f"""INSERT OR IGNORE INTO temp.passed SELECT m.id FROM temp.fates d CROSS JOIN manifests m
             ON m.doc_id = d.doc_id AND m.id <> d.fate WHERE {ours}""",
        scope.values,
    )
    db.execute("INSERT OR IGNORE INTO temp.again SELECT doc_id FROM temp.fates WHERE files > 1")


def overtaken(db: Db) -> str:
    """What `note_overtaken` found, for another connection."""
    return str(db.execute("SELECT json_group_array(id) FROM temp.passed").fetchone()[0])


def take_overtaken(db: Db, found: str) -> None:
    """Spare this connection the search."""
    db.execute(f"CREATE TEMP TABLE IF NOT EXISTS passed ({_TEMPORARY['passed']})")
    db.execute("DELETE FROM temp.passed")
    db.execute("INSERT INTO temp.passed SELECT CAST(value AS INTEGER) FROM json_each(?)", (found,))


@dataclass(slots=True)
class Files:
    """The files that were obtained, counted; a kind is resolver, tier, evidence and `0` or `1` for a guess."""

    count: int = 0
    bytes: int = 0
    shared: int = 0
    shared_bytes: int = 0
    guessed: int = 0
    years: Counter[Any] = field(default_factory=Counter)
    licences: Counter[Any] = field(default_factory=Counter)
    hosts: Counter[Any] = field(default_factory=Counter)
    kinds: Counter[Any] = field(default_factory=Counter)
    ttfp_ms: Spread = field(default_factory=Spread)
    waited_ms: Spread = field(default_factory=Spread)
    work_ms: Spread = field(default_factory=Spread)


def files(db: Db, scope: Scope) -> Files:
    """What was obtained in the scope. After `note_overtaken`."""
    found = Files()
    spreads = (found.ttfp_ms, found.waited_ms, found.work_ms)
    counters = (found.years, found.licences, found.hosts, found.kinds, *(one.counted for one in spreads))
    # A part comes as a few texts: a million rows one by one would cost more than all the rest.
    for row in in_parts(db, "manifests", _FILES, where=f"{_OBTAINED} AND {_fates(db, scope)}", values=scope.values):
        if row[0]:
            found.count, found.bytes, found.shared = found.count + row[0], found.bytes + row[1], found.shared + row[2]
            found.shared_bytes, found.guessed = found.shared_bytes + row[3], found.guessed + row[4]
            for counter, text in zip(counters, row[5:], strict=True):
                counter.update(orjson.loads(text))
    for one in spreads:
        one.counted = Counter({value: count for value, count in one.counted.items() if isinstance(value, int)})
    found.kinds = Counter({tuple(kind.split(_APART)): count for kind, count in found.kinds.items()})
    return found


def misses(db: Db, scope: Scope) -> Iterator[tuple[str, str | None, str | None, int, int, list[Any]]]:
    """The other works of the scope: state, cause, reason, how near the file was (2: in reach, 1: an open copy is known,
    0: neither), how many, and their years. After `note_overtaken`."""
    where = f"NOT ({_OBTAINED}) AND {_fates(db, scope)}"
    rows = in_parts(db, "manifests", _MISSED, where=where, values=scope.values, group="GROUP BY 1, 2, 3, 4")
    for *kind, years in rows:
        state, cause, reason, near, count = kind
        yield state, cause, reason, near, count, orjson.loads(years)


def spread(db: Db, table: str, column: str, scope: Scope, *, only: str = "1 = 1") -> Spread:
    """How the whole numbers of a column lie."""
    found = Spread()
    where = f"{scope.where('ts')} AND {only} AND {column} IS NOT NULL"
    for value, count in in_parts(
        db, table, f"{column}, COUNT(*)", where=where, values=scope.values, group="GROUP BY 1"
    ):
        found.counted[int(value)] += count
    return found


def rerun(db: Db, scope: Scope) -> tuple[str, int] | None:
    """The latest run that obtained works again which an earlier one had obtained, and how many. After
    `note_overtaken`."""
    found = db.execute(_RERUN, {"run_id": scope.run_id}).fetchone()
    return (str(found[0]), int(found[1])) if found else None


_PASSED = "SELECT COUNT(*) FROM temp.passed WHERE id > ? AND id <= ?"


def progress(db: Db, scope: Scope) -> list[tuple[str, int]]:
    """When how many works had ended: some moments from first to last. Lines stand in the order of time; a work counts
    with the line that decides about it. After `note_overtaken`."""
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
    passed, before, moment = 0, first - 1, ""
    for place in places:
        row = db.execute("SELECT created_at FROM manifests WHERE id >= ? ORDER BY id LIMIT 1", (place,)).fetchone()
        lines = 1 + round((place - first) / max(1, last - first) * (count - 1))
        passed += int(db.execute(_PASSED, (before, place)).fetchone()[0])
        before = place
        moment = max(moment, str(row[0]))  # the clocks of several machines differ
        found.append((moment, max(0, lines - passed)))
    return found


def broken_pauses(db: Db, scope: Scope) -> tuple[int, int]:
    """How often a host said when to come back, and how many requests went to it before that moment."""
    asked = f"SELECT host, COUNT(*) FROM http_events WHERE retry_after_s IS NOT NULL AND {scope.where('ts')} GROUP BY 1"
    told = {str(host): int(count) for host, count in db.execute(asked, scope.values)}
    if not told:
        return 0, 0
    rows = stream(
        db,
        f"""SELECT host, ts, COALESCE(elapsed_ms, 0) / 1000.0, retry_after_s
              FROM http_events WHERE status IN {SENT} AND {scope.where("ts")}
               AND host IN (SELECT value FROM json_each(:hosts)) ORDER BY id LIMIT {_MOST_CHECKED}""",
        {**scope.values, "hosts": orjson.dumps(list(told)).decode()},
    )
    pauses: dict[str, tuple[float, float]] = {}
    broken = 0
    for host, moment, took, retry_after in rows:
        ended = datetime.fromisoformat(moment).timestamp()
        since, until = pauses.get(host, (math.inf, 0.0))
        # One that had begun before the host spoke is none that broke its word.
        broken += since + _SOON_S < ended - took < until - _SOON_S
        if retry_after is not None and ended + retry_after > until:
            pauses[host] = (ended, ended + retry_after)
    return sum(told.values()), broken


def _fates(db: Db, scope: Scope) -> str:
    where = scope.where("created_at", of="m.")
    passed = db.execute("SELECT EXISTS (SELECT 1 FROM temp.passed)").fetchone()[0]
    return f"{where} AND m.id NOT IN (SELECT id FROM temp.passed)" if passed else where


def _next_id(db: Db, table: str, start: int) -> int | None:
    found = db.execute(f"SELECT MIN(id) FROM {table} WHERE id >= ?", (start,)).fetchone()[0]
    return None if found is None else int(found)
