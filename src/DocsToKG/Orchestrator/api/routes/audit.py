"""Audit bundles."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query
from starlette.responses import Response, StreamingResponse

from DocsToKG.Orchestrator.api.audit_export import chunks_of, opened_and_unlinked
from DocsToKG.Orchestrator.api.context import Context, RequestContext, Responses
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import ZonedTime
from DocsToKG.Orchestrator.audit.range_reader import Range

resource = Resource("audit")
BUNDLE: Responses = {
    200: {
        "description": "A signed bundle; verify it with `docstokg-orchestrator audit verify`",
        "content": {"application/zstd": {"schema": {"type": "string", "format": "binary"}}},
    }
}
From = Annotated[ZonedTime, Query(alias="from", description="Beginning, included.")]
To = Annotated[ZonedTime, Query(alias="to", description="End, not included; must be over.")]


@resource.get("/audit/export", responses=BUNDLE, response_class=Response)
def export_audit(ctx: Context, start: From, end: To) -> Response:
    """Export what happened to the tenant in a range of time, as a signed bundle (.tar.zst)."""
    return _bundle(ctx, start, end, ctx.tenant)


@resource.get("/audit/export/all", responses=BUNDLE, response_class=Response)
def export_audit_of_all(ctx: Context, start: From, end: To) -> Response:
    """Export what happened to every tenant in a range of time, as a signed bundle (.tar.zst)."""
    return _bundle(ctx, start, end, None)


def _bundle(ctx: RequestContext, start: datetime, end: datetime, tenant: str | None) -> Response:
    exporter = ctx.state.audit_exporter
    if exporter is None:
        raise Problem(404, "NOT_FOUND", "bundles are not exported here")
    made = exporter.write(Range(_ms(start), _ms(end), tenant))
    size, file = made.path.stat().st_size, opened_and_unlinked(made.path)
    headers = {
        "Content-Length": str(size),
        "Content-Disposition": 'attachment; filename="audit.tar.zst"',
        "X-Manifest-Digest": f"sha256:{made.manifest_sha256}",
    }
    return StreamingResponse(chunks_of(file), media_type="application/zstd", headers=headers)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
