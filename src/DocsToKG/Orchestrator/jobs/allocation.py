"""How much of a shared capacity each tenant may have: the five strategies, as pure arithmetic.

Knows tenants, weights and bounds; knows no clock, no table and no job. Promises: whole numbers, the same answer for the
same input in any order; every share lies between the policy's bounds; the shares sum to at most the capacity (but for
`Fixed`, which promises each tenant its own); minimums that do not fit are cut, never granted beyond the capacity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class Strategy(StrEnum):
    EQUAL = "Equal"
    PROPORTIONAL = "Proportional"
    PRIORITY = "Priority"
    RESERVED_WITH_FAIR_SHARE = "ReservedWithFairShare"
    FIXED = "Fixed"


@dataclass(frozen=True, slots=True)
class AllocationPolicy:
    """One rule for sharing. `maximum_per_tenant` None means the whole; `job_type` None means every type."""

    policy_id: str
    strategy: Strategy
    total_capacity: int
    minimum_per_tenant: int = 1
    maximum_per_tenant: int | None = None
    reserved_capacity: int = 0
    allow_burst: bool = False
    burst_multiplier: float = 1.5
    priority: int = 0
    job_type: str | None = None
    enabled: bool = True

    def __post_init__(self) -> None:
        if self.total_capacity < 0 or self.minimum_per_tenant < 0:
            raise ValueError("capacities cannot be negative")
        if not 0 <= self.reserved_capacity <= self.total_capacity:
            raise ValueError("reservedCapacity must lie between 0 and totalCapacity")
        if self.minimum_per_tenant > self.most_each:
            raise ValueError("minimumPerTenant must not exceed maximumPerTenant")
        if self.burst_multiplier < 1.0:
            raise ValueError("burstMultiplier must be at least 1")

    @property
    def most_each(self) -> int:
        return self.total_capacity if self.maximum_per_tenant is None else self.maximum_per_tenant


@dataclass(frozen=True, slots=True)
class TenantClaim:
    """An active tenant. `demand` None means as much as there is; priority above zero reaches the reserved capacity."""

    tenant: str
    weight: int = 1
    priority: int = 0
    demand: int | None = None
    fixed: int | None = None

    def __post_init__(self) -> None:
        if self.weight < 1:
            raise ValueError(f"the weight of {self.tenant} must be at least 1")


def policy_for(policies: Sequence[AllocationPolicy], job_type: str) -> AllocationPolicy | None:
    """The policy that counts for a job type: the one of highest priority; at a tie the more specific, then by id."""
    fitting = [policy for policy in policies if policy.enabled and policy.job_type in (None, job_type)]
    return min(fitting, key=lambda each: (-each.priority, each.job_type is None, each.policy_id), default=None)


def allocate(policy: AllocationPolicy, claims: Sequence[TenantClaim]) -> dict[str, int]:
    """The share of every tenant."""
    claims = sorted(claims, key=lambda claim: claim.tenant)
    if policy.strategy is Strategy.FIXED:
        return {claim.tenant: _fixed(policy, claim) for claim in claims}
    shares = _share(policy, claims, policy.total_capacity)
    ordinary = [claim for claim in claims if claim.priority <= 0]
    open_to_all = policy.total_capacity - policy.reserved_capacity
    if sum(shares[claim.tenant] for claim in ordinary) <= open_to_all:
        return shares
    # Ordinary tenants asked for everything: what is reserved stays free for those it is reserved for.
    lesser = _share(policy, ordinary, open_to_all)
    favoured = [claim for claim in claims if claim.priority > 0]
    return lesser | _share(policy, favoured, policy.total_capacity - sum(lesser.values()))


def burst_limit(policy: AllocationPolicy, share: int) -> int:
    """How far a tenant may go beyond its share while nobody else needs the room."""
    return int(share * Fraction(policy.burst_multiplier)) if policy.allow_burst else share


@dataclass(frozen=True, slots=True)
class Grant:
    """What was given, and how much of it goes beyond the share."""

    granted: int
    burst_used: int


def grant(policy: AllocationPolicy, *, share: int, held: Mapping[str, int], tenant: str, asked: int) -> Grant:
    """Give `tenant` up to `asked` more. `held` says what every tenant has now; burst comes from idle capacity only.

    A share that others hold beyond theirs has to be given back first; but `Fixed` promises each tenant its own.
    """
    if asked < 0:
        raise ValueError("the requested amount cannot be negative")
    mine, idle = held.get(tenant, 0), policy.total_capacity - sum(held.values())
    room = share - mine if policy.strategy is Strategy.FIXED else min(share - mine, idle)
    within = max(0, min(asked, room))
    beyond = max(0, min(asked - within, burst_limit(policy, share) - mine - within, idle - within))
    return Grant(within + beyond, beyond)


def release(held: int, asked: int) -> int:
    """What `held` falls to; nobody gives back more than it has."""
    if asked < 0:
        raise ValueError("the released amount cannot be negative")
    return max(0, held - asked)


def _fixed(policy: AllocationPolicy, claim: TenantClaim) -> int:
    wanted = policy.minimum_per_tenant if claim.fixed is None else claim.fixed
    return max(policy.minimum_per_tenant, min(wanted, policy.most_each))


def _share(policy: AllocationPolicy, claims: Sequence[TenantClaim], capacity: int) -> dict[str, int]:
    minimums = _minimums(policy, claims, capacity)
    left = capacity - sum(minimums.values())
    if policy.strategy is Strategy.PRIORITY:
        return _by_priority(policy, claims, minimums, left)
    if policy.strategy is Strategy.RESERVED_WITH_FAIR_SHARE:
        room = {claim.tenant: max(0, _top(policy, claim) - minimums[claim.tenant]) for claim in claims}
        more = _pour(left, dict.fromkeys(room, 1), room)
        return {tenant: minimums[tenant] + more[tenant] for tenant in more}
    by_weight = policy.strategy is Strategy.PROPORTIONAL
    weights = {claim.tenant: claim.weight if by_weight else 1 for claim in claims}
    return _pour_above(capacity, weights, minimums, policy.most_each)


def _minimums(policy: AllocationPolicy, claims: Sequence[TenantClaim], capacity: int) -> dict[str, int]:
    """Every tenant's minimum; where they do not fit, the most important get theirs first."""
    shares: dict[str, int] = {}
    for claim in sorted(claims, key=lambda claim: (-claim.priority, claim.tenant)):
        shares[claim.tenant] = min(policy.minimum_per_tenant, capacity)
        capacity -= shares[claim.tenant]
    return shares


