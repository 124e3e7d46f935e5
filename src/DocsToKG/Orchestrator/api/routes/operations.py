"""For operators: incidents, maintenance mode, tenants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import Field

from DocsToKG.Orchestrator.api.auth.bearer import TENANT
from DocsToKG.Orchestrator.api.context import Context
from DocsToKG.Orchestrator.api.routes.quota_governance import QuotaDecision
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import DecisionBody, Paging, RequestBody
from DocsToKG.Orchestrator.control.incidents import IncidentPage, IncidentView
from DocsToKG.Orchestrator.control.maintenance import MaintenanceStatus
from DocsToKG.Orchestrator.control.tenants import TenantView
from DocsToKG.Orchestrator.views import View

resource = Resource("operations")
IncidentPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
TenantPath = Annotated[str, Path(pattern=f"^{TENANT.pattern}$")]
StateWord = Literal["open", "acknowledged", "resolved"]
_ONE_LINE = r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$"


class IncidentRequest(RequestBody):
    """Something that operators must know of; it joins the open incident of the source, if there is one."""

    source: Annotated[str, Field(min_length=1, max_length=200, pattern=_ONE_LINE)]
    severity: Literal["info", "warning", "error", "critical"] = "warning"
    cause: Annotated[str, Field(min_length=1, max_length=500, pattern=_ONE_LINE)]


class MaintenanceRequest(DecisionBody):
    on: bool


@dataclass(frozen=True, slots=True)
class TenantList(View):
    tenants: Sequence[TenantView]


class WeightRequest(QuotaDecision):
    weight: Annotated[int, Field(ge=1, le=10**9)] = 1
    priority: Annotated[int, Field(ge=-(10**9), le=10**9)] = 0
    fixed: Annotated[int, Field(ge=0, le=10**9)] | None = None


@resource.get("/incidents")
def list_incidents(ctx: Context, paging: Paging, state: Annotated[StateWord | None, Query()] = None) -> IncidentPage:
    """List the tenant's incidents, the last one first."""
    return ctx.services.incidents.list(ctx.tenant, state, **paging)


@resource.get("/incidents/{incident_id}")
def get_incident(ctx: Context, incident_id: IncidentPath) -> IncidentView:
    """Show one incident."""
    return ctx.tagged(ctx.services.incidents.get(ctx.tenant, incident_id))


@resource.post("/incidents", status=201)
def raise_incident(ctx: Context, body: IncidentRequest) -> IncidentView:
    """Raise an incident for operators."""
    return ctx.services.incidents.raise_(ctx.tenant, body.source, body.severity, body.cause)


@resource.post("/incidents/{incident_id}/acknowledge")
def acknowledge_incident(ctx: Context, incident_id: IncidentPath, body: DecisionBody | None = None) -> IncidentView:
    """Say that an operator is at work on the incident."""
    incidents = ctx.services.incidents
    return ctx.tagged(incidents.acknowledge(ctx.tenant, incident_id, **ctx.decision, if_version=ctx.if_version))


@resource.post("/incidents/{incident_id}/resolve")
def resolve_incident(ctx: Context, incident_id: IncidentPath, body: DecisionBody | None = None) -> IncidentView:
    """Close the incident; what happens from now on is a new one."""
    incidents = ctx.services.incidents
    return ctx.tagged(incidents.resolve(ctx.tenant, incident_id, **ctx.decision, if_version=ctx.if_version))


@resource.get("/maintenance")
def get_maintenance(ctx: Context) -> MaintenanceStatus:
    """Say whether leasing is halted."""
    return ctx.services.maintenance.status()


@resource.put("/maintenance")
def set_maintenance(ctx: Context, body: MaintenanceRequest) -> MaintenanceStatus:
    """Halt leasing everywhere, or resume it; renewals, completions and reads always go on."""
    switch = ctx.services.maintenance.on if body.on else ctx.services.maintenance.off
    return switch(**ctx.decision)


@resource.get("/tenants")
def list_tenants(ctx: Context, blocked: Annotated[bool | None, Query()] = None) -> TenantList:
    """List the tenants that have settings of their own."""
    return TenantList(ctx.services.tenants.list(blocked))


@resource.get("/tenants/{name}")
def get_tenant(ctx: Context, name: TenantPath) -> TenantView:
    """Show one tenant."""
    return ctx.tagged(ctx.services.tenants.get(name))


@resource.post("/tenants/{name}/block")
def block_tenant(ctx: Context, name: TenantPath, body: DecisionBody | None = None) -> TenantView:
    """Lease none of a tenant's jobs, and take no new ones."""
    return ctx.services.tenants.block(name, **ctx.decision)


@resource.post("/tenants/{name}/unblock")
def unblock_tenant(ctx: Context, name: TenantPath, body: DecisionBody | None = None) -> TenantView:
    """Let a tenant work again."""
    return ctx.services.tenants.unblock(name, **ctx.decision)


@resource.put("/tenants/{name}/weight")
def weigh_tenant(ctx: Context, name: TenantPath, body: WeightRequest) -> TenantView:
    """Set the weight of a tenant when a pool is shared."""
    tenant = ctx.services.tenants.weigh(
        name, weight=body.weight, priority=body.priority, fixed=body.fixed, **ctx.decision,
        if_version=ctx.if_version,
    )  # fmt: skip
    return ctx.tagged(tenant)
