"""The application: routes, doors and the ledger behind them, put together from parts.

Knows no settings and opens nothing. Promises: no page of it loads anything from elsewhere.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from DocsToKG.Orchestrator.api import openapi as discovery
from DocsToKG.Orchestrator.api.audit_export import AuditExporter
from DocsToKG.Orchestrator.api.auth.admission import Admission
from DocsToKG.Orchestrator.api.errors import http_error_response, tell, validation_error_response
from DocsToKG.Orchestrator.api.idempotency import IdempotencyKeys
from DocsToKG.Orchestrator.api.long_polling import LongPolling
from DocsToKG.Orchestrator.api.middleware import HOME, EdgeMiddleware
from DocsToKG.Orchestrator.api.observability.metrics import Metrics
from DocsToKG.Orchestrator.api.observability.spans import JobSpans
from DocsToKG.Orchestrator.api.routes import (
    actions,
    audit,
    backfills,
    circuit_breakers,
    dashboard,
    graphql,
    health,
    jobs,
    leases,
    metrics,
    operations,
    pack_logs,
    pack_runs,
    quota_governance,
    streams,
    throttles,
    whoami,
    workers,
)
from DocsToKG.Orchestrator.api.routing import Doors, Sign
from DocsToKG.Orchestrator.api.services import Services
from DocsToKG.Orchestrator.api.sse import EventStreams
from DocsToKG.Orchestrator.console import files as console_files

RESOURCES = (
    jobs.resource,
    actions.resource,
    leases.resource,
    dashboard.resource,
    circuit_breakers.resource,
    quota_governance.resource,
    throttles.resource,
    operations.resource,
    workers.resource,
    backfills.resource,
    pack_runs.resource,
    pack_logs.resource,
    streams.resource,
    graphql.resource,
    metrics.resource,
    whoami.resource,
    audit.resource,
)


def build_app(
    *,
    services: Services,
    admission: Admission,
    streams: EventStreams | None = None,
    body_bytes: int = 1_048_576,
    sign: Sign = bytes,
    audit_exporter: AuditExporter | None = None,
    spans: JobSpans | None = None,
) -> FastAPI:
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
    app.include_router(health.router)
    app.include_router(discovery.router)
    app.include_router(console_files.router)
    app.add_middleware(EdgeMiddleware, body_bytes=body_bytes)
    app.state.doors = Doors(admission=admission, idempotency=IdempotencyKeys(services.answers), services=services)
    app.state.streams = streams = streams or EventStreams(services.feed, services.ledger)
    app.state.long_polling = LongPolling(services.ledger)
    app.state.metrics = Metrics(services.ledger, services.tally, streams.log_readers)
    app.state.sign = sign
    app.state.audit_exporter = audit_exporter
    app.state.spans = spans or JobSpans()
    return app


def _handlers() -> dict[Any, Any]:
    return {
        HTTPException: http_error_response,
        RequestValidationError: validation_error_response,
        Exception: tell,
    }
