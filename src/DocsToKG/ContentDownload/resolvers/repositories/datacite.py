"""DataCite: the address and licence of a DOI that DataCite registered.

Queried for prefixes known to be DataCite's and to hold papers; the list is data. Most records give a page, for the
landing source. Preprints of OSF need no query: their file has a fixed address, which is a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    MALFORMED,
    DoiSource,
    encode_segment,
    in_order,
    only_note,
    result_of,
    unique_plans,
    wrong_article,
)
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_url
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address, page_file
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.ContentDownload.resolvers.repositories.deposits import named_page

# Archives and libraries that deposit papers and theses. Data archives (Dryad, PANGAEA, ...) are left out on purpose.
PREFIXES = frozenset(
    {
        "10.48550", "10.5281", "10.6084", "10.17605", "10.25384", "10.13140",
        "10.4230", "10.3205", "10.5169", "10.7891", "10.22004", "10.25688", "10.18720",
        "10.3929", "10.5167", "10.5075", "10.17863", "10.25560", "10.5287", "10.7916", "10.7907",
        "10.7302", "10.7282", "10.13016", "10.6092",
        "10.5445", "10.18154", "10.14279", "10.17169", "10.18452", "10.25673", "10.26083", "10.15488",
        "10.15480", "10.18419", "10.18725", "10.15496", "10.15495",
        "10.5282", "10.22032", "10.17192", "10.22029", "10.24406", "10.34657", "10.3204",
    }
)  # fmt: skip
_OSF_PREPRINT = re.compile(r"10\.(?!17605/)\d{4,9}/osf\.io/(?P<id>[a-z0-9]{5}(?:_v\d{1,3})?)")
_OSF_PAGE = re.compile(
    r"(?:osf\.io/preprints/\w+|psyarxiv\.com|socarxiv\.org)/(?P<id>[a-z0-9]{5}(?:_v\d{1,3})?)(?:/.*)?"
)
_PAPERS = frozenset(
    {None, "Text", "JournalArticle", "Preprint", "ConferencePaper", "ConferenceProceeding", "Dissertation", "Report",
     "Book", "BookChapter", "DataPaper", "PeerReview", "Standard", "OutputManagementPlan", "Other"}
)  # fmt: skip
_VERSIONS = {"Preprint": "submittedVersion", "JournalArticle": "publishedVersion"}
_SAME_PAPER = frozenset({"IsIdenticalTo", "IsVersionOf", "IsVariantFormOf", "IsPreprintOf"})


class DataciteResolver(DoiSource):
    name = "datacite"
    service = "DataCite"
    base_url = "https://api.datacite.org"
    nothing_to_ask = "not_mine"

    def queries(self, work: WorkArtifact) -> Sequence[str]:
        is_listed = work.doi is not None and work.doi.partition("/")[0] in PREFIXES
        return super().queries(work) if is_listed else []

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if _osf_id(work) is not None else super().applies_to(work)

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        osf_id = None if self.queries(work) else _osf_id(work)
        return _osf(self.name, work, osf_id) if osf_id is not None else await super().resolve(work, client, call)

    def address(self, query: str) -> str:
        return f"{self.base}/dois/{encode_segment(query)}{self.settings.contact()}"

    def read(self, work: WorkArtifact, query: str, record: Record) -> ResolverResult:
        record = record.object("data", "attributes")
        if not record:
            return only_note(MALFORMED)
        if (said := record.doi("doi")) not in (None, work.doi):
            return only_note(wrong_article(said))
        kind = record.object("types").text("resourceTypeGeneral")
        if kind not in _PAPERS:
            return only_note(f"not_a_paper: {(kind or '')[:40]}", _learned(work, record, pages=()))
        plans = unique_plans(in_order(self._plans(work, record, _VERSIONS.get(kind or ""))))
        return result_of(plans, _learned(work, record, pages=_pages(record, plans)))

    def _plans(self, work: WorkArtifact, record: Record, version: str | None) -> Iterator[DownloadPlan]:
        for address, evidence in _addresses(record):
            yield DownloadPlan(
                address,
                self.name,
                version=version,
                license=_license(record),
                host_type="repository",
                evidence=evidence,
                page_doi=work.doi,
                is_guess=evidence == "page_rule",
            )


def _osf_id(work: WorkArtifact) -> str | None:
    named = _OSF_PREPRINT.fullmatch(work.doi or "") or named_page(work, _OSF_PAGE)
    return named["id"] if named is not None else None


def _osf(source: str, work: WorkArtifact, osf_id: str) -> ResolverResult:
    """The file of a preprint on OSF. Its DOI is one of Crossref's, so that DataCite would not know it."""
    page = f"https://osf.io/{osf_id}"
    plan = DownloadPlan(
        f"{page}/download",
        source,
        version="submittedVersion",
        host_type="repository",
        evidence="osf_id",
        is_guess=True,
    )
    return ResolverResult(plans=(plan,), work=WorkArtifact(work_id=work.work_id, landing_urls=(page,)))


def _addresses(record: Record) -> Iterator[tuple[str, str]]:
    """Files that the record names; then the file that the address of its page tells, where a rule knows it."""
    says_pdf = any("pdf" in text.lower() for text in record.texts("formats"))
    for link in record.texts("contentUrl"):
        if (says_pdf or _is_pdf(link)) and (address := file_address(link)) is not None:
            yield address, "contentUrl"
    page = record.url("url")
    if page is None:
        return
    if _is_pdf(page) and (address := file_address(page)) is not None:
        yield address, "url"
    elif (built := page_file(page)) is not None:
        yield built, "page_rule"


def _is_pdf(url: str) -> bool:
    return url.partition("?")[0].lower().endswith(".pdf")


def _pages(record: Record, plans: Sequence[DownloadPlan]) -> tuple[str, ...]:
    files = {plan.url for plan in plans}
    related = (normalize_url(name) for kind, name in _same_papers(record) if kind == "URL")
    return tuple(
        dict.fromkeys(page for page in (record.url("url"), *related) if page is not None and page not in files)
    )


def _same_papers(record: Record) -> Iterator[tuple[str | None, str]]:
    for item in record.objects("relatedIdentifiers"):
        name = item.text("relatedIdentifier")
        if name is not None and item.text("relationType") in _SAME_PAPER:
            yield item.text("relatedIdentifierType"), name


def _license(record: Record) -> str | None:
    """The id of a licence, else its address, else its name; what only says "open access" is no licence."""
    rights = [item for item in record.objects("rightsList") if "info:eu-repo" not in (item.text("rightsUri") or "")]
    said = (item.text(name) for name in ("rightsIdentifier", "rightsUri", "rights") for item in rights)
    return next(filter(None, said), None)


def _learned(work: WorkArtifact, record: Record, pages: tuple[str, ...]) -> WorkArtifact:
    titles = [title for title in record.objects("titles") if title.text("titleType") is None]
    named = [f"oai:arXiv.org:{name}" if kind == "arXiv" else name for kind, name in _same_papers(record)]
    arxiv_id, pmcid = copies_named_by([*named, *pages])
    container = record.object("container")
    return WorkArtifact(
        work_id=work.work_id,
        title=titles[0].title("title") if titles else None,
        publication_year=record.year("publicationYear"),
        doi=work.doi,
        arxiv_id=arxiv_id,
        pmcid=pmcid,
        landing_urls=pages,
        license=_license(record),
        authors=record.authors("creators"),
        first_page=container.text("firstPage"),
        last_page=container.text("lastPage"),
        journal=container.title("title"),
    )
