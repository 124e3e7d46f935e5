"""Reading a ledger beside its writers: the same questions for every database, in statements of its dialect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from DocsToKG.Orchestrator.jobs.eligibility import AHEAD_CAP, Need
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import HistoryRow, JobFilter, JobRecord
from DocsToKG.Orchestrator.ledger.chain import NO_HASH, Entry, link_hash
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.filters import ANY, condition
from DocsToKG.Orchestrator.ledger.transaction import Rows, Values

T = TypeVar("T")
PAGE = 1000
_STATE_COLUMN = JobRecord.__match_args__.index("state")
_AT_COLUMN = HistoryRow.__match_args__.index("at")
_OPEN = (JobState.PENDING, JobState.QUEUED, JobState.IN_PROGRESS)
_Chain = tuple[str, int]
_End = tuple[int, bytes]


class Readable(Protocol):
    """A database as it is read. Safe to share between threads."""

    filters: Mapping[str, str]  # the conditions of its dialect

    def fetch(self, query: str, values: Values | None = None) -> Rows:
        """All rows of a named query."""
        ...

    def select(self, query: str, wanted: str, values: Values) -> Rows:
        """All rows of a named query with a condition that `filters` has made."""
        ...

    def read(self, make: Callable[[ControlTx], T], now_ms: int) -> T:
        """Run `make`, which only reads, on one snapshot."""
        ...

    def next_moments(self, job_type: str | None) -> tuple[bool, int | None, int | None, bool, int]:
        """Whether a job (of a type) is due; when the next one will be; when the next lease of any runs out; whether all
        is paused; the time by the database's clock, 0 where it has none."""
        ...

    def version(self, poll_s: float) -> int:
        """A number that changes when another process may have committed; cheap to ask."""
        ...


class Reader:
    """All reading of one ledger object. Safe to share between threads."""

    def __init__(self, database: Readable) -> None:
        self._database = database

    def jobs(self, query: str, wanted: JobFilter = ANY, **values: Any) -> list[JobRecord]:
        words, asked = condition(wanted, self._database.filters)
        return [_record(row) for row in self._database.select(query, words, {**asked, **values})]

    def by_id(self, job_id: int) -> list[JobRecord]:
        """The job of this number, if there is one. A number that no column holds is no job's."""
        return self.jobs("job", job_id=job_id) if abs(job_id) < 2**63 else []

    def named(self, artifact_id: str, tenant: str, job_type: str) -> list[JobRecord]:
        """The job that stands for an artifact, if there is one."""
        if "\0" in artifact_id + tenant + job_type:
            return []
        return self.jobs("job_of_artifact", tenant=tenant, job_type=job_type, artifact=artifact_id)

    def page(self, state: JobState | None, wanted: JobFilter, after_id: int, limit: int) -> list[JobRecord]:
        place = {"after_id": after_id, "limit": limit}
        if state is None:
            return self.jobs("job_page", wanted, **place)
        return self.jobs("job_page_of_state", wanted, state=JobState(state).value, **place)

    def history(self, job_id: int) -> list[HistoryRow]:
        return [_history_row(row) for row in self._database.fetch("history_of_job", {"job_id": job_id})]

    def stats(self, job_type: str | None = None) -> dict[str, int]:
        counted: dict[str, int] = dict(self._database.fetch("stats", {"job_type": job_type}))
        stats = {state.value: int(counted.get(state.value, 0)) for state in JobState}
        return {**stats, "leased": stats["in_progress"], "total": sum(stats.values())}

    def depths(self) -> dict[tuple[str, str], int]:
        return {(job_type, tenant): int(waiting) for job_type, tenant, waiting in self._database.fetch("depths")}

    def is_paused(self) -> bool:
        return bool(self._database.fetch("pause"))

    def pause_reason(self) -> str | None:
        found = self._database.fetch("pause")
        return found[0][0] if found else None

    def next_suspect_ms(self, job_type: str | None = None) -> int | None:
        """When the next suspect (of a type) may be leased, in ledger time."""
        at: int | None = self._database.fetch("next_suspect_at", {"job_type": job_type})[0][0]
        return at

    def time_mark(self) -> int:
        """The latest ledger time that was written (ms)."""
        return int(self._database.fetch("time_mark")[0][0])

    def needs(self, job_id: int) -> list[Need]:
        rows = self._database.fetch("needs_of", {"job_id": job_id})
        return [Need(need, artifact_id, JobState(state)) for need, artifact_id, state in rows]

    def ahead(self, job: JobRecord) -> int:
        """How many due jobs come before this one, up to a cap."""
        values = {"priority": job.priority, "job_id": job.job_id, "host_key": job.host_key, "cap": AHEAD_CAP}
        return int(self._database.fetch("ahead", values)[0][0])

    def said_at_release(self, job_id: int) -> str | None:
        """What the worker said that gave the job back, if that was the last thing that happened to it."""
        last = self._database.fetch("last_event", {"job_id": job_id})
        return str(last[0][1]) if last and last[0][0] == "released" and last[0][1] else None

    def open_jobs(self, wanted: JobFilter) -> Iterator[list[int]]:
        """Pages of the ids of jobs that fit and are not over. A job that moves on meanwhile is met in its next."""
        words, asked = condition(wanted, self._database.filters)
        for state in (state for state in _OPEN if not wanted.states or state in wanted.states):
            values = {**asked, "state": state.value, "after_id": 0, "limit": PAGE}
            while page := [row[0] for row in self._database.select("ids_of_state", words, values)]:
                values["after_id"] = page[-1]
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
        while page := self._database.fetch("ended_jobs", values):
            values["after_id"] = page[-1][0]
            yield [(row[0], row[1]) for row in page]

    def verify_history(self) -> bool:
        """Whether every chain is whole: each link follows from the one before, and the last is the one we know.

        The ends are read first; what was written since then lies behind them and is left for the next time.
        """
        while True:
            anchors = self._ends("anchors")
            if self._is_whole(self._ends("heads"), anchors):
                return True
            if anchors == self._ends("anchors"):
                return False  # else a month was removed meanwhile

    def _is_whole(self, heads: dict[_Chain, _End], anchors: Mapping[_Chain, _End]) -> bool:
        ends = dict(anchors)
        for row in self._all_history():
            entry, prev_hash, digest = _entry(row), bytes(row[15]), bytes(row[16])
            chain = entry[:2]
            if chain not in heads:
                heads.update(self._ends("heads"))  # a chain that was begun since
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

    def _ends(self, query: str) -> dict[_Chain, _End]:
        return {(tenant, shard): (link, bytes(digest)) for tenant, shard, link, digest in self._database.fetch(query)}

    def _all_history(self) -> Iterator[tuple[Any, ...]]:
        place: dict[str, Any] = {"seq": 0, "tenant": "", "shard": -1, "link": 0, "limit": PAGE}
        while page := self._database.fetch("history_after", place):
            yield from page
            place.update(zip(("seq", "tenant", "shard", "link"), page[-1], strict=False))


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
