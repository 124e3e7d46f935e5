"""Where spans and figures go: to OpenTelemetry when it is installed, nowhere otherwise, and nothing fails.

The library is imported when a run begins, never at start-up. Which exporter is behind it is the caller's business:
the providers are those that were set for the whole process, by `opentelemetry-instrument` or by hand.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol, cast

from DocsToKG.ContentDownload.telemetry.metrics import METRICS, Gauges, Meters, Metric, Reading

_INSTRUMENTATION = "docstokg.contentdownload"


class Span(Protocol):
    """The part of an OpenTelemetry span that this package uses."""

    def set_attribute(self, key: str, value: Any) -> None: ...

    def add_event(self, name: str, attributes: Mapping[str, Any] | None = None) -> None: ...

    def record_exception(self, exception: BaseException) -> None: ...

    def end(self, end_time: int | None = None) -> None: ...


class Tracer(Protocol):
    """The part of an OpenTelemetry tracer that this package uses. Times are Unix nanoseconds."""

    def start_as_current_span(
        self, name: str, *, attributes: Mapping[str, Any] | None = None
    ) -> AbstractContextManager[Span]: ...

    def start_span(
        self, name: str, *, attributes: Mapping[str, Any] | None = None, start_time: int | None = None
    ) -> Span: ...


class NoSpan:
    """Forgets everything."""

    def set_attribute(self, key: str, value: Any) -> None:
        return None

    def add_event(self, name: str, attributes: Mapping[str, Any] | None = None) -> None:
        return None

    def record_exception(self, exception: BaseException) -> None:
        return None

    def end(self, end_time: int | None = None) -> None:
        return None


class NoTracer:
    """Gives spans that forget everything."""

    def start_as_current_span(
        self, name: str, *, attributes: Mapping[str, Any] | None = None
    ) -> AbstractContextManager[Span]:
        return contextlib.nullcontext(NoSpan())

    def start_span(
        self, name: str, *, attributes: Mapping[str, Any] | None = None, start_time: int | None = None
    ) -> Span:
        return NoSpan()


def tracer() -> Tracer:
    """The tracer of this package: OpenTelemetry's when it is installed."""
    try:
        trace = import_module("opentelemetry.trace")
    except ImportError:
        return NoTracer()
    return cast(Tracer, trace.get_tracer(_INSTRUMENTATION))


def figures() -> tuple[Meters, Gauges] | None:
    """Where the figures of this process go, and its gauges; None without OpenTelemetry."""
    try:
        library = import_module("opentelemetry.metrics")
    except ImportError:
        return None
    return figures_of(library.get_meter(_INSTRUMENTATION), library.Observation)


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
        makers = {"counter": meter.create_counter, "histogram": meter.create_histogram}
        self._instruments: dict[str, Any] = {
            metric.name: makers[metric.kind](metric.name, description=metric.text)
            for metric in METRICS
            if metric.kind in makers
        }

    def add(self, metric: Metric, amount: int = 1, **labels: str) -> None:
        self._instruments[metric.name].add(amount, labels)

    def record(self, metric: Metric, value: float, **labels: str) -> None:
        self._instruments[metric.name].record(value, labels)

    def observe(self, metric: Metric, read: Callable[[], Iterable[Reading]]) -> None:
        def answer(options: Any) -> list[Any]:
            return [self._observation(value, labels) for value, labels in read()]

        self._meter.create_observable_gauge(metric.name, callbacks=[answer], description=metric.text)
