"""Audit bundles."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response, StreamingResponse

from DocsToKG.Orchestrator.audit.reading import Range
from DocsToKG.Orchestrator.web.envelope import Problem
from DocsToKG.Orchestrator.web.exporting import Exporter, sent, taken
from DocsToKG.Orchestrator.web.serving import Ask, Asked, Resource
from DocsToKG.Orchestrator.web.shapes import GivenMoment

resource = Resource("audit")
BUNDLE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A signed bundle; prove it with `docstokg-orchestrator audit verify`",
        "content": {"application/zstd": {"schema": {"type": "string", "format": "binary"}}},
    }
}
From = Annotated[GivenMoment, Query(alias="from", description="Beginning, included.")]
To = Annotated[GivenMoment, Query(alias="to", description="End, not included; must be over.")]


@resource.get("/audit/export", responses=BUNDLE, response_class=Response)
def export_audit(ask: Asked, start: From, end: To) -> Response:
    """Export what happened to the tenant in a range of time, as a signed bundle (.tar.zst)."""
    return _bundle(ask, start, end, ask.tenant)


@resource.get("/audit/export/all", responses=BUNDLE, response_class=Response)
def export_audit_of_all(ask: Asked, start: From, end: To) -> Response:
    """Export what happened to every tenant in a range of time, as a signed bundle (.tar.zst)."""
    return _bundle(ask, start, end, None)


def _bundle(ask: Ask, start: datetime, end: datetime, tenant: str | None) -> Response:
    exporter: Exporter | None = ask.request.app.state.exporter
    if exporter is None:
        raise Problem(404, "NOT_FOUND", "bundles are not exported here")
    made = exporter.write(Range(_ms(start), _ms(end), tenant))
    size, file = made.path.stat().st_size, taken(made.path)
    headers = {
        "Content-Length": str(size),
        "Content-Disposition": 'attachment; filename="audit.tar.zst"',
        "X-Manifest-Digest": f"sha256:{made.manifest_sha256}",
    }
    return StreamingResponse(sent(file), media_type="application/zstd", headers=headers)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
