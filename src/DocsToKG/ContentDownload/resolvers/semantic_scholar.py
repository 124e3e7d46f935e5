"""Semantic Scholar: one open PDF of a paper, found by DOI, arXiv id, PMID or PMCID, and the paper's other names.

The link may be empty, a page, or on arXiv's main host; it is classified by its form, and tried unless it is clearly a
page. Without a key all clients share one rate limit, so 429 is normal.
"""

from __future__ import annotations

from collections.abc import Sequence

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    NO_PDF,
    JsonSource,
    encode_segment,
    only_note,
    other_paper,
    result_of,
    unique_plans,
)
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import arxiv_base, arxiv_of_doi
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.links.classify import (
    Link,
    LinkKind,
    classify_link,
    is_on_arxiv,
    pages_of,
    preprint_plan,
)
from DocsToKG.ContentDownload.resolvers.record import Record

_FIELDS = "externalIds,openAccessPdf,isOpenAccess,title,year,authors"
_HOSTS = {"green": "repository", "gold": "publisher", "hybrid": "publisher", "bronze": "publisher"}


class SemanticScholarResolver(JsonSource[str]):
    name = "semantic_scholar"
    service = "Semantic Scholar"
    base_url = "https://api.semanticscholar.org/graph/v1"
    check = "check resolvers.semantic_scholar.api_key, or leave it unset"

    def queries(self, work: WorkArtifact) -> Sequence[str]:
        names = {
            "DOI": work.doi,
            "ARXIV": arxiv_base(work.arxiv_id) if work.arxiv_id is not None else None,
            "PMID": work.pmid,
            "PMCID": work.pmcid.removeprefix("PMC") if work.pmcid is not None else None,
        }
        return [f"{scheme}:{encode_segment(value)}" for scheme, value in names.items() if value is not None]

    def address(self, query: str) -> str:
        return f"{self.base}/paper/{query}?fields={_FIELDS}"

    def read(self, work: WorkArtifact, query: str, record: Record) -> ResolverResult:
        offered = record.object("openAccessPdf")
        link = classify_link(offered.text("url"))
        learned = _learned(work, record, offered, link)
        if (note := other_paper(work, learned)) is not None:
            return only_note(note)
        plans = []
        if link is not None and link.kind is not LinkKind.PAGE:
            plans.append(self._plan(offered, link.address))
        if learned.arxiv_id is not None:
            # Last, since a copy of unknown version may well be the published one.
            plans.append(preprint_plan(learned.arxiv_id, source=self.name, evidence="externalIds"))
        return result_of(unique_plans(plans), learned, NO_PDF if offered else "no_open_copy")

    def _plan(self, offered: Record, address: str) -> DownloadPlan:
        on_arxiv = is_on_arxiv(address)
        return DownloadPlan(
            address,
            self.name,
            version="submittedVersion" if on_arxiv else None,
            license=offered.text("license"),
            host_type="repository" if on_arxiv else _HOSTS.get(offered.lower("status")),
            evidence="openAccessPdf",
        )


def _learned(work: WorkArtifact, record: Record, offered: Record, link: Link | None) -> WorkArtifact:
    ids = record.object("externalIds")
    doi = ids.doi("DOI")
    # The DOI of a preprint on arXiv is its arXiv id in another spelling.
    preprint = arxiv_of_doi(doi or "")
    named_arxiv, named_pmcid = copies_named_by([offered.text("url") or ""])
    status = offered.lower("status")
    return WorkArtifact(
        work_id=work.work_id,
        title=record.title("title"),
        authors=record.authors("authors"),
        publication_year=record.year("year"),
        doi=doi if preprint is None else None,
        arxiv_id=ids.arxiv_id("ArXiv") or (arxiv_base(preprint) if preprint is not None else named_arxiv),
        pmid=ids.pmid("PubMed"),
        pmcid=ids.pmcid("PubMedCentral") or named_pmcid,
        landing_urls=pages_of([link], own_doi=work.doi),
        license=offered.text("license"),
        # Copies on arXiv come with a status of CLOSED, so that this word says nothing.
        oa_status=status if status in _HOSTS else None,
    )
