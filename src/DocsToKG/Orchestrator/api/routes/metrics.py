"""Figures for Prometheus."""

from __future__ import annotations

from starlette.responses import Response

from DocsToKG.Orchestrator.api.observability.metrics import MEDIA_TYPE, Metrics
from DocsToKG.Orchestrator.api.routing import Context, Resource

resource = Resource("metrics")


@resource.get(
    "/metrics",
    responses={200: {"description": "Prometheus text", "content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
)
def read_metrics(ctx: Context) -> Response:
    """Show the figures of this instance and the depth of all queues, for Prometheus."""
    metrics: Metrics = ctx.request.app.state.metrics
    return Response(metrics.page(), media_type=MEDIA_TYPE)
