"""CORE: copies in repositories, by DOI. The service answers nobody without a key, so without one it is not asked.

Its `downloadUrl` may be the file, a page, or arXiv's abstract: links are sorted by their looks. Links back into its
API are left out; they lead nowhere, or away from the host that may see the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.steps import Steps
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.resolvers.answers import objects_of, text_of, title_of, year_of
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, in_order, unique_plans
from DocsToKG.ContentDownload.resolvers.id_forms import arxiv_base, normalize_arxiv, normalize_doi, normalize_pmid
from DocsToKG.ContentDownload.resolvers.ids import identifier_in_url
from DocsToKG.ContentDownload.resolvers.index_links import Link, LinkKind, pages_of, preprint_plan, sort_link
from DocsToKG.ContentDownload.resolvers.index_reply import record_or_note
from DocsToKG.ContentDownload.resolvers.repository_ids import copies_named_by

DEFAULT_BASE_URL = "https://api.core.ac.uk/v3"
_OWN_API = "https://api.core.ac.uk/"
_MAX_LINKS = 8


class CoreResolver:
    name = "core"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._has_key = bool((settings.api_key or "").strip())

    def applies_to(self, work: WorkArtifact) -> str | None:
        if work.doi is None:
            return "no_doi"
        return None if self._has_key else "missing_key"

    def resolve(self, work: WorkArtifact, client: Client, call: Call) -> Steps[ResolverResult]:
        if (why_not := self.applies_to(work)) is not None:
            return ResolverResult(notes=(why_not,))
        page = yield from client.fetch(self._address(work.doi or ""), Role.METADATA, call)
        return self._read(work, page)

    def _address(self, doi: str) -> str:
        # Quotes and backslashes would end the phrase; the slash before the question mark spares a redirect.
        phrase = doi.replace("\\", "\\\\").replace('"', '\\"')
        query = quote(f'doi:"{phrase}"', safe="")
        return f"{self._base}/search/works/?q={query}&limit=5"

    def _read(self, work: WorkArtifact, page: Page) -> ResolverResult:
        answer = record_or_note(page, service="CORE", check="check resolvers.core.api_key")
        if isinstance(answer, str):
            return ResolverResult(notes=(answer,))
        results = objects_of(answer, "results", at_most=5)
        ours = [each for each in results if normalize_doi(text_of(each, "doi") or "") == work.doi]
        if not ours:
            return ResolverResult(notes=("wrong-article: no record has this DOI" if results else "not_in_index",))
        links = [link for each in ours for link in map(sort_link, _addresses(each)) if link is not None]
        learned = _learned(work, ours, links)
        plans = self._plans(links, learned)
        return ResolverResult(plans=plans, notes=() if plans else ("no_oa_pdf",), work=learned)

    def _plans(self, links: list[Link], learned: WorkArtifact) -> tuple[DownloadPlan, ...]:
        files = [link for link in links if link.kind is LinkKind.FILE]
        unclear = [link for link in links if link.kind is LinkKind.UNCLEAR]
        plans = [self._plan(link, learned) for link in (*files, *unclear)]
        plans = in_order(plans)
        if learned.arxiv_id is not None:
            # Last, since a copy of unknown version may well be the published one.
            plans.append(preprint_plan(learned.arxiv_id, source=self.name, evidence="arxivId"))
        return unique_plans(plans)[:_MAX_LINKS]

    def _plan(self, link: Link, learned: WorkArtifact) -> DownloadPlan:
        found = identifier_in_url(link.address)
        return DownloadPlan(
            url=link.address,
            resolver_name=self.name,
            version="submittedVersion" if found is not None and found.scheme == "arxiv" else None,
            license=learned.license,
            host_type="repository",
            evidence="downloadUrl",
        )


def _addresses(record: Mapping[str, Any]) -> Iterator[str]:
    named = [text_of(record, "downloadUrl")]
    named += [text_of(link, "url") for link in objects_of(record, "links") if text_of(link, "type") == "download"]
    listed = record.get("sourceFulltextUrls")
    named += [each for each in (listed if isinstance(listed, list) else [listed])[:10] if isinstance(each, str)]
    yield from (address for address in named if address and not address.startswith(_OWN_API))


def _learned(work: WorkArtifact, records: list[Mapping[str, Any]], links: list[Link]) -> WorkArtifact:
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
        landing_urls=pages_of(links, own_doi=work.doi),
        license=text_of(first, "license"),
    )
