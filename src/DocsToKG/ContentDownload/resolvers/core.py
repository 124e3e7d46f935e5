"""CORE: copies in repositories, by DOI. The service answers nobody without a key, so without one it is not asked.

Its `downloadUrl` may be the file, a page, or arXiv's abstract: links are sorted by their looks. Links back into its
API are left out; they lead nowhere, or away from the host that may see the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import AskByDoi, ResolverSettings, unique_plans
from DocsToKG.ContentDownload.resolvers.ids.identifier import identifier_in_url
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import (
    arxiv_base,
    normalize_arxiv,
    normalize_doi,
    normalize_pmid,
)
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.index_links import Link, LinkKind, classify_link, pages_of, preprint_plan
from DocsToKG.ContentDownload.resolvers.records.fields import objects_of, text_of, title_of, year_of
from DocsToKG.core.urls import BadUrl, host_key

DEFAULT_BASE_URL = "https://api.core.ac.uk/v3"
_OWN_API = "api.core.ac.uk"
_MAX_LINKS = 8


class CoreResolver(AskByDoi):
    name = "core"
    service = "CORE"
    check = "check resolvers.core.api_key"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._has_key = bool((settings.api_key or "").strip())

    def applies_to(self, work: WorkArtifact) -> str | None:
        return super().applies_to(work) or (None if self._has_key else "missing_key")

    def _address(self, named: str) -> str:
        # Quotes and backslashes would end the phrase; the slash before the question mark spares a redirect.
        phrase = named.replace("\\", "\\\\").replace('"', '\\"')
        query = quote(f'doi:"{phrase}"', safe="")
        return f"{self._base}/search/works/?q={query}&limit=5"

    def _read(self, work: WorkArtifact, named: str, record: Mapping[str, Any]) -> ResolverResult:
        results = objects_of(record, "results", at_most=5)
        ours = [each for each in results if normalize_doi(text_of(each, "doi") or "") == work.doi]
        if not ours:
            return ResolverResult(notes=("wrong-article: no record has this DOI" if results else "not_in_index",))
        learned = _learned(work, ours)
        plans = self._plans(ours, learned.arxiv_id)
        return ResolverResult(plans=plans, notes=() if plans else ("no_oa_pdf",), work=learned)

    def _plans(self, records: list[Mapping[str, Any]], arxiv_id: str | None) -> tuple[DownloadPlan, ...]:
        links = [(link, text_of(each, "license")) for each in records for link in _links(each)]
        files = [self._plan(*pair) for pair in links if pair[0].kind is LinkKind.FILE]
        plans = files + [self._plan(*pair) for pair in links if pair[0].kind is LinkKind.UNCLEAR]
        # The preprint comes last, since a copy of unknown version may well be the published one.
        plans = [plan for plan in plans if not _is_on_arxiv(plan.url)][: _MAX_LINKS - 1]
        if arxiv_id is not None:
            plans.append(preprint_plan(arxiv_id, source=self.name, evidence="arxivId"))
        return unique_plans(plans)

    def _plan(self, link: Link, licence: str | None) -> DownloadPlan:
        return DownloadPlan(
            url=link.address,
            resolver_name=self.name,
            license=licence,
            host_type="repository",
            evidence="downloadUrl",
        )


def _addresses(record: Mapping[str, Any]) -> Iterator[str]:
    named = [text_of(record, "downloadUrl")]
    named += [text_of(link, "url") for link in objects_of(record, "links") if text_of(link, "type") == "download"]
    listed = record.get("sourceFulltextUrls")
    named += [each for each in (listed if isinstance(listed, list) else [listed])[:10] if isinstance(each, str)]
    yield from (address for address in named if address and not _is_own_api(address))


def _links(record: Mapping[str, Any]) -> list[Link]:
    return [link for link in map(classify_link, _addresses(record)) if link is not None]


def _is_own_api(address: str) -> bool:
    try:
        return host_key(address.strip()).partition(":")[0] == _OWN_API
    except BadUrl:
        return False


def _is_on_arxiv(address: str) -> bool:
    found = identifier_in_url(address)
    return found is not None and found.scheme == "arxiv"


def _learned(work: WorkArtifact, records: list[Mapping[str, Any]]) -> WorkArtifact:
    first = records[0]
    preprint = normalize_arxiv(text_of(first, "arxivId") or "")
    named_arxiv, named_pmcid = copies_named_by(address for each in records for address in _addresses(each))
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(first.get("title")),
        publication_year=year_of(first.get("yearPublished")) or year_of(first.get("publishedDate")),
        doi=work.doi,
        arxiv_id=arxiv_base(preprint) if preprint is not None else named_arxiv,
        pmid=normalize_pmid(text_of(first, "pubmedId") or ""),
        pmcid=named_pmcid,
        landing_urls=pages_of((link for each in records for link in _links(each)), own_doi=work.doi),
        license=text_of(first, "license"),
    )
