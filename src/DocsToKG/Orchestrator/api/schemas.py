"""Schemas of HTTP bodies: responses are the views of the services as they are, requests are pydantic models.

Knows formats, not meanings. Promises: an unknown field of a request is refused by name; a timestamp without a zone is
refused; what the services return is written without being validated again, which would cost most of a long list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, TypedDict

from fastapi import Depends, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from DocsToKG.Orchestrator.api.auth.admission import REASON_CHARS, TICKET_CHARS
from DocsToKG.Orchestrator.views import View

NAME = r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$"
BIG = 2**53 - 1  # what every JSON reader can hold


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def json_bytes(view: View, *, exclude_none: bool = False) -> bytes:
    """A view as JSON."""
    return _adapter(type(view)).dump_json(view, by_alias=True, exclude_none=exclude_none)


def json_value(view: View) -> Any:
    """A view as JSON objects, lists and scalars."""
    return _adapter(type(view)).dump_python(view, mode="json", by_alias=True)


def json_schemas(kinds: Iterable[Any]) -> tuple[dict[Any, Any], dict[str, Any]]:
    """The JSON schema of each view, and the definitions that they refer to under `#/components/schemas/`."""
    found, definitions = TypeAdapter.json_schemas(
        [(kind, "serialization", _adapter(kind)) for kind in kinds], ref_template="#/components/schemas/{model}"
    )
    return {kind: schema for (kind, _), schema in found.items()}, definitions.get("$defs", {})


def _with_zone(value: datetime) -> datetime:
    """A time without a zone is refused, and one that the ledger cannot hold."""
    if value.tzinfo is None or not 1970 <= value.astimezone(UTC).year <= 9998:
        raise ValueError("write a moment between 1970 and 9998 with its zone, like 2026-01-31T12:00:00Z")
    return value


ZonedTime = Annotated[datetime, AfterValidator(_with_zone)]
JobId = Annotated[int, Field(ge=1, le=BIG)]
Name = Annotated[str, Field(min_length=1, max_length=128, pattern=NAME)]
Text = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Reason = Annotated[str, Field(max_length=REASON_CHARS, description="Why; may come in the header X-Reason instead.")]
Ticket = Annotated[str, Field(max_length=TICKET_CHARS, description="May come in the header X-Ticket instead.")]
PageToken = Annotated[str | None, Field(max_length=512, description="The `next_page_token` of the page before.")]
PageSize = Annotated[int, Field(ge=1, le=500, description="How many entries at most.")]


class PageArguments(TypedDict):
    page_size: int
    page_token: str | None


async def _paging(
    page_size: Annotated[PageSize, Query()] = 50, page_token: Annotated[PageToken, Query()] = None
) -> PageArguments:
    return {"page_size": page_size, "page_token": page_token}


Paging = Annotated[PageArguments, Depends(_paging)]  # the query of every list that goes on page by page


class RequestBody(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        validate_by_name=True,
        validate_by_alias=True,
        alias_generator=to_camel,
    )


class DecisionBody(RequestBody):
    """The body of a request that says why."""

    reason: Reason | None = None
    ticket: Ticket | None = None


@dataclass(frozen=True, slots=True)
class EventPage(View):
    """Events of the history, oldest first, as envelopes `orch.event.v1`. `next_page_token` is also the `Last-Event-ID`
    of a stream."""

    events: list[dict[str, Any]]
    next_page_token: str | None


def seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
