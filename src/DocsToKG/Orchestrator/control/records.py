"""Rows of the control plane as views: the fields of a view name its columns.

A timestamp (`..._at`, `..._until`) is stored in milliseconds of ledger time and read in seconds; a mapping is stored as
JSON in a column that ends in `_json`; a bool is stored as a number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Generic, TypeVar

from DocsToKG.Orchestrator.control import paging
from DocsToKG.Orchestrator.errors import Conflict
from DocsToKG.Orchestrator.ledger.control import ControlLedger, ControlTx

T = TypeVar("T")


class LedgerService:
    """A service over one ledger. Safe to share between threads."""

    def __init__(self, ledger: ControlLedger) -> None:
        self._ledger = ledger


class Record(Generic[T]):
    """How rows of a table become values of one frozen dataclass, whose first field is the key of the table."""

    def __init__(self, kind: type[T], table: str) -> None:
        told = [(field.name, str(field.type)) for field in fields(kind) if field.init]  # type: ignore[arg-type]
        self.columns = ", ".join(f"{name}_json" if "Mapping" in of else name for name, of in told)
        self._kind = kind
        self._reads = [_read(name, of) for name, of in told]

        self.table = table
        self.select = f"SELECT {self.columns} FROM {table}"

    def find(self, tx: ControlTx, *, lock: bool = False, **where: Any) -> T | None:
        """The row whose columns have these values."""
        condition = " AND ".join(f"{name} = :{name}" for name in where)
        rows = tx.execute(f"{self.select} WHERE {condition}{' /* lock */' if lock else ''}", where)
        return self.of(rows[0]) if rows else None

    def page(
        self, tx: ControlTx, where: str, values: Mapping[str, Any], *, by: str, size: int, token: str | None
    ) -> tuple[list[T], str | None]:
        """Rows of a list, the latest first by the time column `by`, and the token of the next page."""
        key = self.columns.partition(",")[0]
        at, after = (2**62, "") if token is None else paging.position(self.table, token, (int, str))
        rows = tx.execute(
            f"{self.select} WHERE {where} AND ({by} < :page_at OR ({by} = :page_at AND {key} < :page_key))"
            f" ORDER BY {by} DESC, {key} DESC LIMIT :page_size",
            {**values, "page_at": at, "page_key": after, "page_size": size + 1},
        )
        last = rows[size - 1] if len(rows) > size else None
        place = self.columns.split(", ").index(by)
        onward = None if last is None else paging.token(self.table, last[place], last[0])
        return [self.of(row) for row in rows[:size]], onward

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
