"""Leasing under rules: which jobs may go now, for every engine the same.

Knows what a lease must ask for and lock; the deciding is done by `jobs.fair_share`, the reading of lanes by the engine.
Promises: rules are read again only when their number has changed, and act from the next lease on; where writers run
beside each other, whatever is counted is locked first, in one order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from DocsToKG.Orchestrator.jobs import quota as quota_rules
from DocsToKG.Orchestrator.jobs.allocation import policy_for
from DocsToKG.Orchestrator.jobs.breakers import JOB_TYPE, StoredBreaker
from DocsToKG.Orchestrator.jobs.fair_share import (
    Gate,
    Held,
    Lane,
    Rules,
    Running,
    Shares,
    Usage,
    Waiting,
    held_by,
    share,
)
from DocsToKG.Orchestrator.jobs.quota import Bucket, Key
from DocsToKG.Orchestrator.ledger import breaker_rows, policy_rows
from DocsToKG.Orchestrator.ledger.breaker_rows import Verdict
from DocsToKG.Orchestrator.ledger.control import EVERY, ControlTx

_MOST_LANES = 500
_FEW_LANES = 8
_LEAST_READ = 8
_HELD_MS = 500  # what frees a held lane may happen in another process, which does not call
_TOLD_MS = 5000
_START = Lane("", "", "")


class Lanes(Protocol):
    """How an engine finds and reads lanes. `leased` names the jobs in a statement that reads those that are leased."""

    leased: str

    def due(self, after: Lane, most: int) -> list[Lane]:
        """The next lanes in order that have a job which is due: one step in an index each."""
        ...

    def queues(self, lanes: Sequence[Lane], count: int) -> dict[Lane, list[tuple[int, int]]]:
        """The first due jobs of each, by rank and id. They stay due until the transaction is over."""
        ...


@dataclass(slots=True)
class Governor:
    """One process's memory of the rules, of whose turn it is and of what it has told. For one writer."""

    held_until: int = 0  # no lease finds anything before, as far as is known here
    _version: int = -1
    _rules: Rules = field(default_factory=Rules)
    _turns: dict[str, float] = field(default_factory=dict)
    _after: Lane = _START
    _told: dict[Key, tuple[str, int | None]] = field(default_factory=dict)
    _told_at: int = 0

    def rules(self, tx: ControlTx, version: int) -> Rules:
        if version != self._version:
            self._rules, self._version, self._told_at = policy_rows.read_rules(tx), version, 0
        return self._rules

    @property
    def free_rules(self) -> int | None:
        """The number of the rules as they were last read, where they limit nothing."""
        return self._version if self._version > 0 and self._rules.restrict_nothing else None

    def forget(self) -> None:
        """A transaction was undone, and with it what was read or told in it."""
        self._version, self._told_at, self.held_until = -1, 0, 0

    def begin(
        self, tx: ControlTx, version: int, lanes: Lanes, *, tenants: Collection[str] = (), everyone: bool = True
    ) -> Round:
        """Look at the lanes once for all leases of a transaction: those of the tenants named, and of everyone else."""
        rules = self.rules(tx, version)
        named = [lane for tenant in sorted(set(tenants)) for lane in _lanes_of(lanes, tenant)]
        if not everyone:
            return Round(self, tx, lanes, rules, named)
        due = lanes.due(self._after, _MOST_LANES)
        if len(due) < _MOST_LANES and self._after != _START:
            due += [lane for lane in lanes.due(_START, _MOST_LANES - len(due)) if lane <= self._after]
        self._after = due[-1] if len(due) == _MOST_LANES else _START
        return Round(self, tx, lanes, rules, [*due, *(lane for lane in named if lane not in set(due))])

    def tell(self, tx: ControlTx, due: Sequence[Lane], held: Mapping[Lane, Held]) -> None:
        """Write down for those who look what a job type of a tenant waits for, when that has changed."""
        if tx.now_ms - self._told_at >= _TOLD_MS:
            rows = tx.execute(
                "SELECT tenant, job_type, blocked_by, blocked_until FROM lanes WHERE blocked_by IS NOT NULL"
            )
            self._told = {(row[0], row[1]): (row[2], row[3]) for row in rows}
            self._told_at = tx.now_ms
        for key in sorted({(lane.tenant, lane.job_type) for lane in due}):
            mine = [lane for lane in due if (lane.tenant, lane.job_type) == key]
            now = _waits_for([held[lane] for lane in mine]) if all(lane in held for lane in mine) else None
            if _differ(self._told.get(key), now):
                policy_rows.write_held(tx, key, now)
                if now is None:
                    del self._told[key]
                else:
                    self._told[key] = now


