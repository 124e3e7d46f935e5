"""The outermost middleware: bounds on requests, the headers of every response, and both prefixes of the API.

Knows bytes, headers and paths. Does not know callers or jobs. Promises: no body and no header block is read beyond its
limit; both prefixes lead to the same handlers.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from DocsToKG.Orchestrator.api.errors import Problem, problem_response
from DocsToKG.Orchestrator.api.observability.trace_context import trace_id_of

HOME = "/api/v1/orchestrator"
SHORT = "/api"
_MAX_HEADERS = 100
_MAX_HEADER_BYTES = 16 * 1024
_MAX_TARGET_BYTES = 8 * 1024
_RESPONSE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class EdgeMiddleware:
    """The ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, body_bytes: int) -> None:
        self._app = app
        self._body_bytes = body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            scope["path"] = home_path(scope["path"])
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = home_path(scope["path"])
        sender = _with_headers(scope, send)
        refused = self._refused(scope)
        if refused is not None:
            await problem_response(Request(scope), refused)(scope, receive, sender)
            return
        await self._app(scope, _bounded(receive, self._body_bytes), sender)

    def _refused(self, scope: Scope) -> Problem | None:
        headers = scope["headers"]
        if len(headers) > _MAX_HEADERS or sum(len(n) + len(v) for n, v in headers) > _MAX_HEADER_BYTES:
            return Problem(431, "HEADERS_TOO_LARGE", "too many or too long header fields")
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _MAX_TARGET_BYTES:
            return Problem(414, "URI_TOO_LONG", "the address is too long")
        if "\x00" in scope["path"] or b"%00" in scope["query_string"]:
            return Problem(400, "BAD_REQUEST", "an address must not hold a zero byte")
        announced = next((value for name, value in headers if name == b"content-length"), b"0")
        if not announced.isdigit() or int(announced[:20]) > self._body_bytes:
            return _too_large(self._body_bytes)
        return None


def home_path(path: str) -> str:
    """`/api/jobs` and `/jobs/{id}/replay` are aliases of routes under the home prefix."""
    if path.startswith(SHORT + "/") and not path.startswith(SHORT + "/v1/"):
        return HOME + path[len(SHORT) :]
    if path.startswith("/jobs/") and path.endswith("/replay"):
        return HOME + path
    return path


def _bounded(receive: Receive, cap: int) -> Receive:
    read = 0

    async def bounded() -> Message:
        nonlocal read
        message = await receive()
        if message["type"] == "http.request":
            read += len(message.get("body", b""))
            if read > cap:
                raise _too_large(cap)
        return message

    return bounded


def _with_headers(scope: Scope, send: Send) -> Send:
    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message["headers"] = list(message.get("headers", ()))
            given = {name for name, _ in headers}
            headers.extend((name, value) for name, value in _RESPONSE_HEADERS if name not in given)
            headers.append((b"x-trace-id", trace_id_of(scope).encode()))
        await send(message)

    return sender


def _too_large(cap: int) -> Problem:
    return Problem(413, "BODY_TOO_LARGE", f"a body may have at most {cap} bytes", headers={"Connection": "close"})
