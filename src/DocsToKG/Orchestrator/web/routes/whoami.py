"""Who is the caller, for whom may it act, and what may it do? So that a console offers only what it can keep."""

from __future__ import annotations

from pydantic import Field

from DocsToKG.Orchestrator.web.auth import ANY
from DocsToKG.Orchestrator.web.permits import PERMITS
from DocsToKG.Orchestrator.web.serving import Asked, Resource
from DocsToKG.Orchestrator.web.shapes import Shown

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
def whoami(ask: Asked) -> CallerShown:
    """Say whom the token stands for, and what it allows."""
    who = ask.caller.principal
    reachable = {name: permit for name, permit in PERMITS.items() if ANY in who.tenants or not permit.everyone}
    return CallerShown(
        subject=who.subject,
        scopes=sorted(who.scopes),
        tenant=ask.tenant or None,
        tenants=sorted(who.tenants),
        operations=sorted(name for name, permit in reachable.items() if permit.scopes <= who.scopes),
    )
