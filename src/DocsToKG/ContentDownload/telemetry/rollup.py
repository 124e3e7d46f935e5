"""Count the record while it grows, block by block, so that a report need not read every row.

Runs in the record's one writer thread, after those who waited have been told. Knows when a block is full.
Promises: a moment's work at a time; what cannot be counted now is left to a later run, and no run fails for it.
"""

from __future__ import annotations

import sqlite3
import time

from DocsToKG.ContentDownload.catalog.aggregates import QUESTIONS, Question
from DocsToKG.ContentDownload.catalog.rollups import BLOCK, keep_block, known_blocks
from DocsToKG.ContentDownload.telemetry.schema import newest_id, transaction

LOOK_EVERY_S = 1.0
_LONGEST_S = 10.0


class Rollup:
    """Counts full blocks of the record in `db`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: dict[str, set[int]] | None = None
        self._next = {question.name: 1 for question in QUESTIONS}
        self._look_at = 0.0

    def step(self) -> None:
        """Count one block, if one is full and it is time to look."""
        now = time.monotonic()
        # While there is more to count, every call counts some.
        if now >= self._look_at and not self._count_one():
            self._look_at = now + LOOK_EVERY_S

    def catch_up(self, *, longest_s: float = _LONGEST_S) -> None:
        """Count all full blocks; of a record that was never counted, as many as there is time for."""
        until = time.monotonic() + longest_s
        while time.monotonic() < until and self._count_one():
            pass

    def _count_one(self) -> bool:
        try:
            due = next((question for question in QUESTIONS if self._is_full(question)), None)
            if due is not None:
                with transaction(self._db):
                    keep_block(self._db, due, self._next[due.name])
                self._next[due.name] += BLOCK
        except (sqlite3.Error, ValueError, TypeError, OverflowError):
            # What is wrong with a disk is told by whoever has a row to write; a strange row is read by the report.
            self._look_at = float("inf")
            return False
        return due is not None

    def _is_full(self, question: Question) -> bool:
        if self._known is None:
            self._known = {each.name: known_blocks(self._db, each) for each in QUESTIONS}
        while self._next[question.name] in self._known[question.name]:
            self._next[question.name] += BLOCK
        return newest_id(self._db, question.table) >= self._next[question.name] + BLOCK - 1
