"""Is the service alive, and can it reach its ledger? The only routes, with discovery, that need no token."""

from __future__ import annotations

from typing import Literal

import anyio
import anyio.to_thread
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from DocsToKG.Orchestrator.api.routing import Doors
from DocsToKG.Orchestrator.api.schemas import Shown
from DocsToKG.Orchestrator.errors import LedgerError

router = APIRouter(tags=["health"])
_PATIENCE_S = 5.0


class Health(Shown):
    status: Literal["ok", "unavailable", "draining"]


@router.get("/healthz", operation_id="health", summary="Say that the process lives.")
async def health() -> Health:
    return Health(status="ok")


@router.get(
    "/readyz",
    operation_id="ready",
    summary="Say whether the ledger can be used.",
    response_model=Health,
    responses={503: {"model": Health, "description": "The ledger cannot be used, or the service is ending"}},
)
async def ready(request: Request) -> JSONResponse:
    doors: Doors = request.app.state.doors
    if getattr(request.app.state, "draining", False):
        return JSONResponse({"status": "draining"}, 503)
    try:
        with anyio.fail_after(_PATIENCE_S):
            await anyio.to_thread.run_sync(doors.services.ledger.is_paused, abandon_on_cancel=True)
    except (LedgerError, TimeoutError):
        return JSONResponse({"status": "unavailable"}, 503)
    return JSONResponse({"status": "ok"})
