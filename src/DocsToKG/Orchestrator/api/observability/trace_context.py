"""Which request is this? Its trace id, the caller's own where it gave one (W3C Trace Context)."""

from __future__ import annotations

import os
import re
from collections.abc import MutableMapping
from typing import Any

from DocsToKG.Orchestrator.tracing import TRACEPARENT

_TRACEPARENT = re.compile(TRACEPARENT)
_KEY = "docstokg.trace"
_NOTHING = ("0" * 32, "0" * 16)


def trace_of(scope: MutableMapping[str, Any]) -> tuple[str, str]:
    """The trace id and the caller's span id, or a new pair; the same one for the whole request."""
    found: tuple[str, str] | None = scope.get(_KEY)
    if found is None:
        found = scope[_KEY] = _ids(_given(scope)) or (os.urandom(16).hex(), os.urandom(8).hex())
    return found


def trace_id_of(scope: MutableMapping[str, Any]) -> str:
    return trace_of(scope)[0]


def trace_context_of(scope: MutableMapping[str, Any]) -> str:
    """The `traceparent` that a job submitted by this request carries to its worker."""
    trace_id, span_id = trace_of(scope)
    return f"00-{trace_id}-{span_id}-01"


def given_context(scope: MutableMapping[str, Any]) -> str | None:
    """The caller's own `traceparent`, where it gave a good one."""
    match = _given(scope)
    return None if match is None else match[0]


def go_on_as(scope: MutableMapping[str, Any], traceparent: str | None) -> None:
    """From here on the request is known by a span of ours."""
    scope[_KEY] = _ids(_TRACEPARENT.fullmatch(traceparent or "")) or trace_of(scope)


def _ids(match: re.Match[str] | None) -> tuple[str, str] | None:
    return None if match is None else (match[1], match[2])


def _given(scope: MutableMapping[str, Any]) -> re.Match[str] | None:
    for name, value in scope.get("headers", ()):
        if name == b"traceparent":
            match = _TRACEPARENT.fullmatch(value.decode("latin-1").strip().lower())
            return match if match is not None and match[1] != _NOTHING[0] and match[2] != _NOTHING[1] else None
    return None
