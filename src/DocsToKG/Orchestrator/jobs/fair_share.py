"""Fair share: who gets the next leases, and what keeps the others waiting. Pure rules.

In this order something may block: maintenance, a blocked tenant, a throttle, a breaker, a quota (the smaller of the
static one and the share of a policy). Leases go to the tenant that runs least for its weight, at a tie round robin, and
within a tenant to the highest priority and the oldest job. Promises: nobody gets more than the limits allow; capacity
stays unused only when no waiting job may have it; the same input has the same result. Times are milliseconds of ledger
time.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from DocsToKG.core.breaker import BreakerState
from DocsToKG.Orchestrator.jobs import quota as quota_rules
from DocsToKG.Orchestrator.jobs.allocation import (
    AllocationPolicy,
    Strategy,
    TenantClaim,
    allocate,
    burst_limit,
    policy_for,
)
from DocsToKG.Orchestrator.jobs.eligibility import HeldReason
from DocsToKG.Orchestrator.jobs.quota import Bucket, Key, Quota
from DocsToKG.Orchestrator.jobs.throttling import Lane, Throttle

__all__ = [
    "Gate",
    "Held",
    "Lane",
    "Rules",
    "Running",
    "Shares",
    "TenantRule",
    "Usage",
    "Waiting",
    "held_by",
    "share",
]

_CLOCK = ""  # the name under which the turns keep how far all of them have come


@dataclass(frozen=True, slots=True)
class TenantRule:
    weight: int = 1
    priority: int = 0
    fixed: int | None = None
    blocked: bool = False
    blocked_reason: str | None = None


class Gate(NamedTuple):
    """A breaker that is not simply closed. `places` is how many tests may pass, None where that is not known yet."""

    state: BreakerState
    forced: bool
    open_until: int | None
    places: int | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """All that governs leasing, as it was last written. `gates` are the breakers of job types, by tenant and type."""

    maintenance: str | None = None
    tenants: Mapping[str, TenantRule] = field(default_factory=dict)
    quotas: Mapping[Key, Quota] = field(default_factory=dict)
    policies: Sequence[AllocationPolicy] = ()
    throttles: Sequence[Throttle] = ()
    gates: Mapping[Key, Gate] = field(default_factory=dict)

    @property
    def restrict_nothing(self) -> bool:
        blocked = any(rule.blocked for rule in self.tenants.values())
        return (
            not (blocked or self.quotas or self.policies or self.throttles or self.gates) and self.maintenance is None
        )

    def tenant(self, name: str) -> TenantRule:
        return self.tenants.get(name) or _ORDINARY


_ORDINARY = TenantRule()


class Waiting(NamedTuple):
    """A lane's due jobs by rank (the priority with its sign turned) and id; `more` when not all of them were read."""

    lane: Lane
    queue: Sequence[tuple[int, int]]
    more: bool = False


