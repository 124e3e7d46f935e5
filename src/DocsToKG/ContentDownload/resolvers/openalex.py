"""OpenAlex: the open copies of a work by DOI, OpenAlex id or PMID.

One look-up of a single entity, which the service does not charge for. Its own cached copy it does charge for, and
gives to holders of a key: that one comes last.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    AskOnce,
    ResolverSettings,
    encode_segment,
    in_order,
    other_paper,
    unique_plans,
)
from DocsToKG.ContentDownload.resolvers.copy_facts import with_facts
from DocsToKG.ContentDownload.resolvers.index_links import LinkKind, classify_link
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address
from DocsToKG.ContentDownload.resolvers.records.fields import object_of, text_of
from DocsToKG.ContentDownload.resolvers.records.openalex import (
    DEFAULT_BASE_URL,
    FIELDS,
    MOST_COPIES,
    facts_of_location,
    has_cached_pdf,
    open_locations,
    work_of_record,
)

CONTENT_URL = "https://content.openalex.org"
_REMEMBERED = 1000


class OpenAlexResolver(AskOnce[str]):
    name = "openalex"
    service = "OpenAlex"
    check = "check resolvers.openalex.api_key, or leave it unset"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._has_key = bool((settings.api_key or "").strip())
        self._lock = threading.Lock()
        self._said: OrderedDict[str, ResolverResult] = OrderedDict()

    def _named(self, work: WorkArtifact) -> str | None:
        return _entity(work)

    def _address(self, named: str) -> str:
        return f"{self._base}/works/{named}?select={FIELDS}"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        known = self._said.get(_entity(work) or "")
        return known if known is not None else (await super().resolve(work, client, call))

    def _remember(self, entity: str, result: ResolverResult) -> None:
        """Who asked which paper is meant asks for its copies next, by another of its names."""
        if result.work is None:
            return
        with self._lock:
            self._said[entity] = self._said[_entity(result.work) or entity] = result
            while len(self._said) > _REMEMBERED:
                self._said.popitem(last=False)

    def _read(self, work: WorkArtifact, named: str, record: Mapping[str, Any]) -> ResolverResult:
        result = self._result(work, record)
        self._remember(named, result)
        return result

    def _result(self, work: WorkArtifact, record: Mapping[str, Any]) -> ResolverResult:
        learned = work_of_record(record)
        if learned is None:
            return ResolverResult(notes=("malformed_answer",))
        if (note := _about_another(work, learned)) is not None:
            return ResolverResult(notes=(note,))
        places = open_locations(record)
        named = unique_plans(in_order(self._plans(places)))[:MOST_COPIES]
        plans = unique_plans([*named, *self._cached_copy(record, learned)])
        return ResolverResult(plans=plans, notes=tuple(self._notes(record, places, plans)), work=learned)

    def _notes(
        self, record: Mapping[str, Any], places: list[Mapping[str, Any]], plans: tuple[DownloadPlan, ...]
    ) -> Iterator[str]:
        if not plans:
            is_closed = text_of(object_of(record, "open_access"), "oa_status") == Reason.CLOSED
            yield "no_oa_pdf" if places else Reason.CLOSED if is_closed else Reason.NO_OPEN_COPY
        if places and has_cached_pdf(record) and not self._has_key:
            yield "missing_key: OpenAlex holds a copy for holders of a key; set resolvers.openalex.api_key"

    def _plans(self, places: list[Mapping[str, Any]]) -> Iterator[DownloadPlan]:
        for location in places:
            named = file_address(text_of(location, "pdf_url") or "")
            page = classify_link(text_of(location, "landing_page_url"))
            if named is not None:
                yield self._plan(location, named, "pdf_url")
            elif page is not None and page.kind is LinkKind.FILE:
                yield self._plan(location, page.address, "landing_page_url")

    def _plan(self, location: Mapping[str, Any], address: str, evidence: str) -> DownloadPlan:
        return with_facts(
            DownloadPlan(url=address, resolver_name=self.name, evidence=evidence), facts_of_location(location)
        )

    def _cached_copy(self, record: Mapping[str, Any], learned: WorkArtifact) -> Iterator[DownloadPlan]:
        if self._has_key and has_cached_pdf(record) and open_locations(record) and learned.openalex_id is not None:
            yield DownloadPlan(
                url=f"{CONTENT_URL}/works/{learned.openalex_id}.pdf",
                resolver_name=self.name,
                evidence="has_content",
            )


def _about_another(work: WorkArtifact, learned: WorkArtifact) -> str | None:
    """Judged by the name we asked by. A merged work answers under another id of the service's own, and an arXiv id may
    lead to the published paper."""
    if work.doi is not None:
        return other_paper(work, learned)
    asked_by_pmid = work.openalex_id is None and work.pmid is not None
    if asked_by_pmid and learned.pmid not in (None, work.pmid):
        return f"wrong-article: the answer is about PMID {learned.pmid}"
    return None


def _entity(work: WorkArtifact) -> str | None:
    if work.openalex_id is not None:
        return work.openalex_id
    if work.doi is not None:
        return f"doi:{encode_segment(work.doi)}"
    if work.pmid is not None:
        return f"pmid:{work.pmid}"
    return f"doi:10.48550/arxiv.{work.arxiv_id}" if work.arxiv_id is not None else None
