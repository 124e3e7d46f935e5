"""What was counted of full blocks of a table, kept in the record itself: a report adds these up and reads the rest.

Knows that rows are only ever added: a block whose numbers are all given counts the same for ever. Should a row of it be
changed or removed all the same, by whatever program, the database itself drops what was counted of the block.
Promises: with folds, without, or with some of them, the figures are the same.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import orjson

from DocsToKG.ContentDownload.catalog import aggregates
from DocsToKG.ContentDownload.catalog.aggregates import Question, Rows, Tally
from DocsToKG.ContentDownload.catalog.connection import Db, Values
from DocsToKG.ContentDownload.catalog.counts import Scope
from DocsToKG.ContentDownload.catalog.selection import Selection, add_functions

BLOCK = 32_768
# Counted so many at a time: the rows of one question are still at hand for the next.
_PART = {"manifests": 4_096}
_USUAL_PART = 16_384
_FAR = (1 << 63) - 1
# The number of the rules by which is counted: raised when they change, for what was counted by others is no use.
RULES = 2
_KNOWN = """SELECT first_id, last_id, runs, first_at, last_at FROM folds
             WHERE name = ? AND rules = ? ORDER BY first_id"""
_COUNTED = "SELECT counted FROM folds WHERE name = ? AND first_id = ? AND rules = ?"
_KEEP = """INSERT OR REPLACE INTO folds (name, first_id, last_id, of_table, rules, runs, first_at, last_at, counted)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_ENDS = "SELECT (SELECT MIN(id) FROM {table}), (SELECT MAX(id) FROM {table})"
_NEXT = "SELECT MIN(id) FROM {table} WHERE id >= ? AND id < ?"
_AFTER_SOME = "SELECT id FROM {numbers} WHERE id >= ? ORDER BY id LIMIT 1 OFFSET ?"
_Range = tuple[int, int]
_EVERYTHING, _ANY = Scope(), Selection()


class Pieces:
    """A table in pieces, each handed out once, to whichever connection asks next: blocks that were counted before, and
    parts that have yet to be. Rows that come after the pieces were made belong to none."""

    def __init__(self, db: Db, question: Question, scope: Scope = _EVERYTHING, chosen: Selection = _ANY) -> None:
        """The rows of a scope; or those that were chosen, and then every one of them is looked at."""
        self._question = question
        self._where: tuple[str, Values] = (scope.where(question.moment, of="m."), scope.values)
        if chosen != _ANY:
            add_functions(db)
            self._where = chosen.where(db)
        self._lock = threading.Lock()
        self._folded, self._gaps = _plan(db, question, scope if chosen == _ANY else None)

    def counted(self, db: Db) -> Tally:
        """What the rows come to, as far as no other connection has counted them."""
        add_functions(db)
        total: Tally = defaultdict(Counter)
        while (taken := self._take(db)) is not None:
            piece, is_kept = taken
            kept = _kept(db, self._question, piece) if is_kept else None
            aggregates.add(total, kept or _count(db, self._question, Rows(*piece, *self._where)))
        return total

    @contextmanager
    def with_help(
        self, another: Callable[[], Db] | None, *, first: Callable[[Db], None] = lambda db: None
    ) -> Iterator[Callable[[Db], Tally]]:
        """`counted`, of all rows, while `another` connection to the same record counts with this one, in a thread of
        its own. It begins with `first`; without it, `first` is done by whoever counts."""
        if another is None:

            def alone(db: Db) -> Tally:
                first(db)
                return self.counted(db)

            yield alone
            return
        with closing(another()) as other, ThreadPoolExecutor(1) as beside:
            begun = beside.submit(first, other)
            rest = beside.submit(self.counted, other)

            def together(db: Db) -> Tally:
                total = self.counted(db)
                begun.result()
                aggregates.add(total, rest.result())
                return total

            yield together

    def _take(self, db: Db) -> tuple[_Range, bool] | None:
        with self._lock:
            if self._folded:
                return self._folded.pop(), True
            while self._gaps:
                start, end = self._gaps.pop()
                # Numbers may be missing, on a server many of them.
                found = db.execute(_NEXT.format(table=self._question.table), (start, end)).fetchone()[0]
                if found is not None:
                    stop = min(int(found) + _part(self._question), end)
                    self._gaps += [(stop, end)] if stop < end else []
                    return (int(found), stop), False
            return None


