"""The service itself: is it alive, can it reach its ledger, what does it measure, and what may the caller do?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import anyio
import anyio.to_thread
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from DocsToKG.Orchestrator.api.auth.bearer import ANY
from DocsToKG.Orchestrator.api.auth.permissions import PERMISSIONS
from DocsToKG.Orchestrator.api.context import Context, Responses, state_of
from DocsToKG.Orchestrator.api.observability.metrics import MEDIA_TYPE
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.views import JsonFormat, View

router = APIRouter(tags=["health"])  # with discovery the only routes without a token
resource = Resource("service")
_READY_TIMEOUT_S = 5.0
_PROMETHEUS: Responses = {
    200: {"description": "Prometheus text", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


@dataclass(frozen=True, slots=True)
class Health(View):
    status: Annotated[str, JsonFormat(enum=["ok", "unavailable", "draining"])]


@dataclass(frozen=True, slots=True)
class CallerView(View):
    """The caller, as its token has it: `subject` is the name that the history has beside what it does, `tenant` that of
    this call (null when the token is for several and names none), `tenants` those that it may name (`*`: every one),
    `operations` what the token allows, by operationId."""

    subject: str
    scopes: Sequence[str]
    tenant: str | None
    tenants: Sequence[str]
    operations: Sequence[str]


@router.get("/healthz", operation_id="health", summary="Say that the process is alive.", response_model=Health)
async def health() -> JSONResponse:
    return JSONResponse({"status": "ok"})


@router.get(
    "/readyz",
    operation_id="ready",
    summary="Say whether the ledger can be used.",
    response_model=Health,
    responses={503: {"model": Health, "description": "The ledger cannot be used, or the service is stopping"}},
)
async def ready(request: Request) -> JSONResponse:
    state = state_of(request)
    if state.draining:
        return JSONResponse({"status": "draining"}, 503)
    try:
        with anyio.fail_after(_READY_TIMEOUT_S):
            await anyio.to_thread.run_sync(state.services.ledger.is_paused, abandon_on_cancel=True)
    except (LedgerError, TimeoutError):
        return JSONResponse({"status": "unavailable"}, 503)
    return JSONResponse({"status": "ok"})


@resource.get("/metrics", responses=_PROMETHEUS, response_class=Response)
def read_metrics(ctx: Context) -> Response:
    """Show the metrics of this instance and the depth of all queues, for Prometheus."""
    return Response(ctx.metrics.page(), media_type=MEDIA_TYPE)


@resource.get("/whoami")
def whoami(ctx: Context) -> CallerView:
    """Say whom the token stands for, and what it allows."""
    who = ctx.caller.principal
    reachable = {name: needed for name, needed in PERMISSIONS.items() if ANY in who.tenants or not needed.everyone}
    return CallerView(
        subject=who.subject,
        scopes=sorted(who.scopes),
        tenant=ctx.tenant or None,
        tenants=sorted(who.tenants),
        operations=sorted(name for name, needed in reachable.items() if needed.scopes <= who.scopes),
    )
