"""DSpace 7 and later: the files of an item, by its handle and the host of its repository.

Any university may run it, so there is no address of the service: the host comes from the page of an item, from an OAI
id that an index gives (`dspace_item` in the metadata), or from the registry of handles. A host that does not answer as
DSpace does is not queried again. Promises: at most three queries per work.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from urllib.parse import quote, unquote, urlsplit

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.resolvers.base import (
    NOT_IN_INDEX,
    ResolverSettings,
    only_note,
    result_of,
    status_note,
    wrong_article,
)
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi, normalize_url
from DocsToKG.ContentDownload.resolvers.record import Record, read_record, title_of
from DocsToKG.ContentDownload.resolvers.repositories.deposits import about_another, file_plans
from DocsToKG.ContentDownload.resolvers.repositories.file_choice import DepositedFile, papers_among
from DocsToKG.core.urls import BadUrl, host_key

HANDLES = "https://hdl.handle.net"
_HANDLE = r"(?P<handle>\d[\d.]{1,20}/[\w.:-]{1,100})"
_ITEM = re.compile(
    rf"(?P<host>(?:[a-z0-9-]+\.)+[a-z]{{2,10}})/(?:xmlui/|jspui/|dspace/)?handle/{_HANDLE}", re.IGNORECASE
)
_ANY_HANDLE = re.compile(rf"hdl\.handle\.net/{_HANDLE}", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MOST_HOSTS = 1_000
_VERSIONS = ("publishedVersion", "acceptedVersion", "submittedVersion")


class DspaceResolver:
    name = "dspace"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._handles = settings.base(HANDLES)
        self._lock = threading.Lock()
        self._others: dict[str, None] = {}  # hosts that run something else

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if _named(work) is not None else "not_mine"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        named = _named(work)
        if named is None:
            return only_note("not_mine")
        host, handle = named
        host = host or await self._host_of(handle, client, call)
        if host is None or host in self._others:
            return only_note(NOT_IN_INDEX)
        base = f"https://{host}/server/api"
        page = await client.fetch(f"{base}/pid/find?id={quote(handle, safe='')}", Role.METADATA, call)
        item = read_record(page) or Record()
        uuid = item.text("uuid") or ""
        if page.status != 200 or not _UUID.fullmatch(uuid):
            self._remember(host, page)
            return only_note(status_note(page.status, host, "") if page.status != 200 else NOT_IN_INDEX)
        if (another := _another(work, handle, item)) is not None:
            return only_note(another)
        listed = await client.fetch(
            f"{base}/core/items/{uuid}/bundles?embed=bitstreams/format&size=20", Role.METADATA, call
        )
        plans = _plans(work, item, read_record(listed) or Record()) if listed.status == 200 else ()
        return result_of(plans, WorkArtifact(work.work_id, title=_title(item)))

    async def _host_of(self, handle: str, client: Client, call: Call) -> str | None:
        """The host of the page that the handle is registered for."""
        address = f"{self._handles}/api/handles/{quote(handle, safe='/')}?type=URL"
        try:
            page = await client.fetch(address, Role.METADATA, call)
        except CandidateRejected:
            return None
        record = (read_record(page) if page.status == 200 else None) or Record()
        urls = (value.object("data").url("value") for value in record.objects("values", at_most=20))
        hosts = (_host(url) for url in urls if url is not None)
        return next((host for host in hosts if host is not None), None)

    def _remember(self, host: str, page: Page) -> None:
        """A page in place of an answer: the host runs something else. An unknown handle is answered as JSON."""
        if "json" in page.headers.get("content-type", ""):
            return
        with self._lock:
            self._others[host] = None
            while len(self._others) > _MOST_HOSTS:
                self._others.pop(next(iter(self._others)))


def _named(work: WorkArtifact) -> tuple[str | None, str] | None:
    """The host, if it is known, and the handle of the item."""
    item_path = work.metadata.get("dspace_item")
    addresses = [f"https://{item_path}"] if isinstance(item_path, str) and len(item_path) <= 300 else []
    without_host = None
    for url in (*addresses, *work.landing_urls):
        path = _without_scheme(url)
        if (item := _ITEM.fullmatch(path)) is not None:
            return item["host"].lower(), item["handle"]
        handle = _ANY_HANDLE.fullmatch(path)
        without_host = without_host or (handle["handle"] if handle is not None else None)
    return (None, without_host) if without_host is not None else None


def _without_scheme(url: str) -> str:
    parts = urlsplit(normalize_url(url) or "")
    return (parts.netloc.lower() + unquote(parts.path)).rstrip("/")


def _host(url: str) -> str | None:
    try:
        host = host_key(url)
    except BadUrl:
        return None
    return host if ":" not in host else None


def _another(work: WorkArtifact, handle: str, item: Record) -> str | None:
    if (said := item.text("handle")) not in (None, handle):
        return wrong_article(said)
    named = _values(item, "dc.identifier.doi", "dc.relation.isversionof", "dc.identifier.uri")
    return about_another(work, dois=[normalize_doi(text) for text in named], title=_title(item))


def _plans(work: WorkArtifact, item: Record, listed: Record) -> tuple[DownloadPlan, ...]:
    said = next(iter(_values(item, "dc.type.version", "dc.description.version")), "").lower().replace(" ", "")
    return file_plans(
        papers_among(_files(listed), title=_title(item) or work.title),
        DspaceResolver.name,
        "bitstream",
        version=next((version for version in _VERSIONS if version.lower() in said), None),
        license=next((title_of(text) for text in _values(item, "dc.rights.uri")), None),
        page_doi=next(filter(None, map(normalize_doi, _values(item, "dc.identifier.doi"))), None),
    )


def _files(listed: Record) -> Iterator[DepositedFile]:
    """The bitstreams of the bundle for originals: others hold thumbnails, extracted text and licences."""
    bundles = listed.object("_embedded").objects("bundles", at_most=20)
    for bundle in (each for each in bundles if each.text("name") == "ORIGINAL"):
        for bitstream in bundle.object("_embedded", "bitstreams", "_embedded").objects("bitstreams"):
            name, address = bitstream.text("name"), bitstream.object("_links", "content").url("href")
            digest = bitstream.object("checkSum")
            checksum = digest.digest("md5", "value") if digest.lower("checkSumAlgorithm") == "md5" else None
            mime = bitstream.object("_embedded", "format").text("mimetype")
            if name is not None and address is not None:
                yield DepositedFile(name, address, bitstream.size("sizeBytes"), checksum, mime)


def _title(item: Record) -> str | None:
    return next((title_of(text) for text in _values(item, "dc.title")), None)


def _values(item: Record, *names: str) -> list[str]:
    fields = item.object("metadata")
    values = (value.text("value") for name in names for value in fields.objects(name, at_most=20))
    return [text for text in values if text is not None]
