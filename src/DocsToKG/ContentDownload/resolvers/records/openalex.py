"""A work as OpenAlex describes it, read into ours.

Pure. Knows the traps of its records: PMC copies carry no PMCID but a page address without the prefix, an
open location may have no PDF, and ids of copies have a scheme of their own (`pmh:oai:...`, `pmid:...`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.copy_facts import CopyFacts, copies_metadata
from DocsToKG.ContentDownload.resolvers.ids.identifier import (
    Identifier,
    normalize_doi,
    normalize_openalex,
    normalize_pmcid,
    normalize_pmid,
    work_of,
)
from DocsToKG.ContentDownload.resolvers.ids.repositories import (
    copies_named_by,
    dspace_item_in,
    hal_id_in,
    pages_of_location,
)
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address, is_pmc_page
from DocsToKG.ContentDownload.resolvers.records.fields import (
    authors_of,
    object_of,
    objects_of,
    text_of,
    title_of,
    year_of,
)

DEFAULT_BASE_URL = "https://api.openalex.org"
_UNSAID = "unsaid"  # of the host of a copy that no location describes
MOST_COPIES = 8  # of one work that are tried: the other sources must have their turn
FIELDS = (
    "id,doi,ids,title,publication_year,open_access,best_oa_location,locations,type,is_retracted,has_content,authorships,"
    "biblio,primary_location"
)


def work_of_record(record: Mapping[str, Any]) -> WorkArtifact | None:
    """None when the record names nothing by which the work could be found."""
    identifiers = list(_identifiers(record))
    if not identifiers:
        return None
    open_ones = open_locations(record)
    pages = (page for place in open_ones for page in _pages(place))
    files = (file_address(text_of(place, "pdf_url") or "") for place in open_ones)
    return work_of(
        identifiers,
        title=title_of(record.get("title")) or title_of(record.get("display_name")),
        publication_year=year_of(record.get("publication_year")),
        landing_urls=tuple(dict.fromkeys(page for page in pages if not is_pmc_page(page))),
        pdf_urls=tuple(file for file in files if file is not None)[:MOST_COPIES],
        license=next((found for place in open_ones if (found := text_of(place, "license"))), None),
        oa_status=text_of(object_of(record, "open_access"), "oa_status"),
        is_retracted=retracted if isinstance(retracted := record.get("is_retracted"), bool) else None,
        metadata=copies_metadata("openalex", _copies(open_ones)) | _ids_of_archives(record, open_ones),
        authors=authors_of(record, "authorships"),
        first_page=text_of(object_of(record, "biblio"), "first_page"),
        last_page=text_of(object_of(record, "biblio"), "last_page"),
        journal=_journal(record),
    )


def _journal(record: Mapping[str, Any]) -> str | None:
    source = object_of(object_of(record, "primary_location"), "source")
    return title_of(source.get("display_name")) if text_of(source, "type") == "journal" else None


def open_locations(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The open copies, the service's best first; where none is listed, the address by which the work is called open."""
    best = object_of(record, "best_oa_location")
    others = [place for place in objects_of(record, "locations") if place.get("is_oa") is True and place != best]
    places = ([best] if best else []) + others
    named = text_of(object_of(record, "open_access"), "oa_url")
    return places if places or named is None else [{"landing_page_url": named, "source": {"type": _UNSAID}}]


def facts_of_location(location: Mapping[str, Any]) -> CopyFacts:
    kind = text_of(object_of(location, "source"), "type")
    host_type = {"repository": "repository", _UNSAID: None}.get(kind or "", "publisher")
    return CopyFacts(text_of(location, "version"), text_of(location, "license"), host_type)


def has_cached_pdf(record: Mapping[str, Any]) -> bool:
    """Does the service keep a copy of the file?"""
    return object_of(record, "has_content").get("pdf") is True


def _pages(location: Mapping[str, Any]) -> tuple[str, ...]:
    """Where an open copy lies: its page, or the one that its id tells where only a DOI is named."""
    named = text_of(location, "id")
    return pages_of_location(text_of(location, "landing_page_url"), (named,) if named is not None else ())


def _ids_of_archives(record: Mapping[str, Any], open_ones: list[Mapping[str, Any]]) -> dict[str, str]:
    """By what the sources of archives know the deposits.

    One at HAL that the index takes for closed may have been opened since; that of a closed work is left alone.
    """
    is_closed = text_of(object_of(record, "open_access"), "oa_status") == "closed"
    hal_id = None if is_closed else hal_id_in(_ids(objects_of(record, "locations")))
    item = dspace_item_in(_ids(open_ones))
    told = {"hal_id": hal_id, "dspace_item": item}
    return {name: value for name, value in told.items() if value is not None}


def _ids(locations: list[Mapping[str, Any]]) -> Iterator[str]:
    return (name for place in locations if (name := text_of(place, "id")) is not None)


def _copies(locations: list[Mapping[str, Any]]) -> Iterator[tuple[str | None, CopyFacts]]:
    for location in locations:
        for address in (text_of(location, "pdf_url"), text_of(location, "landing_page_url")):
            yield address, facts_of_location(location)
        for address in (file_address(text_of(location, "pdf_url") or ""), *_pages(location)):
            yield address, facts_of_location(location)


def _identifiers(record: Mapping[str, Any]) -> Iterator[Identifier]:
    ids = object_of(record, "ids")
    named = (
        ("doi", normalize_doi(text_of(record, "doi") or text_of(ids, "doi") or "")),
        ("openalex", normalize_openalex(text_of(record, "id") or text_of(ids, "openalex") or "")),
        ("pmid", normalize_pmid((text_of(ids, "pmid") or "").rstrip("/").rpartition("/")[2])),
        ("pmcid", normalize_pmcid((text_of(ids, "pmcid") or "").rstrip("/").rpartition("/")[2])),
    )
    for scheme, value in named:
        if value is not None:
            yield Identifier(scheme, value)
    arxiv_id, pmcid = copies_named_by(_names_of_copies(record))
    if arxiv_id is not None:
        yield Identifier("arxiv", arxiv_id)
    if pmcid is not None:
        yield Identifier("pmcid", pmcid)


def _names_of_copies(record: Mapping[str, Any]) -> Iterator[str]:
    for location in objects_of(record, "locations"):
        for name in ("id", "landing_page_url", "pdf_url"):
            if (value := text_of(location, name)) is not None:
                yield value
