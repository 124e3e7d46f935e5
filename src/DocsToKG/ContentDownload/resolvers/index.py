"""The offline index: copies that were joined to the work when its list was queued. Nobody is asked.

Kept in the work's metadata under `index`: what the index says of its access, when it was built, and the copies with
their evidence. Who builds and joins it is `ContentDownload.index`; nothing here needs its libraries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, in_order, unique_plans
from DocsToKG.ContentDownload.resolvers.copy_facts import CopyFacts, copies_metadata
from DocsToKG.ContentDownload.resolvers.ids.repositories import dspace_item_in, hal_id_in, pages_of_location
from DocsToKG.ContentDownload.resolvers.index_links import LinkKind, classify_link
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address, is_pmc_page
from DocsToKG.ContentDownload.resolvers.records.fields import objects_of, text_of

INDEX = "index"  # the source, its tier, and where the work keeps what it says
ARCHIVES = "index_archives"  # the tier of those who keep what others have lost
CLOSED = "closed"  # as access: a source that would know of an open copy names none
_MOST_COPIES = 12
_MIME = {"pdf": "application/pdf", "xml": "application/xml", "html": "text/html"}


class IndexResolver:
    name = INDEX

    def __init__(self, *, settings: ResolverSettings) -> None:
        pass

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if said_by_index(work) else "not_in_index"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        copies = objects_of(said_by_index(work), "copies", at_most=_MOST_COPIES)
        plans = unique_plans(in_order(_plans(copies)))
        notes = () if plans else ("no_oa_pdf" if copies else str(Reason.CLOSED),)
        return ResolverResult(plans=plans, notes=notes, work=_learned(work, copies))


def said_by_index(work: WorkArtifact) -> Mapping[str, Any]:
    """What an index says of the work; empty where none was asked, or it does not know the work."""
    said = work.metadata.get(INDEX)
    return said if isinstance(said, Mapping) else {}


def knows_copies(work: WorkArtifact) -> bool:
    return bool(said_by_index(work).get("copies"))


def is_over(tier: str, work: WorkArtifact) -> bool:
    """Is there nobody left to ask? A work that the index calls closed is over with it; one that it calls open, after
    the archives: other services name the same places as the sources that the index was made from."""
    said = said_by_index(work)
    return bool(said) and tier == (INDEX if said.get("access") == CLOSED else ARCHIVES)


def _plans(copies: Iterable[Mapping[str, Any]]) -> Iterator[DownloadPlan]:
    for copy in copies:
        url, kind = text_of(copy, "url") or "", text_of(copy, "kind")
        if kind == "page":
            link = classify_link(url)
            address = link.address if link is not None and link.kind is LinkKind.FILE else None
        else:
            address = file_address(url)
        if address is not None:
            yield DownloadPlan(
                url=address,
                resolver_name=INDEX,
                expected_mime=_MIME.get(kind or "", "application/pdf"),
                version=text_of(copy, "version"),
                license=text_of(copy, "license"),
                host_type=text_of(copy, "host_type"),
                evidence=f"{text_of(copy, 'source')}:{text_of(copy, 'evidence')}",
                checksum=text_of(copy, "checksum") if address == url else None,
            )


def _learned(work: WorkArtifact, copies: list[Mapping[str, Any]]) -> WorkArtifact:
    """What the copies tell the other sources: pages to look at, whose files have which licence, names of deposits."""
    # The page of a copy whose file is named is worth a visit where no other copy has only a page: it stands at the host
    # that has just refused the file.
    alone = [copy for copy in copies if text_of(copy, "kind") == "page"]
    pages = [(page, _facts(copy)) for copy in alone or copies for page in _pages(copy)]
    files = [(text_of(copy, "url"), _facts(copy)) for copy in copies]
    names = [name for copy in copies if (name := text_of(copy, "location")) is not None]
    archives = {"hal_id": hal_id_in(names), "dspace_item": dspace_item_in(names)}
    return WorkArtifact(
        work.work_id,
        landing_urls=tuple(dict.fromkeys(page for page, _ in pages if not is_pmc_page(page))),
        license=next((text for copy in copies if (text := text_of(copy, "license")) is not None), None),
        metadata=copies_metadata(INDEX, [*files, *pages]) | {k: v for k, v in archives.items() if v is not None},
    )


def _facts(copy: Mapping[str, Any]) -> CopyFacts:
    return CopyFacts(*(text_of(copy, name) for name in ("version", "license", "host_type")))


def _pages(copy: Mapping[str, Any]) -> tuple[str, ...]:
    page = text_of(copy, "url") if text_of(copy, "kind") == "page" else text_of(copy, "page")
    name = text_of(copy, "location")
    return pages_of_location(page, (name,) if name is not None else ())
