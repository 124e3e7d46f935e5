"""Unpaywall: the open copies of a Crossref DOI.

One query per work. Uses every location of the answer: PDF links become plans, landing pages go into the work for the
landing source, and repository ids give the arXiv id or PMCID. A DOI that is not in the index may still be open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from DocsToKG.ContentDownload.api.types import Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.api.versions import version_rank
from DocsToKG.ContentDownload.resolvers.base import (
    NO_PDF,
    DoiSource,
    embargo_note,
    encode_segment,
    only_note,
    result_of,
    unique_plans,
    wrong_article,
)
from DocsToKG.ContentDownload.resolvers.ids.repositories import archive_metadata, copies_named_by, pages_of_location
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address, is_pmc_page
from DocsToKG.ContentDownload.resolvers.links.copy_facts import CopyFacts, copies_metadata
from DocsToKG.ContentDownload.resolvers.record import Record

_ADDRESSES = ("url_for_pdf", "url_for_landing_page", "url")
# Dozens of dead links of one index would use up what a work may cost before anybody else is asked.
_MOST_PLANS = 8


class UnpaywallResolver(DoiSource):
    name = "unpaywall"
    service = "Unpaywall"
    base_url = "https://api.unpaywall.org/v2"
    check = "check the contact address (resolvers.unpaywall.email), or ask again tomorrow"

    def missing(self) -> str | None:
        return None if self.settings.email else "missing_email"

    def address(self, query: str) -> str:
        return f"{self.base}/{encode_segment(query)}{self.settings.contact('email')}"

    def status_note(self, status: int) -> str:
        if status == 422:
            return "bad_email: Unpaywall refuses the contact address; set resolvers.unpaywall.email to a real one"
        return super().status_note(status)

    def read(self, work: WorkArtifact, query: str, record: Record) -> ResolverResult:
        if (said := record.doi("doi")) not in (None, work.doi):
            return only_note(wrong_article(said))
        locations = sorted(_locations(record), key=_rank)
        files = ((each, file_address(each.text("url_for_pdf") or "")) for each in locations)
        plans = unique_plans(
            CopyFacts.of(location).plan(address, self.name, "url_for_pdf")
            for location, address in files
            if address is not None
        )[:_MOST_PLANS]
        return result_of(plans, _learned(work, record, locations), NO_PDF if locations else _why_closed(record))


def _why_closed(record: Record) -> str:
    """A copy may open later; the date of each is told."""
    later = record.objects("oa_locations_embargoed")
    if later:
        return embargo_note(min(filter(None, (location.text("oa_date") for location in later)), default=None))
    return Reason.CLOSED if record.text("oa_status") == Reason.CLOSED else Reason.NO_OPEN_COPY


def _locations(record: Record) -> list[Record]:
    """All that are listed; the best and the first also stand alone, and in some answers nowhere else."""
    listed = record.objects("oa_locations")
    for name in ("best_oa_location", "first_oa_location"):
        if (location := record.object(name)) and not any(_addresses(location) == _addresses(each) for each in listed):
            listed.append(location)
    return listed


def _addresses(location: Record) -> tuple[str | None, ...]:
    return tuple(location.text(name) for name in _ADDRESSES)


def _rank(location: Record) -> tuple[bool, bool, int]:
    """PDF links first, the service's best before the others, then the version nearest to the published one."""
    has_pdf = location.text("url_for_pdf") is not None
    return not has_pdf, not location.is_true("is_best"), version_rank(location.text("version"))


def _learned(work: WorkArtifact, record: Record, locations: list[Record]) -> WorkArtifact:
    named = ((each.text("pmh_id"), *_addresses(each)) for each in locations)
    arxiv_id, pmcid = copies_named_by(name for names in named for name in names if name is not None)
    pages = (page for location in locations for page in _pages(location) if not is_pmc_page(page))
    return WorkArtifact(
        work_id=work.work_id,
        title=record.title("title"),
        publication_year=record.year("year", "published_date"),
        doi=work.doi,
        arxiv_id=arxiv_id,
        pmcid=pmcid,
        landing_urls=tuple(dict.fromkeys(pages)),
        license=next(filter(None, (location.text("license") for location in locations)), None),
        oa_status=record.text("oa_status"),
        metadata=copies_metadata("unpaywall", _copies(locations)) | archive_metadata(_ids(locations)),
        authors=record.authors("z_authors"),
        journal=record.title("journal_name"),
    )


def _ids(locations: Iterable[Record]) -> list[str]:
    return [name for location in locations if (name := location.text("pmh_id")) is not None]


def _copies(locations: Iterable[Record]) -> Iterator[tuple[str | None, CopyFacts]]:
    for location in locations:
        file = file_address(location.text("url_for_pdf") or "")
        for address in (*_addresses(location), file, *_pages(location)):
            yield address, CopyFacts.of(location)


def _pages(location: Record) -> tuple[str, ...]:
    """Where a copy lies: its page, or the one that its id tells where only a DOI or nothing is named."""
    page = location.text("url_for_landing_page", "url")
    if page is not None and page == location.text("url_for_pdf"):
        return ()
    return pages_of_location(page, _ids([location]))