def _by_priority(
    policy: AllocationPolicy, claims: Sequence[TenantClaim], shares: dict[str, int], left: int
) -> dict[str, int]:
    for claim in sorted(claims, key=lambda claim: (-claim.priority, claim.tenant)):
        more = min(left, max(0, _top(policy, claim) - shares[claim.tenant]))
        shares[claim.tenant] += more
        left -= more
    return shares


def _top(policy: AllocationPolicy, claim: TenantClaim) -> int:
    """A tenant is given no more than it has use for, but never less than the minimum."""
    wanted = policy.most_each if claim.demand is None else claim.demand
    return max(policy.minimum_per_tenant, min(policy.most_each, wanted))


def _pour_above(capacity: int, weights: Mapping[str, int], floors: Mapping[str, int], most: int) -> dict[str, int]:
    """Pour the whole capacity by weight; who would stay below its floor is given the floor, and the rest is poured
    again over the others."""
    settled: dict[str, int] = {}
    while True:
        open_ = {tenant: weight for tenant, weight in weights.items() if tenant not in settled}
        poured = _pour(capacity - sum(settled.values()), open_, dict.fromkeys(open_, most))
        below = {tenant: floors[tenant] for tenant, amount in poured.items() if amount < floors[tenant]}
        if not below:
            return settled | poured
        settled |= below


def _pour(capacity: int, weights: Mapping[str, int], room: Mapping[str, int]) -> dict[str, int]:
    """Share `capacity` by weight, nobody beyond its room; what one has no room for goes to the others."""
    full: dict[str, int] = {}
    while True:
        open_ = [tenant for tenant in weights if tenant not in full]
        left = max(0, capacity - sum(full.values()))
        per_weight = Fraction(left, sum(weights[tenant] for tenant in open_)) if open_ else Fraction(0)
        newly = {tenant: room[tenant] for tenant in open_ if per_weight * weights[tenant] >= room[tenant]}
        if not newly:
            return full | _whole({tenant: per_weight * weights[tenant] for tenant in open_}, left)
        full |= newly


def _whole(exact: Mapping[str, Fraction], total: int) -> dict[str, int]:
    """Whole numbers with the same sum: the largest remainders are rounded up, at a tie the first by name."""
    floors = {tenant: int(amount) for tenant, amount in exact.items()}
    spare = min(total, int(sum(exact.values()))) - sum(floors.values())
    order = sorted(exact, key=lambda tenant: (floors[tenant] - exact[tenant], tenant))
    return floors | {tenant: floors[tenant] + 1 for tenant in order[:spare]}
