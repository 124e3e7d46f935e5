"""Where spans and figures go: to OpenTelemetry's providers when there are any, nowhere otherwise, and nothing fails.

Providers are those set for the whole process (by `opentelemetry-instrument` or by hand), or our own that send to a
collector (`send_to`). The library is imported only when one of the two is so: a run that nobody watches never loads it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.telemetry.metrics import METRICS, Gauges, Meters, Metric, Reading
from DocsToKG.Orchestrator.tracing import COLLECTOR_S, is_set, spans_to, tracer_of_process

_INSTRUMENTATION = "docstokg.contentdownload"
_FLUSH_MS = 5_000


class Providers(NamedTuple):
    """Where spans and figures go; None where nobody wants them. `observation` makes a gauge's reading."""

    tracer: Any | None = None
    meter: Any | None = None
    observation: Callable[[float, Mapping[str, str]], Any] = lambda value, labels: (value, labels)
    are_ours: bool = False  # made for this run, and gone with it

    def __bool__(self) -> bool:
        return self.tracer is not None or self.meter is not None


def global_providers() -> Providers:
    """Those that were set for the whole process. Whoever set one has loaded the library."""
    metrics = sys.modules.get("opentelemetry.metrics")
    tracer, meter = tracer_of_process(_INSTRUMENTATION), None
    if metrics is not None and is_set(metrics.get_meter_provider()):
        meter = metrics.get_meter(_INSTRUMENTATION)
    return Providers(tracer, meter, metrics.Observation) if metrics is not None else Providers(tracer)


@contextlib.contextmanager
def send_to(endpoint: str, *, about: Mapping[str, str], every_s: float = 10.0) -> Iterator[Providers]:
    """Providers of our own that send to the collector at `endpoint` by OTLP over HTTP, in the background. A collector
    that is away costs its figures and a bounded wait at the end, never the run."""
    with contextlib.ExitStack() as stack:
        try:
            tracers = stack.enter_context(spans_to(endpoint, about=about))
            meters = _meters_to(endpoint, about, every_s)
        except ImportError as error:
            raise ConfigError(
                f"telemetry.otlp_endpoint needs {error.name}; install it with: pip install 'docstokg[otel]'"
            ) from None
        observation = import_module("opentelemetry.metrics").Observation
        try:
            yield Providers(tracers.get_tracer(_INSTRUMENTATION), meters.get_meter(_INSTRUMENTATION), observation, True)
        finally:
            with contextlib.suppress(Exception):
                meters.shutdown(timeout_millis=_FLUSH_MS)


def _meters_to(endpoint: str, about: Mapping[str, str], every_s: float) -> Any:
    sdk = import_module("opentelemetry.sdk.metrics")
    figures = import_module("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    reader = import_module("opentelemetry.sdk.metrics.export").PeriodicExportingMetricReader(
        figures.OTLPMetricExporter(endpoint=f"{endpoint.rstrip('/')}/v1/metrics", timeout=COLLECTOR_S),
        export_interval_millis=every_s * 1000,
    )
    resource = import_module("opentelemetry.sdk.resources").Resource.create(dict(about))
    return sdk.MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)


@lru_cache(maxsize=16)
def figures_of(meter: Any, observation: Callable[[float, Mapping[str, str]], Any]) -> tuple[Meters, Gauges]:
    """The same for the same meter: it knows a gauge by its name, keeps the first and takes none away."""
    meters = OtelMeters(meter, observation)
    return meters, Gauges(meters)


class OtelMeters:
    """Figures into the instruments of an OpenTelemetry meter."""

    def __init__(self, meter: Any, observation: Callable[[float, Mapping[str, str]], Any]) -> None:
        self._meter = meter
        self._observation = observation
        self._instruments: dict[str, Any] = {}
        for metric in METRICS:
            if metric.kind == "counter":
                self._instruments[metric.name] = meter.create_counter(metric.name, description=metric.text)
            elif metric.kind == "histogram":
                self._instruments[metric.name] = meter.create_histogram(
                    metric.name, description=metric.text, explicit_bucket_boundaries_advisory=metric.buckets
                )

    def add(self, metric: Metric, amount: int = 1, **labels: str) -> None:
        self._instruments[metric.name].add(amount, labels)

    def record(self, metric: Metric, value: float, **labels: str) -> None:
        self._instruments[metric.name].record(value, labels)

    def observe(self, metric: Metric, read: Callable[[], Iterable[Reading]]) -> None:
        def answer(options: Any) -> list[Any]:
            return [self._observation(value, labels) for value, labels in read()]

        create = self._meter.create_observable_up_down_counter if metric.is_sum else self._meter.create_observable_gauge
        create(metric.name, callbacks=[answer], description=metric.text)
