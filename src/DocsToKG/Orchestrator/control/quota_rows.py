"""SQL and views of quotas, pools and grants.

Knows the tables of quotas, grants, policies and lanes. The arithmetic is in `jobs.quota` and `jobs.allocation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from DocsToKG.Orchestrator.control.records import Record, check_version
from DocsToKG.Orchestrator.errors import NotFound
from DocsToKG.Orchestrator.jobs import allocation as shares
from DocsToKG.Orchestrator.jobs import quota as quota_rules
from DocsToKG.Orchestrator.jobs.allocation import AllocationPolicy, TenantClaim
from DocsToKG.Orchestrator.jobs.fair_share import Rules
from DocsToKG.Orchestrator.jobs.quota import Bucket, Quota
from DocsToKG.Orchestrator.ledger import policy_rows
from DocsToKG.Orchestrator.ledger.control import EVERY, ControlTx
from DocsToKG.Orchestrator.views import Timestamp, View, json_names

_NO_POLICY = "-"


@dataclass(frozen=True, slots=True)
class QuotaView(View):
    """What a tenant may run at once and start in an hour; `*` is every tenant or job type."""

    __pydantic_config__ = json_names(reason="quotaReason", ticket="quotaTicket")

    tenant: str
    job_type: str
    max_active: int
    max_per_hour: int
    burst: int
    version: int
    actor: str
    reason: str | None
    ticket: str | None
    updated_at: Timestamp


QUOTA = Record(QuotaView, "quotas")


@dataclass(frozen=True, slots=True)
class Allocation(View):
    """A tenant's share by the policy that counts; without a policy nothing is shared, and `share` is null."""

    tenant: str
    job_type: str
    policy_id: str | None
    strategy: str | None
    total_capacity: int | None
    share: int | None
    burst_limit: int | None
    active_tenants: int


@dataclass(frozen=True, slots=True)
class GrantView(View):
    """What was given of the pool, how much of it is burst, and what the tenant holds now."""

    policy_id: str | None
    granted: int
    burst_used: int
    held: int


@dataclass(frozen=True, slots=True)
class ReleaseView(View):
    """What was given back to the pool, and what the tenant holds now."""

    policy_id: str | None
    released: int
    held: int


@dataclass(frozen=True, slots=True)
class QuotaStatus(View):
    """Both limits; `effective` is the smaller of the quota's `maxActive` and the share (null: no limit)."""

    tenant: str
    job_type: str
    quotas: Sequence[QuotaView]
    allocation: Allocation
    effective: int | None
    active: int
    held: int
    burst_used: int
    starts_left: int | None
    next_start_at: Timestamp | None


@dataclass(frozen=True, slots=True)
class TenantUse(View):
    tenant: str
    share: int
    active: int
    held: int
    burst_used: int


@dataclass(frozen=True, slots=True)
class PolicySummary(View):
    policy_id: str
    name: str
    strategy: str
    total_capacity: int
    allocated: int
    active: int
    held: int
    tenants: Sequence[TenantUse]


@dataclass(frozen=True, slots=True)
class Schedulable(View):
    """Whether a job could start now; else what blocks it, and until when where that is known."""

    can_schedule: bool
    blocked_by: str | None = None
    until: Timestamp | None = None
    message: str | None = None


def stored(tx: ControlTx, tenant: str, job_type: str) -> QuotaView:
    found = QUOTA.find(tx, tenant=tenant, job_type=job_type)
    if found is None:
        raise NotFound(f"tenant {tenant[:80]} has no quota for {job_type[:80]}")
    return found


def refuse_other_version(tx: ControlTx, tenant: str, job_type: str, if_version: int | None) -> None:
    """Version 0 means that there is no quota."""
    if if_version is None:
        return
    statement = "SELECT version FROM quotas WHERE tenant = :tenant AND job_type = :job_type /* lock */"
    found = tx.execute(statement, {"tenant": tenant, "job_type": job_type})
    check_version("quota", found[0][0] if found else 0, if_version)


def views_of(tx: ControlTx, tenant: str, job_type: str) -> list[QuotaView]:
    """The quotas that count: the tenant's own before those of every tenant."""
    statement = (
        f"{QUOTA.select} WHERE tenant IN (:tenant, '*') AND job_type IN (:job_type, '*')"
        " ORDER BY tenant = '*', job_type = '*'"
    )
    found: dict[str, QuotaView] = {}
    for row in tx.execute(statement, {"tenant": tenant, "job_type": job_type}):
        found.setdefault(str(row[1]), QUOTA.of(row))
    return list(found.values())


def active_tenants(tx: ControlTx, rules: Rules, policy: AllocationPolicy) -> set[str]:
    rows = tx.execute(
        "SELECT tenant, job_type FROM job_totals WHERE state IN ('pending', 'queued', 'in_progress')"
        " GROUP BY tenant, job_type HAVING sum(n) > 0"
    )
    found = {tenant for tenant, job_type in rows if shares.policy_for(rules.policies, job_type) == policy}
    held = tx.execute("SELECT tenant FROM quota_grants WHERE policy_id = :id AND held > 0", {"id": policy.policy_id})
    return found | {row[0] for row in held}


def claims(rules: Rules, tenants: set[str]) -> list[TenantClaim]:
    ruled = [(name, rules.tenant(name)) for name in sorted(tenants)]
    return [TenantClaim(name, rule.weight, rule.priority, None, rule.fixed) for name, rule in ruled]


