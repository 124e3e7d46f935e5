"""Quota governance: policies that share a pool among tenants, shares, grants; and each tenant's own quotas."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from DocsToKG.Orchestrator.jobs.allocation import TenantClaim
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE
from DocsToKG.Orchestrator.ledger.control import EVERY
from DocsToKG.Orchestrator.web.auth import ANY
from DocsToKG.Orchestrator.web.envelope import Problem
from DocsToKG.Orchestrator.web.routes.quota_shapes import (
    AllocationShown,
    Governed,
    GrantShown,
    JobTypePath,
    JobTypeQuery,
    PolicyChanges,
    PolicyGiven,
    PolicyList,
    PolicyPath,
    PolicyPreviewShown,
    PolicyProposed,
    PolicyShown,
    PolicySummaryShown,
    QuotaAsked,
    QuotaGiven,
    QuotaGivenBack,
    QuotaList,
    QuotaPreviewShown,
    QuotaShown,
    QuotaStatusShown,
    ReleaseShown,
    SchedulableShown,
    SummaryShown,
)
from DocsToKG.Orchestrator.web.serving import Answer, Ask, Asked, Resource
from DocsToKG.Orchestrator.web.versions import tagged, version_wanted

resource = Resource("quota-governance")
_SAID = set(Governed.model_fields)
EveryTenant = Annotated[bool, Query(alias="everyTenant", description="The quota that counts where a tenant has none.")]


@resource.get("/quota-governance/policies")
def list_policies(ask: Asked, enabled: Annotated[bool | None, Query()] = None) -> PolicyList:
    """List the policies, the highest priority first."""
    found = ask.rooms.quotas.policies.list(enabled)
    return PolicyList(policies=[PolicyShown.model_validate(policy) for policy in found])


@resource.get("/quota-governance/policies/{policy_id}", response_model=PolicyShown)
def get_policy(ask: Asked, policy_id: PolicyPath) -> Answer:
    """Show one policy."""
    policy = ask.rooms.quotas.policies.get(policy_id)
    return tagged(PolicyShown.model_validate(policy), policy.version)


@resource.post("/quota-governance/policies", status=201, response_model=PolicyShown)
def create_policy(ask: Asked, body: PolicyGiven) -> Answer:
    """Make a policy; it counts for all tenants from the next lease on."""
    policy = ask.rooms.quotas.policies.create(**body.model_dump(exclude=_SAID), **ask.decision)
    return tagged(PolicyShown.model_validate(policy), policy.version)


@resource.put("/quota-governance/policies/{policy_id}", response_model=PolicyShown)
def update_policy(ask: Asked, policy_id: PolicyPath, body: PolicyChanges) -> Answer:
    """Change a policy; with If-Match only the version that was read."""
    changes = body.model_dump(exclude=_SAID, exclude_unset=True)
    nullable = ("maximum_per_tenant", "job_type")
    changes = {name: value for name, value in changes.items() if value is not None or name in nullable}
    wanted = version_wanted(ask)
    policy = ask.rooms.quotas.policies.update(policy_id, changes, **ask.decision, if_version=wanted)
    return tagged(PolicyShown.model_validate(policy), policy.version)


@resource.delete("/quota-governance/policies/{policy_id}", status=204)
def delete_policy(ask: Asked, policy_id: PolicyPath) -> None:
    """Remove a policy; the reason comes in the headers."""
    ask.rooms.quotas.policies.delete(policy_id, **ask.decision, if_version=version_wanted(ask))


@resource.post("/quota-governance/preview")
def preview_policy(ask: Asked, body: PolicyProposed) -> PolicyPreviewShown:
    """Show what a policy would give to each tenant; nothing is saved."""
    rules = body.model_dump(exclude=_SAID | {"replaces", "tenants"})
    claims = [TenantClaim(one.tenant, one.weight, one.priority, None, one.fixed) for one in body.tenants]
    found = ask.rooms.what_if.policy(rules, replaces=body.replaces, tenants=claims)
    return PolicyPreviewShown.model_validate(found)


@resource.get("/quota-governance/allocation")
def get_allocation(ask: Asked, job_type: JobTypeQuery = None) -> AllocationShown:
    """Show the tenant's share as it is now."""
    return AllocationShown.model_validate(ask.rooms.quotas.allocation(ask.tenant, job_type or EVERY))


