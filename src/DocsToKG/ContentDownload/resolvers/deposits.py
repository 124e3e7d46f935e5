"""What the sources of repositories share: finding a repository's page among a work's links, and reading a deposit.

Promises: no exception, whatever a work's links or a record hold; a record about another paper is told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.file_choice import title_words
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi, normalize_url
from DocsToKG.ContentDownload.resolvers.records.fields import read_json

_LARGEST_FILE = 1 << 50
_HEX_DIGITS = {"md5": 32, "sha1": 40, "sha256": 64}
_VERSION = re.compile(r"\.v\d{1,4}$")
_FEWEST_WORDS = 3


def named_page(work: WorkArtifact, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """The first link of the work that is all `pattern`, written as `host/path` without `www.` and the query."""
    for url in (*work.landing_urls, *work.pdf_urls):
        address = normalize_url(url)
        if address is None:
            continue
        parts = urlsplit(address)
        found = pattern.fullmatch((parts.hostname or "").removeprefix("www.") + unquote(parts.path))
        if found is not None:
            return found
    return None


def read_records(page: Page) -> list[Mapping[str, Any]] | None:
    """The objects of an answer that is a bare list of them, or one of them; None when it is neither."""
    value = read_json(page)
    if isinstance(value, dict):
        return [value]
    return [item for item in value[:100] if isinstance(item, dict)] if isinstance(value, list) else None


def texts_of(record: Mapping[str, Any], name: str, *, at_most: int = 20) -> list[str]:
    """The texts of a field that holds one or a list of them."""
    value = record.get(name)
    found = value[:at_most] if isinstance(value, list) else [value]
    return [text.strip() for text in found if isinstance(text, str) and 0 < len(text.strip()) <= 2048]


def number_of(record: Mapping[str, Any], name: str) -> str | None:
    """The digits of an id that some services write as a number and others as a text."""
    value = record.get(name)
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return text if isinstance(text, str) and re.fullmatch(r"[0-9]{1,15}", text) else None


def size_of(record: Mapping[str, Any], name: str) -> int | None:
    value = record.get(name)
    is_size = isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST_FILE
    return value if is_size else None


def digest_of(algorithm: str, value: object) -> str | None:
    """`md5:<hex>` when `value` is a whole digest of that algorithm, with or without its name before it."""
    text = value.strip().lower().removeprefix(f"{algorithm}:") if isinstance(value, str) else ""
    whole = len(text) == _HEX_DIGITS[algorithm] and re.fullmatch(r"[0-9a-f]+", text)
    return f"{algorithm}:{text}" if whole else None


def about_another(
    work: WorkArtifact, *, dois: Iterable[str | None], title: str | None, own: tuple[str, ...] = ()
) -> str | None:
    """The note when a record is about another paper, or None.

    A deposited copy often has a DOI of the repository's (those that start with `own`) beside the publisher's, so
    DOIs that differ decide only when both are of one kind; else the titles do.
    """
    said = [doi for doi in (normalize_doi(text or "") for text in dois) if doi is not None]
    if work.doi is None or not said or any(_same_deposit(doi, work.doi) for doi in said):
        return None
    note = f"wrong-article: the record is about {said[0]}"
    if work.doi.startswith(own):
        return note
    alike = _alike(title, work.title)
    if alike is None:
        return None if all(doi.startswith(own) for doi in said) else note
    return None if alike else note


def _same_deposit(one: str, other: str) -> bool:
    """Equal, or one of them names all versions of the other (`.../m9.figshare.7` and `.../m9.figshare.7.v2`)."""
    return one == other or one == _VERSION.sub("", other) or other == _VERSION.sub("", one)


def _alike(one: str | None, other: str | None) -> bool | None:
    """Do two titles share half of their telling words? None when one of them says too little."""
    first, second = title_words(one), title_words(other)
    fewest = min(len(first), len(second))
    return len(first & second) * 2 >= fewest if fewest >= _FEWEST_WORDS else None
