"""Go from an address to the plans its page gives: fetch, read, and follow pages that only point on.

A PDF answer is itself a plan. A page about another paper, a challenge or a wall gives a note and no plan. Full text in
other forms comes after the PDFs, an address that only a rule knows comes last and is marked as a guess.
Promises: at most two further pages, never the same page twice within one `LandingVisits`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, Role, Supplement, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.resolvers.ids.addresses import identifier_in_url
from DocsToKG.ContentDownload.resolvers.ids.identifier import to_work
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import Identifier, arxiv_base
from DocsToKG.ContentDownload.resolvers.landing.page import FullTextLink, LandingFacts, PageKind, doi_of_paper, extract
from DocsToKG.ContentDownload.resolvers.links.copy_facts import (
    CopyFacts,
    facts_at,
    is_refusal,
    plans_metadata,
    refusals_metadata,
    with_facts,
)
from DocsToKG.ContentDownload.resolvers.site_rules.rules import PDF, SiteRules
from DocsToKG.core.urls import BadUrl, index_url

_FURTHER_PAGES = 2


@dataclass(slots=True)
class LandingVisits:
    """One source's visits for one work. `pages_left` counts every page asked for."""

    work: WorkArtifact
    source: str
    client: Client
    call: Call
    host_type: str | None = None
    pages_left: int = 4
    rules: SiteRules | None = None
    seen: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)  # pages whose owners do not want them fetched

    async def visit(self, url: str) -> ResolverResult:
        """What the page at `url`, or the page it points on to, gives."""
        queue, further = [url], _FURTHER_PAGES
        result = ResolverResult(notes=("page_seen",))
        while queue and self.pages_left > 0:
            address = queue.pop(0)
            if not self._is_new(address):
                continue
            self.pages_left -= 1
            page = await self._fetch(address)
            self._is_new(page.url)
            result, onward = self._read(page, facts_at(self.work, url, page.url))
            if names_a_pdf(result):
                break
            onward = onward[:further]
            further -= len(onward)
            queue.extend(onward)
        return result

    async def _fetch(self, address: str) -> Page:
        try:
            page = await self.client.fetch(address, Role.LANDING, self.call)
        except CandidateRejected as rejection:
            if is_refusal(rejection.reason, rejection.http_status):
                self.refused.append(address)
            raise
        if is_refusal(None, page.status):
            self.refused += [address, page.url]
        return page

    def with_metadata(self, result: ResolverResult) -> ResolverResult:
        """`result`, with what the sources after this one need to know of the copies met here."""
        metadata = plans_metadata(self.source, result.plans)
        if self.refused:
            metadata |= refusals_metadata(self.source, self.refused)
        if not metadata:
            return result
        learned = WorkArtifact(self.work.work_id, metadata=metadata)
        return replace(result, work=learned.learn(result.work) if result.work is not None else learned)

    def _is_new(self, url: str) -> bool:
        try:
            key = index_url(url)
        except BadUrl:
            return False
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def _read(self, page: Page, known: CopyFacts) -> tuple[ResolverResult, tuple[str, ...]]:
        if page.is_pdf:
            plan = self._plan(FullTextLink(page.url, "redirect"), LandingFacts(), None)
            return ResolverResult(plans=(with_facts(plan, known),)), ()
        facts = extract(page.url, page.body, page.headers, status=page.status, rules=self.rules)
        if facts.kind == PageKind.CHALLENGE:
            return ResolverResult(notes=(f"challenge: {_host(page)}",)), ()
        if page.status != 200:
            return ResolverResult(notes=(f"http-status: {page.status} from {_host(page)}",)), ()
        if facts.dois and not self._is_about_it(facts):
            return ResolverResult(notes=(f"wrong-article: the page is about {facts.doi}",)), ()
        plans = tuple(with_facts(plan, known) for plan in self._plans(facts, page))
        supplements = tuple(Supplement(each.url, each.name, self.source, page.url) for each in facts.supplements)
        notes, learned = tuple(_notes(facts, page)), self._learned(facts, page)
        return ResolverResult(plans, notes, learned, supplements), facts.next_urls

    def _is_about_it(self, facts: LandingFacts) -> bool:
        return self.work.doi is None or doi_of_paper(self.work.doi, facts.dois) is not None

    def _plans(self, facts: LandingFacts, page: Page) -> Iterator[DownloadPlan]:
        for link in (*facts.pdf_links, *facts.other_forms):
            yield self._plan(link, facts, page.url)
        if facts.guess is not None:
            yield replace(self._plan(facts.guess, facts, page.url), is_guess=True)

    def _plan(self, link: FullTextLink, facts: LandingFacts, referer: str | None) -> DownloadPlan:
        return DownloadPlan(
            url=link.url,
            resolver_name=self.source,
            referer=referer,
            expected_mime=link.mime,
            host_type=self.host_type,
            evidence=link.evidence,
            page_doi=doi_of_paper(self.work.doi or "", facts.dois) or facts.doi,
        )

    def _learned(self, facts: LandingFacts, page: Page) -> WorkArtifact | None:
        if facts.kind not in (PageKind.ARTICLE, PageKind.PAYWALL):
            return None
        learned = WorkArtifact(work_id=self.work.work_id, title=facts.title, publication_year=facts.year)
        if facts.doi is not None and self.work.doi is None:
            learned = learned.learn(to_work(Identifier("doi", facts.doi)))
        named = identifier_in_url(page.url)
        if named is not None and named.scheme == "arxiv":
            learned = learned.learn(WorkArtifact(work_id="", arxiv_id=arxiv_base(named.value)))
        return learned


def names_a_pdf(result: ResolverResult) -> bool:
    """Whether there is a plan for a PDF that is more than a guess."""
    return any(plan.expected_mime == PDF and not plan.is_guess for plan in result.plans)


def _notes(facts: LandingFacts, page: Page) -> Iterator[str]:
    if not facts.pdf_links:
        yield _why_nothing(facts, page)
    elif facts.is_free is False:
        yield f"{PageKind.PAYWALL}: {_host(page)} says that the paper is not free"


def _why_nothing(facts: LandingFacts, page: Page) -> str:
    if facts.kind in (PageKind.ARTICLE, PageKind.OTHER):
        return "no_pdf_urls_in_html" if facts.kind == PageKind.ARTICLE else _not_an_article(page)
    return f"{facts.kind}: {_host(page)}"


def _not_an_article(page: Page) -> str:
    kind = page.headers.get("content-type", "").partition(";")[0].strip().lower()
    return "no_pdf_urls_in_html" if "html" in kind or not kind else f"not_html: {kind[:80]}"


def _host(page: Page) -> str:
    return page.url.partition("://")[2].partition("/")[0].rpartition("@")[2][:120]


def is_final(reason: str) -> bool:
    """Whether a rejection ends the work rather than the page: nothing more may be asked."""
    return reason == Reason.BUDGET_EXHAUSTED
