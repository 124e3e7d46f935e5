"""Why lines of a file were not read, with an example of each reason.

DuckDB skips what it cannot read; the lines are looked up afterwards, in the few files that have any.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

Reasons = dict[str, tuple[int, str]]
NO_NAME, NOT_JSON, NOT_AN_OBJECT = "no identifier", "not JSON", "not an object"
_SHOWN = 80


def bad_lines_of(file: Path, shown: str, *, count: int, named: int, raw_id: str | None) -> Reasons:
    """The reasons of `count` bad records of a file; `named` of them hold a text, such as `raw_id`, that is none."""
    reasons: Reasons = {NO_NAME: (named, f"{shown}: {raw_id!r}")} if named else {}
    left = count - named
    if left and file.suffix in (".gz", ".jsonl", ".ndjson", ".json"):
        for number, reason in _unreadable(file, left):
            before, example = reasons.get(reason, (0, f"{shown}, line {number}"))
            reasons[reason] = (before + 1, example)
            left -= 1
    if left:
        before, example = reasons.get(NO_NAME, (0, shown))
        reasons[NO_NAME] = (before + left, example)
    return reasons


def added(reasons: Reasons, more: Reasons) -> Reasons:
    total = dict(reasons)
    for reason, (count, example) in more.items():
        before, first = total.get(reason, (0, example))
        total[reason] = (before + count, first)
    return total


def _unreadable(file: Path, most: int) -> Iterator[tuple[int, str]]:
    """Up to `most` lines that are no JSON object."""
    opener: Any = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rb") as stream:
        for number, line in enumerate(stream, start=1):
            if most and line.strip() and (reason := _fault(line)) is not None:
                most -= 1
                yield number, reason
            if not most:
                return


def _fault(line: bytes) -> str | None:
    try:
        return None if isinstance(orjson.loads(line), dict) else NOT_AN_OBJECT
    except ValueError:
        return NOT_JSON
