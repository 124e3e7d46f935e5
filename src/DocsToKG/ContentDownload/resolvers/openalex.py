"""OpenAlex: the open copies of a work by DOI, OpenAlex id or PMID.

One look-up of a single entity, which is free of charge. The copy that OpenAlex caches requires a key and is charged
for: it comes last. In its records PMC copies carry no PMCID but a page address without the prefix, an open location may
have no PDF, and ids of copies have a scheme of their own (`pmh:oai:...`, `pmid:...`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    MALFORMED,
    NO_PDF,
    JsonSource,
    ResolverSettings,
    encode_segment,
    in_order,
    only_note,
    other_paper,
    unique_plans,
    wrong_article,
)
from DocsToKG.ContentDownload.resolvers.ids.identifier import work_of
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import (
    Identifier,
    normalize_openalex,
    normalize_pmcid,
    normalize_pmid,
)
from DocsToKG.ContentDownload.resolvers.ids.repositories import archive_metadata, copies_named_by, pages_of_location
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address, is_pmc_page
from DocsToKG.ContentDownload.resolvers.links.classify import LinkKind, classify_link
from DocsToKG.ContentDownload.resolvers.links.copy_facts import CopyFacts, copies_metadata
from DocsToKG.ContentDownload.resolvers.record import Record

DEFAULT_BASE_URL = "https://api.openalex.org"
CONTENT_URL = "https://content.openalex.org"
FIELDS = (
    "id,doi,ids,title,publication_year,open_access,best_oa_location,locations,type,is_retracted,has_content,authorships,"
    "biblio,primary_location"
)
_UNSAID = "unsaid"  # of the host of a copy that no location describes
_MOST_COPIES = 8  # of one work that are tried: the other sources must have their turn
_REMEMBERED = 1000


class OpenAlexResolver(JsonSource[str]):
    name = "openalex"
    service = "OpenAlex"
    base_url = DEFAULT_BASE_URL
    check = "check resolvers.openalex.api_key, or leave it unset"

    def __init__(self, *, settings: ResolverSettings) -> None:
        super().__init__(settings=settings)
        self._lock = threading.Lock()
        self._results: OrderedDict[str, ResolverResult] = OrderedDict()

    def queries(self, work: WorkArtifact) -> Sequence[str]:
        entities = (
            work.openalex_id,
            f"doi:{encode_segment(work.doi)}" if work.doi is not None else None,
            f"pmid:{work.pmid}" if work.pmid is not None else None,
            f"doi:10.48550/arxiv.{work.arxiv_id}" if work.arxiv_id is not None else None,
        )
        return [entity for entity in entities if entity is not None][:1]

    def address(self, query: str) -> str:
        return f"{self.base}/works/{query}?select={FIELDS}"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        known = next((self._results[entity] for entity in self.queries(work) if entity in self._results), None)
        return known if known is not None else await super().resolve(work, client, call)

    def read(self, work: WorkArtifact, query: str, record: Record) -> ResolverResult:
        learned = work_of_record(record)
        if learned is None:
            return only_note(MALFORMED)
        if (note := _about_another(work, learned)) is not None:
            return only_note(note)
        locations = open_locations(record)
        named = unique_plans(in_order(self._plans(locations)))[:_MOST_COPIES]
        plans = unique_plans([*named, *self._cached_copy(record, locations, learned)])
        result = ResolverResult(plans, tuple(self._notes(record, locations, plans)), learned)
        self._remember((query, *self.queries(learned)), result)
        return result

    def _remember(self, entities: Iterable[str], result: ResolverResult) -> None:
        """Keep the result for the next look-up of the work, which may use another identifier."""
        with self._lock:
            self._results |= dict.fromkeys(entities, result)
            while len(self._results) > _REMEMBERED:
                self._results.popitem(last=False)

    def _notes(self, record: Record, locations: list[Record], plans: tuple[DownloadPlan, ...]) -> Iterator[str]:
        if not plans:
            is_closed = _oa_status(record) == Reason.CLOSED
            yield NO_PDF if locations else Reason.CLOSED if is_closed else Reason.NO_OPEN_COPY
        if locations and _has_cached_pdf(record) and not self.settings.has_key:
            yield "missing_key: OpenAlex holds a copy for holders of a key; set resolvers.openalex.api_key"

    def _plans(self, locations: list[Record]) -> Iterator[DownloadPlan]:
        for location in locations:
            facts = _facts(location)
            named = file_address(location.text("pdf_url") or "")
            page = classify_link(location.text("landing_page_url"))
            if named is not None:
                yield facts.plan(named, self.name, "pdf_url")
            elif page is not None and page.kind is LinkKind.FILE:
                yield facts.plan(page.address, self.name, "landing_page_url")

    def _cached_copy(self, record: Record, locations: list[Record], learned: WorkArtifact) -> Iterator[DownloadPlan]:
        is_offered = self.settings.has_key and _has_cached_pdf(record) and bool(locations)
        if is_offered and learned.openalex_id is not None:
            yield DownloadPlan(f"{CONTENT_URL}/works/{learned.openalex_id}.pdf", self.name, evidence="has_content")


def work_of_record(record: Record) -> WorkArtifact | None:
    """None when the record names nothing by which the work could be found."""
    identifiers = list(_identifiers(record))
    if not identifiers:
        return None
    locations = open_locations(record)
    pages = (page for location in locations for page in _pages(location))
    files = (file_address(location.text("pdf_url") or "") for location in locations)
    biblio, journal = record.object("biblio"), record.object("primary_location", "source")
    # A deposit at HAL that the index takes for closed may have been opened since; that of a closed work is left alone.
    hal_ids = _ids(record.objects("locations")) if _oa_status(record) != Reason.CLOSED else []
    return work_of(
        identifiers,
        title=record.title("title", "display_name"),
        publication_year=record.year("publication_year"),
        landing_urls=tuple(dict.fromkeys(page for page in pages if not is_pmc_page(page))),
        pdf_urls=tuple(file for file in files if file is not None)[:_MOST_COPIES],
        license=next(filter(None, (location.text("license") for location in locations)), None),
        oa_status=_oa_status(record),
        is_retracted=record.truth("is_retracted"),
        metadata=copies_metadata("openalex", _copies(locations)) | archive_metadata(_ids(locations), hal_ids),
        authors=record.authors("authorships"),
        first_page=biblio.text("first_page"),
        last_page=biblio.text("last_page"),
        journal=journal.title("display_name") if journal.text("type") == "journal" else None,
    )


def open_locations(record: Record) -> list[Record]:
    """The open copies, the service's best first; where none is listed, the address by which the work is called open."""
    best = record.object("best_oa_location")
    others = [each for each in record.objects("locations") if each.is_true("is_oa") and each != best]
    locations = ([best] if best else []) + others
    named = record.object("open_access").text("oa_url")
    if locations or named is None:
        return locations
    return [Record({"landing_page_url": named, "source": {"type": _UNSAID}})]


