"""What is counted of some rows of a table: numbers that can be added up, put away and subtracted.

Knows, for each table of the record, which of its numbers reports and statistics are made of. Every row is counted as it
stands; which of a work's lines decides about it is for others. Reads only.
Promises: rows counted in parts come to the same as rows counted at once; a tally is read back from its text as it was.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import orjson

from DocsToKG.ContentDownload.catalog.connection import Db
from DocsToKG.ContentDownload.catalog.selection import ADDRESS, HOST, LICENCE, STATE, TAKEDOWN_STAGE

Tally = dict[str, Counter[Any]]


def _listed(name: str) -> str:
    """The values of all rows as one text."""
    return f"CAST(json_group_array({name}) AS TEXT)"


OBTAINED = f"m.status = 'ok' AND COALESCE(m.stage, '') <> '{TAKEDOWN_STAGE}'"
SHARED = "m.dedupe IN ('duplicate', 'adopted')"  # bytes that were there already
_OPEN = """CASE WHEN COALESCE(oa_status, '') IN ('gold', 'diamond', 'hybrid', 'bronze', 'green')
                  OR INSTR(COALESCE(candidates, ''), '"evidence":"') > 0 THEN 1 ELSE 0 END"""
_FOR_A_WHILE = "CASE WHEN SUBSTR(explanation, 1, 10) = 'Temporary:' THEN 1 ELSE 0 END"
# An address up to its path: taking the host out of it is left to whoever has counted them.
_SITE = f"SUBSTR({ADDRESS}, 1, INSTR(SUBSTR({ADDRESS}, {len('https://') + 1}) || '/', '/') + {len('https://')})"
_FILE_COLUMNS = {"years": "year", "licences": LICENCE, "sites": _SITE}
_TIME_COLUMNS = {"ttfp_ms": "ttfp_ms", "waited_ms": "waited_ms", "work_ms": "duration_ms"}
_FILE_KIND = tuple(f"CAST({name} AS TEXT)" for name in ("resolver", "tier", "evidence", "is_guess"))
_REASONS = ("CAST(COALESCE(cause, reason) AS TEXT)", "CAST(reason AS TEXT)")
_MISS_KIND = (f"({STATE})", *_REASONS, "CAST(year AS TEXT)", _OPEN, _FOR_A_WHILE)
_GROUPS = {"host": HOST, "license": LICENCE}
_SUMS = {
    "files": "COUNT(*)",
    "bytes": "SUM(size_bytes)",
    "unproved": "COUNT(*) FILTER (WHERE m.proof = 'unproved')",
    "damaged": "COUNT(*) FILTER (WHERE m.damaged = 1)",
    "shared": f"COUNT(*) FILTER (WHERE {SHARED})",
    "shared_bytes": f"SUM(size_bytes) FILTER (WHERE {SHARED})",
}
_LISTS = (*_FILE_COLUMNS.values(), *_TIME_COLUMNS.values(), *_FILE_KIND)
_FILES = ", ".join((*_SUMS.values(), *map(_listed, _LISTS)))
_MISSES = ", ".join(map(_listed, _MISS_KIND))


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a table: those with numbers from `start` up to `end` that fit `where`, whose values are `values`;
    and of them only those in `among`, when it is given: a table of numbers that tells which are of files."""

    start: int
    end: int
    where: str = "1 = 1"
    values: Mapping[str, Any] | Sequence[Any] = ()
    among: str = ""

    def ask(
        self, db: Db, select: str, table: str, *, only: str = "1 = 1", group: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """The answer to a question about them."""
        # The order of the join is forced: numbers first, then the rows as they lie.
        source = f"{self.among} p CROSS JOIN {table} m ON m.id = p.id" if self.among else f"{table} m"
        number = "p.id" if self.among else "m.id"
        values: Mapping[str, Any] | Sequence[Any]
        if isinstance(self.values, Mapping):
            within, values = (
                f"{number} >= :start AND {number} < :end",
                {**self.values, "start": self.start, "end": self.end},
            )
        else:
            within, values = f"{number} >= ? AND {number} < ?", (self.start, self.end, *self.values)
        yield from db.execute(
            f"SELECT {select} FROM {source} WHERE {within} AND {only} AND {self.where} {group}", values
        )


def count_works(db: Db, rows: Rows) -> Tally:
    """Lines of the manifest, each as if it decided: files by what they are and where from, misses by their kind."""
    # A part comes as a few texts: a million rows one by one would cost more than all the rest.
    obtained = "p.is_file = 1" if rows.among else OBTAINED
    [files] = rows.ask(db, _FILES, "manifests", only=obtained)
    # The second question finds the rows of the part still at hand.
    [misses] = rows.ask(db, _MISSES, "manifests", only=f"NOT ({obtained})")
    sums, lists = files[: len(_SUMS)], [_values(text) for text in files[len(_SUMS) :]]
    tally: Tally = {"sums": Counter({name: number or 0 for name, number in zip(_SUMS, sums, strict=True)})}
    for name, values in zip((*_FILE_COLUMNS, *_TIME_COLUMNS), lists, strict=False):
        tally[name] = Counter(values)
    for name in _TIME_COLUMNS:
        tally[name] = Counter({value: count for value, count in tally[name].items() if isinstance(value, int)})
    tally["kinds"] = Counter(zip(*lists[-len(_FILE_KIND) :], strict=True))
    tally["misses"] = Counter(zip(*map(_values, misses), strict=True))
    return tally


def count_groups(db: Db, rows: Rows, names: Sequence[str]) -> Tally:
    """Lines of the manifest by a value and their state, and the bytes of the obtained ones by the value."""
    listed = (f"({STATE})", "COALESCE(size_bytes, 0)", *(f"CAST({_GROUPS.get(name, name)} AS TEXT)" for name in names))
    [texts] = rows.ask(db, ", ".join(map(_listed, listed)), "manifests")
    states, sizes, *groups = map(_values, texts)
    is_file = [state == "obtained" for state in states]
    sizes = list(compress(sizes, is_file))
    tally: Tally = {}
    for name, values in zip(names, groups, strict=True):
        sums: defaultdict[Any, int] = defaultdict(int)
        for value, size in zip(compress(values, is_file), sizes, strict=True):
            sums[value] += size
        tally[name], tally[f"{name} bytes"] = Counter(zip(values, states, strict=True)), Counter(sums)
    return tally


def count_exchanges(db: Db, rows: Rows) -> Tally:
    """Requests by host, status and whether it was told to wait; how fast hosts answered."""
    select = """host, status, http_status = 429, COUNT(*), SUM(COALESCE(bytes_written, 0)), COUNT(retry_after_s),
                CASE WHEN status = 'http-get' THEN CAST(json_group_array(elapsed_ms) AS TEXT) END"""
    tally: Tally = {name: Counter() for name in ("seen", "bytes", "told", "answered_ms")}
    for host, status, too_many, count, size, told, times in rows.ask(
        db, select, "http_events", group="GROUP BY 1, 2, 3"
    ):
        tally["seen"][(host, status, int(too_many or 0))] += count
        tally["bytes"][host] += size
        tally["told"][host] += told
        tally["answered_ms"].update(_values(times))
    del tally["answered_ms"][None]
    return tally


def count_tried(db: Db, rows: Rows) -> Tally:
    """What happened at each source, with one of the reasons in full: of those that begin alike, the last by letter."""
    # What follows a colon speaks of one work.
    select = "source, outcome, stage, http_status, reason, COUNT(*)"
    only = "tier <> 'alternatives'"
    found: dict[tuple[Any, ...], tuple[int, str]] = {}
    for source, outcome, stage, http_status, reason, count in rows.ask(
        db, select, "fallback_attempts", only=only, group="GROUP BY 1, 2, 3, 4, 5"
    ):
        said = str(reason or "")
        kind = (str(source), str(outcome), str(stage or "resolve"), said.partition(":")[0], http_status)
        known, last = found.get(kind, (0, ""))
        found[kind] = (known + count, max(last, said))
    return {"tried": Counter({(*kind, said): count for kind, (count, said) in found.items()})}


def count_waits(db: Db, rows: Rows) -> Tally:
    """How often and how long our own limits made a work wait."""
    select = "key, why, COUNT(*), SUM(COALESCE(delay_ms, 0)), CAST(json_group_array(delay_ms) AS TEXT)"
    tally: Tally = {name: Counter() for name in ("waits", "ms", "delay_ms")}
    for key, why, count, delay_ms, delays in rows.ask(db, select, "rate_events", group="GROUP BY 1, 2"):
        tally["waits"][(key, why)] += count
        tally["ms"][(key, why)] += delay_ms
        tally["delay_ms"].update(_values(delays))
    del tally["delay_ms"][None]
    return tally


@dataclass(frozen=True, slots=True)
class Question:
    """What is counted of a table whose rows are dated by `moment`."""

    name: str
    table: str
    moment: str
    count: Callable[[Db, Rows], Tally]


GROUPS = ("tier", "resolver", "license", "year", "reason", "host", "version", "run_id")
WORKS = Question("works", "manifests", "created_at", count_works)
GROUPED = Question("groups", "manifests", "created_at", lambda db, rows: count_groups(db, rows, GROUPS))
EXCHANGES = Question("exchanges", "http_events", "ts", count_exchanges)
TRIED = Question("tried", "fallback_attempts", "ts", count_tried)
WAITS = Question("waits", "rate_events", "ts", count_waits)
QUESTIONS = (WORKS, GROUPED, EXCHANGES, TRIED, WAITS)


def add(total: Tally, part: Tally, *, times: int = 1) -> None:
    """Add a part to what was counted so far; `times=-1` takes it away."""
    for name, counted in part.items():
        known = total.setdefault(name, Counter())
        for value, count in counted.items():
            known[value] += count * times


def written(tally: Tally) -> str:
    """A tally as text."""
    return orjson.dumps({name: [list(counted), list(counted.values())] for name, counted in tally.items()}).decode()


def read(text: str) -> Tally:
    """The tally that was written so."""
    return {
        name: Counter(dict(zip(map(_key, keys), counts, strict=True)))
        for name, (keys, counts) in orjson.loads(text).items()
    }


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def _values(text: str | None) -> list[Any]:
    return orjson.loads(text or "[]")  # type: ignore[no-any-return]
