"""The application: routes, doors and the ledger behind them, put together from parts.

Knows no settings and opens nothing. Promises: no page of it loads anything from elsewhere.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from DocsToKG.Orchestrator.web import console_files, discovery
from DocsToKG.Orchestrator.web.admission import Admission
from DocsToKG.Orchestrator.web.door import HOME, Door
from DocsToKG.Orchestrator.web.envelope import tell, tell_http, tell_validation
from DocsToKG.Orchestrator.web.exporting import Exporter
from DocsToKG.Orchestrator.web.feeds import Feeds
from DocsToKG.Orchestrator.web.meters import Meters
from DocsToKG.Orchestrator.web.repeats import Repeats
from DocsToKG.Orchestrator.web.rooms import Rooms
from DocsToKG.Orchestrator.web.routes import (
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
from DocsToKG.Orchestrator.web.serving import Doors, Sign
from DocsToKG.Orchestrator.web.spans import JobSpans
from DocsToKG.Orchestrator.web.waking import Waking

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
    rooms: Rooms,
    admission: Admission,
    feeds: Feeds | None = None,
    body_bytes: int = 1_048_576,
    sign: Sign = bytes,
    exporter: Exporter | None = None,
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
    app.add_middleware(Door, body_bytes=body_bytes)
    app.state.doors = Doors(admission=admission, repeats=Repeats(rooms.answers), rooms=rooms)
    app.state.feeds = feeds = feeds or Feeds(rooms.feed, rooms.ledger)
    app.state.waking = Waking(rooms.ledger)
    app.state.meters = Meters(rooms.ledger, rooms.tally, feeds.log_readers)
    app.state.sign = sign
    app.state.exporter = exporter
    app.state.spans = spans or JobSpans()
    return app


def _handlers() -> dict[Any, Any]:
    return {
        HTTPException: tell_http,
        RequestValidationError: tell_validation,
        Exception: tell,
    }
