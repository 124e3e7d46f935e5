"""Reading a ledger beside its writers: short statements on connections of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from DocsToKG.Orchestrator.jobs.eligibility import AHEAD_CAP, Need
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import HistoryRow, JobFilter, JobRecord
from DocsToKG.Orchestrator.ledger.chain import NO_HASH, Entry, link_hash
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.drivers.postgres import control_sql
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database

T = TypeVar("T")
PAGE = 1000
_STATE_COLUMN = 11
_AT_COLUMN = 5
_OPEN = (JobState.PENDING, JobState.QUEUED, JobState.IN_PROGRESS)
_Chain = tuple[str, int]
_End = tuple[int, bytes]


class Reader:
    """All reading of one ledger object. Safe to share between threads."""

    def __init__(self, database: Database, sql: Mapping[str, str]) -> None:
        self._database = database
        self._sql = sql

    def fetch(self, statement: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return self._database.fetch(self._database.sql(statement), values)

    def look(self, make: Callable[[ControlTx], T], now_ms: int) -> T:
        """Run `make` on one snapshot."""
        return self._database.use(lambda connection: control_sql.look(connection, self._sql["place"], now_ms, make))

    def jobs(self, condition: str, **values: Any) -> list[JobRecord]:
        """Job rows by a condition of this package's own making; the values are bound, never written in."""
        return [_record(row) for row in self._database.fetch(f"{self._sql['jobs']} {condition}", values)]

    def by_id(self, job_id: int) -> list[JobRecord]:
        """The job of this number, if there is one. A number that no column holds is no job's."""
        return self.jobs("WHERE id = %(job_id)s", job_id=job_id) if abs(job_id) < 2**63 else []

    def history(self, job_id: int) -> list[HistoryRow]:
        rows = self._database.fetch(
            f"{self._sql['history']} WHERE job_id = %(job_id)s ORDER BY seq", {"job_id": job_id}
        )
        return [_history_row(row) for row in rows]

    def stats(self, job_type: str | None = None) -> dict[str, int]:
        counted = dict(self._database.fetch(self._sql["stats"], {"job_type": job_type}))
        stats = {state.value: int(counted.get(state.value, 0)) for state in JobState}
        return {**stats, "leased": stats["in_progress"], "total": sum(stats.values())}

    def depths(self) -> dict[tuple[str, str], int]:
        rows = self._database.fetch(self._sql["depths"])
        return {(job_type, tenant): int(waiting) for job_type, tenant, waiting in rows}

    def is_paused(self) -> bool:
        return bool(self.fetch("SELECT 1 FROM orchestrator.settings WHERE name = 'paused' AND value = '1'"))

    def pause_reason(self) -> str | None:
        found = self.fetch("SELECT reason FROM orchestrator.settings WHERE name = 'paused' AND value = '1'")
        return found[0][0] if found else None

    def next_moments(self, job_type: str | None = None) -> tuple[bool, int | None, int | None, bool, int]:
        """Whether a job (of a type) is due; when the next one will be; when the next lease of any runs out; whether all
        is paused; now."""
        statement = self._sql["next_moments" if job_type is None else "next_moments_of_type"]
        [(due, waiting, lease_until, paused, now)] = self._database.fetch(statement, {"job_type": job_type})
        return due, waiting, lease_until, paused, now

    def next_suspect_ms(self, job_type: str | None = None) -> int | None:
        """When the next suspect (of a type) may be leased, in ledger time."""
        at: int | None = self._database.fetch(self._sql["next_suspect_at"], {"job_type": job_type})[0][0]
        return at

    def time_mark(self) -> int:
        """The latest ledger time that was written (ms)."""
        return int(self.fetch("SELECT high_water_ms FROM orchestrator.ledger_time")[0][0])

    def needs(self, job_id: int) -> list[Need]:
        rows = self._database.fetch(self._sql["needs_of"], {"job_id": job_id})
        return [Need(need, artifact_id, JobState(state)) for need, artifact_id, state in rows]

    def ahead(self, job: JobRecord) -> int:
        """How many due jobs come before this one, up to a cap."""
        values = {"rank": -job.priority, "job_id": job.job_id, "host_key": job.host_key, "cap": AHEAD_CAP}
        return int(self._database.fetch(self._sql["ahead"], values)[0][0])

    def said_at_release(self, job_id: int) -> str | None:
        """What the worker said that gave the job back, if that was the last thing that happened to it."""
        last = self.fetch(
            "SELECT event, reason FROM orchestrator.job_history WHERE job_id = %(job_id)s ORDER BY seq DESC LIMIT 1",
            {"job_id": job_id},
        )
        return str(last[0][1]) if last and last[0][0] == "released" and last[0][1] else None

    def has(self, job_id: int) -> bool:
        return bool(self.fetch("SELECT 1 FROM orchestrator.jobs WHERE id = %(need)s", {"need": job_id}))

    def named(self, artifact_id: str, tenant: str, job_type: str) -> list[JobRecord]:
        """The job that stands for an artifact, if there is one."""
        if "\0" in artifact_id + tenant + job_type:
            return []
        return self.jobs(
            "WHERE tenant = %(tenant)s AND job_type = %(job_type)s AND artifact_id = %(artifact)s"
            " AND replay_of IS NULL",
            tenant=tenant,
            job_type=job_type,
            artifact=artifact_id,
        )

    def open_jobs(self, wanted: JobFilter) -> Iterator[list[int]]:
        """Pages of the ids of jobs that fit and are not over. A job that moves on meanwhile is met in its next."""
        words, values = condition(wanted)
        statement = (
            "SELECT id FROM orchestrator.jobs WHERE state = %(open)s AND id > %(after_id)s"
            f" AND {words} ORDER BY id LIMIT %(limit)s"
        )
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
            "states": [JobState(state).value for state in states],
            "job_type": job_type,
            "job_ids": None if job_ids is None else [int(job_id) for job_id in job_ids],
            "limit": PAGE,
            "after_id": 0,
        }
        while page := self._database.fetch(self._sql["ended_jobs"], values):
            values["after_id"] = page[-1][0]
            yield [(row[0], row[1]) for row in page]

    def verify_history(self) -> bool:
        """Whether every chain is whole: each link follows from the one before, and the last is the one we know.

        The ends are read first; what was written since then lies behind them and is left for the next time.
        """
        while True:
            anchors = self._ends("history_anchors")
            if self._is_whole(self._ends("history_heads"), anchors):
                return True
            if anchors == self._ends("history_anchors"):
                return False  # else a month was removed meanwhile

    def _is_whole(self, heads: dict[_Chain, _End], anchors: Mapping[_Chain, _End]) -> bool:
        ends = dict(anchors)
        for row in self._all_history():
            entry, prev_hash, digest = _entry(row), bytes(row[15]), bytes(row[16])
            chain = entry[:2]
            if chain not in heads:
                heads.update(self._ends("history_heads"))  # a chain that was begun since
                if chain not in heads:
                    return False
                heads.pop(chain)
                continue
            known_link, before = ends.get(chain, (0, NO_HASH))
            if entry[2] > heads[chain][0]:
                continue
            if chain in anchors and entry[2] <= anchors[chain][0]:
                before = prev_hash  # left over from before a part that was removed
            elif entry[2] != known_link + 1 or prev_hash != before:
                return False
            else:
                ends[chain] = (entry[2], digest)
            if digest != link_hash(entry, before):
                return False
        return all(ends.get(chain, (0, NO_HASH)) == head for chain, head in heads.items() if head[0])

    def _ends(self, table: str) -> dict[_Chain, _End]:
        rows = self.fetch(f"SELECT tenant, shard, link, hash FROM orchestrator.{table} ORDER BY link")
        return {(tenant, shard): (link, bytes(digest)) for tenant, shard, link, digest in rows}

    def _all_history(self) -> Iterator[tuple[Any, ...]]:
        place: dict[str, Any] = {"tenant": "", "shard": -1, "link": 0, "limit": PAGE}
        words = "WHERE (tenant, shard, link) > (%(tenant)s, %(shard)s, %(link)s) ORDER BY tenant, shard, link"
        while page := self._database.fetch(f"{self._sql['history']} {words} LIMIT %(limit)s", place):
            yield from page
            place.update(zip(("tenant", "shard", "link"), page[-1][1:4], strict=True))


