"""How a route is made: a plain function becomes an endpoint that is guarded, runs in a thread and speaks JSON.

Knows the framework. Promises: no route without a permit; one change of thread for each request; every POST honours
`Idempotency-Key`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, TypeVar, get_type_hints

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic.alias_generators import to_camel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from DocsToKG.Orchestrator.api.auth.admission import Admission, Caller, CheckedRequest, with_reason
from DocsToKG.Orchestrator.api.auth.permissions import PERMISSIONS, Permission
from DocsToKG.Orchestrator.api.auth.rate_limit import RateLimitState
from DocsToKG.Orchestrator.api.context import RequestContext, Responses, state_of
from DocsToKG.Orchestrator.api.errors import Problem, error_response, http_error_response, validation_error_response
from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.api.schemas import json_bytes
from DocsToKG.Orchestrator.api.threads import in_thread
from DocsToKG.Orchestrator.ledger.control import SCOPE
from DocsToKG.Orchestrator.views import View

F = TypeVar("F", bound=Callable[..., Any])
ERRORS: dict[int, str] = {
    400: "Not JSON, or a reason is missing",
    401: "No valid token",
    403: "The token does not allow this",
    404: "Not found for this tenant",
    408: "The body did not arrive in time",
    409: "The request conflicts with the state of the resource",
    412: "The resource has changed since it was read (If-Match)",
    413: "The body is too large",
    415: "The body is not application/json",
    422: "A field is invalid",
    429: "Too many requests with this token",
    500: "Internal error",
    503: "The ledger cannot be used at the moment",
    504: "The ledger did not answer in time",
}
# Named, not modelled: the framework would build each model anew for every route. `openapi` adds the schemas of errors
# and of responses.
_ERROR_BODY = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorEnvelope"}}}
_ERROR_RESPONSES: Responses = {code: {"description": words, "content": _ERROR_BODY} for code, words in ERRORS.items()}


class GuardedRoute(APIRoute):
    """Admits the caller before the framework reads the request, and answers every error with the error envelope."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        permission = PERMISSIONS[self.operation_id or ""]
        known = _query_names(self.dependant)

        async def guarded(request: Request) -> Response:
            checked = CheckedRequest(request.scope, request.receive)
            try:
                response = await _admitted(checked, permission, known, handle)
            except RequestValidationError as error:
                response = await validation_error_response(checked, error)
            except HTTPException as error:
                response = await http_error_response(checked, error)
            except Exception as error:
                response = await error_response(checked, error)
            rate_limit: RateLimitState | None = request.scope.get("docstokg.standing")
            if rate_limit is not None:
                response.headers.update(rate_limit.headers())
            return response

        return guarded


async def _admitted(
    request: CheckedRequest,
    permission: Permission,
    known: frozenset[str],
    handle: Callable[[Request], Coroutine[Any, Any, Response]],
) -> Response:
    state = state_of(request)
    admission = state.admission
    caller = await admission.caller(request.headers, permission)
    _check_rate_limit(request, admission, caller)
    _refuse_unknown(request, known)
    await admission.body(request)
    caller = with_reason(caller, permission, request.headers, request.parsed)
    request.state.context = RequestContext(caller, request)
    key = request.headers.get("idempotency-key")
    work = partial(_by_right, permission, partial(handle, request))
    if key is not None and request.method == "POST":
        path, body = request.scope["path"], await request.body()
        work = partial(state.idempotency.once, caller, path, key, body, work, slots=admission.threads)
    return await admission.in_time(permission, work)


def _query_names(dependant: Dependant) -> frozenset[str]:
    """The parameters of a route's query, its own and those of what it depends on."""
    own = frozenset(field.alias for field in dependant.query_params)
    return own.union(*map(_query_names, dependant.dependencies))


def _refuse_unknown(request: Request, known: frozenset[str]) -> None:
    """Refuse unknown query parameters: a misspelled filter would otherwise be no filter at all."""
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        why = f"no such parameter; there are: {', '.join(sorted(known)) or 'none'}"
        raise RequestValidationError(
            [{"loc": ("query", name), "msg": why, "type": "extra_forbidden"} for name in unknown]
        )


