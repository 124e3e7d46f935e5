"""Lists of jobs: newest first, page by page, reading a bounded part of the ledger per page.

Knows the columns of `jobs` and which index a query can use. A query that filters by more than tenant and status reads a
window of the newest jobs before its position; when the window holds too few, the page is short and names where the next
one begins. Promises: every job that exists during the whole listing is returned exactly once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.control import paging
from DocsToKG.Orchestrator.control.jobs.views import JobPage, JobView, job_digest
from DocsToKG.Orchestrator.errors import BadPage
from DocsToKG.Orchestrator.jobs.search import Search, pattern
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.jobs.status import HeldLanes, JobStatus, StateChoice, eligible_ms, states_for, status_of
from DocsToKG.Orchestrator.ledger.base import DEFAULT_TENANT
from DocsToKG.Orchestrator.ledger.control import ControlTx

WINDOW = 5000
_KIND = "jobs"
_LATE_MS = 120_000  # a job's id and its time are given at moments that lie at most so far apart
_FAR = 2**62
COLUMNS = (
    "id", "artifact_id", "tenant", "project", "job_type", "source", "host_key", "priority", "state", "stage",
    "outcome", "attempts", "max_attempts", "fence", "worker_id", "lease_until", "next_eligible_at", "last_error",
    "payload_digest", "idempotency_key", "correlation_id", "trace_context", "replay_of", "created_at", "updated_at",
    "started_at", "finished_at",
)  # fmt: skip
SELECT = f"SELECT {', '.join(COLUMNS)} FROM jobs"
_SEARCHED = ("artifact_id", "last_error", "correlation_id", "source", "host_key", "worker_id")
_FIELDS = (
    "job_type", "source", "worker_id", "host_key", "correlation_id", "project", "artifact_id", "stage", "outcome",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobQuery:
    """Which jobs are meant: those that fit everything given. Times are Unix seconds; `from` counts, `to` does not."""

    statuses: Collection[JobStatus] = ()
    job_type: str | None = None
    project: str | None = None
    source: str | None = None
    worker_id: str | None = None
    correlation_id: str | None = None
    created_from: float | None = None
    created_to: float | None = None
    updated_from: float | None = None
    updated_to: float | None = None
    search: Search = Search()  # noqa: RUF009 - a frozen value
    up_to: int | None = None  # the last job that is meant


def held_lanes(tx: ControlTx, tenant: str) -> HeldLanes:
    """The job types of a tenant that are held back at this moment."""
    rows = tx.execute(
        "SELECT job_type, coalesce(blocked_until, 0) FROM lanes WHERE tenant = :tenant AND blocked_by IS NOT NULL"
        " AND (blocked_until IS NULL OR blocked_until > :now) LIMIT 1000",
        {"tenant": tenant, "now": tx.now_ms},
    )
    return HeldLanes(dict(rows))


def view(row: Sequence[Any], held: HeldLanes) -> JobView:
    """A row of `SELECT` as it is shown."""
    known = dict(zip(COLUMNS, row, strict=True))
    state = JobState(known["state"])
    known["job_id"] = known.pop("id")
    known["status"] = status_of(state, known["job_type"], held)
    known["next_eligible_at"] = eligible_ms(state, known["job_type"], known["next_eligible_at"], held)
    for name in ("lease_until", "next_eligible_at", "created_at", "updated_at", "started_at", "finished_at"):
        known[name] = None if known[name] is None else known[name] / 1000
    return JobView(**known, job_digest=_digest(known))


def _digest(known: Mapping[str, Any]) -> str:
    return job_digest(
        {
            "jobId": known["job_id"], "tenant": known["tenant"], "project": known["project"],
            "jobType": known["job_type"], "artifactId": known["artifact_id"],
            "payloadDigest": f"sha256:{known['payload_digest']}", "replayOf": known["replay_of"],
            "createdAt": utc_iso(known["created_at"]),
        }
    )  # fmt: skip


def page(tx: ControlTx, tenant: str, query: JobQuery, size: int, page_token: str | None) -> JobPage:
    """The newest jobs of a tenant that fit, from the place that the token stands for."""
    held = held_lanes(tx, tenant)
    before = min(_place(tx, page_token), _FAR if query.up_to is None else query.up_to + 1)
    words, values = _condition(query)
    low, high = _id_range(tx, query)
    asked = {**values, "tenant": tenant, "before": min(before, high), "low": low, "limit": size + 1}
    choices = _choices(query, held)
    if tenant == DEFAULT_TENANT and _is_any(choices):
        return _newest(tx, words, asked, size, held)
    narrowed = bool(words) or tenant == DEFAULT_TENANT or any(each.only or each.without for each in choices)
    looked, bound = [(choice, int(asked["before"])) for choice in choices], low
    if narrowed and choices:
        looked, bound = _windows(tx, tenant, choices, asked)
    rows = _rows(tx, looked, words, {**asked, "low": bound}) if looked else []
    if len(rows) > size:
        return JobPage([view(row, held) for row in rows[:size]], paging.token(_KIND, rows[size - 1][0]))
    return JobPage([view(row, held) for row in rows], paging.token(_KIND, bound + 1) if bound > low else None)


def last_of(page_token: str) -> int:
    """The highest id that the page of a token may show."""
    return (paging.number(_KIND, page_token) or 1) - 1


def _is_any(choices: Sequence[StateChoice]) -> bool:
    return len(choices) == len(JobState) and not any(each.only is not None or each.without for each in choices)


def _newest(tx: ControlTx, words: str, asked: dict[str, Any], size: int, held: HeldLanes) -> JobPage:
    """A page of jobs in any state, by their ids alone: a window is as many ids. The tenant of a single machine has
    nearly all of them, and one way through the newest takes a fraction of the time of one for each state."""
    [(last,)] = tx.execute(
        "SELECT max(id) FROM jobs WHERE id < :before AND id > :low", {name: asked[name] for name in ("before", "low")}
    )
    if last is None:
        return JobPage([], None)
    low = int(asked["low"])
    bound = max(low, int(last) - WINDOW)
    rows = tx.execute(
        f"{SELECT} WHERE tenant = :tenant AND id < :before AND id > :low{words} ORDER BY id DESC LIMIT :limit",
        {**asked, "low": bound},
    )
    if len(rows) > size:
        return JobPage([view(row, held) for row in rows[:size]], paging.token(_KIND, rows[size - 1][0]))
    return JobPage([view(row, held) for row in rows], paging.token(_KIND, bound + 1) if bound > low else None)


def _choices(query: JobQuery, held: HeldLanes) -> list[StateChoice]:
    """The states to read; a status must be among those of both, where both name some."""
    named, typed = set(query.statuses), query.search.statuses
    if named and typed and not named & typed:
        return []
    return states_for(named & typed if named and typed else named | typed, held)


def _place(tx: ControlTx, page_token: str | None) -> int:
    """Jobs before this id are meant. One that no job ever had was not handed out."""
    before = paging.number(_KIND, page_token)
    if before is None:
        return _FAR
    [(last,)] = tx.execute("SELECT max(id) FROM jobs")
    if before > (last or 0):
        raise BadPage("this page token lies beyond all jobs; begin again without one")
    return before


def _condition(query: JobQuery) -> tuple[str, dict[str, Any]]:
    """The words to add after WHERE, and their values."""
    parts, values = list[str](), dict[str, Any]()
    for name in _FIELDS:
        value = getattr(query, name, None)
        for number, wanted in enumerate((value, query.search.exactly.get(name))):
            if wanted is not None:
                parts.append(f"{name} = :{name}{number}")
                values[f"{name}{number}"] = wanted
    for column in ("created", "updated"):
        for edge, sign in (("from", ">="), ("to", "<")):
            moment = getattr(query, f"{column}_{edge}")
            if moment is not None:
                parts.append(f"{column}_at {sign} :{column}_{edge}")
                values[f"{column}_{edge}"] = round(moment * 1000)
    for number, word in enumerate(query.search.errors):
        parts.append(f"lower(coalesce(last_error, '')) LIKE :error{number} ESCAPE '!'")
        values[f"error{number}"] = pattern(word)
    for number, word in enumerate(query.search.words):
        texts = [f"lower(coalesce({name}, '')) LIKE :word{number} ESCAPE '!'" for name in _SEARCHED]
        values[f"word{number}"] = pattern(word)
        if word.isascii() and word.isdigit() and len(word) < 19:
            texts.append(f"id = :number{number}")
            values[f"number{number}"] = int(word)
        parts.append(f"({' OR '.join(texts)})")
    return "".join(f" AND {part}" for part in parts), values


def _id_range(tx: ControlTx, query: JobQuery) -> tuple[int, int]:
    """The ids between which jobs of the wanted time can lie: ids and times of creation grow together, nearly."""
    latest = min((at for at in (query.created_to, query.updated_to) if at is not None), default=None)
    low = 0 if query.created_from is None else _first_id_at(tx, round(query.created_from * 1000) - _LATE_MS)
    high = _FAR if latest is None else _first_id_at(tx, round(latest * 1000) + _LATE_MS)
    return max(0, low - 1), high


def _first_id_at(tx: ControlTx, moment_ms: int) -> int:
    """The first id whose job was made at that moment or later, by halving; one more than the last if there is none."""
    [(first, last)] = tx.execute("SELECT (SELECT min(id) FROM jobs), (SELECT max(id) FROM jobs)")
    low, high = (0, 0) if last is None else (first, last + 1)
    while low < high:
        middle = (low + high) // 2
        [(found, made_at)] = tx.execute(
            "SELECT id, created_at FROM jobs WHERE id >= :middle ORDER BY id LIMIT 1", {"middle": middle}
        )
        if made_at < moment_ms:
            low = found + 1
        else:
            high = middle
    return low


def _windows(
    tx: ControlTx, tenant: str, choices: Sequence[StateChoice], asked: dict[str, Any]
) -> tuple[list[tuple[StateChoice, int]], int]:
    """The states that have jobs here, each with the id before which they lie, and the id down to which this page looks:
    no state is read further than a window. With both ends known, no plan walks past the jobs of another state."""
    # Jobs of the default tenant are not in the index of tenants: their window is one of the whole ledger.
    mine = "" if tenant == DEFAULT_TENANT else "tenant = :tenant AND tenant <> 'default' AND "
    windows = " UNION ALL ".join(
        f"SELECT {number} AS place, count(*), min(id), max(id) FROM (SELECT id FROM jobs"
        f" WHERE {mine}state = '{choice.state.value}' AND id < :before AND id > :low"
        f" ORDER BY id DESC LIMIT {WINDOW}) AS w{number}"
        for number, choice in enumerate(choices)
    )
    rows = tx.execute(windows, {name: asked[name] for name in ("before", "low", *(["tenant"] if mine else []))})
    looked = [(choices[place], int(highest) + 1) for place, count, _, highest in sorted(rows) if count]
    return looked, max([int(asked["low"]), *(int(lowest) - 1 for _, count, lowest, _ in rows if count == WINDOW)])


def _rows(
    tx: ControlTx, looked: Sequence[tuple[StateChoice, int]], words: str, asked: dict[str, Any]
) -> list[tuple[Any, ...]]:
    others = " AND tenant <> 'default'" if asked["tenant"] != DEFAULT_TENANT else ""
    values = dict(asked)
    parts = []
    for number, (choice, before) in enumerate(looked):
        types = _types(number, choice, values)
        values[f"before{number}"] = before
        parts.append(
            f"SELECT * FROM ({SELECT} WHERE tenant = :tenant{others} AND state = '{choice.state.value}'"
            f" AND id < :before{number} AND id > :low{types}{words} ORDER BY id DESC LIMIT :limit) AS s{number}"
        )
    rows = tx.execute(" UNION ALL ".join(parts), values)
    return sorted(rows, key=lambda row: -int(row[0]))[: asked["limit"]]


def _types(number: int, choice: StateChoice, values: dict[str, Any]) -> str:
    """The condition on job types that a status asks for."""
    chosen = choice.without if choice.only is None else choice.only
    if not chosen:
        return ""
    names = {f"t{number}_{place}": name for place, name in enumerate(sorted(chosen))}
    values.update(names)
    return f" AND job_type {'NOT IN' if choice.only is None else 'IN'} ({', '.join(f':{name}' for name in names)})"
