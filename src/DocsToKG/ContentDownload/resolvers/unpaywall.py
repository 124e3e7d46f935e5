"""Unpaywall: the open copies of a Crossref DOI.

Asks one address per work and uses every location it names: PDF links become plans, landing pages go into the work
for the landing source, and repository ids give the arXiv id or PMCID for theirs.
Not in the index means "ask another source", not "not open".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.api.versions import version_rank
from DocsToKG.ContentDownload.resolvers.base import (
    AskByDoi,
    ResolverSettings,
    embargo_note,
    encode_segment,
    unique_plans,
)
from DocsToKG.ContentDownload.resolvers.copy_facts import CopyFacts, copies_metadata
from DocsToKG.ContentDownload.resolvers.ids.identifier import normalize_doi
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by, dspace_item_in, pages_of_location
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address, is_pmc_page
from DocsToKG.ContentDownload.resolvers.records.fields import (
    authors_of,
    object_of,
    objects_of,
    text_of,
    title_of,
    year_of,
)

DEFAULT_BASE_URL = "https://api.unpaywall.org/v2"
_ADDRESSES = ("url_for_pdf", "url_for_landing_page", "url")
# Dozens of dead links of one index would use up what a work may cost before anybody else is asked.
_MOST_PLANS = 8


class UnpaywallResolver(AskByDoi):
    name = "unpaywall"
    service = "Unpaywall"
    check = "check the contact address (resolvers.unpaywall.email), or ask again tomorrow"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._email = settings.email

    def applies_to(self, work: WorkArtifact) -> str | None:
        return super().applies_to(work) or (None if self._email else "missing_email")

    def _address(self, named: str) -> str:
        return f"{self._base}/{encode_segment(named)}?email={quote(self._email or '', safe='@')}"

    def _why_nothing(self, status: int) -> str:
        if status == 422:
            return "bad_email: Unpaywall refuses the contact address; set resolvers.unpaywall.email to a real one"
        return super()._why_nothing(status)

    def _read(self, work: WorkArtifact, named: str, record: Mapping[str, Any]) -> ResolverResult:
        if (said := normalize_doi(text_of(record, "doi") or "")) not in (None, work.doi):
            return ResolverResult(notes=(f"wrong-article: the answer is about {said}",))
        locations = _in_order(_locations(record))
        plans = unique_plans(plan for plan in map(self._plan, locations) if plan is not None)[:_MOST_PLANS]
        notes = () if plans else ("no_oa_pdf" if locations else _why_closed(record),)
        return ResolverResult(plans=plans, notes=notes, work=_learned(work, record, locations))

    def _plan(self, location: Mapping[str, Any]) -> DownloadPlan | None:
        link = text_of(location, "url_for_pdf")
        address = file_address(link) if link is not None else None
        if address is None:
            return None
        return DownloadPlan(
            url=address,
            resolver_name=self.name,
            version=text_of(location, "version"),
            license=text_of(location, "license"),
            host_type=text_of(location, "host_type"),
            evidence="url_for_pdf",
        )


def _why_closed(record: Mapping[str, Any]) -> str:
    """A copy may open later; the date of each is told."""
    later = objects_of(record, "oa_locations_embargoed")
    if later:
        return embargo_note(min((day for place in later if (day := text_of(place, "oa_date"))), default=None))
    return Reason.CLOSED if text_of(record, "oa_status") == Reason.CLOSED else Reason.NO_OPEN_COPY


def _locations(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All that are listed; the best and the first also stand alone, and in some answers nowhere else."""
    listed = objects_of(record, "oa_locations")
    for name in ("best_oa_location", "first_oa_location"):
        if (location := object_of(record, name)) and not any(_same(location, known) for known in listed):
            listed.append(location)
    return listed


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(text_of(one, name) == text_of(other, name) for name in _ADDRESSES)


def _in_order(locations: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """PDF links first, the service's best before the others, then the version nearest to the published one."""

    def rank(location: Mapping[str, Any]) -> tuple[bool, bool, int]:
        has_pdf = text_of(location, "url_for_pdf") is not None
        return not has_pdf, location.get("is_best") is not True, version_rank(text_of(location, "version"))

    return sorted(locations, key=rank)


def _learned(work: WorkArtifact, record: Mapping[str, Any], locations: list[Mapping[str, Any]]) -> WorkArtifact:
    arxiv_id, pmcid = copies_named_by(_names(locations))
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(record.get("title")),
        publication_year=year_of(record.get("year")) or year_of(record.get("published_date")),
        doi=work.doi,
        arxiv_id=arxiv_id,
        pmcid=pmcid,
        landing_urls=tuple(dict.fromkeys(_landing_pages(locations))),
        license=next((found for place in locations if (found := text_of(place, "license"))), None),
        oa_status=text_of(record, "oa_status"),
        metadata=copies_metadata("unpaywall", _copies(locations)) | _item(locations),
        authors=authors_of(record, "z_authors"),
        journal=title_of(record.get("journal_name")),
    )


def _item(locations: list[Mapping[str, Any]]) -> dict[str, str]:
    item = dspace_item_in(name for place in locations if (name := text_of(place, "pmh_id")) is not None)
    return {"dspace_item": item} if item is not None else {}


def _copies(locations: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str | None, CopyFacts]]:
    for location in locations:
        facts = CopyFacts(*(text_of(location, name) for name in ("version", "license", "host_type")))
        for address in (text_of(location, name) for name in _ADDRESSES):
            yield address, facts
        for address in (file_address(text_of(location, "url_for_pdf") or ""), *_pages(location)):
            yield address, facts


def _names(locations: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for location in locations:
        for field in ("pmh_id", *_ADDRESSES):
            if (name := text_of(location, field)) is not None:
                yield name


def _landing_pages(locations: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for location in locations:
        yield from (address for address in _pages(location) if not is_pmc_page(address))


def _pages(location: Mapping[str, Any]) -> tuple[str, ...]:
    """Where a copy lies: its page, or the one that its id tells where only a DOI or nothing is named."""
    page = text_of(location, "url_for_landing_page") or text_of(location, "url")
    if page is not None and page == text_of(location, "url_for_pdf"):
        return ()
    named = text_of(location, "pmh_id")
    return pages_of_location(page, (named,) if named is not None else ())
