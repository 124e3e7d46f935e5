"""The statements and migrations of a dialect, as they lie in `sql/`.

Knows how they are named. A statement may stand in another one as `{name}`; every other word in braces is left for
whoever runs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

INCLUDE = "-- include: control.sql"
_SQL = files(__package__) / "sql"
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PART = re.compile(r"\{(\w+)\}")


@cache
def statements(dialect: str) -> Mapping[str, str]:
    """The statements of `queries.sql` by name."""
    found = _named(dialect, "queries.sql")
    return {name: _PART.sub(lambda part: found.get(part[1], part[0]), body) for name, body in found.items()}


@cache
def filters(dialect: str) -> Mapping[str, str]:
    """The conditions of `filters.sql` by name."""
    found = _named(dialect, "filters.sql")
    return {name: "\n".join(line for line in body.splitlines() if line[:2] != "--") for name, body in found.items()}


def _named(dialect: str, file: str) -> dict[str, str]:
    parts = _NAME.split((_SQL / dialect / file).read_text("utf-8"))
    return {name: body.strip().rstrip(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def script(dialect: str, name: str) -> str:
    """A statement that stands in a file of its own."""
    return (_SQL / dialect / f"{name}.sql").read_text("utf-8").rstrip().rstrip(";")


@cache
def migrations(dialect: str, schema: str) -> tuple[str, ...]:
    """The scripts in order; the file named 0001 leads to version 1."""
    entries = sorted((_SQL / dialect / "migrations").iterdir(), key=lambda entry: entry.name)
    return tuple(with_control(entry.read_text("utf-8"), schema) for entry in entries)


def with_control(text: str, schema: str) -> str:
    """A migration with the tables of the control plane written in where it asks for them."""
    if INCLUDE not in text:
        return text
    ours = (_SQL / "control.sql").read_text("utf-8")
    return text.replace(INCLUDE, ours.replace("orchestrator.", schema))
