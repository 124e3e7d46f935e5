"""The offline index: copies that were joined to the work when its list was queued. No request is sent.

The work's metadata hold under `index` the access that the index reports, when it was built, and the copies with their
evidence. `ContentDownload.index` builds and joins the index; nothing here needs its libraries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    NO_PDF,
    NOT_IN_INDEX,
    ResolverSettings,
    in_order,
    result_of,
    unique_plans,
)
from DocsToKG.ContentDownload.resolvers.ids.repositories import archive_metadata, pages_of_location
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address, is_pmc_page
from DocsToKG.ContentDownload.resolvers.links.classify import LinkKind, classify_link
from DocsToKG.ContentDownload.resolvers.links.copy_facts import INDEX, CopyFacts, copies_metadata, said_by_index
from DocsToKG.ContentDownload.resolvers.record import Record

_MOST_COPIES = 12
_MIME = {"pdf": "application/pdf", "xml": "application/xml", "html": "text/html"}


class IndexResolver:
    name = INDEX

    def __init__(self, *, settings: ResolverSettings) -> None:
        pass

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if said_by_index(work) else NOT_IN_INDEX

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        copies = Record(said_by_index(work)).objects("copies", at_most=_MOST_COPIES)
        plans = unique_plans(in_order(_plans(copies)))
        return result_of(plans, _learned(work, copies), NO_PDF if copies else str(Reason.CLOSED))


def _plans(copies: Iterable[Record]) -> Iterator[DownloadPlan]:
    for copy in copies:
        url, kind = copy.text("url") or "", copy.text("kind") or ""
        if kind == "page":
            link = classify_link(url)
            address = link.address if link is not None and link.kind is LinkKind.FILE else None
        else:
            address = file_address(url)
        if address is not None:
            yield CopyFacts.of(copy).plan(
                address,
                INDEX,
                f"{copy.text('source')}:{copy.text('evidence')}",
                expected_mime=_MIME.get(kind, "application/pdf"),
                checksum=copy.text("checksum") if address == url else None,
            )


def _learned(work: WorkArtifact, copies: list[Record]) -> WorkArtifact:
    """What the other sources can use: pages to visit, facts about copies, ids of deposits."""
    # The page of a copy whose file is named is worth a visit where no other copy has only a page: it stands at the host
    # that has just refused the file.
    alone = [copy for copy in copies if copy.text("kind") == "page"]
    pages = [(page, CopyFacts.of(copy)) for copy in alone or copies for page in _pages(copy)]
    files = [(copy.text("url"), CopyFacts.of(copy)) for copy in copies]
    names = [name for copy in copies if (name := copy.text("location")) is not None]
    return WorkArtifact(
        work.work_id,
        landing_urls=tuple(dict.fromkeys(page for page, _ in pages if not is_pmc_page(page))),
        license=next(filter(None, (copy.text("license") for copy in copies)), None),
        metadata=copies_metadata(INDEX, [*files, *pages]) | archive_metadata(names, names),
    )


def _pages(copy: Record) -> tuple[str, ...]:
    page = copy.text("url") if copy.text("kind") == "page" else copy.text("page")
    name = copy.text("location")
    return pages_of_location(page, (name,) if name is not None else ())