@dataclass(slots=True)
class Round:
    """The leases of one transaction. What is limited is locked once, before anything is counted."""

    governor: Governor
    tx: ControlTx
    lanes: Lanes
    rules: Rules
    due: Sequence[Lane]
    held: dict[Lane, Held] = field(default_factory=dict)
    running: dict[Lane, Running] = field(default_factory=dict)
    buckets: dict[Key, Bucket] = field(default_factory=dict)
    tests: dict[Key, StoredBreaker] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    spent: set[Key] = field(default_factory=set)
    asked: set[Lane] = field(default_factory=set)
    _locked: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether nothing is limited and a single tenant waits, so that leasing needs no governing."""
        return self.rules.restrict_nothing and len({lane.tenant for lane in self.due}) <= 1

    def take(self, limit: int, job_type: str | None, tenants: Collection[str] | None = None) -> list[tuple[Lane, int]]:
        """Up to `limit` jobs, in the order of the granting; of these tenants only, where some are named."""
        wanted = [
            lane
            for lane in self.due
            if job_type in (None, lane.job_type) and (tenants is None or lane.tenant in tenants)
        ]
        shares = self._share(limit, wanted) if wanted and limit > 0 else Shares()
        self.asked.update(wanted)
        self._count(shares)
        self.held |= shares.held
        if tenants is not None:
            return shares.picks  # what others may have is not known by that
        if wanted and all(lane in shares.held for lane in wanted) and not shares.picks:
            ends = [held.until for held in shares.held.values() if held.until is not None]
            soon = self.tx.now_ms + _HELD_MS
            self.governor.held_until = max(self.tx.now_ms + 1, min([soon, *ends]))
        else:
            self.governor.held_until = 0
        return shares.picks

    def close(self) -> None:
        """Keep what the leases have used up."""
        policy_rows.write_buckets(self.tx, {key: self.buckets[key] for key in self.spent})
        for (tenant, job_type), breaker in sorted(self.tests.items()):
            breaker_rows.write(self.tx, tenant, f"{JOB_TYPE}{job_type}", breaker)
        self.governor.tell(self.tx, [lane for lane in self.due if lane in self.asked], self.held)

    def _share(self, limit: int, wanted: Sequence[Lane]) -> Shares:
        now = self.tx.now_ms
        held = {lane: found for lane in wanted if (found := held_by(self.rules, lane, now)) is not None}
        open_lanes = [lane for lane in wanted if lane not in held]
        if not open_lanes:
            return Shares(held=held)
        self.lock()
        rules = replace(self.rules, gates=dict(self.rules.gates) | self._gates())
        count = limit if len(open_lanes) <= 4 else min(limit, max(_LEAST_READ, -(-2 * limit // len(open_lanes))))
        usage = Usage(self.running, self.buckets, self.governor._turns)
        queues = self._queues(open_lanes, count + 1)
        while True:
            waiting = [Waiting(lane, queue[:count], len(queue) > count) for lane, queue in queues.items()]
            shares = share(limit, waiting, rules, usage, now)
            if not shares.short:
                break
            count = min(limit, count * 4)
            queues |= self._queues([each.lane for each in waiting if each.more], count + 1)
        shares.held |= held
        self.governor._turns = shares.turns
        return shares

    def _queues(self, lanes: Sequence[Lane], count: int) -> dict[Lane, list[tuple[int, int]]]:
        """The first jobs of each lane that no other lease of this transaction was given."""
        found = self.lanes.queues(lanes, count + len(self.taken))
        return {lane: [each for each in queue if each[1] not in self.taken][:count] for lane, queue in found.items()}

    def lock(self, verdicts: Sequence[Verdict] = ()) -> None:
        """Take what is counted, in one order; then count. Nobody else grants of it until we are through.

        The verdicts of this transaction go to their breakers here, where all breakers are taken in one order.
        """
        if self._locked:
            return
        self._locked = True
        now, keys = self.tx.now_ms, self._limited()
        stored = policy_rows.lock_lanes(self.tx, keys)
        for lane in self.due:
            for key, quota in quota_rules.limits_of(self.rules.quotas, lane.tenant, lane.job_type):
                if key in keys:
                    self.buckets[key] = quota_rules.filled(quota, stored.get(key), now)
        tested = {(lane.tenant, lane.job_type) for lane in self.due} & set(self.rules.gates)
        tested = {key for key in tested if held_by(self.rules, Lane(*key), now) is None}
        if tested:
            for tenant, job_type in sorted(tested | {(verdict[0], verdict[1]) for verdict in verdicts}):
                breaker_rows.locked(self.tx, tenant, f"{JOB_TYPE}{job_type}")
        if breaker_rows.judge(self.tx, verdicts):
            self.rules = policy_rows.read_rules(self.tx)
        for tenant, job_type in sorted(tested):
            self.tests[tenant, job_type] = breaker_rows.locked(self.tx, tenant, f"{JOB_TYPE}{job_type}")
        # Every lease is looked at for that: not where nothing depends on it.
        if not self.rules.restrict_nothing or len({lane.tenant for lane in self.due}) > 1:
            self.running = policy_rows.read_running(self.tx, self.lanes.leased)

    def _limited(self) -> list[Key]:
        """The rows that stand for everything limited, in the order in which all take them."""
        keys: set[Key] = set()
        for lane in self.due:
            if held_by(self.rules, lane, self.tx.now_ms) is not None:
                continue
            keys |= {key for key, _ in quota_rules.limits_of(self.rules.quotas, lane.tenant, lane.job_type)}
            policy = policy_for(self.rules.policies, lane.job_type)
            keys |= {(EVERY, f"policy:{policy.policy_id}")} if policy is not None else set()
            keys |= {
                (EVERY, f"throttle:{throttle.throttle_id}")
                for throttle in self.rules.throttles
                if throttle.max_active is not None and throttle.fits(lane)
            }
        return sorted(keys)

    def _gates(self) -> dict[Key, Gate]:
        return {key: policy_rows.gate_of(breaker, self.tx.now_ms) for key, breaker in self.tests.items()}

    def _count(self, shares: Shares) -> None:
        self.taken.update(job_id for _, job_id in shares.picks)
        for lane, n in shares.count().items():
            before = self.running.get(lane, Running(0))
            self.running[lane] = before._replace(n=before.n + n)
        for key, n in shares.starts().items():
            if key in self.buckets:
                self.buckets[key] = quota_rules.spent(self.buckets[key], n)
                self.spent.add(key)
        for key, breaker in self.tests.items():
            names = [str(job_id) for lane, job_id in shares.picks if (lane.tenant, lane.job_type) == key]
            breaker.take(names, self.tx.now_ms)


def _lanes_of(lanes: Lanes, tenant: str) -> list[Lane]:
    """The lanes of one tenant that have a job which is due."""
    after, found = Lane(tenant, "", ""), list[Lane]()
    while len(found) < _MOST_LANES:
        some = lanes.due(after, _FEW_LANES)
        found += [lane for lane in some if lane.tenant == tenant]
        if len(some) < _FEW_LANES or some[-1].tenant != tenant:
            break
        after = some[-1]
    return found


def _waits_for(helds: Sequence[Held]) -> tuple[str, int | None]:
    """What all lanes of a job type wait for: the first to go, where that is known."""
    known = [held for held in helds if held.until is not None]
    first = min(known, key=lambda held: held.until or 0) if known else helds[0]
    return first.by, first.until


def _differ(told: tuple[str, int | None] | None, now: tuple[str, int | None] | None) -> bool:
    if told is None or now is None or told[0] != now[0] or (told[1] is None) != (now[1] is None):
        return told != now
    return abs((told[1] or 0) - (now[1] or 0)) > _TOLD_MS
