"""Works as an index recorded them, each with a file that is its paper and one that is the paper of its nearest
neighbour: the work of the set whose title shares most words with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tests.adversary.case import ANY_SCRIPT, LATIN, Case
from tests.adversary.pages import article
from tests.adversary.works import Author, IndexedWork
from tests.needs import recorded

from DocsToKG.ContentDownload.validation.normalization import content_words

_STATUSES = ("gold", "hybrid", "green", "bronze", "diamond", "closed")
_PAGES, _FEWEST_PAGES, _MOST_PAGES = 8, 4, 16
_AUTHORS = 12


def works() -> list[IndexedWork]:
    """Those with a DOI, a title and authors."""
    entries = [
        entry["work"]
        for status in _STATUSES
        for entry in json.loads((recorded("openalex") / f"works-{status}.json").read_text())["records"]
    ]
    found = {work.doi: work for record in entries if (work := _work(record)) is not None}
    return list(found.values())


def cases(most: int | None = None) -> list[Case]:
    """For each work its paper, its paper without the DOI on it, and the paper of its neighbour."""
    known = works()[:most]
    return [case for number, work in enumerate(known) for case in _cases(number, work, _neighbour(work, known))]


def _cases(number: int, work: IndexedWork, other: IndexedWork) -> Iterator[Case]:
    own, theirs = (_rendering(number, one) for one in (work, other))
    yield Case(f"{work.doi} itself", work, article(work, f"r{number}"), (own,), right=True)
    yield Case(f"{work.doi} without DOI", work, article(work, f"n{number}", doi_at="none"), (own,), right=True)
    yield Case(f"{work.doi} by another", work, article(other, f"w{number}"), (theirs,), right=False)
    bare = article(other, f"b{number}", doi_at="none")
    yield Case(f"{work.doi} by another without DOI", work, bare, (theirs,), right=False)


def _rendering(number: int, work: IndexedWork) -> str:
    shown = " ".join((work.title, work.journal, *work.names))
    names = LATIN if shown.isascii() else ANY_SCRIPT
    return names[number % len(names)]


def _neighbour(work: IndexedWork, known: Sequence[IndexedWork]) -> IndexedWork:
    words = set(content_words(work.title))
    others = [other for other in known if other.title.casefold() != work.title.casefold()]
    return max(others, key=lambda other: len(words & set(content_words(other.title))))


def _work(record: dict[str, Any]) -> IndexedWork | None:
    title, doi = record.get("title") or "", (record.get("doi") or "").removeprefix("https://doi.org/")
    names = [entry["author"]["display_name"] or "" for entry in record.get("authorships") or ()][:_AUTHORS]
    authors = [Author(given, family) for name in names for given, _, family in [name.rpartition(" ")] if family]
    if not (title and doi and authors and record.get("publication_year")):
        return None
    source = (record.get("primary_location") or {}).get("source") or {}
    work = IndexedWork(doi, title, tuple(authors), record["publication_year"], source.get("display_name") or "")
    return replace(work, **_pages(record.get("biblio") or {}))


def _pages(biblio: dict[str, Any]) -> dict[str, Any]:
    """First and last page of a paper of usual length; a number that stands for an article is its first page."""
    first, last = (str(biblio.get(name) or "") for name in ("first_page", "last_page"))
    begin = int(first) if first.isdecimal() else 1
    count = int(last) - begin + 1 if last.isdecimal() else 0
    end = int(last) if _FEWEST_PAGES <= count <= _MOST_PAGES else begin + _PAGES - 1
    return {"first_page": begin, "last_page": end, "volume": biblio.get("volume") or "", "issue": ""}
