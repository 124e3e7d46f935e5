"""Reading the answers of indexes, whose every field may be missing or of another type.

Each function gives the value when it has the type asked for, and an empty one otherwise.
Promises: no exception, bounded text, whatever the answer holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from DocsToKG.ContentDownload.api.ports import Page

MAX_ANSWER_BYTES = 8 * 1024 * 1024
_MAX_TEXT = 2048


def read_object(page: Page) -> Mapping[str, Any] | None:
    """The JSON object of an answer; None when it is none, or too large to look at."""
    value = read_json(page)
    return value if isinstance(value, dict) else None


def read_json(page: Page) -> Any:
    """Whatever JSON an answer holds; None when it holds none, or is too large to look at."""
    if len(page.body) > MAX_ANSWER_BYTES:
        return None
    try:
        return orjson.loads(page.body)
    except orjson.JSONDecodeError:
        return None


def text_of(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(name)
    if not isinstance(value, str):
        return None
    value = value.strip()
    return value if value and len(value) <= _MAX_TEXT else None


def object_of(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def objects_of(record: Mapping[str, Any], name: str, *, at_most: int = 100) -> list[Mapping[str, Any]]:
    value = record.get(name)
    return [item for item in value[:at_most] if isinstance(item, dict)] if isinstance(value, list) else []


def year_of(value: object) -> int | None:
    """A plausible year from a number or from a text that holds one (`2019-04-22`, `Apr 22, 2019`)."""
    if isinstance(value, str):
        match = re.search(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)", value[:64])
        return int(match[1]) if match is not None else None
    if isinstance(value, int) and not isinstance(value, bool) and 1500 <= value < 2100:
        return value
    return None


def title_of(value: object) -> str | None:
    """One line of text without markup, at most 500 characters."""
    if not isinstance(value, str):
        return None
    line = " ".join(re.sub(r"</?[A-Za-z][^<>]{0,80}>", "", value[:4000]).split())
    return line[:500] or None