def allocation_of(tx: ControlTx, rules: Rules, tenant: str, job_type: str) -> Allocation:
    policy = shares.policy_for(rules.policies, job_type)
    if policy is None:
        return Allocation(tenant, job_type, None, None, None, None, None, 0)
    tenants = active_tenants(tx, rules, policy) | {tenant}
    share = shares.allocate(policy, claims(rules, tenants))[tenant]
    limit = shares.burst_limit(policy, share)
    return Allocation(
        tenant, job_type, policy.policy_id, policy.strategy.value, policy.total_capacity, share, limit, len(tenants)
    )


def effective_limit(rules: Rules, mine: Allocation, tenant: str, job_type: str) -> int | None:
    limits = [quota.max_active for _, quota in quota_rules.limits_of(rules.quotas, tenant, job_type)]
    if mine.share is not None:
        limits.append(mine.share)
    return min(limits, default=None)


def active_now(tx: ControlTx, tenant: str, job_type: str) -> int:
    running = policy_rows.read_running(tx)
    fitting = [lane for lane in running if lane.tenant == tenant and job_type in (EVERY, lane.job_type)]
    return sum(running[lane].n for lane in fitting)


def starts(tx: ControlTx, limits: Sequence[tuple[tuple[str, str], Quota]]) -> tuple[int | None, float | None]:
    """How many may start now, and when the next may where none can."""
    left: int | None = None
    at: float | None = None
    for (tenant, job_type), quota in limits:
        values = {"tenant": tenant, "job_type": job_type}
        statement = "SELECT tokens, tokens_at FROM lanes WHERE tenant = :tenant AND job_type = :job_type"
        rows = tx.execute(statement, values)
        stored = Bucket(*rows[0]) if rows and rows[0][0] is not None else None
        bucket = quota_rules.filled(quota, stored, tx.now_ms)
        mine = quota_rules.starts_left(quota, bucket)
        left = mine if left is None else min(left, mine)
        if mine == 0 and (next_at := quota_rules.next_start_at(quota, bucket)) is not None:
            at = max(at or 0.0, next_at / 1000)
    return left, at


def locked_grants(tx: ControlTx, policy_id: str | None) -> dict[str, tuple[int, int]]:
    """What every tenant holds of a pool (and how much of it is burst), which nobody changes beside us."""
    if policy_id is not None:
        tx.execute("SELECT policy_id FROM quota_policies WHERE policy_id = :id /* lock */", {"id": policy_id})
    else:
        values = {"name": EVERY, "job_type": "policy:-"}
        statement = (
            "INSERT INTO lanes (tenant, job_type) VALUES (:name, :job_type) ON CONFLICT (tenant, job_type) DO NOTHING"
        )
        tx.execute(statement, values)
        tx.execute("SELECT tenant FROM lanes WHERE tenant = :name AND job_type = :job_type /* lock */", values)
    return grants(tx, policy_id)


def grants(tx: ControlTx, policy_id: str | None) -> dict[str, tuple[int, int]]:
    rows = tx.execute(
        "SELECT tenant, sum(held), sum(burst_used) FROM quota_grants WHERE policy_id = :id GROUP BY tenant",
        {"id": policy_id or _NO_POLICY},
    )
    return {row[0]: (row[1], row[2]) for row in rows}


def held_of(tx: ControlTx, policy_id: str | None, tenant: str, job_type: str) -> tuple[int, int]:
    values = {"id": policy_id or _NO_POLICY, "tenant": tenant, "job_type": job_type}
    statement = (
        "SELECT held, burst_used FROM quota_grants WHERE policy_id = :id AND tenant = :tenant AND job_type = :job_type"
    )
    found = tx.execute(statement, values)
    return (found[0][0], found[0][1]) if found else (0, 0)


def keep_grant(tx: ControlTx, policy_id: str | None, tenant: str, job_type: str, held: int, burst: int) -> None:
    tx.execute(
        "INSERT INTO quota_grants (policy_id, tenant, job_type, held, burst_used, updated_at)"
        " VALUES (:id, :tenant, :job_type, :held, :burst, :now) ON CONFLICT (policy_id, tenant, job_type) DO UPDATE SET"
        " held = quota_grants.held + excluded.held, burst_used = quota_grants.burst_used + excluded.burst_used,"
        " updated_at = excluded.updated_at",
        {
            "id": policy_id or _NO_POLICY, "tenant": tenant, "job_type": job_type, "held": held, "burst": burst,
            "now": tx.now_ms,
        },
    )  # fmt: skip


def summary_of(tx: ControlTx, rules: Rules, policy: AllocationPolicy) -> PolicySummary:
    tenants = active_tenants(tx, rules, policy)
    share = shares.allocate(policy, claims(rules, tenants))
    held = grants(tx, policy.policy_id)
    running = policy_rows.read_running(tx)
    active: dict[str, int] = {}
    for lane, now in running.items():
        if shares.policy_for(rules.policies, lane.job_type) == policy:
            active[lane.tenant] = active.get(lane.tenant, 0) + now.n
    uses = [
        TenantUse(tenant, share.get(tenant, 0), active.get(tenant, 0), *held.get(tenant, (0, 0)))
        for tenant in sorted(tenants | set(active))
    ]
    [(name,)] = tx.execute("SELECT name FROM quota_policies WHERE policy_id = :id", {"id": policy.policy_id})
    return PolicySummary(
        policy.policy_id, name, policy.strategy.value, policy.total_capacity, sum(share.values()),
        sum(active.values()), sum(use.held for use in uses), uses,
    )  # fmt: skip
