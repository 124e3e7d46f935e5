"""OpenAlex: the open copies of a work by DOI, OpenAlex id or PMID.

One look-up of a single entity, which the service does not charge for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.steps import Steps
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.resolvers.addresses import file_address
from DocsToKG.ContentDownload.resolvers.answers import object_of, read_object, text_of
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, encode_segment, refuse_busy, unique_plans
from DocsToKG.ContentDownload.resolvers.openalex_record import (
    DEFAULT_BASE_URL,
    FIELDS,
    open_locations,
    work_of_record,
)


class OpenAlexResolver:
    name = "openalex"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if _entity(work) is not None else "no_doi"

    def resolve(self, work: WorkArtifact, client: Client, call: Call) -> Steps[ResolverResult]:
        entity = _entity(work)
        if entity is None:
            return ResolverResult(notes=("no_doi",))
        page = yield from client.fetch(f"{self._base}/works/{entity}?select={FIELDS}", Role.METADATA, call)
        return self._read(work, page)

    def _read(self, work: WorkArtifact, page: Page) -> ResolverResult:
        refuse_busy(page)
        if page.status != 200:
            return ResolverResult(notes=(_why_nothing(page.status),))
        record = read_object(page)
        learned = work_of_record(record) if record is not None else None
        if record is None or learned is None:
            return ResolverResult(notes=("malformed_answer",))
        if work.doi is not None and learned.doi not in (None, work.doi):
            return ResolverResult(notes=(f"wrong-article: the answer is about {learned.doi}",))
        places = open_locations(record)
        plans = unique_plans(plan for plan in map(self._plan, places) if plan is not None)
        notes = () if plans else ("no_oa_pdf" if places else "no_open_copy",)
        return ResolverResult(plans=plans, notes=notes, work=learned)

    def _plan(self, location: Mapping[str, Any]) -> DownloadPlan | None:
        link = text_of(location, "pdf_url")
        address = file_address(link) if link is not None else None
        if address is None:
            return None
        in_repository = text_of(object_of(location, "source"), "type") == "repository"
        return DownloadPlan(
            url=address,
            resolver_name=self.name,
            version=text_of(location, "version"),
            license=text_of(location, "license"),
            host_type="repository" if in_repository else "publisher",
            evidence="pdf_url",
        )


def _entity(work: WorkArtifact) -> str | None:
    if work.openalex_id is not None:
        return work.openalex_id
    if work.doi is not None:
        return f"doi:{encode_segment(work.doi)}"
    if work.pmid is not None:
        return f"pmid:{work.pmid}"
    return f"doi:10.48550/arxiv.{work.arxiv_id}" if work.arxiv_id is not None else None


def _why_nothing(status: int) -> str:
    if status == 404:
        return "not_in_index"
    if status in (401, 403):
        return f"refused: OpenAlex answered {status}; check resolvers.openalex.api_key, or leave it unset"
    return f"http-status: {status}"
