"""Views: frozen dataclasses that services return, and that the HTTP API, GraphQL and event streams write as JSON.

Knows field names and formats: camelCase, UTC timestamps, digests with their algorithm. pydantic reads the annotations
of a view; this module does not import pydantic. Promises: a timestamp is written as the ledger stored it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from DocsToKG.core.clock import utc_iso

_WORD = re.compile(r"_([a-z0-9])")
_AS_THEY_ARE = frozenset({"next_page_token"})


class JsonFormat:
    """An annotation of a field: the function that writes it as JSON, and keywords of its JSON schema."""

    def __init__(self, write: Callable[[Any], Any] | None = None, **schema: Any) -> None:
        self._write = write
        self._schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        schema = handler(source)
        if self._write is not None:
            schema["serialization"] = {"type": "function-plain", "function": self._write}
        return schema

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], Any]) -> dict[str, Any]:
        return {**(handler(schema) if self._write is None else {}), **self._schema}


def json_name(name: str) -> str:
    """`lease_until` is `leaseUntil`, and `renew_s` is `renewSeconds`."""
    if name in _AS_THEY_ARE:
        return name
    words = name.removesuffix("_s") + "_seconds" if name.endswith("_s") else name
    return _WORD.sub(lambda match: match[1].upper(), words)


def json_names(**other: str) -> dict[str, Any]:
    """The configuration of a view with some field names that differ from `json_name`."""
    return {"alias_generator": lambda name: other.get(name) or json_name(name)}


class View:
    """Base of all views."""

    __slots__ = ()
    __pydantic_config__ = json_names()


def _digest(value: str) -> str:
    return value if value.startswith("sha256:") else f"sha256:{value}"


TIMESTAMP: Mapping[str, Any] = {
    "type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$", "format": "date-time",
    "examples": ["2026-01-31T12:00:00.000Z"],
}  # fmt: skip
Timestamp = Annotated[float, JsonFormat(utc_iso, **TIMESTAMP)]  # Unix seconds of ledger time
Digest = Annotated[str, JsonFormat(_digest, type="string", pattern=r"^sha256:[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class Signature(View):
    """A signature of a DSSE envelope."""

    keyid: str
    sig: str


@dataclass(frozen=True, slots=True)
class SignedView(View):
    """A view that the API signs where the service has keys; `signatures` are DSSE signatures over the other fields."""

    signatures: Sequence[Signature] = field(default=(), init=False)
