"""OpenTelemetry spans; the library is loaded only where a provider or collector is configured.

Knows providers, parents and W3C Trace Context. Does not know what is traced. Promises: without a provider or collector
the library is never loaded; an unavailable collector costs its spans, never the work.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

# A parent in the words of W3C Trace Context.
TRACEPARENT = r"^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$"
COLLECTOR_S = 3.0  # how long a collector may take to answer


def is_set(provider: object) -> bool:
    """Not one of the library's stand-ins, which drop everything."""
    return not type(provider).__name__.lstrip("_").startswith(("Proxy", "NoOp"))


def tracer_of_process(name: str) -> Any | None:
    """That of the provider set for the whole process, if one was. Whoever set one has loaded the library."""
    trace = sys.modules.get("opentelemetry.trace")
    return trace.get_tracer(name) if trace is not None and is_set(trace.get_tracer_provider()) else None


@contextlib.contextmanager
def spans_to(endpoint: str, *, about: Mapping[str, str]) -> Iterator[Any]:
    """A provider of our own that sends spans to the collector at `endpoint` by OTLP over HTTP, in the background.
    Raises ImportError where a part of the library is missing."""
    sdk = import_module("opentelemetry.sdk.trace")
    exporter = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter").OTLPSpanExporter(
        endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=COLLECTOR_S
    )
    # It would complain on standard error for every batch that a collector did not take.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    resource = import_module("opentelemetry.sdk.resources").Resource.create(dict(about))
    tracers = sdk.TracerProvider(resource=resource, shutdown_on_exit=False)
    batches = import_module("opentelemetry.sdk.trace.export").BatchSpanProcessor(exporter, schedule_delay_millis=1_000)
    tracers.add_span_processor(batches)
    try:
        yield tracers
    finally:
        with contextlib.suppress(Exception):
            tracers.shutdown()


class Tracing:
    """Spans whose parent is named, because works change threads and a thread changes works."""

    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer
        self._api = import_module("opentelemetry.trace")
        self._nothing = import_module("opentelemetry.context").Context()
        self._words = import_module("opentelemetry.trace.propagation.tracecontext").TraceContextTextMapPropagator()

    def start(
        self,
        name: str,
        parent: Any = None,
        attributes: Mapping[str, Any] | None = None,
        start_ns: int | None = None,
    ) -> Any:
        """A span below `parent`, which is a span or what `remote` gave; without one it begins a trace."""
        context = self._nothing
        if parent is not None:
            is_span = hasattr(parent, "get_span_context")
            context = self._api.set_span_in_context(parent, self._nothing) if is_span else parent
        return self._tracer.start_span(name, context=context, attributes=attributes, start_time=start_ns)

    def remote(self, traceparent: str | None) -> Any:
        """The parent that a producer named in the words of W3C Trace Context; what is no such words is none."""
        return None if not traceparent else self._words.extract({"traceparent": traceparent}, context=self._nothing)

    def traceparent(self, span: Any) -> str | None:
        carrier: dict[str, str] = {}
        self._words.inject(carrier, context=self._api.set_span_in_context(span, self._nothing))
        return carrier.get("traceparent")