async def _by_right(permission: Permission, work: Callable[[], Coroutine[Any, Any, Response]]) -> Response:
    """Run `work`; the history of what it decides records the scope that allowed it."""
    if permission.demand == "nothing":
        return await work()
    before = SCOPE.set(" ".join(sorted(permission.scopes)))
    try:
        return await work()
    finally:
        SCOPE.reset(before)


def _check_rate_limit(request: Request, admission: Admission, caller: Caller) -> None:
    rate_limit = admission.rate_limiter.take(caller.principal.token_id)
    request.scope["docstokg.standing"] = rate_limit
    if rate_limit.wait_s > 0:
        wait = {"Retry-After": str(max(1, round(rate_limit.wait_s + 0.5)))}
        raise Problem(429, "RATE_LIMITED", "too many requests with this token", headers=wait)


class _Routes(APIRouter):
    """Routes that are looked at only where the first word of an address is one of theirs: with more than a hundred
    routes, trying each in turn costs more than most answers."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.first_words: set[str] = set()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        asked = scope["path"].removeprefix(HOME).split("/", 2)
        return super().matches(scope) if len(asked) > 1 and asked[1] in self.first_words else (Match.NONE, {})


class Resource:
    """The routes of one resource."""

    def __init__(self, tag: str) -> None:
        self.router = _Routes(route_class=GuardedRoute, tags=[tag])
        self.views: dict[str, type[View]] = {}  # of responses, by operation

    def get(self, path: str, **more: Any) -> Callable[[F], F]:
        return self._route("GET", path, **more)

    def post(self, path: str, **more: Any) -> Callable[[F], F]:
        return self._route("POST", path, **more)

    def put(self, path: str, **more: Any) -> Callable[[F], F]:
        return self._route("PUT", path, **more)

    def delete(self, path: str, **more: Any) -> Callable[[F], F]:
        return self._route("DELETE", path, **more)

    def stream(self, path: str, *, responses: Responses) -> Callable[[F], F]:
        """A coroutine that answers with a stream of its own."""
        return self._route("GET", path, responses=responses, response_class=Response)

    def _route(
        self,
        method: str,
        path: str,
        *,
        operation: str | None = None,
        status: int = 200,
        responses: Responses | None = None,
        **more: Any,
    ) -> Callable[[F], F]:
        def add(function: F) -> F:
            name = operation or to_camel(function.__name__)
            view = get_type_hints(function).get("return")
            if isinstance(view, type) and issubclass(view, View):
                self.views[name] = view
            self.router.first_words.add(path.split("/", 2)[1])
            self.router.add_api_route(
                path,
                endpoint_of(function, status),
                methods=[method],
                operation_id=name,
                response_model=None,
                status_code=status,
                summary=(function.__doc__ or "").strip().partition("\n")[0],
                responses={**_ERROR_RESPONSES, **(responses or {})},
                **more,
            )
            return function

        return add


def endpoint_of(function: Callable[..., Any], status: int) -> Callable[..., Any]:
    """A coroutine that runs `function` in a thread, where the response is written too."""
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def awaited(**values: Any) -> Response:
            return _response(await function(**values), status, _context_of(values))

        return awaited

    @wraps(function)
    async def threaded(**values: Any) -> Response:
        ctx = _context_of(values)
        call = partial(_run, function, values, status, ctx)
        return await in_thread(call, ctx.state.admission.threads)

    return threaded


def _context_of(values: dict[str, Any]) -> RequestContext:
    return next(value for value in values.values() if isinstance(value, RequestContext))


def _run(function: Callable[..., Any], values: dict[str, Any], status: int, ctx: RequestContext) -> Response:
    return _response(function(**values), status, ctx)


def _response(value: View | Response | None, status: int, ctx: RequestContext) -> Response:
    if isinstance(value, Response):
        return value
    status = ctx.status or status
    if value is None:
        return Response(status_code=204 if status == 200 else status, headers=ctx.headers)
    return Response(ctx.state.sign(json_bytes(value)), status, headers=ctx.headers, media_type="application/json")
