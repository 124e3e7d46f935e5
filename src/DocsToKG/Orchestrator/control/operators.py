"""What an operator says with a change: who, why and for which ticket; bounded, and ready to be stored."""

from __future__ import annotations

from typing import Required, TypedDict

from DocsToKG.Orchestrator.control.paging import plain_name
from DocsToKG.Orchestrator.errors import BadJob

_MAX_REASON = 500
_MAX_TICKET = 200
_MOST = 10**9


class By(TypedDict, total=False):
    """Who asks for a change, why and for which ticket."""

    actor: Required[str]
    reason: str | None
    ticket: str | None


class ByWithReason(TypedDict, total=False):
    """The same where nobody may leave out why."""

    actor: Required[str]
    reason: Required[str]
    ticket: str | None


class Said(TypedDict):
    """The same as columns and audit rows have it."""

    actor: str
    reason: str | None
    ticket: str | None


def said(actor: str, reason: str | None = None, ticket: str | None = None) -> Said:
    return Said(actor=plain_name("actor", actor), reason=words("reason", reason), ticket=words("ticket", ticket))


def words(field: str, text: str | None) -> str | None:
    """A text that may be left out; one that is empty counts as left out."""
    if text is None or not text.strip():
        return None
    return plain_name(field, text.strip(), _MAX_TICKET if field == "ticket" else _MAX_REASON)


def amount(field: str, value: int, *, least: int = 0) -> int:
    """A whole number that can be stored."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise BadJob(f"{field} must be a whole number between {least} and {_MOST}")
    return value
