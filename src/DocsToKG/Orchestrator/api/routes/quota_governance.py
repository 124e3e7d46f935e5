"""Quota governance: policies that share a pool among tenants, shares, grants; and each tenant's own quotas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import Field

from DocsToKG.Orchestrator.api.auth.bearer import ANY
from DocsToKG.Orchestrator.api.context import Context, RequestContext
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import Name, Reason, RequestBody, Text, Ticket
from DocsToKG.Orchestrator.control.policies import PolicyView
from DocsToKG.Orchestrator.control.preview import PolicyPreview, QuotaPreview
from DocsToKG.Orchestrator.control.quota_rows import (
    Allocation,
    GrantView,
    PolicySummary,
    QuotaStatus,
    QuotaView,
    ReleaseView,
    Schedulable,
)
from DocsToKG.Orchestrator.jobs.allocation import TenantClaim
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE
from DocsToKG.Orchestrator.ledger.control import EVERY
from DocsToKG.Orchestrator.views import View

resource = Resource("quota-governance")
EveryTenant = Annotated[bool, Query(alias="everyTenant", description="The quota that counts where a tenant has none.")]
Amount = Annotated[int, Field(ge=0, le=10**9)]
StrategyWord = Literal["Equal", "Proportional", "Priority", "ReservedWithFairShare", "Fixed"]
JobTypePath = Annotated[
    str, Path(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127})$", description="`*`: every type.")
]
JobTypeQuery = Annotated[Name | None, Query(alias="jobType", description="Without: every type together.")]
PolicyPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class QuotaDecision(RequestBody):
    """The body of a change of quotas, which says why."""

    quota_reason: Reason | None = None
    quota_ticket: Ticket | None = None
    reason: Reason | None = None
    ticket: Ticket | None = None


class QuotaIn(QuotaDecision):
    max_active: Amount = 100
    max_per_hour: Amount = 1000
    burst: Amount = 10


class PolicyIn(QuotaDecision):
    """How the capacity of a pool is shared among tenants."""

    name: Text
    strategy: StrategyWord
    total_capacity: Amount
    minimum_per_tenant: Amount = 1
    maximum_per_tenant: Amount | None = None
    reserved_capacity: Amount = 0
    allow_burst: bool = False
    burst_multiplier: Annotated[float, Field(ge=1, le=1000)] = 1.5
    priority: Annotated[int, Field(ge=-(10**9), le=10**9)] = 0
    job_type: Name | None = None
    enabled: bool = True


class TenantClaimIn(RequestBody):
    """A tenant that the preview counts as if it had work."""

    tenant: Name
    weight: Annotated[int, Field(ge=1, le=10**6)] = 1
    priority: Annotated[int, Field(ge=-(10**9), le=10**9)] = 0
    fixed: Amount | None = None


class PolicyPreviewIn(PolicyIn):
    """A policy to preview."""

    name: Text = "proposed"
    replaces: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = Field(
        default=None, description="The policy that it would stand for."
    )
    tenants: Annotated[tuple[TenantClaimIn, ...], Field(max_length=1000)] = ()


class PolicyChanges(QuotaDecision):
    """The properties to change; the others stay."""

    name: Text | None = None
    strategy: StrategyWord | None = None
    total_capacity: Amount | None = None
    minimum_per_tenant: Amount | None = None
    maximum_per_tenant: Amount | None = None
    reserved_capacity: Amount | None = None
    allow_burst: bool | None = None
    burst_multiplier: Annotated[float, Field(ge=1, le=1000)] | None = None
    priority: Annotated[int, Field(ge=-(10**9), le=10**9)] | None = None
    job_type: Name | None = None
    enabled: bool | None = None


class QuotaRequest(RequestBody):
    job_type: Name
    requested_amount: Annotated[int, Field(ge=1, le=10**9)]


class QuotaRelease(RequestBody):
    job_type: Name
    released_amount: Annotated[int, Field(ge=1, le=10**9)]


@dataclass(frozen=True, slots=True)
class PolicyList(View):
    """Policies, the highest priority first."""

    policies: Sequence[PolicyView]


@dataclass(frozen=True, slots=True)
class PolicySummaryList(View):
    policies: Sequence[PolicySummary]


@dataclass(frozen=True, slots=True)
class QuotaList(View):
    quotas: Sequence[QuotaView]


_REASONS = set(QuotaDecision.model_fields)


@resource.get("/quota-governance/policies")
def list_policies(ctx: Context, enabled: Annotated[bool | None, Query()] = None) -> PolicyList:
    """List the policies, the highest priority first."""
    return PolicyList(ctx.services.quotas.policies.list(enabled))


@resource.get("/quota-governance/policies/{policy_id}")
def get_policy(ctx: Context, policy_id: PolicyPath) -> PolicyView:
    """Show one policy."""
    policy = ctx.services.quotas.policies.get(policy_id)
    return ctx.tagged(policy)


@resource.post("/quota-governance/policies", status=201)
def create_policy(ctx: Context, body: PolicyIn) -> PolicyView:
    """Create a policy; it counts for all tenants from the next lease on."""
    policy = ctx.services.quotas.policies.create(**body.model_dump(exclude=_REASONS), **ctx.decision)
    return ctx.tagged(policy)


@resource.put("/quota-governance/policies/{policy_id}")
def update_policy(ctx: Context, policy_id: PolicyPath, body: PolicyChanges) -> PolicyView:
    """Change a policy; with If-Match only the version that was read."""
    changes = body.model_dump(exclude=_REASONS, exclude_unset=True)
    nullable = ("maximum_per_tenant", "job_type")
    changes = {name: value for name, value in changes.items() if value is not None or name in nullable}
    wanted = ctx.if_version
    policy = ctx.services.quotas.policies.update(policy_id, changes, **ctx.decision, if_version=wanted)
    return ctx.tagged(policy)


@resource.delete("/quota-governance/policies/{policy_id}", status=204)
def delete_policy(ctx: Context, policy_id: PolicyPath) -> None:
    """Remove a policy; the reason comes in the headers."""
    ctx.services.quotas.policies.delete(policy_id, **ctx.decision, if_version=ctx.if_version)


@resource.post("/quota-governance/preview")
def preview_policy(ctx: Context, body: PolicyPreviewIn) -> PolicyPreview:
    """Show what a policy would give to each tenant; nothing is saved."""
    rules = body.model_dump(exclude=_REASONS | {"replaces", "tenants"})
    claims = [TenantClaim(one.tenant, one.weight, one.priority, None, one.fixed) for one in body.tenants]
    return ctx.services.preview.policy(rules, replaces=body.replaces, tenants=claims)


@resource.get("/quota-governance/allocation")
def get_allocation(ctx: Context, job_type: JobTypeQuery = None) -> Allocation:
    """Show the tenant's share as it is now."""
    return ctx.services.quotas.allocation(ctx.tenant, job_type or EVERY)


