"""Who is the caller, for whom may it act, and what may it do? So that a console offers only what it can keep."""

from __future__ import annotations

from pydantic import Field

from DocsToKG.Orchestrator.api.auth.bearer import ANY
from DocsToKG.Orchestrator.api.auth.permissions import PERMISSIONS
from DocsToKG.Orchestrator.api.routing import Context, Resource
from DocsToKG.Orchestrator.api.schemas import Shown

resource = Resource("whoami")


class CallerShown(Shown):
    """The caller, as its token has it."""

    subject: str = Field(description="The name that stands in the history beside what it does.")
    scopes: list[str]
    tenant: str | None = Field(
        description="The tenant of this call; null when the token is for several and names none."
    )
    tenants: list[str] = Field(description="The tenants that it may name; `*` means every one.")
    operations: list[str] = Field(description="What the token may ask, by operationId.")


@resource.get("/whoami")
def whoami(ctx: Context) -> CallerShown:
    """Say whom the token stands for, and what it allows."""
    who = ctx.caller.principal
    reachable = {
        name: permission for name, permission in PERMISSIONS.items() if ANY in who.tenants or not permission.everyone
    }
    return CallerShown(
        subject=who.subject,
        scopes=sorted(who.scopes),
        tenant=ctx.tenant or None,
        tenants=sorted(who.tenants),
        operations=sorted(name for name, permission in reachable.items() if permission.scopes <= who.scopes),
    )
