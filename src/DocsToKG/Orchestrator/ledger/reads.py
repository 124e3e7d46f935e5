"""Reading a ledger beside its writer: short statements on a connection of their own."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.errors import LedgerClosed
from DocsToKG.Orchestrator.ledger.base import HistoryRow, JobRecord
from DocsToKG.Orchestrator.ledger.chain import NO_HASH, Entry, link_hash
from DocsToKG.Orchestrator.ledger.schema import translated

_PAGE = 1000
_STATE_COLUMN = 11
_AT_COLUMN = 5


class Reader:
    """All reading of one ledger object. Safe to share between threads."""

    def __init__(self, path: Path, connection: sqlite3.Connection, sql: Mapping[str, str]) -> None:
        self._path = path
        self._connection = connection
        self._sql = sql
        self._lock = threading.Lock()
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._connection.close()

    def fetch(self, statement: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        with self._lock:
            if self._closed:
                raise LedgerClosed(f"{self._path}: the ledger is closed")
            try:
                return self._connection.execute(statement, values or {}).fetchall()
            except sqlite3.Error as error:
                raise translated(error, self._path) from error

    def jobs(self, condition: str, **values: Any) -> list[JobRecord]:
        """Job rows by a condition of this package's own making; the values are bound, never written in."""
        return [_record(row) for row in self.fetch(f"{self._sql['jobs']} {condition}", values)]

    def history(self, job_id: int) -> list[HistoryRow]:
        rows = self.fetch(f"{self._sql['history']} WHERE job_id = :job_id ORDER BY seq", {"job_id": job_id})
        return [_history_row(row) for row in rows]

    def stats(self) -> dict[str, int]:
        counted = dict(self.fetch("SELECT state, sum(n) FROM job_counts GROUP BY state"))
        stats = {state.value: int(counted.get(state.value, 0)) for state in JobState}
        total = sum(stats.values())
        return {**stats, "leased": stats["in_progress"], "total": total}

    def is_paused(self) -> bool:
        return bool(self.fetch("SELECT 1 FROM settings WHERE name = 'paused' AND value = '1'"))

    def next_moments(self) -> tuple[bool, int | None, int | None]:
        """Whether a job is due now; when the next one will be; when the next lease runs out (ledger time, ms)."""
        [(due, waiting, staged, lease_until)] = self.fetch(self._sql["next_moments"])
        return bool(due), min((at for at in (waiting, staged) if at is not None), default=None), lease_until

    def ended_jobs(
        self, states: Collection[JobState], job_type: str | None, job_ids: Collection[int] | None
    ) -> Iterator[list[tuple[int, str]]]:
        """Pages of (id, state) of the jobs that ended in one of `states`."""
        values = {
            "states": json.dumps([JobState(state).value for state in states]),
            "job_type": job_type,
            "job_ids": None if job_ids is None else json.dumps([int(job_id) for job_id in job_ids]),
            "limit": _PAGE,
            "after_id": 0,
        }
        while page := self.fetch(self._sql["ended_jobs"], values):
            values["after_id"] = page[-1][0]
            yield [(row[0], row[1]) for row in page]

    def verify_history(self) -> bool:
        """Whether every chain is whole: each link follows from the one before, and the last is the one we know."""
        heads, last_seq = self._heads()
        ends: dict[tuple[str, int], tuple[int, bytes]] = {}
        for row in self._all_history(last_seq):
            entry, prev_hash, digest = Entry(*row[1:15]), row[15], row[16]
            link, before = ends.get((entry.tenant, entry.shard), (0, NO_HASH))
            if entry.link != link + 1 or prev_hash != before or digest != link_hash(entry, before):
                return False
            ends[entry.tenant, entry.shard] = (entry.link, digest)
        return ends == heads

    def _heads(self) -> tuple[dict[tuple[str, int], tuple[int, bytes]], int]:
        """The last link of every chain, and the last row they were read with: the writer goes on meanwhile."""
        *rows, (_, _, last_seq, _) = self.fetch(self._sql["heads"])
        return {(tenant, shard): (link, digest) for tenant, shard, link, digest in rows}, last_seq

    def _all_history(self, last_seq: int) -> Iterator[tuple[Any, ...]]:
        values = {"after": 0, "last": last_seq, "limit": _PAGE}
        condition = "WHERE seq > :after AND seq <= :last ORDER BY seq LIMIT :limit"
        while page := self.fetch(f"{self._sql['history']} {condition}", values):
            yield from page
            values["after"] = page[-1][0]


def _record(row: Sequence[Any]) -> JobRecord:
    values = list(row)
    values[_STATE_COLUMN] = JobState(values[_STATE_COLUMN])
    return JobRecord(*values)


def _history_row(row: Sequence[Any]) -> HistoryRow:
    values = list(row)
    values[_AT_COLUMN] /= 1000
    values[-2:] = [digest.hex() for digest in values[-2:]]
    return HistoryRow(*values)
