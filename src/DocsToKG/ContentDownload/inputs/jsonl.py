"""JSON: one string or object per line, or one document that holds a list of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from DocsToKG.ContentDownload.inputs.entries import Entry, entry_of_mapping
from DocsToKG.ContentDownload.inputs.lines import Line
from DocsToKG.core.urls import mask_text

_LISTS = ("works", "results", "items", "records", "references")


def is_json(text: str) -> bool:
    """Whether the whole text is one JSON value."""
    return _value(text) is not None


def opens_json(line: str) -> bool:
    """Whether a document of strings or objects may begin so: `["..`, `[{..`, `{"..`, or a bracket alone."""
    return re.match(r"\[\s*(?:$|[\"{\[\]])|\{\s*(?:$|[\"}])", line) is not None


def entry_of_line(line: Line) -> Entry | None:
    """The entry of a line that is a JSON string or object, else None."""
    value = _value(line.text) if line.text.lstrip().startswith(("{", '"')) else None
    return _entry(line.number, value, line.text) if isinstance(value, str | dict) else None


def read_jsonl(lines: Iterable[Line]) -> Iterator[Entry]:
    for line in lines:
        if line.too_long:
            yield Entry(line.number, "", problem="the line is longer than 64 KiB; split it")
        elif line.text.strip():
            yield _read_line(line)


def read_document(text: str) -> Iterator[Entry]:
    """The members of a JSON array, or of the list inside an object; numbered from 1."""
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        yield Entry(1, mask_text(text)[:80], problem=f"not JSON ({error}); write one object per line, or an array")
        return
    if isinstance(data, dict):
        data = next((data[name] for name in _LISTS if isinstance(data.get(name), list)), [data])
    for number, item in enumerate(data if isinstance(data, list) else [data], start=1):
        yield _entry(number, item, mask_text(str(item))[:200])


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _read_line(line: Line) -> Entry:
    try:
        value = orjson.loads(line.text)
    except orjson.JSONDecodeError as error:
        return Entry(
            line.number, mask_text(line.text)[:200], problem=f"not JSON ({error}); write one string or object per line"
        )
    return _entry(line.number, value, line.text)


def _entry(number: int, value: Any, text: str) -> Entry:
    if isinstance(value, str):
        return Entry(number, value)
    if isinstance(value, dict):
        return entry_of_mapping(number, text, value)
    return Entry(number, text, problem="neither a string nor an object; write an identifier or an object with one")
