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
_AUTHORS = 50
_NAME_CHARS = 120
_PAGES = re.compile(r"\s*([A-Za-z]{0,3}\d{1,7}[A-Za-z]?)(?:\s*[-\u2010-\u2014]+\s*([A-Za-z]{0,3}\d{1,7}[A-Za-z]?))?\s*")


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


def authors_of(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Names of people from a list of objects, whichever of the indexes' forms they have."""
    names = (_author(entry) for entry in objects_of(record, name, at_most=_AUTHORS))
    return tuple(named[:_NAME_CHARS] for named in names if named is not None)


def _author(entry: Mapping[str, Any]) -> str | None:
    entry = object_of(entry, "author") or entry
    family = text_of(entry, "family") or text_of(entry, "familyName") or text_of(entry, "lastName")
    given = text_of(entry, "given") or text_of(entry, "givenName") or text_of(entry, "firstName")
    if family is not None:
        return f"{family}, {given}" if given is not None else family
    whole = (text_of(entry, each) for each in ("display_name", "name", "raw_author_name", "fullName"))
    return next((named for named in whole if named is not None), None)


def pages_of_text(value: object) -> tuple[str | None, str | None]:
    """First and last page of `100-119`; the second is missing where one page or number is given."""
    found = _PAGES.fullmatch(value[:40]) if isinstance(value, str) else None
    return (found[1], found[2]) if found is not None else (None, None)
