"""For operators: incidents, maintenance, tenants."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import Field

from DocsToKG.Orchestrator.api.auth.bearer import TENANT
from DocsToKG.Orchestrator.api.etags import tagged, version_wanted
from DocsToKG.Orchestrator.api.routes.quota_shapes import Governed
from DocsToKG.Orchestrator.api.routing import Answer, Context, Resource
from DocsToKG.Orchestrator.api.schemas import Explained, Given, Moment, Page, PageSize, PageToken, Shown
from DocsToKG.Orchestrator.control.incidents import IncidentView

resource = Resource("operations")
IncidentPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
TenantPath = Annotated[str, Path(pattern=f"^{TENANT.pattern}$")]
StateWord = Literal["open", "acknowledged", "resolved"]


class IncidentShown(Shown):
    incident_id: str
    tenant: str
    source: str
    severity: str
    cause: str
    state: StateWord
    count: int
    first_at: Moment
    last_at: Moment
    actor: str | None
    reason: str | None
    ticket: str | None
    updated_at: Moment
    version: int


class IncidentList(Page):
    """Incidents, the last one first."""

    incidents: list[IncidentShown]


class IncidentRequest(Given):
    """Something that operators must know of; it joins what is known of the source and not resolved."""

    source: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$")]
    severity: Literal["info", "warning", "error", "critical"] = "warning"
    cause: Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$")]


class MaintenanceShown(Shown):
    on: bool
    actor: str | None
    reason: str | None
    since: Moment | None


class MaintenanceRequest(Explained):
    on: bool


class TenantShown(Shown):
    """A tenant as the sharing sees it. Version 0: nothing was ever written of it."""

    tenant: str
    weight: int
    priority: int
    fixed: int | None
    blocked: bool
    blocked_reason: str | None
    version: int
    updated_at: Moment | None


class TenantList(Shown):
    tenants: list[TenantShown]


class WeightRequest(Governed):
    weight: Annotated[int, Field(ge=1, le=10**9)] = 1
    priority: Annotated[int, Field(ge=-(10**9), le=10**9)] = 0
    fixed: Annotated[int, Field(ge=0, le=10**9)] | None = None


@resource.get("/incidents")
def list_incidents(
    ctx: Context,
    state: Annotated[StateWord | None, Query()] = None,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[PageToken, Query()] = None,
) -> IncidentList:
    """List the tenant's incidents, the last one first."""
    page = ctx.services.incidents.list(ctx.tenant, state, page_size=page_size, page_token=page_token)
    incidents = [IncidentShown.model_validate(each) for each in page.incidents]
    return IncidentList(incidents=incidents, next_page_token=page.next_page_token)


@resource.get("/incidents/{incident_id}", response_model=IncidentShown)
def get_incident(ctx: Context, incident_id: IncidentPath) -> Answer:
    """Show one incident."""
    return _incident(ctx.services.incidents.get(ctx.tenant, incident_id))


@resource.post("/incidents", status=201)
def raise_incident(ctx: Context, body: IncidentRequest) -> IncidentShown:
    """Tell operators of something."""
    raised = ctx.services.incidents.raise_(ctx.tenant, body.source, body.severity, body.cause)
    return IncidentShown.model_validate(raised)


@resource.post("/incidents/{incident_id}/acknowledge", response_model=IncidentShown)
def acknowledge_incident(ctx: Context, incident_id: IncidentPath, body: Explained | None = None) -> Answer:
    """Say that somebody looks at it."""
    wanted = version_wanted(ctx)
    return _incident(ctx.services.incidents.acknowledge(ctx.tenant, incident_id, **ctx.decision, if_version=wanted))


@resource.post("/incidents/{incident_id}/resolve", response_model=IncidentShown)
def resolve_incident(ctx: Context, incident_id: IncidentPath, body: Explained | None = None) -> Answer:
    """Say that it is over; what happens from now on is a new one."""
    wanted = version_wanted(ctx)
    return _incident(ctx.services.incidents.resolve(ctx.tenant, incident_id, **ctx.decision, if_version=wanted))


@resource.get("/maintenance")
def get_maintenance(ctx: Context) -> MaintenanceShown:
    """Say whether leasing is halted."""
    return MaintenanceShown.model_validate(ctx.services.maintenance.status())


@resource.put("/maintenance")
def set_maintenance(ctx: Context, body: MaintenanceRequest) -> MaintenanceShown:
    """Halt leasing everywhere, or let it go on; renewals, completions and reading always go on."""
    switch = ctx.services.maintenance.on if body.on else ctx.services.maintenance.off
    return MaintenanceShown.model_validate(switch(**ctx.decision))


@resource.get("/tenants")
def list_tenants(ctx: Context, blocked: Annotated[bool | None, Query()] = None) -> TenantList:
    """List the tenants of which something was written."""
    return TenantList(tenants=[TenantShown.model_validate(each) for each in ctx.services.tenants.list(blocked)])


@resource.get("/tenants/{name}", response_model=TenantShown)
def get_tenant(ctx: Context, name: TenantPath) -> Answer:
    """Show one tenant."""
    tenant = ctx.services.tenants.get(name)
    return tagged(TenantShown.model_validate(tenant), tenant.version)


@resource.post("/tenants/{name}/block")
def block_tenant(ctx: Context, name: TenantPath, body: Explained | None = None) -> TenantShown:
    """Lease none of a tenant's jobs, and take no new ones."""
    return TenantShown.model_validate(ctx.services.tenants.block(name, **ctx.decision))


@resource.post("/tenants/{name}/unblock")
def unblock_tenant(ctx: Context, name: TenantPath, body: Explained | None = None) -> TenantShown:
    """Let a tenant work again."""
    return TenantShown.model_validate(ctx.services.tenants.unblock(name, **ctx.decision))


@resource.put("/tenants/{name}/weight", response_model=TenantShown)
def weigh_tenant(ctx: Context, name: TenantPath, body: WeightRequest) -> Answer:
    """Say how much a tenant counts for when places are shared."""
    tenant = ctx.services.tenants.weigh(
        name, weight=body.weight, priority=body.priority, fixed=body.fixed, **ctx.decision,
        if_version=version_wanted(ctx),
    )  # fmt: skip
    return tagged(TenantShown.model_validate(tenant), tenant.version)


def _incident(incident: IncidentView) -> Answer:
    return tagged(IncidentShown.model_validate(incident), incident.version)
