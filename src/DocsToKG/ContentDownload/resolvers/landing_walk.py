"""Go from an address to the plans its page gives: fetch, read, and follow pages that only point on.

A PDF answer is itself a plan. A page about another paper, a challenge or a wall gives a note and no plan.
Promises: at most two further pages, never the same page twice within one `Walk`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.steps import Steps
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import refuse_busy
from DocsToKG.ContentDownload.resolvers.ids import Identifier, arxiv_base, identifier_in_url, to_work
from DocsToKG.ContentDownload.resolvers.landing_page import LandingFacts, PageKind, extract, same_paper
from DocsToKG.core.urls import BadUrl, index_url

_FURTHER_PAGES = 2


@dataclass(slots=True)
class Walk:
    """One source's visits for one work. `pages_left` counts every page asked for."""

    work: WorkArtifact
    source: str
    client: Client
    call: Call
    host_type: str | None = None
    pages_left: int = 4
    seen: set[str] = field(default_factory=set)

    def visit(self, url: str) -> Steps[ResolverResult]:
        """What the page at `url`, or the page it points on to, gives."""
        queue, further = [url], _FURTHER_PAGES
        result = ResolverResult(notes=("page_seen",))
        while queue and self.pages_left > 0:
            address = queue.pop(0)
            if not self._is_new(address):
                continue
            self.pages_left -= 1
            page = yield from self.client.fetch(address, Role.LANDING, self.call)
            self._is_new(page.url)
            result, onward = self._read(page)
            if result.plans:
                break
            onward = onward[:further]
            further -= len(onward)
            queue.extend(onward)
        return result

    def _is_new(self, url: str) -> bool:
        try:
            key = index_url(url)
        except BadUrl:
            return False
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def _read(self, page: Page) -> tuple[ResolverResult, tuple[str, ...]]:
        if page.is_pdf:
            return ResolverResult(plans=(self._plan(page.url, "redirect", referer=None),)), ()
        facts = extract(page.url, page.body, page.headers, status=page.status)
        if facts.kind == PageKind.CHALLENGE:
            return ResolverResult(notes=(f"challenge: {_host(page)}",)), ()
        refuse_busy(page)
        if page.status != 200:
            return ResolverResult(notes=(f"http-status: {page.status} from {_host(page)}",)), ()
        if facts.dois and not self._is_about_it(facts):
            return ResolverResult(notes=(f"wrong-article: the page is about {facts.doi}",)), ()
        plans = tuple(self._plan(link.url, link.evidence, referer=page.url) for link in facts.pdf_links)
        notes = () if plans else (_why_nothing(facts, page),)
        return ResolverResult(plans=plans, notes=notes, work=self._learned(facts, page)), facts.next_urls

    def _is_about_it(self, facts: LandingFacts) -> bool:
        return self.work.doi is None or same_paper(self.work.doi, facts.dois)

    def _plan(self, url: str, evidence: str, *, referer: str | None) -> DownloadPlan:
        return DownloadPlan(
            url=url, resolver_name=self.source, referer=referer, host_type=self.host_type, evidence=evidence
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
    return reason in (Reason.BUDGET_EXHAUSTED, Reason.CANCELLED)
