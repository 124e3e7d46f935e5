"""The graph over HTTP: questions by POST, subscriptions as a stream of Server-Sent Events. There is no page with it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cache
from typing import Annotated, Any

from fastapi.sse import format_sse_event
from graphql import GraphQLError, OperationType
from pydantic import ConfigDict, Field
from starlette.responses import Response

from DocsToKG.Orchestrator.api.errors import problem_of
from DocsToKG.Orchestrator.api.graphql.limits import checked
from DocsToKG.Orchestrator.api.routes.streams import STREAM, streamed, streams_of
from DocsToKG.Orchestrator.api.routing import Context, RequestContext, Resource
from DocsToKG.Orchestrator.api.schemas import Given, Shown

resource = Resource("graphql")


class GraphRequest(Given):
    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "{ jobs(first: 2) { nodes { id status } } }"}]})
    query: Annotated[str, Field(min_length=1, max_length=20_000)]
    variables: dict[str, Any] | None = None
    operation_name: Annotated[str, Field(max_length=128)] | None = None


class GraphError(Shown):
    message: str
    path: list[str | int] | None = None
    extensions: dict[str, Any] | None = None


class GraphAnswer(Shown):
    """The data, and what could not be told."""

    data: dict[str, Any] | None = None
    errors: list[GraphError] | None = None


@resource.post("/graphql", operation="graphqlQuery")
def graphql_query(ctx: Context, body: GraphRequest) -> GraphAnswer:
    """Answer a GraphQL question; nothing can be changed through it."""
    try:
        checked(body.query, body.variables or {}, OperationType.QUERY)
    except GraphQLError as error:
        return GraphAnswer(errors=[_told(error)])
    result = _schema().execute_sync(
        body.query,
        variable_values=body.variables,
        operation_name=body.operation_name,
        context_value=_reading(ctx),
    )
    return GraphAnswer(data=result.data, errors=[_told(error) for error in result.errors or ()] or None)


@resource.post("/graphql/stream", operation="graphqlStream", responses=STREAM, response_class=Response)
async def graphql_stream(ctx: Context, body: GraphRequest) -> Response:
    """Follow a GraphQL subscription: events `next` and `complete`, as graphql-sse has them."""
    streams = streams_of(ctx.request)

    async def told() -> AsyncGenerator[bytes]:
        try:
            checked(body.query, body.variables or {}, OperationType.SUBSCRIPTION)
        except GraphQLError as error:
            yield _next(GraphAnswer(errors=[_told(error)]))
        else:
            yield format_sse_event(comment="connected")
            found: Any = await _schema().subscribe(
                body.query,
                variable_values=body.variables,
                operation_name=body.operation_name,
                context_value=_reading(ctx),
            )
            if hasattr(found, "errors"):
                yield _next(GraphAnswer(errors=[_told(error) for error in found.errors or ()]))
            else:
                async with aclosing(found):
                    async for result in found:
                        errors = [_told(error) for error in result.errors or ()] or None
                        yield _next(GraphAnswer(data=result.data, errors=errors))
        yield format_sse_event(data_str="", event="complete")

    return streamed(streams, told())


@cache
def _schema() -> Any:
    from DocsToKG.Orchestrator.api.graphql.schema import SCHEMA

    return SCHEMA


def _reading(ctx: RequestContext) -> Any:
    from DocsToKG.Orchestrator.api.graphql.schema import Reading

    return Reading(ctx.services, ctx.tenant, streams_of(ctx.request))


def _told(error: GraphQLError) -> GraphError:
    """Our own errors in their words; what nobody foresaw says nothing of itself."""
    path = None if error.path is None else list(error.path)
    cause = error.original_error
    if cause is None:
        return GraphError(message=error.message[:500], path=path)
    problem = problem_of(cause) if isinstance(cause, Exception) else None
    if problem is None:
        return GraphError(message="something went wrong here", path=path, extensions={"code": "INTERNAL"})
    return GraphError(message=problem.message, path=path, extensions={"code": problem.code})


def _next(answer: GraphAnswer) -> bytes:
    data = json.dumps(answer.model_dump(mode="json", by_alias=True, exclude_none=True), separators=(",", ":"))
    return format_sse_event(data_str=data, event="next")
