"""What a route works with: the parts of the application, and one admitted request.

Knows the framework's request. Does not know routes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, TypedDict, TypeVar, cast

from fastapi import Depends, FastAPI
from starlette.requests import HTTPConnection, Request

from DocsToKG.Orchestrator.api.audit_export import AuditExporter
from DocsToKG.Orchestrator.api.auth.admission import Admission, Caller
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.idempotency import IdempotencyKeys
from DocsToKG.Orchestrator.api.long_polling import LongPolling
from DocsToKG.Orchestrator.api.observability.metrics import Metrics
from DocsToKG.Orchestrator.api.observability.spans import JobSpans
from DocsToKG.Orchestrator.api.services import Services
from DocsToKG.Orchestrator.api.sse import EventStreams

_ETAG = re.compile(r'"v(\d{1,15})"')


@dataclass(slots=True)
class AppState:
    """The parts of one application; in `app.state.api`."""

    services: Services
    admission: Admission
    streams: EventStreams
    sign: Callable[[bytes], bytes] = bytes  # fills in the signatures of a response
    audit_exporter: AuditExporter | None = None
    spans: JobSpans = field(default_factory=JobSpans)
    draining: bool = False
    idempotency: IdempotencyKeys = field(init=False)
    long_polling: LongPolling = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        services = self.services
        self.idempotency = IdempotencyKeys(services.answers)
        self.long_polling = LongPolling(services.ledger)
        self.metrics = Metrics(services.ledger, self.streams.log_readers)


def state_of(of: FastAPI | HTTPConnection) -> AppState:
    app = of if isinstance(of, FastAPI) else of.app
    return cast(AppState, app.state.api)


class Decision(TypedDict):
    actor: str
    reason: str
    ticket: str | None


class Versioned(Protocol):
    @property
    def version(self) -> int: ...


V = TypeVar("V", bound=Versioned)


@dataclass(slots=True)
class RequestContext:
    """One admitted request; `status` and `headers` are those of its response, where they differ from the route's."""

    caller: Caller
    request: Request
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def tenant(self) -> str:
        return self.caller.tenant

    @property
    def state(self) -> AppState:
        return state_of(self.request)

    @property
    def services(self) -> Services:
        return self.state.services

    @property
    def metrics(self) -> Metrics:
        return self.state.metrics

    @property
    def spans(self) -> JobSpans:
        return self.state.spans

    @property
    def streams(self) -> EventStreams:
        return self.state.streams

    @property
    def decision(self) -> Decision:
        """Who decides, why, and by which ticket, as services take it."""
        who = self.caller
        return {"actor": who.actor, "reason": who.reason or "", "ticket": who.ticket}

    @property
    def if_version(self) -> int | None:
        """The version that the caller has read (`If-Match`); None where the request does not name one."""
        given = self.request.headers.get("if-match")
        if given is None or given.strip() == "*":
            return None
        found = _ETAG.fullmatch(given.strip())
        if found is None:
            raise Problem(412, "VERSION_CONFLICT", "If-Match is not an ETag that was handed out here")
        return int(found[1])

    def tagged(self, view: V) -> V:
        """The view as it is; its version goes out as `ETag`."""
        self.headers["ETag"] = f'"v{view.version}"'
        return view

    def deprecate(self, successor: str) -> None:
        # RFC 9745 and RFC 8288: since when, and what to use instead.
        self.headers |= {"Deprecation": "@1767225600", "Link": f'<{successor}>; rel="successor-version"'}


async def _context(request: Request) -> RequestContext:
    return cast(RequestContext, request.state.context)


Context = Annotated[RequestContext, Depends(_context)]
Responses = dict[int | str, dict[str, Any]]
