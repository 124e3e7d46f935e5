"""The ASGI application: middleware and routes over the parts that bootstrap has put together.

Knows no settings and opens nothing.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from DocsToKG.Orchestrator.api import openapi
from DocsToKG.Orchestrator.api.context import AppState
from DocsToKG.Orchestrator.api.errors import error_response, http_error_response, validation_error_response
from DocsToKG.Orchestrator.api.middleware import HOME, EdgeMiddleware
from DocsToKG.Orchestrator.api.routes import (
    actions,
    audit,
    backfills,
    circuit_breakers,
    graphql,
    jobs,
    leases,
    operations,
    pack_logs,
    pack_runs,
    quota_governance,
    service,
    streams,
    throttles,
    workers,
)
from DocsToKG.Orchestrator.console import files as console

RESOURCES = (
    jobs.resource,
    actions.resource,
    leases.resource,
    circuit_breakers.resource,
    quota_governance.resource,
    throttles.resource,
    operations.resource,
    workers.resource,
    backfills.resource,
    pack_runs.resource,
    pack_logs.resource,
    streams.resource,
    streams.dashboard,
    graphql.resource,
    service.resource,
    audit.resource,
)


def build_app(state: AppState, *, body_bytes: int = 1_048_576) -> FastAPI:
    """The ASGI application over one ledger, which stays the caller's to close."""
    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=_handlers(),
    )
    for resource in RESOURCES:
        app.include_router(resource.router, prefix=HOME)
    app.include_router(pack_logs.sockets, prefix=HOME)
    app.include_router(service.router)
    app.include_router(openapi.router)
    app.include_router(console.router)
    app.add_middleware(EdgeMiddleware, body_bytes=body_bytes)
    app.state.api = state
    app.state.views = {name: view for resource in RESOURCES for name, view in resource.views.items()}
    return app


def _handlers() -> dict[Any, Any]:
    return {
        HTTPException: http_error_response,
        RequestValidationError: validation_error_response,
        Exception: error_response,
    }
