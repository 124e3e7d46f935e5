"""Views: frozen dataclasses that services return, and that the HTTP API, GraphQL and event streams write as JSON.

Knows field names and formats: camelCase, UTC timestamps, digests with their algorithm. pydantic reads the annotations
of a view; this module does not import pydantic. Promises: a timestamp is written as the ledger stored it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from functools import cache, partial
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from DocsToKG.core.clock import utc_iso

_WORD = re.compile(r"_([a-z0-9])")
_AS_THEY_ARE = frozenset({"next_page_token"})


class JsonFormat:
    """An annotation of a field: what writes it as JSON and reads it again, and keywords of its JSON schema."""

    def __init__(
        self, write: Callable[[Any], Any] | None = None, read: Callable[[Any], Any] | None = None, **schema: Any
    ) -> None:
        self._write = write
        self.read = read
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


V = TypeVar("V", bound=View)


def parse_view(kind: type[V], row: Mapping[str, Any]) -> V:
    """The view that was written as `row`; a KeyError, TypeError or ValueError where it is none. A field that is missing
    has its default."""
    return kind(
        **{name: read(row[alias]) for name, alias, read, is_needed in _readers(kind) if is_needed or alias in row}
    )


def _fields_of(kind: Any) -> list[tuple[str, str, Callable[[Any], Any], bool]]:
    hints = get_type_hints(kind, include_extras=True)
    alias = kind.__pydantic_config__["alias_generator"]
    return [
        (each.name, alias(each.name), _reader(hints[each.name]), each.default is MISSING)
        for each in fields(kind)
        if each.init
    ]


_readers: Callable[[Any], list[tuple[str, str, Callable[[Any], Any], bool]]] = cache(_fields_of)


def _reader(hint: Any) -> Callable[[Any], Any]:
    """How a value of this type is read from JSON."""
    if isinstance(hint, type) and issubclass(hint, View):
        return partial(parse_view, hint)
    known = next((each.read for each in getattr(hint, "__metadata__", ()) if isinstance(each, JsonFormat)), None)
    if known is None and NoneType in get_args(hint):
        inner = _reader(next(each for each in get_args(hint) if each is not NoneType))
        return lambda value: None if value is None else inner(value)
    return known or (lambda value: value)


def parse_timestamp(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _digest(value: str) -> str:
    return value if value.startswith("sha256:") else f"sha256:{value}"


TIMESTAMP: Mapping[str, Any] = {
    "type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$", "format": "date-time",
    "examples": ["2026-01-31T12:00:00.000Z"],
}  # fmt: skip
Timestamp = Annotated[float, JsonFormat(utc_iso, parse_timestamp, **TIMESTAMP)]  # Unix seconds of ledger time
Digest = Annotated[
    str,
    JsonFormat(_digest, lambda text: text.removeprefix("sha256:"), type="string", pattern=r"^sha256:[0-9a-f]{64}$"),
]


@dataclass(frozen=True, slots=True)
class Signature(View):
    """A signature of a DSSE envelope."""

    keyid: str
    sig: str


@dataclass(frozen=True, slots=True)
class SignedView(View):
    """A view that the API signs where the service has keys; `signatures` are DSSE signatures over the other fields."""

    signatures: Sequence[Signature] = field(default=(), init=False)
