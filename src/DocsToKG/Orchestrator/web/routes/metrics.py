"""Figures for Prometheus."""

from __future__ import annotations

from starlette.responses import Response

from DocsToKG.Orchestrator.web.meters import MEDIA_TYPE, Meters
from DocsToKG.Orchestrator.web.serving import Asked, Resource

resource = Resource("metrics")


@resource.get(
    "/metrics",
    responses={200: {"description": "Prometheus text", "content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
)
def read_metrics(ask: Asked) -> Response:
    """Show the figures of this instance and the depth of all queues, for Prometheus."""
    meters: Meters = ask.request.app.state.meters
    return Response(meters.page(), media_type=MEDIA_TYPE)
