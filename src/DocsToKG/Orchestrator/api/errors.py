"""Error responses: `{"error": {"code", "message", "trace_id", "details"?}}`, whatever went wrong.

Knows which error of the ledger is which status. Promises: an unexpected error shows only its trace id, and every error
response has this form.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from DocsToKG.Orchestrator import errors
from DocsToKG.Orchestrator.api.observability.trace_context import trace_id_of

_log = logging.getLogger("DocsToKG.Orchestrator.api")
_MAX_DETAILS = 20


class ErrorBody(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "code": "NOT_FOUND", "message": "no job 7 in this ledger", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    }]})  # fmt: skip
    code: str = Field(description="A word for programs.")
    message: str = Field(description="A sentence for people.")
    trace_id: str = Field(description="Names this request in the service's log.")
    details: list[dict[str, Any]] | None = Field(default=None, description="Where there is more than one thing to say.")


class ErrorEnvelope(BaseModel):
    """Every error."""

    error: ErrorBody


class Problem(Exception):
    """The request is answered with this error. Raised in the API package alone."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        details: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers, self.details = dict(headers or {}), details


# The first class that fits, from the most particular.
_STATUS: Mapping[type[Exception], tuple[int, str]] = {
    errors.LeaseLost: (409, "LEASE_LOST"),
    errors.NotFound: (404, "NOT_FOUND"),
    errors.BadJob: (422, "NOT_ACCEPTED"),
    errors.BadPage: (400, "BAD_PAGE_TOKEN"),
    errors.Conflict: (409, "CONFLICT"),
    errors.Refused: (409, "REFUSED"),
    errors.LedgerBusy: (503, "BUSY"),
    errors.LedgerClosed: (503, "CLOSING"),
    errors.LedgerUnusable: (503, "LEDGER_UNUSABLE"),
    errors.LedgerError: (503, "LEDGER_ERROR"),
}
_QUIET = frozenset({errors.LedgerUnusable, errors.LedgerError})  # their words may name files and servers


def problem_of(error: Exception) -> Problem | None:
    """The error response for an error of the ledger; None for an unexpected error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, OverflowError):
        return Problem(422, "VALIDATION_FAILED", "a number is too large")
    for kind in type(error).__mro__:
        if kind in _STATUS:
            status, code = _STATUS[kind]
            words = "the ledger cannot be used at the moment" if kind in _QUIET else str(error)
            return Problem(status, code, words, headers={"Retry-After": "1"} if status == 503 else None)
    return None


def problem_response(request: Request, problem: Problem) -> Response:
    body: dict[str, Any] = {
        "code": problem.code,
        "message": problem.message[:1000],
        "trace_id": trace_id_of(request.scope),
    }
    if problem.details:
        body["details"] = problem.details[:_MAX_DETAILS]
    return Response(
        orjson.dumps({"error": body}), problem.status, headers=problem.headers, media_type="application/json"
    )


async def error_response(request: Request, error: Exception) -> Response:
    """For every exception that leaves a route."""
    problem = problem_of(error)
    if isinstance(error, errors.Conflict) and error.version is not None and "if-match" in request.headers:
        problem = Problem(412, "VERSION_CONFLICT", str(error), headers={"ETag": f'"v{error.version}"'})
    if problem is None:
        _log.error("request failed", exc_info=error, extra={"trace_id": trace_id_of(request.scope)})
        problem = Problem(500, "INTERNAL", "internal error; the log has more under this trace id")
    elif problem.code.startswith("LEDGER"):
        _log.error("ledger: %s", error, extra={"trace_id": trace_id_of(request.scope)})
    return problem_response(request, problem)


async def http_error_response(request: Request, error: HTTPException) -> Response:
    """For what the framework refuses: an unknown path or method, a body that it cannot read."""
    try:
        status = HTTPStatus(error.status_code)
        code, words = status.name, status.phrase.lower()
    except ValueError:
        code, words = "HTTP_ERROR", "the request was refused"
    headers = {k: v for k, v in (error.headers or {}).items() if k.lower() in ("allow", "retry-after")}
    return problem_response(request, Problem(error.status_code, code, words, headers=headers))


async def validation_error_response(request: Request, error: RequestValidationError) -> Response:
    """For an invalid request: names the field and the reason, not the value, which may be secret or long."""
    details = [
        {"where": ".".join(str(part)[:64] for part in item["loc"][:12]), "why": str(item["msg"])[:300]}
        for item in error.errors()[:_MAX_DETAILS]
    ]
    problem = Problem(422, "VALIDATION_FAILED", "the request does not fit the interface", details=details)
    return problem_response(request, problem)
