"""Counts over the tables of a record, for records of any size.

Knows that lines are only ever added, so that a table can be counted part by part, by several connections at once: a few
thousand rows are grouped while they are in the processor's reach, where the database would otherwise sort a million.
Reads only.
Promises: memory does not grow with the record; a time is nearest-rank and exact to the millisecond.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any

import orjson

from DocsToKG.ContentDownload.catalog.asking import Db, stream
from DocsToKG.ContentDownload.catalog.selection import ADDRESS, LICENCE, STATE, TAKEDOWN_STAGE, host_of

_PART = 20_000
_PART_OF_WORKS = 8_000  # whose rows are wide: so many fit into the memory that a connection has for pages


def _listed(name: str) -> str:
    """The values of all rows as one text."""
    return f"CAST(json_group_array({name}) AS TEXT)"


_TEMPORARY = {
    "several": "doc_id TEXT, work INTEGER",
    "numbers": "id INTEGER PRIMARY KEY, work INTEGER",
    "fates": "work INTEGER PRIMARY KEY, fate INTEGER, files INTEGER",
    "passed": "id INTEGER PRIMARY KEY",
    "again": "doc_id TEXT PRIMARY KEY",
}
_POINTS = 60
_MOST_CHECKED = 200_000  # exchanges looked at for a broken Retry-After
_SOON_S = 0.1  # clocks and rounding
SENT = "('http-head', 'http-get', 'robots-fetch', 'retry')"
# With these a host says that it will not give the file to us, or that it has none.
_BARRED = frozenset(
    {"robots", "challenge", "cookie-wall", "login-wall", "paywall", "interstitial", "router", "http-status",
     "html-instead-of-pdf", "no_open_copy", "unknown-identifier", "security-policy", "bad-url"}
)  # fmt: skip
_OPEN = """CASE WHEN COALESCE(oa_status, '') IN ('gold', 'diamond', 'hybrid', 'bronze', 'green')
                  OR INSTR(COALESCE(candidates, ''), '"evidence":"') > 0 THEN 1 ELSE 0 END"""
_FOR_A_WHILE = "CASE WHEN SUBSTR(explanation, 1, 10) = 'Temporary:' THEN 1 ELSE 0 END"
# Bytes that were there already, unless it was the same work that brought them.
_SHARED = """CASE WHEN COALESCE(dedupe, '') IN ('duplicate', 'adopted')
                  THEN m.doc_id NOT IN (SELECT doc_id FROM temp.again) ELSE 1 = 0 END"""
_OBTAINED = f"m.status = 'ok' AND COALESCE(m.stage, '') <> '{TAKEDOWN_STAGE}'"
_FILE_KIND = tuple(f"CAST({name} AS TEXT)" for name in ("resolver", "tier", "evidence", "is_guess"))
# An address up to its path: taking the host out of it is left to whoever has counted them.
_SITE = f"SUBSTR({ADDRESS}, 1, INSTR(SUBSTR({ADDRESS}, {len('https://') + 1}) || '/', '/') + {len('https://')})"
_FILE_LISTS = ("year", LICENCE, _SITE, "ttfp_ms", "waited_ms", "duration_ms", *_FILE_KIND)
_REASONS = ("CAST(COALESCE(cause, reason) AS TEXT)", "CAST(reason AS TEXT)")
_MISS_KIND = (f"({STATE})", *_REASONS, "CAST(year AS TEXT)", _OPEN, _FOR_A_WHILE)
# A part comes as a few texts: a million rows one by one would cost more than all the rest.
_FILES = f"""COUNT(*), SUM(size_bytes), CAST(json_group_array(size_bytes) FILTER (WHERE {_SHARED}) AS TEXT),
  {", ".join(_listed(name) for name in _FILE_LISTS)}"""
_MISSES = ", ".join(_listed(name) for name in _MISS_KIND)
_DECISIVE = f"(m.status = 'ok' OR m.stage = '{TAKEDOWN_STAGE}')"
# Works with several lines, by the number of their first one. Numbers come from the index alone, and the lines are then
# read in the order in which they lie. The order of joins is forced.
_SEVERAL = """INSERT INTO temp.several (doc_id, work)
  SELECT doc_id, MIN(id) FROM manifests GROUP BY doc_id HAVING COUNT(*) > 1"""
_NUMBERS = """INSERT INTO temp.numbers (id, work)
  SELECT m.id, d.work FROM temp.several d CROSS JOIN manifests m ON m.doc_id = d.doc_id"""
_FATES = f"""INSERT INTO temp.fates (work, fate, files)
  SELECT n.work, COALESCE(MAX(CASE WHEN {{ours}} AND {_DECISIVE} THEN m.id END), MAX(CASE WHEN {{ours}} THEN m.id END)),
         SUM(CASE WHEN m.status = 'ok' THEN 1 ELSE 0 END)
    FROM temp.numbers n CROSS JOIN manifests m ON m.id = n.id GROUP BY n.work"""
_OVERTAKEN = """INSERT INTO temp.passed (id)
  SELECT n.id FROM temp.numbers n JOIN temp.fates d ON d.work = n.work AND d.fate <> n.id
    {lines} WHERE {ours}"""
_AGAIN = """INSERT INTO temp.again (doc_id)
  SELECT m.doc_id FROM temp.fates d CROSS JOIN manifests m ON m.id = d.work WHERE d.files > 1"""
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


class Parts:
    """A table in parts, each handed out once, to whichever connection asks next."""

    def __init__(self, table: str, size: int = _PART) -> None:
        self.table, self.size = table, size
        self._lock = threading.Lock()
        self._next: int | None = -(1 << 62)

    def taken(self, db: Db) -> Iterator[dict[str, int]]:
        """Where each part begins, and where it has ended."""
        while (start := self._start(db)) is not None:
            yield {"start": start, "end": start + self.size}

    def _start(self, db: Db) -> int | None:
        with self._lock:
            start = None if self._next is None else _next_id(db, self.table, self._next)
            self._next = None if start is None else start + self.size
            return start


def parts_of_works() -> Parts:
    return Parts("manifests", _PART_OF_WORKS)


def in_parts(
    db: Db, table: str, select: str, *, where: str, values: Mapping[str, Any], group: str = ""
) -> Iterator[tuple[Any, ...]]:
    """Rows of a question asked of one part of the table after another: whoever counts adds them up."""
    sql = f"{_in_part(select, table, where)} {group}"
    for part in Parts(table).taken(db):
        yield from db.execute(sql, {**values, **part})


def _in_part(select: str, table: str, where: str) -> str:
    return f"SELECT {select} FROM {table} m WHERE m.id >= :start AND m.id < :end AND {where}"


def note_overtaken(db: Db, scope: Scope) -> None:
    """Fill `temp.passed` with the lines of the scope that do not decide about their work: a later one does, or one that
    says that the file was obtained or taken down; and `temp.again` with the works that were obtained several times."""
    for table, columns in _TEMPORARY.items():
        db.execute(f"CREATE TEMP TABLE IF NOT EXISTS {table} ({columns})")
        db.execute(f"DELETE FROM temp.{table}")
    ours = scope.where("created_at", of="m.")
    lines = "" if scope == Scope() else "JOIN manifests m ON m.id = n.id"
    for sql in (_SEVERAL, _NUMBERS, _FATES, _OVERTAKEN, _AGAIN):
        db.execute(sql.format(ours=ours, lines=lines), scope.values)


def overtaken(db: Db) -> tuple[str, str]:
    """What `note_overtaken` found, for another connection."""
    found = db.execute(
        """SELECT CAST((SELECT json_group_array(id) FROM temp.passed) AS TEXT),
                  CAST((SELECT json_group_array(doc_id) FROM temp.again) AS TEXT)"""
    ).fetchone()
    return found[0] or "[]", found[1] or "[]"


def take_overtaken(db: Db, found: tuple[str, str]) -> None:
    """Spare this connection the search."""
    for table, column, kind, values in zip(
        ("passed", "again"), ("id", "doc_id"), ("INTEGER", "TEXT"), found, strict=True
    ):
        db.execute(f"CREATE TEMP TABLE IF NOT EXISTS {table} ({_TEMPORARY[table]})")
        db.execute(f"DELETE FROM temp.{table}")
        db.execute(f"INSERT INTO temp.{table} ({column}) SELECT CAST(value AS {kind}) FROM json_each(?)", (values,))


@dataclass(slots=True)
class Works:
    """What became of works, counted. The kind of a file is resolver, tier, evidence and `0` or `1` for a guess; that of
    a miss is state, cause, reason, year and how near the file was: 2 in reach, 1 an open copy is known, 0 neither. What
    a line does not say is `unknown` in a kind."""

    count: int = 0
    bytes: int = 0
    shared: int = 0
    shared_bytes: int = 0
    years: Counter[Any] = field(default_factory=Counter)
    licences: Counter[Any] = field(default_factory=Counter)
    hosts: Counter[Any] = field(default_factory=Counter)
    kinds: Counter[Any] = field(default_factory=Counter)
    ttfp_ms: Spread = field(default_factory=Spread)
    waited_ms: Spread = field(default_factory=Spread)
    work_ms: Spread = field(default_factory=Spread)
    misses: Counter[Any] = field(default_factory=Counter)

    @property
    def counters(self) -> tuple[Counter[Any], ...]:
        spreads = (self.ttfp_ms, self.waited_ms, self.work_ms)
        return (self.years, self.licences, self.hosts, *(one.counted for one in spreads), self.kinds, self.misses)

    def add(self, count: int, size: int, shared: Sequence[int | None], counted: Iterable[Iterable[Any]]) -> None:
        """`shared` are the sizes of what was there already, `counted` the values for each of `counters`."""
        self.count, self.bytes = self.count + count, self.bytes + size
        self.shared, self.shared_bytes = self.shared + len(shared), self.shared_bytes + sum(one or 0 for one in shared)
        for counter, values in zip(self.counters, counted, strict=True):
            counter.update(values)

    def merge(self, other: Works) -> None:
        self.add(other.count, other.bytes, (), other.counters)
        self.shared, self.shared_bytes = self.shared + other.shared, self.shared_bytes + other.shared_bytes


def works(db: Db, scope: Scope, parts: Parts) -> Works:
    """What became of the works of the scope, as far as the parts reach. After `note_overtaken`."""
    found, counted = Works(), _fates(db, scope)
    files = _in_part(_FILES, parts.table, f"{_OBTAINED} AND {counted}")
    misses = _in_part(_MISSES, parts.table, f"NOT ({_OBTAINED}) AND {counted}")
    for part in parts.taken(db):
        # The second question finds the rows of the part still at hand.
        row, missed = (db.execute(sql, {**scope.values, **part}).fetchone() for sql in (files, misses))
        count, size, *texts = row
        shared, *lists = map(_values, texts)
        plain, kinds = lists[: -len(_FILE_KIND)], lists[-len(_FILE_KIND) :]
        missed_kinds = zip(*map(_values, missed), strict=True)
        found.add(count, size or 0, shared, (*plain, zip(*kinds, strict=True), missed_kinds))
    for times in (found.ttfp_ms, found.waited_ms, found.work_ms):
        times.counted = Counter({value: count for value, count in times.counted.items() if isinstance(value, int)})
    return _in_words(found)


def _in_words(works: Works) -> Works:
    """What was counted as it came is read once for each of its values."""
    hosts, kinds, works.hosts, works.kinds = works.hosts, works.kinds, Counter(), Counter()
    for site, count in hosts.items():
        works.hosts[None if site is None else host_of(site)] += count
    for kind, count in kinds.items():
        works.kinds[tuple(map(word, kind))] += count
    misses, works.misses = works.misses, Counter()
    for (state, cause, reason, year, is_open, for_a_while), count in misses.items():
        near = is_open + (is_open and (for_a_while or cause not in _BARRED))
        works.misses[(state, word(cause), word(reason), word(year), int(near))] += count
    return works


def _values(text: str | None) -> list[Any]:
    return orjson.loads(text or "[]")  # type: ignore[no-any-return]


def word(value: object) -> str:
    return "unknown" if value is None else str(value)


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


def broken_pauses(db: Db, scope: Scope, hosts: Sequence[str]) -> int:
    """How many requests went to hosts before the moment at which they had said to come back."""
    if not hosts:
        return 0
    rows = stream(
        db,
        f"""SELECT host, ts, COALESCE(elapsed_ms, 0) / 1000.0, retry_after_s
              FROM http_events WHERE status IN {SENT} AND {scope.where("ts")}
               AND host IN (SELECT value FROM json_each(:hosts)) ORDER BY id LIMIT {_MOST_CHECKED}""",
        {**scope.values, "hosts": orjson.dumps(hosts).decode()},
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
    return broken


def _fates(db: Db, scope: Scope) -> str:
    where = scope.where("created_at", of="m.")
    passed = db.execute("SELECT EXISTS (SELECT 1 FROM temp.passed)").fetchone()[0]
    return f"{where} AND m.id NOT IN (SELECT id FROM temp.passed)" if passed else where


def _next_id(db: Db, table: str, start: int) -> int | None:
    found = db.execute(f"SELECT MIN(id) FROM {table} WHERE id >= ?", (start,)).fetchone()[0]
    return None if found is None else int(found)
