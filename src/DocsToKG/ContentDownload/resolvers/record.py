"""One JSON object of a service's answer, whose every field may be missing or of another type.

Each method gives the value of a field in its normal form when it has the type asked for, and None or nothing otherwise.
Promises: no exception, bounded text, whatever the answer holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import (
    arxiv_base,
    normalize_arxiv,
    normalize_doi,
    normalize_pmcid,
    normalize_pmid,
    normalize_url,
)

MAX_ANSWER_BYTES = 8 * 1024 * 1024
_MAX_TEXT = 2048
_AUTHORS = 50
_NAME_CHARS = 120
_LARGEST_FILE = 1 << 50
_HEX_DIGITS = {"md5": 32, "sha1": 40, "sha256": 64}
_NUMBER = re.compile(r"[0-9]{1,15}")
_PAGES = re.compile(r"\s*([A-Za-z]{0,3}\d{1,7}[A-Za-z]?)(?:\s*[-\u2010-\u2014]+\s*([A-Za-z]{0,3}\d{1,7}[A-Za-z]?))?\s*")


def read_json(page: Page) -> Any:
    """Whatever JSON an answer holds; None when it holds none, or is too large to look at."""
    if len(page.body) > MAX_ANSWER_BYTES:
        return None
    try:
        return orjson.loads(page.body)
    except orjson.JSONDecodeError:
        return None


def read_record(page: Page) -> Record | None:
    """The JSON object of an answer; None when it is none."""
    value = read_json(page)
    return Record(value) if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class Record:
    """Methods that take several names give the first field that holds such a value."""

    fields: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.fields)

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def get(self, name: str) -> Any:
        """The field as it stands in the answer."""
        return self.fields.get(name)

    def is_true(self, name: str) -> bool:
        return self.fields.get(name) is True

    def truth(self, name: str) -> bool | None:
        value = self.fields.get(name)
        return value if isinstance(value, bool) else None

    def text(self, *names: str) -> str | None:
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, str) and (value := value.strip()) and len(value) <= _MAX_TEXT:
                return value
        return None

    def lower(self, name: str) -> str:
        """The text in lower case, empty where there is none."""
        return (self.text(name) or "").lower()

    def texts(self, name: str, *, at_most: int = 20) -> list[str]:
        """The texts of a field that holds one or a list of them."""
        value = self.fields.get(name)
        found = value[:at_most] if isinstance(value, list) else [value]
        return [text.strip() for text in found if isinstance(text, str) and 0 < len(text.strip()) <= _MAX_TEXT]

    def object(self, *path: str) -> Record:
        """The object at a path of names; an empty one where there is none."""
        value: Any = self.fields
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return Record(value) if isinstance(value, dict) else Record()

    def objects(self, name: str, *, at_most: int = 100) -> list[Record]:
        value = self.fields.get(name)
        return [Record(item) for item in value[:at_most] if isinstance(item, dict)] if isinstance(value, list) else []

    def title(self, *names: str) -> str | None:
        return next((title for name in names if (title := title_of(self.fields.get(name))) is not None), None)

    def year(self, *names: str) -> int | None:
        return next((year for name in names if (year := year_of(self.fields.get(name))) is not None), None)

    def pages(self, name: str) -> tuple[str | None, str | None]:
        """First and last page of `100-119`; the second is missing where one page or number is given."""
        value = self.fields.get(name)
        found = _PAGES.fullmatch(value[:40]) if isinstance(value, str) else None
        return (found[1], found[2]) if found is not None else (None, None)

    def doi(self, *names: str) -> str | None:
        return self._normal(normalize_doi, names)

    def arxiv_id(self, *names: str) -> str | None:
        """Without its version."""
        given = self._normal(normalize_arxiv, names)
        return arxiv_base(given) if given is not None else None

    def pmid(self, *names: str) -> str | None:
        return self._normal(normalize_pmid, names)

    def pmcid(self, *names: str) -> str | None:
        return self._normal(normalize_pmcid, names)

    def url(self, *names: str) -> str | None:
        return self._normal(normalize_url, names)

    def number(self, name: str) -> str | None:
        """The digits of an id that some services write as a number and others as a text."""
        value = self.fields.get(name)
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        return text if isinstance(text, str) and _NUMBER.fullmatch(text) else None

    def size(self, name: str) -> int | None:
        value = self.fields.get(name)
        is_size = isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST_FILE
        return value if is_size else None

    def digest(self, algorithm: str, *names: str) -> str | None:
        """`md5:<hex>` when a field is a whole digest of that algorithm, with or without its name before it."""
        for name in names:
            value = self.fields.get(name)
            text = value.strip().lower().removeprefix(f"{algorithm}:") if isinstance(value, str) else ""
            if len(text) == _HEX_DIGITS[algorithm] and re.fullmatch(r"[0-9a-f]+", text):
                return f"{algorithm}:{text}"
        return None

    def authors(self, name: str) -> tuple[str, ...]:
        """Names of people from a list of objects, whichever of the indexes' forms they have."""
        names = (_author(entry) for entry in self.objects(name, at_most=_AUTHORS))
        return tuple(named[:_NAME_CHARS] for named in names if named is not None)

    def _normal(self, normalize: Callable[[str], str | None], names: tuple[str, ...]) -> str | None:
        for name in names:
            text = self.text(name) or self.number(name)
            if text is not None and (normal := normalize(text)) is not None:
                return normal
        return None


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


def _author(entry: Record) -> str | None:
    entry = entry.object("author") or entry
    family, given = entry.text("family", "familyName", "lastName"), entry.text("given", "givenName", "firstName")
    if family is not None:
        return f"{family}, {given}" if given is not None else family
    return entry.text("display_name", "name", "raw_author_name", "fullName")
