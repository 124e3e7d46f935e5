"""OSTI: full text of research paid for by the US Department of Energy.

A page there names a record; else the DOI is looked up, that of another house only if the option `by_doi` is on. The
full text is named by the record; records without that link have none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, no_record_note, unique_plans
from DocsToKG.ContentDownload.resolvers.deposits import (
    about_another,
    named_page,
    number_of,
    read_records,
)
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi, normalize_url
from DocsToKG.ContentDownload.resolvers.records.fields import objects_of, text_of, title_of, year_of

DEFAULT_BASE_URL = "https://www.osti.gov/api/v1"
_OWN = "10.2172/"
_PAGE = re.compile(
    r"osti\.gov/(?:[a-z]+/)?(?:biblio|servlets/purl|api/v1/records)/(?P<id>\d{1,12})(?:[-/.].*)?", re.IGNORECASE
)
_NOT_PAPERS = frozenset({"dataset", "software", "patent", "image", "multimedia"})


class OstiResolver:
    name = "osti"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._by_doi = bool(settings.options.get("by_doi", True))

    def applies_to(self, work: WorkArtifact) -> str | None:
        has_doi = _is_own(work) or (self._by_doi and work.doi is not None)
        return None if has_doi or named_page(work, _PAGE) is not None else "not_mine"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        if (why_not := self.applies_to(work)) is not None:
            return ResolverResult(notes=(why_not,))
        named = named_page(work, _PAGE) if not _is_own(work) else None
        osti_id = named["id"] if named is not None else None
        asked = f"/{osti_id}" if osti_id is not None else f"?doi={quote(work.doi or '', safe='')}&rows=1"
        page = await client.fetch(
            f"{self._base}/records{asked}", Role.METADATA, call, headers={"accept": "application/json"}
        )
        return self._read(work, osti_id, page)

    def _read(self, work: WorkArtifact, osti_id: str | None, page: Page) -> ResolverResult:
        if page.status != 200:
            return ResolverResult(notes=(no_record_note(page.status, "OSTI", "check resolvers.osti.base_url"),))
        records = read_records(page)
        if records is None:
            return ResolverResult(notes=("malformed_answer",))
        if not records:
            return ResolverResult(notes=("not_in_index",))
        record = records[0]
        if (another := _another(work, osti_id, record)) is not None:
            return ResolverResult(notes=(another,))
        kind = (text_of(record, "product_type") or "").lower()
        if kind in _NOT_PAPERS:
            return ResolverResult(notes=(f"not_a_paper: {kind}",), work=_learned(work, record))
        plans = self._plans(record)
        return ResolverResult(plans=plans, notes=() if plans else ("no_open_copy",), work=_learned(work, record))

    def _plans(self, record: Mapping[str, Any]) -> tuple[DownloadPlan, ...]:
        return unique_plans(
            DownloadPlan(
                url=address,
                resolver_name=self.name,
                version=_version(record),
                host_type="repository",
                evidence="fulltext",
                page_doi=normalize_doi(text_of(record, "doi") or ""),
            )
            for address in _links(record, "fulltext")
        )


def _is_own(work: WorkArtifact) -> bool:
    return (work.doi or "").startswith(_OWN)


def _links(record: Mapping[str, Any], rel: str) -> list[str]:
    links = (text_of(link, "href") for link in objects_of(record, "links") if text_of(link, "rel") == rel)
    return [url for href in links if href is not None and (url := normalize_url(href)) is not None]


def _another(work: WorkArtifact, osti_id: str | None, record: Mapping[str, Any]) -> str | None:
    said = number_of(record, "osti_id")
    if osti_id is not None and said not in (None, osti_id):
        return f"wrong-article: the answer is about OSTI {said}"
    doi = text_of(record, "doi")
    if osti_id is None and not _is_own(work) and normalize_doi(doi or "") != work.doi:
        return f"wrong-article: the answer is about {(doi or 'no DOI')[:80]}"
    return about_another(work, dois=[doi], title=title_of(record.get("title")), own=(_OWN,))


def _version(record: Mapping[str, Any]) -> str | None:
    """Articles are there as the author's manuscript or as published, and say which; a report is its own publication."""
    said = (text_of(record, "article_type") or text_of(record, "journal_type") or "").lower()
    if "accepted" in said or said == "am":
        return "acceptedVersion"
    is_report = (text_of(record, "product_type") or "").lower() == "technical report"
    return "publishedVersion" if "published" in said or is_report else None


def _learned(work: WorkArtifact, record: Mapping[str, Any]) -> WorkArtifact:
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(record.get("title")),
        publication_year=year_of(record.get("publication_date")),
        doi=work.doi or normalize_doi(text_of(record, "doi") or ""),
        landing_urls=tuple(_links(record, "citation")),
    )
