"""DataCite: the address and licence of a DOI that DataCite registered.

Asked for prefixes known to be DataCite's and to hold papers; the list is data and grows. Most records give a page, for
the landing source. Preprints of OSF need no question: their file has a fixed address, which is only a guess until
somebody answers there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    ResolverSettings,
    encode_segment,
    in_order,
    no_record_note,
    unique_plans,
)
from DocsToKG.ContentDownload.resolvers.deposits import named_page, texts_of
from DocsToKG.ContentDownload.resolvers.ids.identifier import normalize_doi, normalize_url
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address, page_file
from DocsToKG.ContentDownload.resolvers.records.fields import (
    authors_of,
    object_of,
    objects_of,
    read_object,
    text_of,
    title_of,
    year_of,
)

DEFAULT_BASE_URL = "https://api.datacite.org"
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


class DataciteResolver:
    name = "datacite"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._email = settings.email

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if _is_listed(work) or _osf_id(work) is not None else "not_mine"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        if not _is_listed(work):
            osf_id = _osf_id(work)
            return _osf(self.name, work, osf_id) if osf_id is not None else ResolverResult(notes=("not_mine",))
        page = await client.fetch(self._address(work.doi or ""), Role.METADATA, call)
        return self.read(work, page)

    def _address(self, doi: str) -> str:
        contact = f"?mailto={quote(self._email, safe='@')}" if self._email else ""
        return f"{self._base}/dois/{encode_segment(doi)}{contact}"

    def read(self, work: WorkArtifact, page: Page) -> ResolverResult:
        if page.status != 200:
            return ResolverResult(notes=(no_record_note(page.status, "DataCite", "check resolvers.datacite.base_url"),))
        answer = read_object(page)
        record = object_of(object_of(answer or {}, "data"), "attributes")
        if not record:
            return ResolverResult(notes=("malformed_answer",))
        if (said := normalize_doi(text_of(record, "doi") or "")) not in (None, work.doi):
            return ResolverResult(notes=(f"wrong-article: the answer is about {said}",))
        kind = text_of(object_of(record, "types"), "resourceTypeGeneral")
        if kind not in _PAPERS:
            return ResolverResult(notes=(f"not_a_paper: {(kind or '')[:40]}",), work=_learned(work, record, pages=()))
        plans = unique_plans(in_order(self._plans(work, record)))
        learned = _learned(work, record, pages=_pages(record, plans))
        return ResolverResult(plans=plans, notes=() if plans else ("no_oa_pdf",), work=learned)

    def _plans(self, work: WorkArtifact, record: Mapping[str, Any]) -> Iterator[DownloadPlan]:
        version = _VERSIONS.get(text_of(object_of(record, "types"), "resourceTypeGeneral") or "")
        for address, evidence in _addresses(record):
            yield DownloadPlan(
                url=address,
                resolver_name=self.name,
                version=version,
                license=_license(record),
                host_type="repository",
                evidence=evidence,
                page_doi=work.doi,
                is_guess=evidence == "page_rule",
            )


def _is_listed(work: WorkArtifact) -> bool:
    return (work.doi or "").partition("/")[0] in PREFIXES


def _osf_id(work: WorkArtifact) -> str | None:
    named = _OSF_PREPRINT.fullmatch(work.doi or "") or named_page(work, _OSF_PAGE)
    return named["id"] if named is not None else None


def _osf(source: str, work: WorkArtifact, osf_id: str) -> ResolverResult:
    """The file of a preprint on OSF. Its DOI is one of Crossref's, so that DataCite would not know it."""
    page = f"https://osf.io/{osf_id}"
    plan = DownloadPlan(
        url=f"{page}/download",
        resolver_name=source,
        version="submittedVersion",
        host_type="repository",
        evidence="osf_id",
        is_guess=True,
    )
    return ResolverResult(plans=(plan,), work=WorkArtifact(work_id=work.work_id, landing_urls=(page,)))


def _addresses(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Files that the record names; then the file that the address of its page tells, where a rule knows it."""
    says_pdf = any("pdf" in text.lower() for text in texts_of(record, "formats"))
    for link in texts_of(record, "contentUrl"):
        if (says_pdf or _is_pdf(link)) and (address := file_address(link)) is not None:
            yield address, "contentUrl"
    page = normalize_url(text_of(record, "url") or "")
    if page is None:
        return
    if _is_pdf(page) and (address := file_address(page)) is not None:
        yield address, "url"
    elif (built := page_file(page)) is not None:
        yield built, "page_rule"


def _is_pdf(url: str) -> bool:
    return url.partition("?")[0].lower().endswith(".pdf")


def _pages(record: Mapping[str, Any], plans: Iterable[DownloadPlan]) -> tuple[str, ...]:
    files = {plan.url for plan in plans}
    links = [text_of(record, "url"), *(name for kind, name in _same_papers(record) if kind == "URL")]
    found = (normalize_url(link) for link in links if link is not None)
    return tuple(dict.fromkeys(page for page in found if page is not None and page not in files))


def _same_papers(record: Mapping[str, Any]) -> Iterator[tuple[str | None, str]]:
    for item in objects_of(record, "relatedIdentifiers"):
        name = text_of(item, "relatedIdentifier")
        if name is not None and text_of(item, "relationType") in _SAME_PAPER:
            yield text_of(item, "relatedIdentifierType"), name


def _license(record: Mapping[str, Any]) -> str | None:
    """The id of a licence, else its address, else its name; what only says "open access" is no licence."""
    rights = objects_of(record, "rightsList")
    for field in ("rightsIdentifier", "rightsUri", "rights"):
        for item in rights:
            said = text_of(item, field)
            is_access = "info:eu-repo" in (text_of(item, "rightsUri") or "")
            if said is not None and not is_access:
                return said
    return None


def _learned(work: WorkArtifact, record: Mapping[str, Any], pages: tuple[str, ...]) -> WorkArtifact:
    titles = [title for title in objects_of(record, "titles") if text_of(title, "titleType") is None]
    named = [f"oai:arXiv.org:{name}" if kind == "arXiv" else name for kind, name in _same_papers(record)]
    arxiv_id, pmcid = copies_named_by([*named, *pages])
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(titles[0].get("title")) if titles else None,
        publication_year=year_of(record.get("publicationYear")),
        doi=work.doi,
        arxiv_id=arxiv_id,
        pmcid=pmcid,
        landing_urls=pages,
        license=_license(record),
        authors=authors_of(record, "creators"),
        first_page=text_of(object_of(record, "container"), "firstPage"),
        last_page=text_of(object_of(record, "container"), "lastPage"),
        journal=title_of(object_of(record, "container").get("title")),
    )
