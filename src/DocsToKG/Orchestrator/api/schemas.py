"""What all bodies have in common: camelCase outside, our own names inside, moments as UTC with milliseconds.

Knows forms, not meanings. Promises: an unknown field of a request is refused by name; a moment is shown as the ledger
stamped it, so that equal rows give equal answers at any time and from any instance.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AliasGenerator, BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic.alias_generators import to_camel

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.api.auth.admission import REASON_CHARS, TICKET_CHARS

_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$"
BIG = 2**53 - 1  # what every JSON reader can hold


def _shown(value: Any) -> Any:
    return utc_iso(value) if isinstance(value, int | float) else value


def _within(value: datetime) -> datetime:
    """A time without a zone is refused, and one that the ledger cannot hold."""
    if value.tzinfo is None or not 1970 <= value.astimezone(UTC).year <= 9998:
        raise ValueError("write a moment between 1970 and 9998 with its zone, like 2026-01-31T12:00:00Z")
    return value


# What goes out is ours and is not judged by its form again, which would cost more than all else of a long list.
_MOMENT = {"type": "string", "pattern": _PATTERN, "format": "date-time", "examples": ["2026-01-31T12:00:00.000Z"]}
Moment = Annotated[str, PlainValidator(_shown), WithJsonSchema(_MOMENT)]
GivenMoment = Annotated[datetime, AfterValidator(_within)]
JobId = Annotated[int, Field(ge=1, le=BIG)]
Name = Annotated[str, Field(min_length=1, max_length=128, pattern=NAME)]
Text = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Reason = Annotated[str, Field(max_length=REASON_CHARS, description="Why; may come in the header X-Reason instead.")]
Ticket = Annotated[str, Field(max_length=TICKET_CHARS, description="May come in the header X-Ticket instead.")]


def _digest(value: Any) -> Any:
    return f"sha256:{value}" if isinstance(value, str) and not value.startswith("sha256:") else value


_DIGEST = {"type": "string", "pattern": r"^sha256:[0-9a-f]{64}$"}
Digest = Annotated[str, PlainValidator(_digest), WithJsonSchema(_DIGEST)]


class Shown(BaseModel):
    """A body that goes out, made from our own value of the same fields."""

    model_config = ConfigDict(
        from_attributes=True, frozen=True, alias_generator=AliasGenerator(serialization_alias=to_camel)
    )


class Signature(Shown):
    """A signature of a DSSE envelope."""

    keyid: str
    sig: str


class Given(BaseModel):
    """A body that comes in."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        validate_by_name=True,
        validate_by_alias=True,
        alias_generator=to_camel,
    )


class Explained(Given):
    """A body that says why."""

    reason: Reason | None = None
    ticket: Ticket | None = None


class Page(Shown):
    """The words that every list has."""

    next_page_token: str | None = Field(
        default=None, serialization_alias="next_page_token", description="For `page_token` of the next call."
    )


PageToken = Annotated[str | None, Field(max_length=512, description="The `next_page_token` of the page before.")]
PageSize = Annotated[int, Field(ge=1, le=500, description="How many entries at most.")]


def seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
