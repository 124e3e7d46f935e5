"""Unpaywall: the open copies of a Crossref DOI.

Asks one address per work and uses every location it names: PDF links become plans, landing pages go into the work
for the landing source, and repository ids give the arXiv id or PMCID for theirs.
Not in the index means "ask another source", not "not open".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.steps import Steps
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.resolvers.addresses import file_address, is_pmc_page
from DocsToKG.ContentDownload.resolvers.answers import objects_of, read_object, text_of, title_of, year_of
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, encode_segment, refuse_busy, unique_plans
from DocsToKG.ContentDownload.resolvers.ids import normalize_doi, normalize_url
from DocsToKG.ContentDownload.resolvers.repository_ids import copies_named_by

DEFAULT_BASE_URL = "https://api.unpaywall.org/v2"
_VERSIONS = {"publishedVersion": 0, "acceptedVersion": 1, "submittedVersion": 2}


class UnpaywallResolver:
    name = "unpaywall"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._email = settings.email

    def applies_to(self, work: WorkArtifact) -> str | None:
        if work.doi is None:
            return "no_doi"
        return None if self._email else "missing_email"

    def resolve(self, work: WorkArtifact, client: Client, call: Call) -> Steps[ResolverResult]:
        if (why_not := self.applies_to(work)) is not None:
            return ResolverResult(notes=(why_not,))
        page = yield from client.fetch(self._address(work.doi or ""), Role.METADATA, call)
        return self._read(work, page)

    def _address(self, doi: str) -> str:
        return f"{self._base}/{encode_segment(doi)}?email={quote(self._email or '', safe='@')}"

    def _read(self, work: WorkArtifact, page: Page) -> ResolverResult:
        refuse_busy(page)
        if page.status != 200:
            return ResolverResult(notes=(_why_nothing(page.status),))
        record = read_object(page)
        if record is None:
            return ResolverResult(notes=("malformed_answer",))
        if (said := normalize_doi(text_of(record, "doi") or "")) not in (None, work.doi):
            return ResolverResult(notes=(f"wrong-article: the answer is about {said}",))
        locations = _in_order(objects_of(record, "oa_locations"))
        plans = unique_plans(plan for plan in map(self._plan, locations) if plan is not None)
        notes = () if plans else ("no_oa_pdf" if locations else "no_open_copy",)
        return ResolverResult(plans=plans, notes=notes, work=_learned(work, record, locations))

    def _plan(self, location: Mapping[str, Any]) -> DownloadPlan | None:
        link = text_of(location, "url_for_pdf")
        address = file_address(link) if link is not None else None
        if address is None:
            return None
        return DownloadPlan(
            url=address,
            resolver_name=self.name,
            referer=None,
            version=text_of(location, "version"),
            license=text_of(location, "license"),
            host_type=text_of(location, "host_type"),
            evidence="url_for_pdf",
        )


def _why_nothing(status: int) -> str:
    if status == 404:
        return "not_in_index"
    if status == 422:
        return "bad_email: Unpaywall refuses the contact address; set resolvers.unpaywall.email to a real one"
    if status in (401, 403):
        return f"refused: Unpaywall answered {status}; check the contact address, or ask again tomorrow"
    return f"http-status: {status}"


def _in_order(locations: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """PDF links first, the service's best before the others, then the version nearest to the published one."""

    def rank(location: Mapping[str, Any]) -> tuple[bool, bool, int]:
        has_pdf = text_of(location, "url_for_pdf") is not None
        version = _VERSIONS.get(text_of(location, "version") or "", 3)
        return not has_pdf, location.get("is_best") is not True, version

    return sorted(locations, key=rank)


def _learned(work: WorkArtifact, record: Mapping[str, Any], locations: list[Mapping[str, Any]]) -> WorkArtifact:
    arxiv_id, pmcid = copies_named_by(_names(locations))
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(record.get("title")),
        publication_year=year_of(record.get("year")) or year_of(record.get("published_date")),
        doi=work.doi,
        arxiv_id=arxiv_id,
        pmcid=pmcid,
        landing_urls=tuple(dict.fromkeys(_landing_pages(locations))),
        license=next((found for place in locations if (found := text_of(place, "license"))), None),
        oa_status=text_of(record, "oa_status"),
    )


def _names(locations: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for location in locations:
        for field in ("pmh_id", "url_for_pdf", "url_for_landing_page", "url"):
            if (name := text_of(location, field)) is not None:
                yield name


def _landing_pages(locations: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for location in locations:
        page = text_of(location, "url_for_landing_page") or text_of(location, "url")
        address = normalize_url(page) if page is not None and page != text_of(location, "url_for_pdf") else None
        if address is not None and not is_pmc_page(address):
            yield address
