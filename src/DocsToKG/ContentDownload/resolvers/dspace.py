"""DSpace 7 and later: the files of an item, by its handle and the host of its repository.

Any university may run it, so there is no address of the service: the host comes from the page of an item, from an OAI
id that an index gives (`dspace_item` in the metadata), or from the registry of handles. A host that does not answer as
DSpace does is not asked again. Promises: at most three questions per work.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, no_record_note, unique_plans
from DocsToKG.ContentDownload.resolvers.deposits import about_another, digest_of, size_of
from DocsToKG.ContentDownload.resolvers.file_choice import DepositedFile, papers_among
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi, normalize_url
from DocsToKG.ContentDownload.resolvers.records.fields import object_of, objects_of, read_object, text_of, title_of
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
            return ResolverResult(notes=("not_mine",))
        host, handle = named
        host = host or await self._host_of(handle, client, call)
        if host is None or host in self._others:
            return ResolverResult(notes=("not_in_index",))
        base = f"https://{host}/server/api"
        page = await client.fetch(f"{base}/pid/find?id={quote(handle, safe='')}", Role.METADATA, call)
        item = read_object(page)
        uuid = text_of(item or {}, "uuid") or ""
        if page.status != 200 or item is None or not _UUID.fullmatch(uuid):
            self._remember(host, page)
            return ResolverResult(
                notes=(no_record_note(page.status, host, "") if page.status != 200 else "not_in_index",)
            )
        if (another := _another(work, handle, item)) is not None:
            return ResolverResult(notes=(another,))
        learned = WorkArtifact(work.work_id, title=_value(item, "dc.title"))
        listed = await client.fetch(
            f"{base}/core/items/{uuid}/bundles?embed=bitstreams/format&size=20", Role.METADATA, call
        )
        plans = _plans(work, item, read_object(listed) or {}) if listed.status == 200 else ()
        return ResolverResult(plans, () if plans else ("no_oa_pdf",), learned)

    async def _host_of(self, handle: str, client: Client, call: Call) -> str | None:
        """The host of the page that the handle is registered for."""
        address = f"{self._handles}/api/handles/{quote(handle, safe='/')}?type=URL"
        try:
            page = await client.fetch(address, Role.METADATA, call)
        except CandidateRejected:
            return None
        record = read_object(page) if page.status == 200 else None
        for value in objects_of(record or {}, "values", at_most=20):
            url = normalize_url(text_of(object_of(value, "data"), "value") or "")
            if url is not None and (host := _host(url)) is not None:
                return host
        return None

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
    told = work.metadata.get("dspace_item")
    addresses = [f"https://{told}"] if isinstance(told, str) and len(told) <= 300 else []
    without_host = None
    for url in (*addresses, *work.landing_urls):
        path = _without_scheme(url)
        if (item := _ITEM.fullmatch(path)) is not None:
            return item["host"].lower(), item["handle"]
        handle = _ANY_HANDLE.fullmatch(path)
        without_host = without_host or (handle["handle"] if handle is not None else None)
    return (None, without_host) if without_host is not None else None


def _without_scheme(url: str) -> str:
    address = normalize_url(url)
    parts = urlsplit(address or "")
    return (parts.netloc.lower() + unquote(parts.path)).rstrip("/")


def _host(url: str) -> str | None:
    try:
        host = host_key(url)
    except BadUrl:
        return None
    return host if ":" not in host else None


def _another(work: WorkArtifact, handle: str, item: Mapping[str, Any]) -> str | None:
    if (said := text_of(item, "handle")) not in (None, handle):
        return f"wrong-article: the answer is about {said}"
    dois = [
        value
        for name in ("dc.identifier.doi", "dc.relation.isversionof", "dc.identifier.uri")
        for value in _values(item, name)
    ]
    return about_another(work, dois=[normalize_doi(text) for text in dois], title=_value(item, "dc.title"))


def _plans(work: WorkArtifact, item: Mapping[str, Any], listed: Mapping[str, Any]) -> tuple[DownloadPlan, ...]:
    title = _value(item, "dc.title") or work.title
    said = (_value(item, "dc.type.version") or _value(item, "dc.description.version") or "").lower()
    version = next((known for known in _VERSIONS if known.lower() in said.replace(" ", "")), None)
    doi = next((doi for text in _values(item, "dc.identifier.doi") if (doi := normalize_doi(text)) is not None), None)
    return unique_plans(
        DownloadPlan(
            url=file.url,
            resolver_name=DspaceResolver.name,
            version=version,
            license=_value(item, "dc.rights.uri"),
            host_type="repository",
            evidence="bitstream",
            checksum=file.checksum,
            size_bytes=file.size_bytes,
            page_doi=doi,
        )
        for file in papers_among(_files(listed), title=title)
    )


def _files(listed: Mapping[str, Any]) -> Iterator[DepositedFile]:
    """The bitstreams of the bundle for originals: others hold thumbnails, extracted text and licences."""
    for bundle in objects_of(object_of(listed, "_embedded"), "bundles", at_most=20):
        if text_of(bundle, "name") != "ORIGINAL":
            continue
        held = object_of(object_of(bundle, "_embedded"), "bitstreams")
        for bitstream in objects_of(object_of(held, "_embedded"), "bitstreams"):
            name = text_of(bitstream, "name")
            address = normalize_url(text_of(object_of(object_of(bitstream, "_links"), "content"), "href") or "")
            if name is None or address is None:
                continue
            digest = object_of(bitstream, "checkSum")
            is_md5 = (text_of(digest, "checkSumAlgorithm") or "").upper() == "MD5"
            checksum = digest_of("md5", digest.get("value")) if is_md5 else None
            mime = text_of(object_of(object_of(bitstream, "_embedded"), "format"), "mimetype")
            yield DepositedFile(name, address, size_of(bitstream, "sizeBytes"), checksum, mime)


def _value(item: Mapping[str, Any], name: str) -> str | None:
    return next((title_of(text) for text in _values(item, name)), None)


def _values(item: Mapping[str, Any], name: str) -> list[str]:
    values = objects_of(object_of(item, "metadata"), name, at_most=20)
    return [text for value in values if (text := text_of(value, "value")) is not None]
