"""Quota governance: policies that share a pool among tenants, shares, grants; and each tenant's own quotas."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from DocsToKG.Orchestrator.api.auth.bearer import ANY
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.etags import tagged, version_wanted
from DocsToKG.Orchestrator.api.routes.quota_shapes import (
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
from DocsToKG.Orchestrator.api.routing import Answer, Context, RequestContext, Resource
from DocsToKG.Orchestrator.jobs.allocation import TenantClaim
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE
from DocsToKG.Orchestrator.ledger.control import EVERY

resource = Resource("quota-governance")
_SAID = set(Governed.model_fields)
EveryTenant = Annotated[bool, Query(alias="everyTenant", description="The quota that counts where a tenant has none.")]


@resource.get("/quota-governance/policies")
def list_policies(ctx: Context, enabled: Annotated[bool | None, Query()] = None) -> PolicyList:
    """List the policies, the highest priority first."""
    found = ctx.services.quotas.policies.list(enabled)
    return PolicyList(policies=[PolicyShown.model_validate(policy) for policy in found])


@resource.get("/quota-governance/policies/{policy_id}", response_model=PolicyShown)
def get_policy(ctx: Context, policy_id: PolicyPath) -> Answer:
    """Show one policy."""
    policy = ctx.services.quotas.policies.get(policy_id)
    return tagged(PolicyShown.model_validate(policy), policy.version)


@resource.post("/quota-governance/policies", status=201, response_model=PolicyShown)
def create_policy(ctx: Context, body: PolicyGiven) -> Answer:
    """Make a policy; it counts for all tenants from the next lease on."""
    policy = ctx.services.quotas.policies.create(**body.model_dump(exclude=_SAID), **ctx.decision)
    return tagged(PolicyShown.model_validate(policy), policy.version)


@resource.put("/quota-governance/policies/{policy_id}", response_model=PolicyShown)
def update_policy(ctx: Context, policy_id: PolicyPath, body: PolicyChanges) -> Answer:
    """Change a policy; with If-Match only the version that was read."""
    changes = body.model_dump(exclude=_SAID, exclude_unset=True)
    nullable = ("maximum_per_tenant", "job_type")
    changes = {name: value for name, value in changes.items() if value is not None or name in nullable}
    wanted = version_wanted(ctx)
    policy = ctx.services.quotas.policies.update(policy_id, changes, **ctx.decision, if_version=wanted)
    return tagged(PolicyShown.model_validate(policy), policy.version)


@resource.delete("/quota-governance/policies/{policy_id}", status=204)
def delete_policy(ctx: Context, policy_id: PolicyPath) -> None:
    """Remove a policy; the reason comes in the headers."""
    ctx.services.quotas.policies.delete(policy_id, **ctx.decision, if_version=version_wanted(ctx))


@resource.post("/quota-governance/preview")
def preview_policy(ctx: Context, body: PolicyProposed) -> PolicyPreviewShown:
    """Show what a policy would give to each tenant; nothing is saved."""
    rules = body.model_dump(exclude=_SAID | {"replaces", "tenants"})
    claims = [TenantClaim(one.tenant, one.weight, one.priority, None, one.fixed) for one in body.tenants]
    found = ctx.services.what_if.policy(rules, replaces=body.replaces, tenants=claims)
    return PolicyPreviewShown.model_validate(found)


@resource.get("/quota-governance/allocation")
def get_allocation(ctx: Context, job_type: JobTypeQuery = None) -> AllocationShown:
    """Show the tenant's share as it is now."""
    return AllocationShown.model_validate(ctx.services.quotas.allocation(ctx.tenant, job_type or EVERY))


@resource.post("/quota-governance/request")
def request_quota(ctx: Context, body: QuotaAsked) -> GrantShown:
    """Take from the pool, as much as there is for this tenant."""
    return GrantShown.model_validate(ctx.services.quotas.request(ctx.tenant, body.job_type, body.requested_amount))