@resource.post("/quota-governance/request")
def request_quota(ask: Asked, body: QuotaAsked) -> GrantShown:
    """Take from the pool, as much as there is for this tenant."""
    return GrantShown.model_validate(ask.rooms.quotas.request(ask.tenant, body.job_type, body.requested_amount))


@resource.post("/quota-governance/release")
def release_quota(ask: Asked, body: QuotaGivenBack) -> ReleaseShown:
    """Give back to the pool; nobody gives back more than it holds."""
    found = ask.rooms.quotas.release(ask.tenant, body.job_type, body.released_amount)
    return ReleaseShown(policy_id=found.policy_id, released=-found.granted, held=found.held)


@resource.get("/quota-governance/status")
def quota_status(ask: Asked, job_type: JobTypeQuery = None) -> QuotaStatusShown:
    """Show both limits of the tenant and what is used of them."""
    return QuotaStatusShown.model_validate(ask.rooms.quotas.status(ask.tenant, job_type or EVERY))


@resource.get("/quota-governance/summary")
def quota_summary(
    ask: Asked, policy_id: Annotated[str | None, Query(alias="policyId", pattern=r"^[A-Za-z0-9_-]{1,64}$")] = None
) -> SummaryShown:
    """Show every policy with the tenants that it shares among."""
    found = ask.rooms.quotas.summary(policy_id)
    return SummaryShown(policies=[PolicySummaryShown.model_validate(policy) for policy in found])


@resource.get("/quota-governance/can-schedule")
def can_schedule(ask: Asked, job_type: JobTypeQuery = None) -> SchedulableShown:
    """Say whether a job could start now, and what blocks where not."""
    found = ask.rooms.quotas.can_schedule(ask.tenant, job_type or DEFAULT_JOB_TYPE)
    return SchedulableShown.model_validate(found)


@resource.get("/quotas")
def list_quotas(ask: Asked) -> QuotaList:
    """List the tenant's quotas and those of every tenant."""
    found = [*ask.rooms.quotas.list(ask.tenant), *ask.rooms.quotas.list(EVERY)]
    return QuotaList(quotas=[QuotaShown.model_validate(quota) for quota in found])


@resource.get("/quotas/{job_type}", response_model=QuotaShown)
def get_quota(ask: Asked, job_type: JobTypePath, every: EveryTenant = False) -> Answer:
    """Show one quota."""
    quota = ask.rooms.quotas.get(EVERY if every else ask.tenant, job_type)
    return tagged(QuotaShown.model_validate(quota), quota.version)


@resource.put("/quotas/{job_type}", response_model=QuotaShown)
def set_quota(ask: Asked, job_type: JobTypePath, body: QuotaGiven, every: EveryTenant = False) -> Answer:
    """Write a quota; it counts from the next lease on, everywhere."""
    quota = ask.rooms.quotas.set(
        _whose(ask, every), job_type, body.max_active, body.max_per_hour, body.burst,
        **ask.decision, if_version=version_wanted(ask),
    )  # fmt: skip
    return tagged(QuotaShown.model_validate(quota), quota.version)


@resource.post("/quotas/{job_type}/preview")
def preview_quota(ask: Asked, job_type: JobTypePath, body: QuotaGiven) -> QuotaPreviewShown:
    """Show how a quota would change what the tenant may run at once; nothing is saved."""
    found = ask.rooms.what_if.quota(ask.tenant, job_type, body.max_active, body.max_per_hour, body.burst)
    return QuotaPreviewShown.model_validate(found)


@resource.delete("/quotas/{job_type}", status=204)
def remove_quota(ask: Asked, job_type: JobTypePath, every: EveryTenant = False) -> None:
    """Remove a quota; the reason comes in the headers."""
    ask.rooms.quotas.remove(_whose(ask, every), job_type, **ask.decision, if_version=version_wanted(ask))


def _whose(ask: Ask, every: bool) -> str:
    if every and ANY not in ask.caller.principal.tenants:
        raise Problem(403, "TENANT_FORBIDDEN", "this concerns every tenant; the token is for some only")
    return EVERY if every else ask.tenant
