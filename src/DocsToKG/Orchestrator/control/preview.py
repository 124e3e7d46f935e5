"""Previews of policies and quotas: shares and limits now and after a change; nothing is saved.

Applies the rules of leasing to a changed copy. Promises: the same arithmetic as real leases, on the tenants that are
active at this moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from DocsToKG.Orchestrator.control import quota_rows
from DocsToKG.Orchestrator.control.inputs import amount
from DocsToKG.Orchestrator.control.policies import proposed_policy
from DocsToKG.Orchestrator.control.records import LedgerService
from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.jobs import allocation as shares
from DocsToKG.Orchestrator.jobs.allocation import AllocationPolicy, TenantClaim
from DocsToKG.Orchestrator.jobs.fair_share import Rules
from DocsToKG.Orchestrator.jobs.quota import Quota
from DocsToKG.Orchestrator.ledger import policy_rows
from DocsToKG.Orchestrator.ledger.control import EVERY, ControlTx
from DocsToKG.Orchestrator.views import View

_NEW = "proposed"


@dataclass(frozen=True, slots=True)
class ShareChange(View):
    """A tenant's share now (null: nothing is shared) and by the proposal, and what it runs beyond that."""

    tenant: str
    before: int | None
    after: int
    active: int
    over_by: int


@dataclass(frozen=True, slots=True)
class PolicyPreview(View):
    """`governs` is false where another policy counts instead, whose priority is higher."""

    governs: bool
    governed_by: str | None
    total_capacity: int
    allocated: int
    tenants: Sequence[ShareChange]


@dataclass(frozen=True, slots=True)
class QuotaPreview(View):
    """How many jobs may run at once, before and after (null: no limit), and what runs beyond that."""

    tenant: str
    job_type: str
    before: int | None
    after: int | None
    active: int
    over_by: int


class PreviewService(LedgerService):
    """Proposals for one ledger. Safe to share between threads."""

    def policy(
        self, rules: Mapping[str, Any], *, replaces: str | None = None, tenants: Sequence[TenantClaim] = ()
    ) -> PolicyPreview:
        """What a policy would give to each tenant; `replaces` is the one that it would stand for, `tenants` are to be
        counted as if they were active, with the weights that they have here."""
        proposed = proposed_policy(replaces or _NEW, rules)
        return self._ledger.read(lambda tx: _policy(tx, proposed, {claim.tenant: claim for claim in tenants}))

    def quota(self, tenant: str, job_type: str, max_active: int, max_per_hour: int, burst: int) -> QuotaPreview:
        """How a quota would change what a tenant may run at once."""
        numbers = {"max_active": max_active, "max_per_hour": max_per_hour, "burst": burst}
        quota = Quota(**{name: amount(name, value) for name, value in numbers.items()})
        return self._ledger.read(lambda tx: _quota(tx, tenant, job_type, quota))


def _policy(tx: ControlTx, proposed: AllocationPolicy, given: Mapping[str, TenantClaim]) -> PolicyPreview:
    rules = policy_rows.read_rules(tx)
    others = [policy for policy in rules.policies if policy.policy_id != proposed.policy_id]
    after = replace(rules, policies=(*others, proposed))
    job_type = proposed.job_type or EVERY
    winner = shares.policy_for(after.policies, job_type)
    tenants = quota_rows.active_tenants(tx, after, proposed) | set(given)
    claims = [given.get(claim.tenant, claim) for claim in quota_rows.claims(after, tenants)]
    then = shares.allocate(proposed, claims)
    now = _shares_now(tx, rules, job_type)
    active = _active(tx, tenants, proposed.job_type)
    changes = [
        ShareChange(name, now.get(name), then[name], active[name], max(0, active[name] - then[name]))
        for name in sorted(tenants)
    ]
    by = None if winner is None or winner is proposed else winner.policy_id
    return PolicyPreview(winner is proposed, by, proposed.total_capacity, sum(then.values()), changes)


def _shares_now(tx: ControlTx, rules: Rules, job_type: str) -> dict[str, int]:
    policy = shares.policy_for(rules.policies, job_type)
    if policy is None:
        return {}
    return shares.allocate(policy, quota_rows.claims(rules, quota_rows.active_tenants(tx, rules, policy)))


def _active(tx: ControlTx, tenants: set[str], job_type: str | None) -> dict[str, int]:
    found = dict.fromkeys(tenants, 0)
    for lane, now in policy_rows.read_running(tx).items():
        if lane.tenant in found and job_type in (None, lane.job_type):
            found[lane.tenant] += now.n
    return found


def _quota(tx: ControlTx, tenant: str, job_type: str, quota: Quota) -> QuotaPreview:
    if not job_type:
        raise BadJob("name a job type, or * for all of them together")
    rules = policy_rows.read_rules(tx)
    after = replace(rules, quotas={**rules.quotas, (tenant, job_type): quota})
    mine = quota_rows.allocation_of(tx, rules, tenant, job_type)
    limits = [quota_rows.effective_limit(each, mine, tenant, job_type) for each in (rules, after)]
    active = quota_rows.active_now(tx, tenant, job_type)
    over_by = 0 if limits[1] is None else max(0, active - limits[1])
    return QuotaPreview(tenant, job_type, limits[0], limits[1], active, over_by)
