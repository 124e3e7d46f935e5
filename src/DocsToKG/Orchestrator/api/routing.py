"""How a route is made: a plain function becomes an endpoint that is guarded, runs in a thread and speaks JSON.

Knows the framework. Promises: no route without a permit; one change of thread for each request; every POST honours
`Idempotency-Key`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial, wraps
from typing import Annotated, Any, TypedDict, TypeVar, get_type_hints

from fastapi import APIRouter, Depends
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from DocsToKG.Orchestrator.api.auth.admission import Admission, Caller, CheckedRequest, with_reason
from DocsToKG.Orchestrator.api.auth.permissions import PERMISSIONS, Permission
from DocsToKG.Orchestrator.api.auth.rate_limit import Standing
from DocsToKG.Orchestrator.api.errors import Problem, http_error_response, tell, validation_error_response
from DocsToKG.Orchestrator.api.idempotency import IdempotencyKeys
from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.api.observability.metrics import Metrics
from DocsToKG.Orchestrator.api.observability.spans import JobSpans
from DocsToKG.Orchestrator.api.services import Services
from DocsToKG.Orchestrator.api.threads import in_thread
from DocsToKG.Orchestrator.ledger.control import SCOPE

F = TypeVar("F", bound=Callable[..., Any])
Sign = Callable[[bytes], bytes]  # fills the signatures of a body in
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"description": "Not JSON, or a reason is missing"},
    401: {"description": "No token, or not a good one"},
    403: {"description": "The token does not allow this"},
    404: {"description": "No such thing for this tenant"},
    408: {"description": "The body did not arrive in time"},
    409: {"description": "What is asked does not fit what is there"},
    412: {"description": "It has changed since it was read (If-Match)"},
    413: {"description": "The body is too large"},
    415: {"description": "The body is not application/json"},
    422: {"description": "A field is not as it must be"},
    429: {"description": "Asked too often"},
    500: {"description": "Something went wrong here"},
    503: {"description": "The ledger cannot be used at the moment"},
    504: {"description": "The ledger did not answer in time"},
}


# Named and not modelled: the framework would build each model anew for every route. `discovery` adds the schema.
_ERROR_BODY = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorEnvelope"}}}
_ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    code: {**words, "content": _ERROR_BODY} for code, words in ERRORS.items()
}


@dataclass(frozen=True, slots=True)
class Doors:
    """What the routes of one application share. Lies in `app.state.doors`."""

    admission: Admission
    idempotency: IdempotencyKeys
    services: Services


class Decision(TypedDict):
    actor: str
    reason: str
    ticket: str | None


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One admitted request: who asks, and what it can be asked of."""

    caller: Caller
    services: Services
    request: Request

    @property
    def tenant(self) -> str:
        return self.caller.tenant

    @property
    def metrics(self) -> Metrics:
        found: Metrics = self.request.app.state.metrics
        return found

    @property
    def spans(self) -> JobSpans:
        found: JobSpans = self.request.app.state.spans
        return found

    @property
    def decision(self) -> Decision:
        """Who decides, why, and by which ticket, as services take it."""
        who = self.caller
        return {"actor": who.actor, "reason": who.reason or "", "ticket": who.ticket}


async def _context(request: Request) -> RequestContext:
    ctx: RequestContext = request.state.ask
    return ctx


Context = Annotated[RequestContext, Depends(_context)]


class Answer:
    """A body with headers or a status of its own."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, body: BaseModel | None, *, status: int | None = None, headers: dict[str, str] | None = None):
        self.body, self.status, self.headers = body, status, headers or {}


class RawJson:
    """A body that is JSON already: a long list is written much faster than its form would be checked and written."""

    __slots__ = ("content",)

    def __init__(self, content: bytes) -> None:
        self.content = content


class GuardedRoute(APIRoute):
    """Admits the caller before the framework looks at the request, and tells every error as the API does."""

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
                response = await tell(checked, error)
            standing: Standing | None = request.scope.get("docstokg.standing")
            if standing is not None:
                response.headers.update(standing.headers())
            return response

        return guarded


async def _admitted(
    request: CheckedRequest,
    permission: Permission,
    known: frozenset[str],
    handle: Callable[[Request], Coroutine[Any, Any, Response]],
) -> Response:
    doors: Doors = request.app.state.doors
    admission = doors.admission
    caller = await admission.caller(request.headers, permission)
    _keep_to_rate(request, admission, caller)
    _refuse_unknown(request, known)
    await admission.body(request)
    caller = with_reason(caller, permission, request.headers, request.parsed)
    request.state.ask = RequestContext(caller, doors.services, request)
    key = request.headers.get("idempotency-key")
    work = partial(_by_right, permission, partial(handle, request))
    if key is not None and request.method == "POST":
        path, body = request.scope["path"], await request.body()
        work = partial(doors.idempotency.once, caller, path, key, body, work, slots=admission.threads)
    return await admission.in_time(permission, work)


def _query_names(dependant: Dependant) -> frozenset[str]:
    """The parameters of a route's query, its own and those of what it depends on."""
    own = frozenset(field.alias for field in dependant.query_params)
    return own.union(*map(_query_names, dependant.dependencies))


