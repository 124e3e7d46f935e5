"""Where spans come from. Without OpenTelemetry installed every span is a no-op and nothing fails."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Protocol, cast

_INSTRUMENTATION = "docstokg.contentdownload"


class Span(Protocol):
    """The part of an OpenTelemetry span that this package uses."""

    def set_attribute(self, key: str, value: Any) -> None: ...

    def record_exception(self, exception: BaseException) -> None: ...


class Tracer(Protocol):
    """The part of an OpenTelemetry tracer that this package uses."""

    def start_as_current_span(
        self, name: str, *, attributes: Mapping[str, Any] | None = None
    ) -> AbstractContextManager[Span]: ...


class NoSpan:
    """Forgets everything."""

    def set_attribute(self, key: str, value: Any) -> None:
        return None

    def record_exception(self, exception: BaseException) -> None:
        return None


class NoTracer:
    """Gives spans that forget everything."""

    def start_as_current_span(
        self, name: str, *, attributes: Mapping[str, Any] | None = None
    ) -> AbstractContextManager[Span]:
        return contextlib.nullcontext(NoSpan())


def tracer() -> Tracer:
    """The tracer of this package: OpenTelemetry's when it is installed."""
    try:
        trace = import_module("opentelemetry.trace")
    except ImportError:
        return NoTracer()
    return cast(Tracer, trace.get_tracer(_INSTRUMENTATION))