def condition(wanted: JobFilter) -> tuple[str, dict[str, Any]]:
    """A filter as the words after WHERE, and their values. A filter that asks for nothing fits every job."""
    asked: dict[str, tuple[str, Any]] = {}
    if wanted.states:
        states = sorted({JobState(state).value for state in wanted.states})
        asked["states"] = ("state = ANY (%(states)s::text[])", states)
    if wanted.host is not None:
        asked["host"] = ("host_key = %(host)s", wanted.host)
    if wanted.reason is not None:
        asked["words"] = (
            'strpos(lower(last_error COLLATE "C"), lower(%(words)s::text COLLATE "C")) > 0',
            wanted.reason,
        )
    if wanted.since is not None:
        asked["since"] = ("updated_at >= %(since)s", int(wanted.since * 1000))
    if wanted.tenant is not None:
        asked["tenant"] = ("tenant = %(tenant)s", wanted.tenant)
    if wanted.job_type is not None:
        asked["wanted_type"] = ("job_type = %(wanted_type)s", wanted.job_type)
    if wanted.job_ids is not None:
        asked["wanted_ids"] = ("id = ANY (%(wanted_ids)s::bigint[])", [int(job_id) for job_id in wanted.job_ids])
    words = " AND ".join(["true", *(text for text, _ in asked.values())])
    return words, {name: value for name, (_, value) in asked.items()}


def _entry(row: Sequence[Any]) -> Entry:
    return tuple(row[1:15])


def _record(row: Sequence[Any]) -> JobRecord:
    values = list(row)
    values[_STATE_COLUMN] = JobState(values[_STATE_COLUMN])
    return JobRecord(*values)


def _history_row(row: Sequence[Any]) -> HistoryRow:
    values = list(row)
    values[_AT_COLUMN] /= 1000
    values[-2:] = [bytes(digest).hex() for digest in values[-2:]]
    return HistoryRow(*values)