def _about_another(work: WorkArtifact, learned: WorkArtifact) -> str | None:
    """Judged by the name we asked by. A merged work answers under another id of the service's own, and an arXiv id may
    lead to the published paper."""
    if work.doi is not None:
        return other_paper(work, learned)
    asked_by_pmid = work.openalex_id is None and work.pmid is not None
    if asked_by_pmid and learned.pmid not in (None, work.pmid):
        return wrong_article(f"PMID {learned.pmid}")
    return None


def _facts(location: Record) -> CopyFacts:
    kind = location.object("source").text("type")
    host_type = {"repository": "repository", _UNSAID: None}.get(kind or "", "publisher")
    return CopyFacts(location.text("version"), location.text("license"), host_type)


def _has_cached_pdf(record: Record) -> bool:
    """Does the service keep a copy of the file?"""
    return record.object("has_content").is_true("pdf")


def _oa_status(record: Record) -> str | None:
    return record.object("open_access").text("oa_status")


def _pages(location: Record) -> tuple[str, ...]:
    """Where an open copy lies: its page, or the one that its id tells where only a DOI is named."""
    return pages_of_location(location.text("landing_page_url"), _ids([location]))


def _ids(locations: Iterable[Record]) -> list[str]:
    return [name for location in locations if (name := location.text("id")) is not None]


def _copies(locations: list[Record]) -> Iterator[tuple[str | None, CopyFacts]]:
    for location in locations:
        file, page = location.text("pdf_url"), location.text("landing_page_url")
        for address in (file, page, file_address(file or ""), *_pages(location)):
            yield address, _facts(location)


def _identifiers(record: Record) -> Iterator[Identifier]:
    ids = record.object("ids")
    locations = record.objects("locations")
    names = ("id", "landing_page_url", "pdf_url")
    copies = (name for each in locations for field in names if (name := each.text(field)) is not None)
    arxiv_id, pmcid = copies_named_by(copies)
    named = (
        ("doi", record.doi("doi") or ids.doi("doi")),
        ("openalex", normalize_openalex(record.text("id") or ids.text("openalex") or "")),
        ("pmid", normalize_pmid(_last_part(ids.text("pmid")))),
        ("pmcid", normalize_pmcid(_last_part(ids.text("pmcid")))),
        ("arxiv", arxiv_id),
        ("pmcid", pmcid),
    )
    return (Identifier(scheme, value) for scheme, value in named if value is not None)


def _last_part(address: str | None) -> str:
    return (address or "").rstrip("/").rpartition("/")[2]