@resource.post("/quota-governance/request")
def request_quota(ctx: Context, body: QuotaRequest) -> GrantView:
    """Take from the pool, as much as there is for this tenant."""
    return ctx.services.quotas.request(ctx.tenant, body.job_type, body.requested_amount)


@resource.post("/quota-governance/release")
def release_quota(ctx: Context, body: QuotaRelease) -> ReleaseView:
    """Give back to the pool; nobody gives back more than it holds."""
    return ctx.services.quotas.release(ctx.tenant, body.job_type, body.released_amount)


@resource.get("/quota-governance/status")
def quota_status(ctx: Context, job_type: JobTypeQuery = None) -> QuotaStatus:
    """Show both limits of the tenant and what is used of them."""
    return ctx.services.quotas.status(ctx.tenant, job_type or EVERY)


@resource.get("/quota-governance/summary")
def quota_summary(
    ctx: Context, policy_id: Annotated[str | None, Query(alias="policyId", pattern=r"^[A-Za-z0-9_-]{1,64}$")] = None
) -> PolicySummaryList:
    """Show every policy with the tenants that it shares among."""
    return PolicySummaryList(ctx.services.quotas.summary(policy_id))


@resource.get("/quota-governance/can-schedule")
def can_schedule(ctx: Context, job_type: JobTypeQuery = None) -> Schedulable:
    """Say whether a job could start now, and what blocks where not."""
    return ctx.services.quotas.can_schedule(ctx.tenant, job_type or DEFAULT_JOB_TYPE)


@resource.get("/quotas")
def list_quotas(ctx: Context) -> QuotaList:
    """List the tenant's quotas and those of every tenant."""
    return QuotaList([*ctx.services.quotas.list(ctx.tenant), *ctx.services.quotas.list(EVERY)])


@resource.get("/quotas/{job_type}")
def get_quota(ctx: Context, job_type: JobTypePath, every: EveryTenant = False) -> QuotaView:
    """Show one quota."""
    quota = ctx.services.quotas.get(EVERY if every else ctx.tenant, job_type)
    return ctx.tagged(quota)


@resource.put("/quotas/{job_type}")
def set_quota(ctx: Context, job_type: JobTypePath, body: QuotaIn, every: EveryTenant = False) -> QuotaView:
    """Write a quota; it counts from the next lease on, everywhere."""
    quota = ctx.services.quotas.set(
        _whose(ctx, every), job_type, body.max_active, body.max_per_hour, body.burst,
        **ctx.decision, if_version=ctx.if_version,
    )  # fmt: skip
    return ctx.tagged(quota)


@resource.post("/quotas/{job_type}/preview")
def preview_quota(ctx: Context, job_type: JobTypePath, body: QuotaIn) -> QuotaPreview:
    """Show how a quota would change what the tenant may run at once; nothing is saved."""
    return ctx.services.preview.quota(ctx.tenant, job_type, body.max_active, body.max_per_hour, body.burst)


@resource.delete("/quotas/{job_type}", status=204)
def remove_quota(ctx: Context, job_type: JobTypePath, every: EveryTenant = False) -> None:
    """Remove a quota; the reason comes in the headers."""
    ctx.services.quotas.remove(_whose(ctx, every), job_type, **ctx.decision, if_version=ctx.if_version)


def _whose(ctx: RequestContext, every: bool) -> str:
    if every and ANY not in ctx.caller.principal.tenants:
        raise Problem(403, "TENANT_FORBIDDEN", "this concerns every tenant; the token is for some only")
    return EVERY if every else ctx.tenant
