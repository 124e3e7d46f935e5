"""The figures of the dashboard: counts, throughput, errors, backlog, and what is held back.

Knows counters, the history and the tables of the control plane. Promises: it reads no job but a few of the oldest that
wait; all figures are of one moment, and cost the same with a thousand jobs as with millions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from DocsToKG.Orchestrator.control.history.chains import chains_of
from DocsToKG.Orchestrator.control.history.rates import Minute, RateReader, Rates, ReasonCount
from DocsToKG.Orchestrator.control.jobs.reads import totals
from DocsToKG.Orchestrator.control.jobs.service import ServedLedger
from DocsToKG.Orchestrator.jobs.quota import EVERY, Bucket, Quota, filled, full
from DocsToKG.Orchestrator.jobs.status import OVER, HeldLanes, JobStatus, by_status
from DocsToKG.Orchestrator.ledger.base import DEFAULT_TENANT
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.views import Timestamp, View

_SHOWN = 100
_PACE_MINUTES = 10
_LATELY_MS = 120_000
_NOT_OVER = frozenset(JobStatus) - OVER
_OLDEST = 100
_OLDEST_OF_ALL = 2000
_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class HeldLane(View):
    """A job type that is held back, by what, and until when where that is known."""

    job_type: str
    by: str
    until: Timestamp | None


@dataclass(frozen=True, slots=True)
class LaneStatus(View):
    """How far a job type is from its limits: `tokens` jobs may start at `at`, `cap` at once at most, refilled by
    `perHour`; `active` of `maxActive` jobs run. `*` is all types together. What has no limit has no figure."""

    job_type: str
    tokens: float | None
    at: Timestamp | None
    cap: float | None = None
    per_hour: int | None = None
    active: int | None = None
    max_active: int | None = None


@dataclass(frozen=True, slots=True)
class BreakerSummary(View):
    key: str
    state: str


@dataclass(frozen=True, slots=True)
class Dashboard(View):
    """All figures of one tenant at one moment of ledger time: jobs by status and by job type, the last hour by the
    minute, the most frequent errors of that hour (both complete from `since` on), and what is held back. `workers` are
    those that reported in the last two minutes; `backlogSeconds` is how long the jobs that are not over take at the
    pace of the last ten minutes, null where none ends."""

    at: Timestamp
    counts: Mapping[str, int]
    queues: Mapping[str, Mapping[str, int]]
    throughput: Sequence[Minute]
    errors: Sequence[ReasonCount]
    since: Timestamp
    oldest_wait_s: float | None
    waiting: int
    ends_per_minute: float
    backlog_s: float | None
    workers: int
    paused: bool
    maintenance: bool
    held: Sequence[HeldLane]
    rate_limits: Sequence[LaneStatus]
    throttles: int
    open_breakers: Sequence[BreakerSummary]
    open_incidents: int


class DashboardService:
    """The figures of one ledger. Safe to share between threads."""

    def __init__(self, ledger: ServedLedger) -> None:
        self._ledger = ledger
        self._rates = RateReader(chains_of(ledger))

    def metrics(self, tenant: str) -> Dashboard:
        """The figures of a tenant now."""
        return self._ledger.read(lambda tx: self._metrics(tx, tenant))

    def _metrics(self, tx: ControlTx, tenant: str) -> Dashboard:
        counted, lanes, standing = totals(tx, tenant), _lanes(tx, tenant), _standing(tx, tenant)
        held = HeldLanes({lane.job_type: lane.until_ms or 0 for lane in lanes if lane.is_held(tx.now_ms)})
        types = sorted({job_type for job_type, _ in counted})
        rates, counts = self._rates.read(tx, tenant), by_status(counted, held)
        pace = _pace(rates)
        open_ = sum(counts[status.value] for status in _NOT_OVER)
        return Dashboard(
            at=tx.now_ms / 1000,
            counts=counts,
            queues={name: by_status({key: n for key, n in counted.items() if key[0] == name}, held) for name in types},
            throughput=rates.minutes,
            errors=rates.reasons,
            since=rates.since,
            oldest_wait_s=_oldest_wait(tx, tenant),
            waiting=counts[JobStatus.PENDING] + counts[JobStatus.QUEUED],
            ends_per_minute=round(pace, 3),
            backlog_s=round(open_ * 60 / pace, 1) if open_ and pace else (0.0 if not open_ else None),
            workers=standing.workers,
            paused=bool(standing.paused),
            maintenance=bool(standing.maintenance),
            held=[lane.held() for lane in lanes if lane.is_held(tx.now_ms)][:_SHOWN],
            rate_limits=_limits(tx, tenant, lanes, counted)[:_SHOWN],
            throttles=standing.throttles,
            open_breakers=_breakers(tx, tenant),
            open_incidents=standing.incidents,
        )


def _pace(rates: Rates) -> float:
    """Jobs that ended in a minute, over the last minutes, from the first of them in which one ended."""
    ends = [each.succeeded + each.failed + each.canceled for each in rates.minutes[-_PACE_MINUTES:]]
    first = next((place for place, count in enumerate(ends) if count), None)
    return 0.0 if first is None else sum(ends) / (len(ends) - first)


class _Standing(NamedTuple):
    """What a few small tables say, counted up to a cap."""

    workers: int
    paused: int
    maintenance: int
    throttles: int
    incidents: int


def _standing(tx: ControlTx, tenant: str) -> _Standing:
    """Workers that reported lately, the switches, and what holds or waits for somebody: one question for all."""
    mine = "tenant IN (:tenant, '*')"
    [row] = tx.execute(
        "SELECT (SELECT count(*) FROM workers WHERE tenant = :tenant AND last_seen_at >= :since),"
        " (SELECT count(*) FROM settings WHERE name = 'paused' AND value = '1'),"
        " (SELECT count(*) FROM settings WHERE name = 'maintenance' AND value = '1'),"
        f" (SELECT count(*) FROM (SELECT 1 AS one FROM throttles WHERE {mine} AND lifted_at IS NULL"
        f" AND (expires_at IS NULL OR expires_at > :now) LIMIT {_COUNTED}) AS t),"
        f" (SELECT count(*) FROM (SELECT 1 AS one FROM incidents WHERE {mine} AND state <> 'resolved'"
        f" LIMIT {_COUNTED}) AS i)",
        {"tenant": tenant, "since": tx.now_ms - _LATELY_MS, "now": tx.now_ms},
    )
    return _Standing(*map(int, row))


def _oldest_wait(tx: ControlTx, tenant: str) -> float | None:
    """How long the oldest of the first jobs in line could have run by now; None when none could."""
    mine = " AND tenant = :tenant AND tenant <> 'default'" if tenant != DEFAULT_TENANT else ""
    # Jobs of the default tenant are not in the index of tenants: they are looked for among the first of all.
    first = _OLDEST if mine else _OLDEST_OF_ALL
    # A range of one state, in the order of its index: were it an equation, PostgreSQL might walk through all jobs by
    # id, and past every finished one before the first that waits.
    [(oldest,)] = tx.execute(
        "SELECT min(next_eligible_at) FROM (SELECT tenant, next_eligible_at FROM jobs"
        f" WHERE state >= 'queued' AND state <= 'queued'{mine} ORDER BY state, id LIMIT {first}) AS first"
        " WHERE tenant = :tenant AND next_eligible_at <= :now",
        {"tenant": tenant, "now": tx.now_ms},
    )
    return None if oldest is None else (tx.now_ms - int(oldest)) / 1000


class _Lane(NamedTuple):
    """A job type of the tenant as its row says."""

    job_type: str
    tokens: float | None
    at_ms: int | None
    by: str | None
    until_ms: int | None

    def is_held(self, now_ms: int) -> bool:
        return self.by is not None and (self.until_ms is None or self.until_ms > now_ms)

    def held(self) -> HeldLane:
        return HeldLane(self.job_type, self.by or "", None if self.until_ms is None else self.until_ms / 1000)

    @property
    def bucket(self) -> Bucket | None:
        return None if self.tokens is None or self.at_ms is None else Bucket(self.tokens, self.at_ms)


def _lanes(tx: ControlTx, tenant: str) -> list[_Lane]:
    rows = tx.execute(
        "SELECT job_type, tokens, tokens_at, blocked_by, blocked_until FROM lanes WHERE tenant = :tenant"
        f" ORDER BY job_type LIMIT {_COUNTED}",
        {"tenant": tenant},
    )
    return [_Lane(*row) for row in rows]


def _limits(
    tx: ControlTx, tenant: str, lanes: Sequence[_Lane], counted: Mapping[tuple[str, str], int]
) -> list[LaneStatus]:
    """Every job type that a quota of the tenant limits, or one of everybody's; and those that were told of without."""
    rows = tx.execute(
        "SELECT job_type, max_active, max_per_hour, burst FROM quotas WHERE tenant IN (:tenant, '*')"
        f" ORDER BY CASE WHEN tenant = '*' THEN 0 ELSE 1 END, job_type LIMIT {_COUNTED}",
        {"tenant": tenant},
    )
    known = {lane.job_type: lane for lane in lanes}
    found = {lane.job_type: LaneStatus(lane.job_type, lane.tokens, _seconds(lane.at_ms)) for lane in lanes}
    for job_type, max_active, max_per_hour, burst in rows:
        quota, lane = Quota(max_active, max_per_hour, burst), known.get(job_type)
        left = filled(quota, None if lane is None else lane.bucket, tx.now_ms)
        running = sum(n for (kind, state), n in counted.items() if state == "in_progress" and job_type in (kind, EVERY))
        cap = full(quota, tx.now_ms).tokens
        found[job_type] = LaneStatus(
            job_type, round(left.tokens, 3), tx.now_ms / 1000, cap, max_per_hour, running, max_active
        )
    return [found[name] for name in sorted(found)]


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _breakers(tx: ControlTx, tenant: str) -> list[BreakerSummary]:
    rows = tx.execute(
        f"SELECT key, state FROM breakers WHERE tenant = :tenant AND state <> 'closed' ORDER BY key LIMIT {_SHOWN}",
        {"tenant": tenant},
    )
    return [BreakerSummary(key, state) for key, state in rows]
