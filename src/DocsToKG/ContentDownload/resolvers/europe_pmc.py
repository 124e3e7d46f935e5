"""Europe PMC: open full text by DOI, PMCID or PMID, preprints included.

One search per identifier until one is known. Only links marked as open (`OA`) or free (`F`) are used: PDFs become
plans; articles that Europe PMC renders have a second address, and XML. A record about another DOI gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from urllib.parse import urlencode

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Supplement, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    NO_PDF,
    NOT_IN_INDEX,
    JsonSource,
    in_order,
    only_note,
    phrase,
    unique_plans,
    wrong_article,
)
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_pmcid, normalize_pmid
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address, is_pmc_page
from DocsToKG.ContentDownload.resolvers.record import Record

RENDER_URL = "https://europepmc.org"
_MOST_RESULTS = 5
_OPEN_CODES = frozenset({"OA", "F"})
_MANUSCRIPT_FLAGS = ("authMan", "epmcAuthMan", "nihAuthMan")
_FULL_TEXT_ID = re.compile(r"(?:PMC|PPR)[1-9][0-9]{0,11}")


class EuropePmcResolver(JsonSource[str]):
    name = "europe_pmc"
    service = "Europe PMC"
    base_url = "https://www.ebi.ac.uk/europepmc/webservices/rest"
    check = "check resolvers.europe_pmc.base_url, or ask again later"
    most_queries = 2

    def queries(self, work: WorkArtifact) -> Sequence[str]:
        """The DOI is the surest name; the others help where the index has the article without its DOI."""
        pmcid, pmid = normalize_pmcid(work.pmcid or ""), normalize_pmid(work.pmid or "")
        queries = (
            f"DOI:{phrase(work.doi)}" if work.doi is not None else None,
            f"PMCID:{pmcid}" if pmcid is not None else None,
            f"EXT_ID:{pmid} AND SRC:MED" if pmid is not None else None,
        )
        return [query for query in queries if query is not None]

    def address(self, query: str) -> str:
        parameters = {"query": query, "resultType": "core", "format": "json", "pageSize": _MOST_RESULTS}
        return f"{self.base}/search?{urlencode(parameters)}"

    def read(self, work: WorkArtifact, query: str, record: Record) -> ResolverResult:
        found = record.object("resultList").objects("result", at_most=_MOST_RESULTS)
        ours = [Article(each) for each in found if _is_about(each, work)]
        if not ours:
            return only_note(wrong_article(found[0].doi("doi")) if found else NOT_IN_INDEX)
        plans = unique_plans(in_order(plan for article in ours for plan in self._plans(article)))
        notes: tuple[str, ...] = ()
        if not any(plan.expected_mime == "application/pdf" for plan in plans):
            notes = (NO_PDF if any(article.is_open for article in ours) else "no_open_copy",)
        learned = reduce(WorkArtifact.learn, map(_learned, ours), WorkArtifact(work.work_id))
        return ResolverResult(plans, notes, learned, tuple(self._supplements(ours)))

    def _supplements(self, articles: Sequence[Article]) -> Iterator[Supplement]:
        """All of them in one archive."""
        for article in articles:
            if article.has("hasSuppl") and article.is_open and article.pmcid is not None:
                address = f"{self.base}/{article.pmcid}/supplementaryFiles"
                yield Supplement(address, f"{article.pmcid}-supplements.zip", self.name)

    def _plans(self, article: Article) -> Iterator[DownloadPlan]:
        for link in article.pdf_links:
            if (address := file_address(link.url)) is not None:
                yield self._plan(article, address, "full_text_url", is_at_home=link.is_at_home)
        if article.pmcid is not None and article.renders_pdf:
            yield self._plan(article, f"{RENDER_URL}/articles/{article.pmcid}?pdf=render", "has_pdf")
            other = f"{RENDER_URL}/backend/ptpmcrender.fcgi?accid={article.pmcid}&blobtype=pdf"
            yield self._plan(article, other, "has_pdf")
        if article.is_open and article.full_text_id is not None:
            address = f"{self.base}/{article.full_text_id}/fullTextXML"
            yield self._plan(article, address, "full_text_xml", mime="application/xml")

    def _plan(
        self, article: Article, url: str, evidence: str, *, is_at_home: bool = True, mime: str = "application/pdf"
    ) -> DownloadPlan:
        # What lies on another site may be any version, except that of a preprint.
        is_known = is_at_home or article.is_preprint
        return DownloadPlan(
            url,
            self.name,
            expected_mime=mime,
            version=article.version if is_known else None,
            license=article.record.text("license"),
            host_type="repository" if is_known else None,
            evidence=evidence,
        )


@dataclass(frozen=True, slots=True)
class Link:
    """An open link, to Europe PMC itself or to another site."""

    url: str
    style: str
    is_at_home: bool


class Article:
    """What a record says of an article. Its flags are "Y" and "N"; the source `PPR` is a preprint."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.pmcid = record.pmcid("pmcid")
        self.is_open = self.has("isOpenAccess")
        self.is_preprint = record.text("source") == "PPR"
        self.links = tuple(_links(record))
        self.pdf_links = [link for link in self.links if link.style == "pdf"]

    def has(self, flag: str) -> bool:
        return self.record.text(flag) == "Y"

    @property
    def version(self) -> str:
        if self.is_preprint:
            return "submittedVersion"
        return "acceptedVersion" if any(map(self.has, _MANUSCRIPT_FLAGS)) else "publishedVersion"

    @property
    def renders_pdf(self) -> bool:
        """Europe PMC has the PDF and shows it to everyone."""
        is_held = self.has("hasPDF") and self.has("inEPMC") and self.is_open
        return is_held or any(link.is_at_home for link in self.pdf_links)

    @property
    def full_text_id(self) -> str | None:
        ids = self.record.object("fullTextIdList").texts("fullTextId", at_most=10)
        return self.pmcid or next((name for name in ids if _FULL_TEXT_ID.fullmatch(name)), None)


def _links(record: Record) -> Iterator[Link]:
    for link in record.object("fullTextUrlList").objects("fullTextUrl", at_most=20):
        url, style = link.url("url"), link.text("documentStyle")
        if url is not None and style is not None and link.text("availabilityCode") in _OPEN_CODES:
            yield Link(url, style.lower(), is_at_home=link.text("site") == "Europe_PMC")


def _is_about(record: Record, work: WorkArtifact) -> bool:
    """The same DOI where both have one, else the same PMCID or PMID."""
    doi, pmcid, pmid = record.doi("doi"), record.pmcid("pmcid"), record.pmid("pmid")
    if work.doi is not None and doi is not None:
        return work.doi == doi
    return (pmcid is not None and pmcid == work.pmcid) or (pmid is not None and pmid == work.pmid)


def _learned(article: Article) -> WorkArtifact:
    record = article.record
    pages = (link.url for link in article.links if link.style == "html" and not link.is_at_home)
    kinds = {kind.lower() for kind in record.object("pubTypeList").texts("pubType", at_most=50)}
    first_page, last_page = record.pages("pageInfo")
    return WorkArtifact(
        work_id="",
        title=record.title("title"),
        authors=record.object("authorList").authors("author"),
        first_page=first_page,
        last_page=last_page,
        journal=record.object("journalInfo", "journal").title("title"),
        publication_year=record.year("pubYear"),
        doi=record.doi("doi"),
        pmcid=article.pmcid,
        pmid=record.pmid("pmid"),
        license=record.text("license"),
        is_retracted=True if "retracted publication" in kinds else None,
        landing_urls=tuple(dict.fromkeys(url for url in pages if not is_pmc_page(url))),
    )
