"""Reading a ledger beside its writer: short statements on a connection of their own."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from DocsToKG.Orchestrator.errors import LedgerClosed
from DocsToKG.Orchestrator.jobs.eligibility import AHEAD_CAP, Need
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import HistoryRow, JobFilter, JobRecord
from DocsToKG.Orchestrator.ledger.chain import NO_HASH, link_hash
from DocsToKG.Orchestrator.ledger.control import ControlTx, OpenControl
from DocsToKG.Orchestrator.ledger.drivers.sqlite.schema import translated
from DocsToKG.Orchestrator.ledger.drivers.sqlite.type_indexes import AMONG_ALL, HAS_TYPE_INDEXES, OF_TYPE
from DocsToKG.Orchestrator.ledger.filters import condition

T = TypeVar("T")
PAGE = 1000
_STATE_COLUMN = 11
_AT_COLUMN = 5
_OPEN = (JobState.PENDING, JobState.QUEUED, JobState.IN_PROGRESS)


class Reader:
    """All reading of one ledger object. Safe to share between threads."""

    def __init__(self, path: Path, connection: sqlite3.Connection, sql: Mapping[str, str]) -> None:
        self._path = path
        self._connection = connection
        self._sql = sql
        self._lock = threading.RLock()
        self._closed = False
        self._looking = False

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

    def look(self, make: Callable[[ControlTx], T], now_ms: int) -> T:
        """Run `make` on one snapshot. What it reads by this object beside is of the same."""
        with self._lock:
            if self._looking:
                return make(OpenControl(now_ms, self.fetch))
            self.fetch("BEGIN")
            self._looking = True
            try:
                return make(OpenControl(now_ms, self.fetch))
            finally:
                self._looking = False
                self.fetch("ROLLBACK")

    def jobs(self, condition: str, **values: Any) -> list[JobRecord]:
        """Job rows by a condition of this package's own making; the values are bound, never written in."""
        return [_record(row) for row in self.fetch(f"{self._sql['jobs']} {condition}", values)]

    def by_id(self, job_id: int) -> list[JobRecord]:
        """The job of this number, if there is one. A number that no column holds is no job's."""
        return self.jobs("WHERE id = :job_id", job_id=job_id) if abs(job_id) < 2**63 else []

    def history(self, job_id: int) -> list[HistoryRow]:
        rows = self.fetch(f"{self._sql['history']} WHERE job_id = :job_id ORDER BY seq", {"job_id": job_id})
        return [_history_row(row) for row in rows]

    def stats(self, job_type: str | None = None) -> dict[str, int]:
        which = "" if job_type is None else "WHERE job_type = :job_type "
        statement = f"SELECT state, sum(n) FROM job_counts {which}GROUP BY state"
        counted = dict(self.fetch(statement, {"job_type": job_type}))
        stats = {state.value: int(counted.get(state.value, 0)) for state in JobState}
        total = sum(stats.values())
        return {**stats, "leased": stats["in_progress"], "total": total}

    def depths(self) -> dict[tuple[str, str], int]:
        rows = self.fetch(
            "SELECT job_type, tenant, sum(n) FROM job_counts WHERE state IN ('queued', 'pending') GROUP BY 1, 2"
        )
        return {(job_type, tenant): int(waiting) for job_type, tenant, waiting in rows}

    def is_paused(self) -> bool:
        return bool(self.fetch("SELECT 1 FROM settings WHERE name = 'paused' AND value = '1'"))

    def next_moments(self, job_type: str | None = None) -> tuple[bool, int | None, int | None]:
        """Whether a job (of a type) is due now; when the next one will be; when the next lease of any runs out (ms)."""
        name = "next_moments" if job_type is None else f"next_moments{self._suffix()}"
        [(due, waiting, lease_until)] = self.fetch(self._sql[name], {"job_type": job_type})
        return bool(due), waiting, lease_until

    def next_suspect_ms(self, job_type: str | None = None) -> int | None:
        """When the next suspect (of a type) may be leased, in ledger time."""
        at: int | None = self.fetch(self._sql["next_suspect_at"], {"job_type": job_type})[0][0]
        return at

    def _suffix(self) -> str:
        """Which form of a statement reads the jobs of one type here: leasing makes the indexes once they are needed."""
        return OF_TYPE if self.fetch(HAS_TYPE_INDEXES) else AMONG_ALL

    def version(self) -> int:
        """A number that changes with every commit of another connection, in this process or not; cheap to ask."""
        return int(self.fetch("PRAGMA data_version")[0][0])

    def time_mark(self) -> int:
        """The latest ledger time that was written (ms)."""
        return int(self.fetch("SELECT high_water_ms FROM ledger_time")[0][0])

    def needs(self, job_id: int) -> list[Need]:
        rows = self.fetch(self._sql["needs_of"], {"job_id": job_id})
        return [Need(need, artifact_id, JobState(state)) for need, artifact_id, state in rows]

    def ahead(self, job: JobRecord) -> int:
        """How many due jobs come before this one, up to a cap."""
        values = {"priority": job.priority, "job_id": job.job_id, "host_key": job.host_key, "cap": AHEAD_CAP}
        return int(self.fetch(self._sql["ahead"], values)[0][0])

    def said_at_release(self, job_id: int) -> str | None:
        """What the worker said that gave the job back, if that was the last thing that happened to it."""
        values = {"job_id": job_id}
        last = self.fetch(
            "SELECT event, reason FROM job_history WHERE job_id = :job_id ORDER BY seq DESC LIMIT 1", values
        )
        return str(last[0][1]) if last and last[0][0] == "released" and last[0][1] else None

    def pause_reason(self) -> str | None:
        found = self.fetch("SELECT reason FROM settings WHERE name = 'paused' AND value = '1'")
        return found[0][0] if found else None

    def has(self, job_id: int) -> bool:
        return bool(self.fetch("SELECT 1 FROM jobs WHERE id = :need", {"need": job_id}))

    def named(self, artifact_id: str, tenant: str, job_type: str) -> list[JobRecord]:
        """The job that stands for an artifact, if there is one."""
        condition = "WHERE tenant = :tenant AND job_type = :job_type AND artifact_id = :artifact AND replay_of IS NULL"
        return self.jobs(condition, tenant=tenant, job_type=job_type, artifact=artifact_id)

    def open_jobs(self, wanted: JobFilter) -> Iterator[list[int]]:
        """Pages of the ids of jobs that fit and are not over. A job that moves on meanwhile is met in its next."""
        words, values = condition(wanted)
        statement = f"SELECT id FROM jobs WHERE state = :open AND id > :after_id AND {words} ORDER BY id LIMIT :limit"
        for state in (state for state in _OPEN if not wanted.states or state in wanted.states):
            page_values = {**values, "open": state.value, "after_id": 0, "limit": PAGE}
            while page := [row[0] for row in self.fetch(statement, page_values)]:
                page_values["after_id"] = page[-1]
                yield page

    def ended_jobs(
        self, states: Collection[JobState], job_type: str | None, job_ids: Collection[int] | None
    ) -> Iterator[list[tuple[int, str]]]:
        """Pages of (id, state) of the jobs that ended in one of `states`."""
        values = {
            "states": json.dumps([JobState(state).value for state in states]),
            "job_type": job_type,
            "job_ids": None if job_ids is None else json.dumps([int(job_id) for job_id in job_ids]),
            "limit": PAGE,
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
            entry, prev_hash, digest = row[1:15], row[15], row[16]
            tenant, shard, link = entry[:3]
            known_link, before = ends.get((tenant, shard), (0, NO_HASH))
            if link != known_link + 1 or prev_hash != before or digest != link_hash(entry, before):
                return False
            ends[tenant, shard] = (link, digest)
        return ends == heads

    def _heads(self) -> tuple[dict[tuple[str, int], tuple[int, bytes]], int]:
        """The last link of every chain, and the last row they were read with: the writer goes on meanwhile."""
        *rows, (_, _, last_seq, _) = self.fetch(self._sql["heads"])
        return {(tenant, shard): (link, digest) for tenant, shard, link, digest in rows}, last_seq

    def _all_history(self, last_seq: int) -> Iterator[tuple[Any, ...]]:
        values = {"after": 0, "last": last_seq, "limit": PAGE}
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