def _refuse_unknown(request: Request, known: frozenset[str]) -> None:
    """A filter that nobody knows would be no filter at all: whoever misspells one must hear of it."""
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        why = f"no such parameter; there are: {', '.join(sorted(known)) or 'none'}"
        raise RequestValidationError(
            [{"loc": ("query", name), "msg": why, "type": "extra_forbidden"} for name in unknown]
        )


async def _by_right(permission: Permission, work: Callable[[], Coroutine[Any, Any, Response]]) -> Response:
    """What is decided in `work` is written down with the scope that allowed it."""
    if permission.demand == "nothing":
        return await work()
    before = SCOPE.set(" ".join(sorted(permission.scopes)))
    try:
        return await work()
    finally:
        SCOPE.reset(before)


def _keep_to_rate(request: Request, admission: Admission, caller: Caller) -> None:
    standing = admission.rates.take(caller.principal.token_id)
    request.scope["docstokg.standing"] = standing
    if standing.wait_s > 0:
        wait = {"Retry-After": str(max(1, round(standing.wait_s + 0.5)))}
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

    def get(self, path: str, **more: Any) -> Callable[[F], F]:
        return self._route("GET", path, **more)

    def post(self, path: str, **more: Any) -> Callable[[F], F]:
        return self._route("POST", path, **more)

    def put(self, path: str, **more: Any) -> Callable[[F], F]:
        return self._route("PUT", path, **more)

    def delete(self, path: str, **more: Any) -> Callable[[F], F]:
        return self._route("DELETE", path, **more)

    def stream(self, path: str, *, responses: dict[int | str, dict[str, Any]]) -> Callable[[F], F]:
        """A coroutine that answers with a stream of its own."""
        return self._route("GET", path, responses=responses, response_class=Response)

    def _route(
        self,
        method: str,
        path: str,
        *,
        operation: str | None = None,
        status: int = 200,
        responses: dict[int | str, dict[str, Any]] | None = None,
        **more: Any,
    ) -> Callable[[F], F]:
        def add(function: F) -> F:
            model = more.pop("response_model", None) or _model_of(function)
            self.router.first_words.add(path.split("/", 2)[1])
            self.router.add_api_route(
                path,
                endpoint_of(function, status),
                methods=[method],
                operation_id=operation or to_camel(function.__name__),
                response_model=model,
                status_code=status,
                summary=(function.__doc__ or "").strip().partition("\n")[0],
                responses={**_ERROR_RESPONSES, **(responses or {})},
                **more,
            )
            return function

        return add


def _model_of(function: Callable[..., Any]) -> Any:
    found = get_type_hints(function).get("return")
    return None if found in (None, type(None), Response) else found


def endpoint_of(function: Callable[..., Any], status: int) -> Callable[..., Any]:
    """A coroutine that runs `function` in a thread, where the answer is written too."""
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def awaited(**values: Any) -> Response:
            request = next(value.request for value in values.values() if isinstance(value, RequestContext))
            return _response(await function(**values), status, request.app.state.sign)

        return awaited

    @wraps(function)
    async def threaded(**values: Any) -> Response:
        request = next(value.request for value in values.values() if isinstance(value, RequestContext))
        slots = request.app.state.doors.admission.threads
        sign = request.app.state.sign
        return await in_thread(partial(_run, function, values, status, sign), slots)

    return threaded


def _run(function: Callable[..., Any], values: dict[str, Any], status: int, sign: Sign) -> Response:
    return _response(function(**values), status, sign)


def _response(value: Any, status: int, sign: Sign = bytes) -> Response:
    if isinstance(value, Response):
        return value
    headers: dict[str, str] = {}
    if isinstance(value, Answer):
        status, headers, value = value.status or status, value.headers, value.body
    if isinstance(value, RawJson):
        return Response(sign(value.content), status, headers=headers, media_type="application/json")
    if value is None:
        return Response(status_code=204 if status == 200 else status, headers=headers)
    content = sign(value.model_dump_json(by_alias=True).encode())
    return Response(content, status, headers=headers, media_type="application/json")
