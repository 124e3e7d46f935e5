"""Rows of the control plane as the values that are shown: the fields of a value name its columns.

A moment (`..._at`, `..._until`) is kept in milliseconds of ledger time and shown in seconds; a mapping is kept as JSON
in a column that ends in `_json`; a bool is kept as a number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Generic, TypeVar

from DocsToKG.Orchestrator.errors import Conflict

T = TypeVar("T")


class Record(Generic[T]):
    """How rows of a table become values of one frozen dataclass."""

    def __init__(self, kind: type[T]) -> None:
        told = [(field.name, str(field.type)) for field in fields(kind) if field.init]  # type: ignore[arg-type]
        self.columns = ", ".join(f"{name}_json" if "Mapping" in of else name for name, of in told)
        self._kind = kind
        self._reads = [_read(name, of) for name, of in told]

    def of(self, row: Sequence[Any]) -> T:
        return self._kind(*(read(value) for read, value in zip(self._reads, row, strict=True)))


def _read(name: str, of: str) -> Callable[[Any], Any]:
    if name.endswith(("_at", "_until")):
        return _seconds
    if "Mapping" in of:
        return _parsed
    return bool if of == "bool" else _same


def _seconds(moment: int | None) -> float | None:
    return None if moment is None else moment / 1000


def _parsed(text: str | None) -> Any:
    return json.loads(text or "{}")


def _same(value: Any) -> Any:
    return value


def check_version(what: str, found: int, wanted: int | None) -> None:
    """Refuse a change of something that is no longer what was read."""
    if wanted is not None and found != wanted:
        raise Conflict(f"the {what} has version {found}, not {wanted}; read it again", found)
