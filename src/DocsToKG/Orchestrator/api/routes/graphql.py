"""GraphQL over HTTP: queries by POST, subscriptions as Server-Sent Events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from fastapi.sse import format_sse_event
from graphql import GraphQLError, OperationType
from pydantic import ConfigDict, Field
from starlette.responses import Response

from DocsToKG.Orchestrator.api.context import Context, RequestContext
from DocsToKG.Orchestrator.api.errors import problem_of
from DocsToKG.Orchestrator.api.graphql.limits import checked
from DocsToKG.Orchestrator.api.routes.streams import STREAM, streamed
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import RequestBody, json_bytes
from DocsToKG.Orchestrator.views import View

resource = Resource("graphql")


class GraphRequest(RequestBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "{ jobs(first: 2) { nodes { id status } } }"}]})
    query: Annotated[str, Field(min_length=1, max_length=20_000)]
    variables: dict[str, Any] | None = None
    operation_name: Annotated[str, Field(max_length=128)] | None = None


@dataclass(frozen=True, slots=True)
class GraphError(View):
    message: str
    path: Sequence[str | int] | None = None
    extensions: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GraphAnswer(View):
    """The data, and the errors."""

    data: Mapping[str, Any] | None = None
    errors: Sequence[GraphError] | None = None


@resource.post("/graphql", operation="graphqlQuery")
def graphql_query(ctx: Context, body: GraphRequest) -> GraphAnswer:
    """Answer a GraphQL query; there are no mutations."""
    try:
        checked(body.query, body.variables or {}, OperationType.QUERY)
    except GraphQLError as error:
        return GraphAnswer(errors=[_error(error)])
    result = _schema().execute_sync(
        body.query,
        variable_values=body.variables,
        operation_name=body.operation_name,
        context_value=_context(ctx),
    )
    return GraphAnswer(data=result.data, errors=[_error(error) for error in result.errors or ()] or None)


@resource.post("/graphql/stream", operation="graphqlStream", responses=STREAM, response_class=Response)
async def graphql_stream(ctx: Context, body: GraphRequest) -> Response:
    """Follow a GraphQL subscription: events `next` and `complete`, as graphql-sse has them."""

    async def events() -> AsyncGenerator[bytes]:
        try:
            checked(body.query, body.variables or {}, OperationType.SUBSCRIPTION)
        except GraphQLError as error:
            yield _next(GraphAnswer(errors=[_error(error)]))
        else:
            yield format_sse_event(comment="connected")
            found: Any = await _schema().subscribe(
                body.query,
                variable_values=body.variables,
                operation_name=body.operation_name,
                context_value=_context(ctx),
            )
            if hasattr(found, "errors"):
                yield _next(GraphAnswer(errors=[_error(error) for error in found.errors or ()]))
            else:
                async with aclosing(found):
                    async for result in found:
                        errors = [_error(error) for error in result.errors or ()] or None
                        yield _next(GraphAnswer(data=result.data, errors=errors))
        yield format_sse_event(data_str="", event="complete")

    return streamed(ctx.streams, events())


@cache
def _schema() -> Any:
    from DocsToKG.Orchestrator.api.graphql.schema import SCHEMA

    return SCHEMA


def _context(ctx: RequestContext) -> Any:
    from DocsToKG.Orchestrator.api.graphql.schema import GraphContext

    return GraphContext(ctx.services, ctx.tenant, ctx.streams)


def _error(error: GraphQLError) -> GraphError:
    """An error of the ledger with its code; an unexpected error shows nothing of itself."""
    path = None if error.path is None else list(error.path)
    cause = error.original_error
    if cause is None:
        return GraphError(message=error.message[:500], path=path)
    problem = problem_of(cause) if isinstance(cause, Exception) else None
    if problem is None:
        return GraphError(message="internal error", path=path, extensions={"code": "INTERNAL"})
    return GraphError(message=problem.message, path=path, extensions={"code": problem.code})


def _next(answer: GraphAnswer) -> bytes:
    return format_sse_event(data_str=json_bytes(answer, exclude_none=True).decode(), event="next")
