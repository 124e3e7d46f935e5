"""Semantic Scholar: one open PDF of a paper, found by DOI, arXiv id, PMID or PMCID, and the paper's other names.

The link may be empty, a page, or stand on arXiv's main host; it is sorted by its looks, and tried when it is not
plainly a page. Without a key all the world shares one pool, so being told to come back later is normal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import AskOnce, ResolverSettings, encode_segment, other_paper, unique_plans
from DocsToKG.ContentDownload.resolvers.ids.identifier import identifier_in_url
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import (
    arxiv_base,
    arxiv_of_doi,
    normalize_arxiv,
    normalize_doi,
    normalize_pmcid,
    normalize_pmid,
)
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.index_links import Link, LinkKind, classify_link, pages_of, preprint_plan
from DocsToKG.ContentDownload.resolvers.records.fields import authors_of, object_of, text_of, title_of, year_of

DEFAULT_BASE_URL = "https://api.semanticscholar.org/graph/v1"
_FIELDS = "externalIds,openAccessPdf,isOpenAccess,title,year,authors"
_HOSTS = {"green": "repository", "gold": "publisher", "hybrid": "publisher", "bronze": "publisher"}


class SemanticScholarResolver(AskOnce[str]):
    name = "semantic_scholar"
    service = "Semantic Scholar"
    check = "check resolvers.semantic_scholar.api_key, or leave it unset"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def _named(self, work: WorkArtifact) -> str | None:
        return _paper(work)

    def _address(self, named: str) -> str:
        return f"{self._base}/paper/{named}?fields={_FIELDS}"

    def _read(self, work: WorkArtifact, named: str, record: Mapping[str, Any]) -> ResolverResult:
        offered = object_of(record, "openAccessPdf")
        link = classify_link(text_of(offered, "url"))
        learned = _learned(work, record, offered, link)
        if (note := other_paper(work, learned)) is not None:
            return ResolverResult(notes=(note,))
        plans = self._plans(offered, link, learned)
        notes = () if plans else ("no_oa_pdf" if offered else "no_open_copy",)
        return ResolverResult(plans=plans, notes=notes, work=learned)

    def _plans(self, offered: Mapping[str, Any], link: Link | None, learned: WorkArtifact) -> tuple[DownloadPlan, ...]:
        plans = []
        if link is not None and link.kind is not LinkKind.PAGE:
            plans.append(self._plan(offered, link))
        if learned.arxiv_id is not None:
            # Last, since a copy of unknown version may well be the published one.
            plans.append(preprint_plan(learned.arxiv_id, source=self.name, evidence="externalIds"))
        return unique_plans(plans)

    def _plan(self, offered: Mapping[str, Any], link: Link) -> DownloadPlan:
        found = identifier_in_url(link.address)
        on_arxiv = found is not None and found.scheme == "arxiv"
        return DownloadPlan(
            url=link.address,
            resolver_name=self.name,
            version="submittedVersion" if on_arxiv else None,
            license=text_of(offered, "license"),
            host_type="repository" if on_arxiv else _HOSTS.get((text_of(offered, "status") or "").lower()),
            evidence="openAccessPdf",
        )


def _paper(work: WorkArtifact) -> str | None:
    if work.doi is not None:
        return f"DOI:{encode_segment(work.doi)}"
    if work.arxiv_id is not None:
        return f"ARXIV:{encode_segment(arxiv_base(work.arxiv_id))}"
    if work.pmid is not None:
        return f"PMID:{encode_segment(work.pmid)}"
    return f"PMCID:{encode_segment(work.pmcid.removeprefix('PMC'))}" if work.pmcid is not None else None


def _learned(
    work: WorkArtifact, record: Mapping[str, Any], offered: Mapping[str, Any], link: Link | None
) -> WorkArtifact:
    ids = object_of(record, "externalIds")
    doi = normalize_doi(text_of(ids, "DOI") or "")
    preprint = normalize_arxiv(text_of(ids, "ArXiv") or "") or arxiv_of_doi(doi or "")
    named_arxiv, named_pmcid = copies_named_by([text_of(offered, "url") or ""])
    status = (text_of(offered, "status") or "").lower()
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(record.get("title")),
        authors=authors_of(record, "authors"),
        publication_year=year_of(record.get("year")),
        # The DOI of a preprint on arXiv is its arXiv id in another spelling.
        doi=None if arxiv_of_doi(doi or "") else doi,
        arxiv_id=arxiv_base(preprint) if preprint is not None else named_arxiv,
        pmid=normalize_pmid(_number(ids, "PubMed")),
        pmcid=normalize_pmcid(_number(ids, "PubMedCentral")) or named_pmcid,
        landing_urls=pages_of([link], own_doi=work.doi),
        license=text_of(offered, "license"),
        # Copies on arXiv come with a status of CLOSED, so that this word says nothing.
        oa_status=status if status in _HOSTS else None,
    )


def _number(record: Mapping[str, Any], name: str) -> str:
    """An id that may be written as a number."""
    value = record.get(name)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_of(record, name) or ""
