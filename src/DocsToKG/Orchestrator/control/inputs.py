"""Checked inputs of the services: names, texts, amounts, and who decides, why and by which ticket."""

from __future__ import annotations

from typing import Required, TypedDict

from DocsToKG.Orchestrator.errors import BadJob

_MAX_REASON = 500
_MAX_TICKET = 200
_MOST = 10**9
_MAX_NAME = 255


class Decision(TypedDict, total=False):
    """Who decides on a change, why and by which ticket."""

    actor: Required[str]
    reason: str | None
    ticket: str | None


class ReasonedDecision(TypedDict, total=False):
    """The same where a reason is required."""

    actor: Required[str]
    reason: Required[str]
    ticket: str | None


class AuditFields(TypedDict):
    """A decision as columns and audit rows have it."""

    actor: str
    reason: str | None
    ticket: str | None


def audit_fields(actor: str, reason: str | None = None, ticket: str | None = None) -> AuditFields:
    return AuditFields(
        actor=plain_name("actor", actor), reason=optional_text("reason", reason), ticket=optional_text("ticket", ticket)
    )


def optional_text(field: str, text: str | None) -> str | None:
    """A text that may be left out; one that is empty counts as left out."""
    if text is None or not text.strip():
        return None
    return plain_name(field, text.strip(), _MAX_TICKET if field == "ticket" else _MAX_REASON)


def amount(field: str, value: int, *, least: int = 0) -> int:
    """A whole number that can be stored."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise BadJob(f"{field} must be a whole number between {least} and {_MOST}")
    return value


def plain_name(field: str, value: str, most: int = _MAX_NAME) -> str:
    """A name that somebody gave: not empty, bounded, and of signs that can be stored."""
    if not value.strip() or len(value) > most or "\0" in value:
        raise BadJob(f"{field} must have between 1 and {most} characters")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise BadJob(f"{field} has a character that cannot be stored") from None
    return value
