"""How quotas, policies and shares look from outside."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import Field

from DocsToKG.Orchestrator.api.schemas import Given, Moment, Name, Reason, Shown, Text, Ticket

Amount = Annotated[int, Field(ge=0, le=10**9)]
StrategyWord = Literal["Equal", "Proportional", "Priority", "ReservedWithFairShare", "Fixed"]
JobTypePath = Annotated[
    str, Path(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127})$", description="`*`: every type.")
]
JobTypeQuery = Annotated[Name | None, Query(alias="jobType", description="Without: every type together.")]
PolicyPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class Governed(Given):
    """A change of quotas: it says why."""

    quota_reason: Reason | None = None
    quota_ticket: Ticket | None = None
    reason: Reason | None = None
    ticket: Ticket | None = None


class QuotaGiven(Governed):
    max_active: Amount = 100
    max_per_hour: Amount = 1000
    burst: Amount = 10


class QuotaShown(Shown):
    """What a tenant may run at once and start in an hour; `*` is every tenant or type."""

    tenant: str
    job_type: str
    max_active: int
    max_per_hour: int
    burst: int
    version: int
    actor: str
    reason: str | None = Field(serialization_alias="quotaReason")
    ticket: str | None = Field(serialization_alias="quotaTicket")
    updated_at: Moment


class QuotaList(Shown):
    quotas: list[QuotaShown]


class PolicyGiven(Governed):
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


class TenantSupposed(Given):
    """A tenant that is counted as if it had work."""

    tenant: Name
    weight: Annotated[int, Field(ge=1, le=10**6)] = 1
    priority: Annotated[int, Field(ge=-(10**9), le=10**9)] = 0
    fixed: Amount | None = None


class PolicyProposed(PolicyGiven):
    """A policy that is not saved: what would it do?"""

    name: Text = "proposed"
    replaces: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = Field(
        default=None, description="The policy that it would stand for."
    )
    tenants: Annotated[tuple[TenantSupposed, ...], Field(max_length=1000)] = ()


class ShareChangeShown(Shown):
    """A tenant's share now (null: nothing is shared) and by the proposal, and what it runs beyond that."""

    tenant: str
    before: int | None
    after: int
    active: int
    over_by: int


class PolicyPreviewShown(Shown):
    """`governs` is false where another policy, of higher priority, would count instead."""

    governs: bool
    governed_by: str | None
    total_capacity: int
    allocated: int
    tenants: list[ShareChangeShown]


class QuotaPreviewShown(Shown):
    """How many jobs may run at once, before and after (null: no limit), and what runs beyond that."""

    tenant: str
    job_type: str
    before: int | None
    after: int | None
    active: int
    over_by: int


class PolicyChanges(Governed):
    """What is to be different; the rest stays."""

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


class PolicyShown(Shown):
    policy_id: str
    name: str
    strategy: StrategyWord
    total_capacity: int
    minimum_per_tenant: int
    maximum_per_tenant: int | None
    reserved_capacity: int
    allow_burst: bool
    burst_multiplier: float
    priority: int
    job_type: str | None
    enabled: bool
    version: int
    actor: str
    reason: str | None = Field(serialization_alias="quotaReason")
    ticket: str | None = Field(serialization_alias="quotaTicket")
    created_at: Moment
    updated_at: Moment


class PolicyList(Shown):
    """Policies, the highest priority first."""

    policies: list[PolicyShown]


class AllocationShown(Shown):
    """A tenant's share; without a policy nothing is shared, and `share` is null."""

    tenant: str
    job_type: str
    policy_id: str | None
    strategy: str | None
    total_capacity: int | None
    share: int | None
    burst_limit: int | None
    active_tenants: int


class QuotaAsked(Given):
    job_type: Name
    requested_amount: Annotated[int, Field(ge=1, le=10**9)]


class QuotaGivenBack(Given):
    job_type: Name
    released_amount: Annotated[int, Field(ge=1, le=10**9)]


class GrantShown(Shown):
    policy_id: str | None
    granted: int
    burst_used: int
    held: int


class ReleaseShown(Shown):
    policy_id: str | None
    released: int
    held: int


class QuotaStatusShown(Shown):
    """Both limits; the smaller one counts (`effective`, null: no limit)."""

    tenant: str
    job_type: str
    quotas: list[QuotaShown]
    allocation: AllocationShown
    effective: int | None
    active: int
    held: int
    burst_used: int
    starts_left: int | None
    next_start_at: Moment | None


class TenantUseShown(Shown):
    tenant: str
    share: int
    active: int
    held: int
    burst_used: int


class PolicySummaryShown(Shown):
    policy_id: str
    name: str
    strategy: str
    total_capacity: int
    allocated: int
    active: int
    held: int
    tenants: list[TenantUseShown]


class SummaryShown(Shown):
    policies: list[PolicySummaryShown]


class SchedulableShown(Shown):
    """Whether a job could start now; else what blocks, and until when."""

    allowed: bool = Field(serialization_alias="canSchedule")
    blocked_by: str | None
    until: Moment | None
    words: str | None = Field(serialization_alias="message")
