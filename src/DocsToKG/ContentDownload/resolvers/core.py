"""CORE: copies in repositories, by DOI. The service requires a key; without one it is not queried.

Its `downloadUrl` may be the file, a page, or arXiv's abstract: links are classified by their form. Links back into its
API are left out; they lead nowhere, or away from the host that may see the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    NOT_IN_INDEX,
    DoiSource,
    only_note,
    phrase,
    records_about,
    result_of,
    unique_plans,
)
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.links.classify import (
    LinkKind,
    classified,
    is_on_arxiv,
    pages_of,
    preprint_plan,
)
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.core.urls import BadUrl, host_key

_OWN_API = "api.core.ac.uk"
_MAX_LINKS = 8


class CoreResolver(DoiSource):
    name = "core"
    service = "CORE"
    base_url = "https://api.core.ac.uk/v3"
    check = "check resolvers.core.api_key"

    def missing(self) -> str | None:
        return None if self.settings.has_key else "missing_key"

    def address(self, query: str) -> str:
        # The slash before the question mark spares a redirect.
        return f"{self.base}/search/works/?q={quote('doi:' + phrase(query), safe='')}&limit=5"

    def read(self, work: WorkArtifact, query: str, record: Record) -> ResolverResult:
        results = record.objects("results", at_most=5)
        ours = records_about(work, results)
        if not ours:
            return only_note("wrong-article: no record has this DOI" if results else NOT_IN_INDEX)
        learned = _learned(work, ours)
        return result_of(self._plans(ours, learned.arxiv_id), learned)

    def _plans(self, records: Sequence[Record], arxiv_id: str | None) -> tuple[DownloadPlan, ...]:
        links = [(link, each) for each in records for link in classified(_addresses(each))]
        plans = [
            DownloadPlan(
                link.address,
                self.name,
                license=record.text("license"),
                host_type="repository",
                evidence="downloadUrl",
            )
            for kind in (LinkKind.FILE, LinkKind.UNCLEAR)
            for link, record in links
            if link.kind is kind and not is_on_arxiv(link.address)
        ]
        plans = plans[: _MAX_LINKS - 1]
        if arxiv_id is not None:
            # The preprint comes last, since a copy of unknown version may well be the published one.
            plans.append(preprint_plan(arxiv_id, source=self.name, evidence="arxivId"))
        return unique_plans(plans)


def _addresses(record: Record) -> Iterator[str]:
    downloads = (link.text("url") for link in record.objects("links") if link.text("type") == "download")
    named = [record.text("downloadUrl"), *downloads, *record.texts("sourceFulltextUrls", at_most=10)]
    yield from (address for address in named if address and not _is_own_api(address))


def _is_own_api(address: str) -> bool:
    try:
        return host_key(address.strip()).partition(":")[0] == _OWN_API
    except BadUrl:
        return False


def _learned(work: WorkArtifact, records: Sequence[Record]) -> WorkArtifact:
    first = records[0]
    addresses = [address for each in records for address in _addresses(each)]
    named_arxiv, named_pmcid = copies_named_by(addresses)
    return WorkArtifact(
        work_id=work.work_id,
        title=first.title("title"),
        publication_year=first.year("yearPublished", "publishedDate"),
        doi=work.doi,
        arxiv_id=first.arxiv_id("arxivId") or named_arxiv,
        pmid=first.pmid("pubmedId"),
        pmcid=named_pmcid,
        landing_urls=pages_of(classified(addresses), own_doi=work.doi),
        license=first.text("license"),
    )
