"""OSTI: full text of research paid for by the US Department of Energy.

A page there names a record; else the DOI is looked up, one that is not OSTI's only with the option `by_doi`. The record
links to the full text; records without that link have none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar
from urllib.parse import quote

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    NOT_IN_INDEX,
    JsonSource,
    only_note,
    result_of,
    unique_plans,
    wrong_article,
)
from DocsToKG.ContentDownload.resolvers.record import Record, read_json
from DocsToKG.ContentDownload.resolvers.repositories.deposits import about_another, named_page

_OWN = "10.2172/"
_PAGE = re.compile(
    r"osti\.gov/(?:[a-z]+/)?(?:biblio|servlets/purl|api/v1/records)/(?P<id>\d{1,12})(?:[-/.].*)?", re.IGNORECASE
)
_NOT_PAPERS = frozenset({"dataset", "software", "patent", "image", "multimedia"})


class OstiResolver(JsonSource[tuple[str, str]]):
    """A query is `id` or `doi`, and its value."""

    name = "osti"
    service = "OSTI"
    base_url = "https://www.osti.gov/api/v1"
    nothing_to_ask = "not_mine"
    headers: ClassVar[Mapping[str, str]] = {"accept": "application/json"}

    def queries(self, work: WorkArtifact) -> Sequence[tuple[str, str]]:
        page = named_page(work, _PAGE) if not _is_own(work) else None
        if page is not None:
            return [("id", page["id"])]
        by_doi = _is_own(work) or self.settings.options.get("by_doi", True)
        return [("doi", work.doi)] if by_doi and work.doi is not None else []

    def address(self, query: tuple[str, str]) -> str:
        kind, value = query
        return f"{self.base}/records" + (f"/{value}" if kind == "id" else f"?doi={quote(value, safe='')}&rows=1")

    def parse(self, page: Page) -> Record | None:
        """A bare list of records, or one of them."""
        value = read_json(page)
        if isinstance(value, dict):
            value = [value]
        return Record({"records": value}) if isinstance(value, list) else None

    def read(self, work: WorkArtifact, query: tuple[str, str], record: Record) -> ResolverResult:
        records = record.objects("records")
        if not records:
            return only_note(NOT_IN_INDEX)
        record = records[0]
        if (another := _another(work, query, record)) is not None:
            return only_note(another)
        learned, kind = _learned(work, record), record.lower("product_type")
        if kind in _NOT_PAPERS:
            return only_note(f"not_a_paper: {kind}", learned)
        plans = unique_plans(
            DownloadPlan(
                address,
                self.name,
                version=_version(record),
                host_type="repository",
                evidence="fulltext",
                page_doi=record.doi("doi"),
            )
            for address in _links(record, "fulltext")
        )
        return result_of(plans, learned, "no_open_copy")


def _is_own(work: WorkArtifact) -> bool:
    return (work.doi or "").startswith(_OWN)


def _links(record: Record, rel: str) -> list[str]:
    links = (link.url("href") for link in record.objects("links") if link.text("rel") == rel)
    return [url for url in links if url is not None]


def _another(work: WorkArtifact, query: tuple[str, str], record: Record) -> str | None:
    kind, wanted = query
    said, doi = record.number("osti_id"), record.text("doi")
    if kind == "id" and said not in (None, wanted):
        return wrong_article(f"OSTI {said}")
    if kind == "doi" and not _is_own(work) and record.doi("doi") != work.doi:
        return wrong_article((doi or "no DOI")[:80])
    return about_another(work, dois=[doi], title=record.title("title"), own=(_OWN,))


def _version(record: Record) -> str | None:
    """Articles are there as the author's manuscript or as published, and say which; a report is its own publication."""
    said = (record.text("article_type", "journal_type") or "").lower()
    if "accepted" in said or said == "am":
        return "acceptedVersion"
    is_report = record.lower("product_type") == "technical report"
    return "publishedVersion" if "published" in said or is_report else None


def _learned(work: WorkArtifact, record: Record) -> WorkArtifact:
    return WorkArtifact(
        work_id=work.work_id,
        title=record.title("title"),
        publication_year=record.year("publication_date"),
        doi=work.doi or record.doi("doi"),
        landing_urls=tuple(_links(record, "citation")),
    )