class Running(NamedTuple):
    """How many of a lane's jobs are leased, and when the first of these leases ends unless it is renewed."""

    n: int
    first_end: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What is at this moment: what runs, the tokens left, and whose turn it is, as the shares before have left it."""

    running: Mapping[Lane, Running] = field(default_factory=dict)
    buckets: Mapping[Key, Bucket] = field(default_factory=dict)
    turns: Mapping[str, float] = field(default_factory=dict)


class Held(NamedTuple):
    """What a lane waits for: a token (`maintenance`, `tenant`, `throttle`, `breaker`, `quota`), until when where that
    is known, and words."""

    by: HeldReason
    until: int | None
    words: str


@dataclass(slots=True)
class Shares:
    """Who gets what, in the order of the granting. `short` names lanes of which more must be read to go on."""

    picks: list[tuple[Lane, int]] = field(default_factory=list)
    held: dict[Lane, Held] = field(default_factory=dict)
    short: set[Lane] = field(default_factory=set)
    turns: dict[str, float] = field(default_factory=dict)

    def count(self) -> Counter[Lane]:
        return Counter(lane for lane, _ in self.picks)

    def starts(self) -> Counter[Key]:
        """How many tokens go, by what they are counted for."""
        counted: Counter[Key] = Counter()
        for lane, n in self.count().items():
            counted[lane.tenant, lane.job_type] += n
            counted[lane.tenant, quota_rules.EVERY] += n
        return counted


@dataclass(slots=True)
class _Room:
    """Places that lanes share, and what to say when they are gone; `bucket` is where they come from, if from one."""

    left: int
    held: Held
    bucket: tuple[Quota, Bucket] | None = None
    taken: int = 0

    def gone(self) -> Held:
        if self.bucket is None:
            return self.held
        quota, bucket = self.bucket
        return self.held._replace(until=quota_rules.next_start_at(quota, quota_rules.spent(bucket, self.taken)))


def held_by(rules: Rules, lane: Lane, now: int) -> Held | None:
    """What stops a lane wholly, whatever runs: the first of maintenance, a block, a pause and a breaker."""
    if rules.maintenance is not None:
        said = f": {rules.maintenance}" if rules.maintenance else ""
        return Held("maintenance", None, f"leasing is halted for maintenance{said}")
    tenant = rules.tenant(lane.tenant)
    if tenant.blocked:
        said = f": {tenant.blocked_reason}" if tenant.blocked_reason else ""
        return Held("tenant", None, f"tenant {lane.tenant} is blocked{said}")
    for throttle in rules.throttles:
        if throttle.max_active is None and throttle.holds(now) and throttle.fits(lane):
            said = f": {throttle.reason}" if throttle.reason else ""
            words = f"{throttle.scope} is paused by throttle {throttle.throttle_id}{said}"
            return Held("throttle", throttle.expires_at, words)
    gate = rules.gates.get((lane.tenant, lane.job_type))
    if gate is not None and gate.state is BreakerState.OPEN and (gate.forced or (gate.open_until or 0) > now):
        forced = "forced open" if gate.forced else "open"
        return Held("breaker", gate.open_until, f"the breaker of job type {lane.job_type} is {forced}")
    return None


def share(limit: int, waiting: Sequence[Waiting], rules: Rules, usage: Usage, now: int) -> Shares:
    """Up to `limit` places among the lanes that wait."""
    shares = Shares(turns=dict(usage.turns))
    rooms = _Rooms(rules, usage, waiting, now)
    open_lanes: dict[str, list[tuple[tuple[int, int], Waiting]]] = defaultdict(list)
    for each in sorted(waiting, key=lambda each: each.lane):
        held = held_by(rules, each.lane, now)
        if held is not None:
            shares.held[each.lane] = held
        elif each.queue:
            heapq.heappush(open_lanes[each.lane.tenant], (each.queue[0], each))
    _hand_out(limit, open_lanes, rooms, _Turns(rules, usage, open_lanes, shares.turns), shares)
    for each in waiting:
        if each.lane not in shares.held and (full := rooms.full(each.lane)) is not None:
            shares.held[each.lane] = full
    taken = shares.count()
    for each in waiting:
        if taken[each.lane] == len(each.queue) and not each.more:
            shares.held.pop(each.lane, None)
    return shares


def _hand_out(
    limit: int,
    open_lanes: Mapping[str, list[tuple[tuple[int, int], Waiting]]],
    rooms: _Rooms,
    turns: _Turns,
    shares: Shares,
) -> None:
    line = [(turns.key(tenant), tenant) for tenant in open_lanes]
    heapq.heapify(line)
    places: Counter[Lane] = Counter()
    while line and len(shares.picks) < limit:
        _, tenant = heapq.heappop(line)
        lanes = open_lanes[tenant]
        while lanes and rooms.full(lanes[0][1].lane) is not None:
            heapq.heappop(lanes)
        if not lanes:
            continue
        (_, job_id), each = heapq.heappop(lanes)
        shares.picks.append((each.lane, job_id))
        rooms.take(each.lane)
        turns.take(tenant)
        places[each.lane] += 1
        if places[each.lane] < len(each.queue):
            heapq.heappush(lanes, (each.queue[places[each.lane]], each))
        elif each.more and len(shares.picks) < limit:
            # To go on without its next jobs would hand their places to others.
            shares.short.add(each.lane)
            return
        if lanes:
            heapq.heappush(line, (turns.key(tenant), tenant))


class _Turns:
    """Least running for its weight first; at a tie the one that has had least for its weight so far."""

    def __init__(self, rules: Rules, usage: Usage, tenants: Mapping[str, object], kept: dict[str, float]) -> None:
        self._weights = {tenant: rules.tenant(tenant).weight for tenant in tenants}
        self._running: Counter[str] = Counter()
        for lane, running in usage.running.items():
            self._running[lane.tenant] += running.n
        self._kept = kept
        clock = self._kept.get(_CLOCK, 0.0)
        for tenant in [tenant for tenant, turn in self._kept.items() if turn <= clock and tenant != _CLOCK]:
            del self._kept[tenant]  # nothing is remembered of one that has fallen behind: it has not waited

    def key(self, tenant: str) -> tuple[float, float]:
        return self._running[tenant] / self._weights[tenant], self._turn(tenant)

    def take(self, tenant: str) -> None:
        turn = self._turn(tenant)
        self._kept[_CLOCK] = turn
        self._kept[tenant] = turn + 1 / self._weights[tenant]
        self._running[tenant] += 1

    def _turn(self, tenant: str) -> float:
        clock = self._kept.get(_CLOCK, 0.0)
        return max(clock, self._kept.get(tenant, clock))


class _Rooms:
    """The places left, by everything that limits them. Lanes that share a limit share its room."""

    def __init__(self, rules: Rules, usage: Usage, waiting: Sequence[Waiting], now: int) -> None:
        self._rules = rules
        self._running = usage.running
        self._buckets = usage.buckets
        self._waiting = waiting
        self._now = now
        self._rooms: dict[tuple[str, ...], _Room] = {}
        self._of_lane: dict[Lane, list[_Room]] = {}
        self._shares: dict[str, dict[str, int]] = {}
        self._is_limited = bool(rules.throttles or rules.gates or rules.quotas or rules.policies)

    def full(self, lane: Lane) -> Held | None:
        """What the lane has no room in, if anything."""
        for room in self._lane(lane):
            if room.left <= 0:
                return room.gone()
        return None

    def take(self, lane: Lane) -> None:
        for room in self._lane(lane):
            room.left -= 1
            room.taken += 1

    def _lane(self, lane: Lane) -> list[_Room]:
        if not self._is_limited:
            return []
        if lane not in self._of_lane:
            rooms = [*self._throttled(lane), *self._tested(lane), *self._quotas(lane), *self._allocated(lane)]
            self._of_lane[lane] = rooms
        return self._of_lane[lane]

    def _room(self, name: tuple[str, ...], left: int, by: HeldReason, until: int | None, words: str) -> _Room:
        return self._rooms.setdefault(name, _Room(left, Held(by, until, words)))

    def _throttled(self, lane: Lane) -> list[_Room]:
        rooms = []
        for throttle in self._rules.throttles:
            if throttle.max_active is None or not throttle.holds(self._now) or not throttle.fits(lane):
                continue
            count, end = self._sum([each for each in self._running if throttle.fits(each)])
            words = f"{throttle.scope} is throttled to {throttle.max_active} at once by {throttle.throttle_id}"
            name = ("throttle", throttle.throttle_id)
            rooms.append(self._room(name, throttle.max_active - count, "throttle", end, words))
        return rooms

    def _tested(self, lane: Lane) -> list[_Room]:
        gate = self._rules.gates.get((lane.tenant, lane.job_type))
        if gate is None or gate.places is None:
            return []
        words = f"the breaker of job type {lane.job_type} is being tested"
        return [self._room(("gate", *lane[:2]), gate.places, "breaker", gate.open_until, words)]

    def _quotas(self, lane: Lane) -> list[_Room]:
        rooms = []
        for (tenant, counted), quota in quota_rules.limits_of(self._rules.quotas, lane.tenant, lane.job_type):
            of = "all its jobs" if counted == quota_rules.EVERY else counted
            fitting = [
                each
                for each in self._running
                if each.tenant == tenant and counted in (quota_rules.EVERY, each.job_type)
            ]
            count, end = self._sum(fitting)
            words = f"tenant {tenant} runs all {quota.max_active} that its quota allows for {of}"
            rooms.append(self._room(("active", tenant, counted), quota.max_active - count, "quota", end, words))
            bucket = quota_rules.filled(quota, self._buckets.get((tenant, counted)), self._now)
            words = f"tenant {tenant} has started what its quota of {quota.max_per_hour} an hour allows for {of}"
            room = self._room(("hourly", tenant, counted), quota_rules.starts_left(quota, bucket), "quota", None, words)
            room.bucket = (quota, bucket)
            rooms.append(room)
        return rooms

    def _allocated(self, lane: Lane) -> list[_Room]:
        policy = policy_for(self._rules.policies, lane.job_type)
        if policy is None:
            return []
        share_of = self._allocation(policy).get(lane.tenant, 0)
        mine = [each for each in self._running if each.tenant == lane.tenant and self._is_under(policy, each)]
        count, end = self._sum(mine)
        words = f"tenant {lane.tenant} has its share of {share_of} by policy {policy.policy_id}"
        name = ("share", policy.policy_id, lane.tenant)
        rooms = [self._room(name, burst_limit(policy, share_of) - count, "quota", end, words)]
        if policy.strategy is not Strategy.FIXED:
            all_of, end = self._sum([each for each in self._running if self._is_under(policy, each)])
            words = f"the capacity of {policy.total_capacity} of policy {policy.policy_id} is in use"
            rooms.append(self._room(("pool", policy.policy_id), policy.total_capacity - all_of, "quota", end, words))
        return rooms

    def _is_under(self, policy: AllocationPolicy, lane: Lane) -> bool:
        found = policy_for(self._rules.policies, lane.job_type)
        return found is not None and found.policy_id == policy.policy_id

    def _allocation(self, policy: AllocationPolicy) -> dict[str, int]:
        """The shares of the tenants that have something waiting or running under the policy."""
        if policy.policy_id not in self._shares:
            wanted: dict[str, int | None] = {}
            for each in self._waiting:
                if self._is_under(policy, each.lane):
                    had = wanted.get(each.lane.tenant, 0)
                    wanted[each.lane.tenant] = None if each.more or had is None else had + len(each.queue)
            for lane, running in self._running.items():
                if self._is_under(policy, lane):
                    had = wanted.get(lane.tenant, 0)
                    wanted[lane.tenant] = None if had is None else had + running.n
            self._shares[policy.policy_id] = allocate(policy, [self._claim(*each) for each in wanted.items()])
        return self._shares[policy.policy_id]

    def _claim(self, tenant: str, wanted: int | None) -> TenantClaim:
        rule = self._rules.tenant(tenant)
        return TenantClaim(tenant, rule.weight, rule.priority, wanted, rule.fixed)

    def _sum(self, lanes: Sequence[Lane]) -> tuple[int, int | None]:
        """How many run in these lanes, and when the first of their leases ends."""
        found = [self._running[lane] for lane in lanes]
        ends = [running.first_end for running in found if running.first_end is not None]
        return sum(running.n for running in found), min(ends, default=None)
