"""The pages known for a work: fetch each, take the PDF links it gives.

Addresses that are themselves files become plans without a visit, and pages of archives that have a source
of their own are left to it. One page's failure does not spoil the others.
"""

from __future__ import annotations

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Supplement, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, in_order, unique_plans
from DocsToKG.ContentDownload.resolvers.ids.addresses import identifier_in_url
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_url
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import (
    file_address,
    is_file_address,
    is_pmc_page,
    known_file,
)
from DocsToKG.ContentDownload.resolvers.landing.visits import LandingVisits, is_final, names_a_pdf
from DocsToKG.ContentDownload.resolvers.links.copy_facts import facts_at, with_facts
from DocsToKG.ContentDownload.resolvers.site_rules.load import rules_with
from DocsToKG.core.urls import mask_url

_MAX_PAGES = 4


class LandingResolver:
    name = "landing"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._max_pages = int(settings.options.get("max_pages", _MAX_PAGES))
        self._rules = rules_with(settings.options.get("site_rules"))

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if work.landing_urls or work.pdf_urls else "no_landing_url"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        if (why_not := self.applies_to(work)) is not None:
            return ResolverResult(notes=(why_not,))
        visits = LandingVisits(work, self.name, client, call, None, self._max_pages, self._rules)
        plans = self.known_files(work)
        notes: list[str] = []
        learned: WorkArtifact | None = None
        supplements: list[Supplement] = []
        away: TransientFailure | None = None
        for url in _pages(work):
            if visits.pages_left <= 0:
                break
            try:
                result = await visits.visit(url)
            except CandidateRejected as rejection:
                if is_final(rejection.reason):
                    raise
                notes.append(f"{rejection.reason}: {mask_url(url)[:200]}")
                continue
            except TransientFailure as failure:
                away = away or failure
                continue
            plans.extend(result.plans)
            notes.extend(result.notes)
            supplements.extend(result.supplements)
            learned = learned.learn(result.work) if learned and result.work else learned or result.work
        if away is not None and not names_a_pdf(ResolverResult(plans=tuple(plans))):
            raise away
        notes = list(dict.fromkeys(notes))
        return visits.with_metadata(
            ResolverResult(unique_plans(in_order(plans)), tuple(notes), learned, tuple(supplements))
        )

    def known_files(self, work: WorkArtifact) -> list[DownloadPlan]:
        """The files that the addresses of the work tell without a visit."""
        plans = []
        for url in work.pdf_urls:
            if (address := file_address(url)) is not None:
                plan = DownloadPlan(address, self.name, evidence="given")
                plans.append(with_facts(plan, facts_at(work, url, address)))
        for url in work.landing_urls:
            if (known := known_file(url, self._rules)) is not None:
                plan = DownloadPlan(
                    url=known.url, resolver_name=self.name, host_type=known.host_type, evidence=known.evidence
                )
                plans.append(with_facts(plan, facts_at(work, url, known.url)))
        return plans


def _pages(work: WorkArtifact) -> list[str]:
    """The pages worth a visit, doi.org's last: the source that follows DOIs has usually been there."""
    pages: list[tuple[bool, str]] = []
    for url in work.landing_urls:
        address = normalize_url(url)
        named = identifier_in_url(url)
        if address is None or is_pmc_page(address) or is_file_address(address):
            continue
        if named is not None and named.scheme in ("arxiv", "openalex"):
            continue
        pages.append((named is not None and named.scheme == "doi", address))
    return [url for _, url in sorted(pages, key=lambda page: page[0])]
