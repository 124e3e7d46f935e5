"""OpenAlex: the open copies of a work by DOI, OpenAlex id or PMID.

One look-up of a single entity, which the service does not charge for. Its own cached copy it does charge for, and
gives to holders of a key: that one comes last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.steps import Steps
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.resolvers.addresses import file_address
from DocsToKG.ContentDownload.resolvers.answers import object_of, text_of
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, encode_segment, in_order, unique_plans
from DocsToKG.ContentDownload.resolvers.index_links import LinkKind, sort_link
from DocsToKG.ContentDownload.resolvers.index_reply import other_paper, record_or_note
from DocsToKG.ContentDownload.resolvers.openalex_record import (
    DEFAULT_BASE_URL,
    FIELDS,
    has_cached_pdf,
    open_locations,
    work_of_record,
)

CONTENT_URL = "https://content.openalex.org"


class OpenAlexResolver:
    name = "openalex"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._has_key = bool((settings.api_key or "").strip())

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if _entity(work) is not None else "no_doi"

    def resolve(self, work: WorkArtifact, client: Client, call: Call) -> Steps[ResolverResult]:
        entity = _entity(work)
        if entity is None:
            return ResolverResult(notes=("no_doi",))
        page = yield from client.fetch(f"{self._base}/works/{entity}?select={FIELDS}", Role.METADATA, call)
        return self._read(work, page)

    def _read(self, work: WorkArtifact, page: Page) -> ResolverResult:
        answer = record_or_note(page, service="OpenAlex", check="check resolvers.openalex.api_key, or leave it unset")
        if isinstance(answer, str):
            return ResolverResult(notes=(answer,))
        learned = work_of_record(answer)
        if learned is None:
            return ResolverResult(notes=("malformed_answer",))
        if work.doi is not None and (note := other_paper(work, learned)) is not None:
            return ResolverResult(notes=(note,))
        places = open_locations(answer)
        plans = unique_plans([*in_order(self._plans(places)), *self._cached_copy(answer, learned)])
        return ResolverResult(plans=plans, notes=tuple(self._notes(answer, places, plans)), work=learned)

    def _notes(
        self, record: Mapping[str, Any], places: list[Mapping[str, Any]], plans: tuple[DownloadPlan, ...]
    ) -> Iterator[str]:
        if not plans:
            yield "no_oa_pdf" if places else "no_open_copy"
        if places and has_cached_pdf(record) and not self._has_key:
            yield "missing_key: OpenAlex holds a copy for holders of a key; set resolvers.openalex.api_key"

    def _plans(self, places: list[Mapping[str, Any]]) -> Iterator[DownloadPlan]:
        for location in places:
            named = file_address(text_of(location, "pdf_url") or "")
            page = sort_link(text_of(location, "landing_page_url"))
            if named is not None:
                yield self._plan(location, named, "pdf_url")
            elif page is not None and page.kind is LinkKind.FILE:
                yield self._plan(location, page.address, "landing_page_url")

    def _plan(self, location: Mapping[str, Any], address: str, evidence: str) -> DownloadPlan:
        in_repository = text_of(object_of(location, "source"), "type") == "repository"
        return DownloadPlan(
            url=address,
            resolver_name=self.name,
            version=text_of(location, "version"),
            license=text_of(location, "license"),
            host_type="repository" if in_repository else "publisher",
            evidence=evidence,
        )

    def _cached_copy(self, record: Mapping[str, Any], learned: WorkArtifact) -> Iterator[DownloadPlan]:
        if self._has_key and has_cached_pdf(record) and open_locations(record) and learned.openalex_id is not None:
            yield DownloadPlan(
                url=f"{CONTENT_URL}/works/{learned.openalex_id}.pdf",
                resolver_name=self.name,
                license=learned.license,
                evidence="has_content",
            )


def _entity(work: WorkArtifact) -> str | None:
    if work.openalex_id is not None:
        return work.openalex_id
    if work.doi is not None:
        return f"doi:{encode_segment(work.doi)}"
    if work.pmid is not None:
        return f"pmid:{work.pmid}"
    return f"doi:10.48550/arxiv.{work.arxiv_id}" if work.arxiv_id is not None else None