def count_all(db: Db, question: Question, scope: Scope) -> Tally:
    """What the rows of the scope come to."""
    return Pieces(db, question, scope).counted(db)


def count_among(db: Db, question: Question, numbers: str, where: str = "1 = 1", values: Sequence[Any] = ()) -> Tally:
    """What the rows come to whose numbers stand in a table of numbers, and that fit a condition."""
    add_functions(db)
    total: Tally = defaultdict(Counter)
    start: int | None = -_FAR
    while start is not None:
        after = db.execute(_AFTER_SOME.format(numbers=numbers), (start, _USUAL_PART)).fetchone()
        end = int(after[0]) if after else _FAR
        aggregates.add(total, question.count(db, Rows(start, end, where, values, among=numbers)))
        start = end if after else None
    return total


def known_blocks(db: Db, question: Question) -> set[int]:
    """Where the blocks begin that were counted by today's rules."""
    return {first for first, *_ in db.execute(_KNOWN, (question.name, RULES))}


def keep_block(db: sqlite3.Connection, question: Question, first: int) -> None:
    """Count the block that begins with row `first`, all of whose numbers are given, and keep what it came to. In a
    transaction of the caller's, so that nobody changes the rows meanwhile."""
    add_functions(db)
    rows = Rows(first, first + BLOCK)
    about = f"""CAST(json_group_array(DISTINCT COALESCE(run_id, '')) AS TEXT),
                MIN(COALESCE({question.moment}, '')), MAX(COALESCE({question.moment}, ''))"""
    [said] = rows.ask(db, about, question.table)
    counted = aggregates.written(_count(db, question, rows))
    db.execute(_KEEP, (question.name, first, first + BLOCK - 1, question.table, RULES, *said, counted))


def _plan(db: Db, question: Question, scope: Scope | None) -> tuple[list[_Range], list[_Range]]:
    """The blocks whose counts can be taken as they are, and the ranges that must be counted, up to the newest row.
    Without a scope none can."""
    # One end at a time: both at once would read the whole table.
    first, newest = db.execute(_ENDS.format(table=question.table)).fetchone()
    folded: list[_Range] = []
    gaps: list[_Range] = []
    if newest is None:
        return folded, gaps
    start = int(first)
    for first_id, last_id, *about in _blocks(db, question):
        share = "some" if scope is None else _share(scope, *about)
        if share == "some":
            continue
        if start < first_id:
            gaps.append((start, first_id))
        start = last_id + 1
        if share == "all":
            folded.append((first_id, start))
    if start <= newest:
        gaps.append((start, int(newest) + 1))
    return folded, gaps


def _blocks(db: Db, question: Question) -> list[tuple[Any, ...]]:
    """A record on a server has none, nor has one that an earlier program wrote."""
    if not isinstance(db, sqlite3.Connection):
        return []
    if not db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'folds'").fetchone():
        return []
    return list(db.execute(_KNOWN, (question.name, RULES)))


def _share(scope: Scope, runs: str, first_at: str, last_at: str) -> str:
    """How many rows of a block are meant: all, none, or some."""
    of_run = "all"
    if scope.run_id is not None:
        known = orjson.loads(runs)
        of_run = "none" if scope.run_id not in known else "all" if len(known) == 1 else "some"
    if of_run == "none" or scope.since is None or first_at >= scope.since:
        return of_run
    return "none" if last_at < scope.since else "some"


def _kept(db: Db, question: Question, block: _Range) -> Tally | None:
    """None when it was dropped meanwhile, or cannot be read."""
    found = db.execute(_COUNTED, (question.name, block[0], RULES)).fetchone()
    try:
        return aggregates.read(found[0]) if found else None
    except (ValueError, TypeError, AttributeError):
        return None


def _count(db: Db, question: Question, rows: Rows) -> Tally:
    total: Tally = defaultdict(Counter)
    for start in range(rows.start, rows.end, _part(question)):
        part = replace(rows, start=start, end=min(start + _part(question), rows.end))
        aggregates.add(total, question.count(db, part))
    return total


def _part(question: Question) -> int:
    return _PART.get(question.table, _USUAL_PART)
