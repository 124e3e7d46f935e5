"""Rates of the last hour by the minute, and the most frequent errors, from the history.

Nothing is written for it: each instance reads what was added since its last read, aggregated by the database, and keeps
the sums of one hour in memory. Promises: a bounded number of rows is read at once; where an hour has more, `since` says
from when on the figures are complete.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from DocsToKG.Orchestrator.control.history.chains import Chains
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.views import Timestamp, View

MINUTES = 60
MOST_ROWS = 50_000
TOP_REASONS = 20
_MINUTE_MS = 60_000
_MOST_REASONS = 2000
_TENANTS = 500
_GOOD = ("done", "skipped")
_BAD = ("error", "timed_out")


@dataclass(frozen=True, slots=True)
class Minute(View):
    """What happened in the minute that begins at `at`. `failed` counts jobs that are over, `retried` tries that failed
    and come again."""

    at: Timestamp
    enqueued: int = 0
    leased: int = 0
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    canceled: int = 0


@dataclass(frozen=True, slots=True)
class ReasonCount(View):
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Rates:
    """The last hour, oldest minute first, and the most frequent reasons of its failures."""

    minutes: Sequence[Minute]
    reasons: Sequence[ReasonCount]
    since: float


@dataclass(slots=True)
class _Tally:
    """What is known of one tenant: how far its chains were read, and the sums by minute."""

    places: dict[int, int] = field(default_factory=dict)
    minutes: dict[int, Counter[str]] = field(default_factory=dict)
    reasons: dict[int, Counter[str]] = field(default_factory=dict)
    since_ms: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, new: _Tally, ends: Mapping[int, int], since_ms: int | None, hour_ago: int) -> None:
        """Add what was counted up to these positions, in place of all before where the count had to begin later."""
        if since_ms is not None:
            self.minutes, self.reasons, self.since_ms = {}, {}, max(self.since_ms, since_ms)
        for mine, more in ((self.minutes, new.minutes), (self.reasons, new.reasons)):
            for minute, sums in more.items():
                mine.setdefault(minute, Counter()).update(sums)
            for minute in [minute for minute in mine if minute < hour_ago // _MINUTE_MS]:
                del mine[minute]
        for minute, sums in self.reasons.items():
            if len(sums) > _MOST_REASONS:
                self.reasons[minute] = Counter(dict(sums.most_common(_MOST_REASONS // 2)))
        self.places = dict(ends)


class RateReader:
    """The rates of one ledger. Safe to share between threads."""

    def __init__(self, chains: Chains) -> None:
        self._chains = chains
        self._lock = threading.Lock()
        self._tallies: OrderedDict[str, _Tally] = OrderedDict()

    def read(self, tx: ControlTx, tenant: str) -> Rates:
        """The last hour up to now."""
        tally = self._tally(tenant)
        with tally.lock:
            self._catch_up(tx, tenant, tally)
            return _shown(tally, tx.now_ms // _MINUTE_MS)

    def _tally(self, tenant: str) -> _Tally:
        with self._lock:
            tally = self._tallies.setdefault(tenant, _Tally())
            self._tallies.move_to_end(tenant)
            while len(self._tallies) > _TENANTS:
                self._tallies.popitem(last=False)
            return tally

    def _catch_up(self, tx: ControlTx, tenant: str, tally: _Tally) -> None:
        """Count what was added since the last look, or what of it lies within the hour."""
        ends, begins = self._chains.ends(tx, tenant), self._chains.begins(tx, tenant)
        hour_ago = (tx.now_ms // _MINUTE_MS - MINUTES + 1) * _MINUTE_MS
        tally.since_ms = max(tally.since_ms, hour_ago)
        if any(place > ends.get(shard, 0) for shard, place in tally.places.items()):
            return  # an older snapshot than the last one
        spans: list[tuple[int, int, int]] = []
        for shard, end in sorted(ends.items()):
            start = max(tally.places.get(shard, 0), begins.get(shard, 0))
            if end - start > MOST_ROWS // 100:
                start = self._first_at(tx, tenant, shard, start, end, hour_ago)
            if end > start:
                spans.append((shard, start, end))
        cut, since_ms = self._bounded(tx, tenant, spans)
        new = _Tally()
        for shard, start, end in cut:
            self._count(tx, tenant, self._chains.span(shard, start, end), hour_ago, new)
        # All is read: from here on nothing can break, so that what was counted is counted once.
        tally.keep(new, ends, since_ms, hour_ago)

    def _first_at(self, tx: ControlTx, tenant: str, shard: int, start: int, end: int, moment: int) -> int:
        """The position before the first row of that moment or later, by halving: time never steps back in a chain."""
        low, high = start, end
        while low < high:
            middle = (low + high) // 2
            found = self._chains.at(tx, tenant, shard, middle)
            if found is not None and found < moment:
                low = middle + 1
            else:
                high = middle
        return max(start, low - 1)

    def _bounded(
        self, tx: ControlTx, tenant: str, spans: Sequence[tuple[int, int, int]]
    ) -> tuple[Sequence[tuple[int, int, int]], int | None]:
        """The spans, cut to their newest rows where there are too many; then also the moment the figures begin at."""
        total = sum(end - start for _, start, end in spans)
        if total <= MOST_ROWS:
            return spans, None
        cut = [(shard, max(start, end - (end - start) * MOST_ROWS // total), end) for shard, start, end in spans]
        begins = [self._chains.at(tx, tenant, shard, start + 1) for shard, start, _ in cut]
        return cut, max((at for at in begins if at is not None), default=tx.now_ms)

    def _count(self, tx: ControlTx, tenant: str, span: str, hour_ago: int, tally: _Tally) -> None:
        values = {"tenant": tenant, "since": hour_ago}
        condition = f"tenant = :tenant AND {span} AND at >= :since"
        for minute, event, before, after, count in tx.execute(
            f"SELECT at / {_MINUTE_MS}, event, from_state, to_state, count(*) FROM job_history WHERE {condition}"
            " GROUP BY 1, 2, 3, 4",
            values,
        ):
            word = _word(event, before, after)
            if word is not None:
                tally.minutes.setdefault(int(minute), Counter())[word] += int(count)
        for minute, reason, count in tx.execute(
            f"SELECT at / {_MINUTE_MS}, reason, count(*) FROM job_history WHERE {condition} AND reason IS NOT NULL"
            " AND from_state = 'in_progress' AND (to_state IN ('error', 'timed_out')"
            " OR event IN ('failed', 'lease_expired', 'worker_lost'))"
            f" GROUP BY 1, 2 ORDER BY 3 DESC LIMIT {_MOST_REASONS}",
            values,
        ):
            tally.reasons.setdefault(int(minute), Counter())[token_of(reason)] += int(count)


def token_of(reason: str) -> str:
    """The word that a reason begins with: errors are written as a token, a colon and the particulars."""
    return reason.split(":", 1)[0].strip()[:64] or "unknown"


def _word(event: str, before: str | None, after: str | None) -> str | None:
    if event in ("enqueued", "leased"):
        return event
    if after in _GOOD:
        return "succeeded"
    if after in _BAD:
        return "failed"
    if after == "canceled":
        return "canceled"
    return "retried" if event in ("failed", "lease_expired", "worker_lost") and before == "in_progress" else None


def _shown(tally: _Tally, this_minute: int) -> Rates:
    minutes = range(this_minute - MINUTES + 1, this_minute + 1)
    reasons: Counter[str] = Counter()
    for sums in tally.reasons.values():
        reasons.update(sums)
    none: Mapping[str, Any] = {}
    ranked = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    return Rates(
        minutes=[Minute(at=minute * 60.0, **tally.minutes.get(minute, none)) for minute in minutes],
        reasons=[ReasonCount(*pair) for pair in ranked[:TOP_REASONS]],
        since=tally.since_ms / 1000,
    )