@resource.post("/quota-governance/release")
def release_quota(ctx: Context, body: QuotaGivenBack) -> ReleaseShown:
    """Give back to the pool; nobody gives back more than it holds."""
    found = ctx.services.quotas.release(ctx.tenant, body.job_type, body.released_amount)
    return ReleaseShown(policy_id=found.policy_id, released=-found.granted, held=found.held)


@resource.get("/quota-governance/status")
def quota_status(ctx: Context, job_type: JobTypeQuery = None) -> QuotaStatusShown:
    """Show both limits of the tenant and what is used of them."""
    return QuotaStatusShown.model_validate(ctx.services.quotas.status(ctx.tenant, job_type or EVERY))


@resource.get("/quota-governance/summary")
def quota_summary(
    ctx: Context, policy_id: Annotated[str | None, Query(alias="policyId", pattern=r"^[A-Za-z0-9_-]{1,64}$")] = None
) -> SummaryShown:
    """Show every policy with the tenants that it shares among."""
    found = ctx.services.quotas.summary(policy_id)
    return SummaryShown(policies=[PolicySummaryShown.model_validate(policy) for policy in found])


@resource.get("/quota-governance/can-schedule")
def can_schedule(ctx: Context, job_type: JobTypeQuery = None) -> SchedulableShown:
    """Say whether a job could start now, and what blocks where not."""
    found = ctx.services.quotas.can_schedule(ctx.tenant, job_type or DEFAULT_JOB_TYPE)
    return SchedulableShown.model_validate(found)


@resource.get("/quotas")
def list_quotas(ctx: Context) -> QuotaList:
    """List the tenant's quotas and those of every tenant."""
    found = [*ctx.services.quotas.list(ctx.tenant), *ctx.services.quotas.list(EVERY)]
    return QuotaList(quotas=[QuotaShown.model_validate(quota) for quota in found])


@resource.get("/quotas/{job_type}", response_model=QuotaShown)
def get_quota(ctx: Context, job_type: JobTypePath, every: EveryTenant = False) -> Answer:
    """Show one quota."""
    quota = ctx.services.quotas.get(EVERY if every else ctx.tenant, job_type)
    return tagged(QuotaShown.model_validate(quota), quota.version)


@resource.put("/quotas/{job_type}", response_model=QuotaShown)
def set_quota(ctx: Context, job_type: JobTypePath, body: QuotaGiven, every: EveryTenant = False) -> Answer:
    """Write a quota; it counts from the next lease on, everywhere."""
    quota = ctx.services.quotas.set(
        _whose(ctx, every), job_type, body.max_active, body.max_per_hour, body.burst,
        **ctx.decision, if_version=version_wanted(ctx),
    )  # fmt: skip
    return tagged(QuotaShown.model_validate(quota), quota.version)


@resource.post("/quotas/{job_type}/preview")
def preview_quota(ctx: Context, job_type: JobTypePath, body: QuotaGiven) -> QuotaPreviewShown:
    """Show how a quota would change what the tenant may run at once; nothing is saved."""
    found = ctx.services.what_if.quota(ctx.tenant, job_type, body.max_active, body.max_per_hour, body.burst)
    return QuotaPreviewShown.model_validate(found)


@resource.delete("/quotas/{job_type}", status=204)
def remove_quota(ctx: Context, job_type: JobTypePath, every: EveryTenant = False) -> None:
    """Remove a quota; the reason comes in the headers."""
    ctx.services.quotas.remove(_whose(ctx, every), job_type, **ctx.decision, if_version=version_wanted(ctx))


def _whose(ctx: RequestContext, every: bool) -> str:
    if every and ANY not in ctx.caller.principal.tenants:
        raise Problem(403, "TENANT_FORBIDDEN", "this concerns every tenant; the token is for some only")
    return EVERY if every else ctx.tenant
