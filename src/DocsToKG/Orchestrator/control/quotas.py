"""Quotas: what each tenant may run at once and start in an hour, and its share of a common pool.

Leasing itself decides what is held back; this service reads and changes the rules. Promises: the smaller of quota and
share counts; concurrent requests never take more from a pool than it has; every change is audited and acts at the next
lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from DocsToKG.Orchestrator.control import quota_rows
from DocsToKG.Orchestrator.control.inputs import Decision, amount, audit_fields, plain_name
from DocsToKG.Orchestrator.control.policies import PolicyService
from DocsToKG.Orchestrator.control.quota_rows import (
    Allocation,
    GrantView,
    PolicySummary,
    QuotaStatus,
    QuotaView,
    ReleaseView,
    Schedulable,
    TenantUse,
)
from DocsToKG.Orchestrator.errors import NotFound
from DocsToKG.Orchestrator.jobs import allocation as shares
from DocsToKG.Orchestrator.jobs import quota as quota_rules
from DocsToKG.Orchestrator.jobs.fair_share import Lane
from DocsToKG.Orchestrator.ledger import policy_rows
from DocsToKG.Orchestrator.ledger.control import EVERY, ControlLedger, ControlTx

__all__ = [
    "Allocation", "GrantView", "PolicySummary", "QuotaService", "QuotaStatus", "QuotaView", "ReleaseView",
    "Schedulable", "TenantUse",
]  # fmt: skip


class QuotaService:
    """The quotas of one ledger; `policies` are how pools are shared."""

    def __init__(self, ledger: ControlLedger) -> None:
        self._ledger = ledger
        self.policies = PolicyService(ledger)

    def get(self, tenant: str, job_type: str = EVERY) -> QuotaView:
        return self._ledger.read(lambda tx: quota_rows.stored(tx, tenant, job_type))

    def list(self, tenant: str | None = None) -> list[QuotaView]:
        """All quotas, or those that a tenant has of its own."""
        statement = f"{quota_rows.QUOTA.select} WHERE :tenant IS NULL OR tenant = :tenant"
        found = self._ledger.read(lambda tx: tx.execute(f"{statement} ORDER BY tenant, job_type", {"tenant": tenant}))
        return [quota_rows.QUOTA.of(row) for row in found]

    def set(
        self,
        tenant: str,
        job_type: str,
        max_active: int = 100,
        max_per_hour: int = 1000,
        burst: int = 10,
        *,
        if_version: int | None = None,
        **by: Unpack[Decision],
    ) -> QuotaView:
        """Write a quota. With `if_version` only where that is the version there is; 0 means that there is none."""
        numbers = {"max_active": max_active, "max_per_hour": max_per_hour, "burst": burst}
        values: dict[str, object] = {name: amount(name, value) for name, value in numbers.items()}
        values |= {"tenant": plain_name("tenant", tenant), "job_type": plain_name("job_type", job_type)}
        audit = audit_fields(**by)

        def write(tx: ControlTx) -> QuotaView:
            quota_rows.refuse_other_version(tx, tenant, job_type, if_version)
            tx.execute(
                "INSERT INTO quotas (tenant, job_type, max_active, max_per_hour, burst, actor, reason, ticket,"
                " updated_at) VALUES (:tenant, :job_type, :max_active, :max_per_hour, :burst, :actor, :reason, :ticket,"
                " :now) ON CONFLICT (tenant, job_type) DO UPDATE SET max_active = excluded.max_active,"
                " max_per_hour = excluded.max_per_hour, burst = excluded.burst, actor = excluded.actor,"
                " reason = excluded.reason, ticket = excluded.ticket, updated_at = excluded.updated_at,"
                " version = quotas.version + 1",
                {**values, **audit, "now": tx.now_ms},
            )
            tx.note(tenant, event="quota_set", detail={"job_type": job_type, **numbers}, **audit)
            tx.rules_changed()
            return quota_rows.stored(tx, tenant, job_type)

        return self._ledger.write(write)

    def remove(self, tenant: str, job_type: str, *, if_version: int | None = None, **by: Unpack[Decision]) -> None:
        audit = audit_fields(**by)

        def write(tx: ControlTx) -> None:
            quota_rows.stored(tx, tenant, job_type)
            quota_rows.refuse_other_version(tx, tenant, job_type, if_version)
            values = {"tenant": tenant, "job_type": job_type}
            tx.execute("DELETE FROM quotas WHERE tenant = :tenant AND job_type = :job_type", values)
            tx.note(tenant, event="quota_removed", detail={"job_type": job_type}, **audit)
            tx.rules_changed()

        self._ledger.write(write)

    def allocation(self, tenant: str, job_type: str = EVERY) -> Allocation:
        """The tenant's share as it is now."""
        return self._ledger.read(lambda tx: quota_rows.allocation_of(tx, policy_rows.read_rules(tx), tenant, job_type))

    def request(self, tenant: str, job_type: str, amount_asked: int) -> GrantView:
        """Take from the pool of the policy that counts, as much as there is for this tenant."""
        asked = amount("requestedAmount", amount_asked)

        def take(tx: ControlTx) -> GrantView:
            rules = policy_rows.read_rules(tx)
            mine = quota_rows.allocation_of(tx, rules, tenant, job_type)
            held = quota_rows.locked_grants(tx, mine.policy_id)
            limit = quota_rows.effective_limit(rules, mine, tenant, job_type)
            before = held.get(tenant, (0, 0))
            policy = shares.policy_for(rules.policies, job_type)
            if policy is None:
                room = asked if limit is None else max(0, limit - before[0])
                given = shares.Grant(min(asked, room), 0)
            else:
                now_held = {name: count for name, (count, _) in held.items()}
                given = shares.grant(policy, share=limit or 0, held=now_held, tenant=tenant, asked=asked)
            after = (before[0] + given.granted, before[1] + given.burst_used)
            quota_rows.keep_grant(tx, mine.policy_id, tenant, job_type, given.granted, given.burst_used)
            return GrantView(mine.policy_id, given.granted, given.burst_used, after[0])

        return self._ledger.write(take)

    def release(self, tenant: str, job_type: str, amount_given: int) -> ReleaseView:
        """Give back to the pool; nobody gives back more than it holds."""
        given = amount("releasedAmount", amount_given)

        def give(tx: ControlTx) -> ReleaseView:
            policy = shares.policy_for(policy_rows.read_rules(tx).policies, job_type)
            policy_id = None if policy is None else policy.policy_id
            quota_rows.locked_grants(tx, policy_id)
            held, burst = quota_rows.held_of(tx, policy_id, tenant, job_type)
            back = held - shares.release(held, given)
            burst_back = min(burst, back)
            quota_rows.keep_grant(tx, policy_id, tenant, job_type, -back, -burst_back)
            return ReleaseView(policy_id, back, held - back)

        return self._ledger.write(give)

    def status(self, tenant: str, job_type: str = EVERY) -> QuotaStatus:
        """Both limits and what is used of them."""

        def read(tx: ControlTx) -> QuotaStatus:
            rules = policy_rows.read_rules(tx)
            mine = quota_rows.allocation_of(tx, rules, tenant, job_type)
            limits = quota_rules.limits_of(rules.quotas, tenant, job_type)
            left, at = quota_rows.starts(tx, limits)
            held, burst = quota_rows.held_of(tx, mine.policy_id, tenant, job_type)
            return QuotaStatus(
                tenant=tenant,
                job_type=job_type,
                quotas=quota_rows.views_of(tx, tenant, job_type),
                allocation=mine,
                effective=quota_rows.effective_limit(rules, mine, tenant, job_type),
                active=quota_rows.active_now(tx, tenant, job_type),
                held=held,
                burst_used=burst,
                starts_left=left,
                next_start_at=at,
            )

        return self._ledger.read(read)

    def summary(self, policy_id: str | None = None) -> Sequence[PolicySummary]:
        """Every enabled policy (or one) with the tenants that it shares among."""

        def read(tx: ControlTx) -> Sequence[PolicySummary]:
            rules = policy_rows.read_rules(tx)
            wanted = [policy for policy in rules.policies if policy_id in (None, policy.policy_id)]
            if policy_id is not None and not wanted:
                raise NotFound(f"no enabled policy {policy_id[:80]}")
            return [quota_rows.summary_of(tx, rules, policy) for policy in wanted]

        return self._ledger.read(read)

    def can_schedule(self, tenant: str, job_type: str, source: str | None = None) -> Schedulable:
        """Whether a job would start now, by the very rules that leases go by."""
        held = self._ledger.read(lambda tx: policy_rows.held_lane(tx, Lane(tenant, job_type, source or "")))
        if held is None:
            return Schedulable(True)
        return Schedulable(False, held.by, None if held.until is None else held.until / 1000, held.words)
