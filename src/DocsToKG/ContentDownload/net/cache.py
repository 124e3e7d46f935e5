"""Cache or network? hishel's words into ours; no other module knows hishel.

Follows RFC 9111 with the operator's knobs. Above hishel the URL is canonical and free of secrets, below
it the real one is asked for. Promises: an answer becomes visible to others only when it is confirmed,
errors and ranges are never stored, and a file's entry is its headers plus its CAS digest.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import httpx2
from hishel import AsyncBaseStorage, CacheMiss, CacheOptions, Entry, Headers, Request, Response, StoreAndUse
from hishel.httpx2 import AsyncCacheTransport

from DocsToKG.ContentDownload.net.entries import STILL_NOTHING_S, EntryStore, HeaderLists, StoredAnswer
from DocsToKG.ContentDownload.net.offers import PendingEntry, offer, stored_answer, varying
from DocsToKG.ContentDownload.net.pending import Copied
from DocsToKG.ContentDownload.net.rewording import (
    ABOUT_WORK,
    FORBID,
    GUESSED,
    PEEK,
    WIRE_URL,
    BelowCache,
    WouldSend,
)
from DocsToKG.ContentDownload.net.stores.choice import open_backend
from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.core.urls import index_url, mask_url

# Keys of a request's extensions. ARTIFACT: the body will be kept in the CAS. UNCACHED: go past the cache.
ARTIFACT, UNCACHED = "artifact", "uncached"
PENDING = "pending_entry"
FORGET = "forget_entry"
NOTHING = "nothing_stored"


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The knobs of the cache; `ttl_seconds` is housekeeping and has nothing to do with freshness.

    `metadata_ttl_seconds` is how long the answer of an index is good whose server says nothing about that (RFC 9111
    section 4.2.2), for works that may be given it (`CachedTransport.reuse_for`); 0 keeps none.
    """

    base_path: Path
    enabled: bool = True
    backend: str = "file"
    ttl_seconds: float = 2_592_000.0
    check_ttl_every_seconds: float = 600.0
    force_cache: bool = False
    allow_heuristics: bool = False
    metadata_ttl_seconds: float = 0.0
    allow_stale: bool = False
    always_revalidate: bool = False
    cache_private: bool = True
    cacheable_methods: tuple[str, ...] = ("GET",)
    sqlite_path: Path = Path("hishel-cache.sqlite")
    redis_url: str | None = field(default=None, repr=False)  # may hold a password
    s3_bucket: str | None = None
    s3_prefix: str = "hishel-cache/"


class Nothing(NamedTuple):
    """Under `key`, for `url`, nothing was stored at this monotonic time."""

    key: str
    url: str
    at: float


class ExchangeView(AsyncBaseStorage):
    """One exchange's view of the entries, in the shape hishel asks for."""

    def __init__(
        self,
        entries: EntryStore,
        *,
        artifact: bool,
        request: httpx2.Request | None = None,
        takes_guessed: bool = False,
    ) -> None:
        super().__init__()
        self._entries = entries
        self._takes_guessed = takes_guessed
        self._artifact = artifact
        self._sent = request.headers if request is not None else httpx2.Headers()
        self._keys: dict[str, str] = {}  # by the id of an entry
        self._opened: list[BinaryIO] = []
        self._forbidden = False
        self.pending: PendingEntry | None = None

    def forbid(self) -> None:
        """Keep nothing of this exchange, whatever its headers say."""
        self._forbidden = True

    async def create_entry(
        self, request: Request, response: Response, key: str, *, ttl: float | None = None, tti: float | None = None
    ) -> Entry:
        headers = _lists(response.headers)
        answer = stored_answer(request.url, request.method, response.status_code, headers, self._sent, key)
        in_cas = self._artifact and answer.status == 200
        if not self._forbidden:
            self.pending = offer(self._entries, key, lambda: answer, in_cas=in_cas)
        stream = response.stream
        assert isinstance(stream, AsyncIterable)
        copied = self.pending.copying(stream) if self.pending is not None else None
        kept = response if copied is None else replace(response, stream=copied)
        return Entry(id=uuid.UUID(answer.id), request=request, response=kept)

    async def get_entries(self, key: str) -> list[Entry]:
        answers = await self._entries.ask(self._entries.find, key)
        return [entry for answer in answers if (entry := await self._entry(key, answer)) is not None]

    async def update_headers(self, id: uuid.UUID, headers: Headers) -> None:
        if id.hex in self._keys:
            self._entries.refresh(self._keys[id.hex], id.hex, _lists(headers))

    async def remove_entry(self, id: uuid.UUID) -> None:
        if id.hex in self._keys:
            self._entries.remove(self._keys[id.hex], id.hex)

    def forget(self) -> None:
        """Drop the entries that this exchange was shown: what they hold is of no use to anyone."""
        for entry_id, key in self._keys.items():
            self._entries.remove(key, entry_id)

    def let_go(self) -> None:
        """Close the files that entries were read from."""
        for file in self._opened:
            file.close()

    async def _entry(self, key: str, answer: StoredAnswer) -> Entry | None:
        if answer.varying != varying(answer.headers.get("vary", []), self._sent, key):
            return None
        if not self._takes_guessed and any(GUESSED in line for line in answer.headers.get("cache-control", ())):
            return None
        opened = await self._entries.ask(self._entries.open_body, key, answer)
        if opened is None:
            return None
        self._opened.append(opened)
        self._keys[answer.id] = key
        stream = _Stored(self._entries.read_body(key, answer, opened))
        # The variant was chosen here, where only digests are known; hishel is shown headers that fit.
        request = Request(method=answer.method, url=answer.url, headers=Headers(dict(self._sent)))
        return Entry(uuid.UUID(answer.id), request, Response(answer.status, Headers(answer.headers), stream))


class _Stored:
    """A stored body, read from a file or from memory."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        block = next(self._blocks, None)
        if block is None:
            raise StopAsyncIteration
        return block


class CachedTransport(httpx2.AsyncBaseTransport):
    """hishel between two shims of ours. Answers carry booleans `from_cache` and `revalidated`."""

    def __init__(
        self, next_transport: httpx2.AsyncBaseTransport, *, settings: CacheSettings, entries: EntryStore, clock: Clock
    ) -> None:
        self._below = BelowCache(
            next_transport,
            allow_heuristics=settings.allow_heuristics,
            clock=clock,
            index_ttl_s=settings.metadata_ttl_seconds,
        )
        self._may_reuse: Callable[[str], bool] = lambda work_id: False
        self._settings = settings
        self._entries = entries
        self._clock = clock
        rfc = CacheOptions(
            shared=not settings.cache_private,
            supported_methods=list(settings.cacheable_methods),
            allow_stale=settings.allow_stale,
        )
        self._options = rfc
        self.is_storable = lru_cache(maxsize=256)(self._judge)  # answers are of few kinds
        self._rfc: bool | CacheOptions = False if settings.force_cache else rfc
        self.asks_plainly = not (settings.force_cache or settings.always_revalidate)
        # hishel wants a storage of its own; every request brings its view instead.
        self._hishel = AsyncCacheTransport(self._below, storage=ExchangeView(entries, artifact=False), rfc=self._rfc)

    @property
    def entries(self) -> EntryStore:
        """What is stored."""
        return self._entries

    @property
    def troubles(self) -> Counter[str]:
        """How often the place of the entries failed, by what was asked of it. Each was a miss."""
        return self._entries.troubles

    def reuse_for(self, is_known: Callable[[str], bool]) -> None:
        """Answers of indexes whose lifetime is a guess are given to the works that `is_known` names, and to no other: a
        work that was missed must be asked for anew, as what an index knows may have changed since."""
        self._may_reuse = is_known

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        # What a peek found nothing for goes to its origin, and not past the cache.
        if NOTHING not in request.extensions:
            # hishel reads neither of the two wishes that a request can have (RFC 9111 section 5.2.1).
            wishes = _wishes(request)
            if "only-if-cached" in wishes:
                stored = await self.peek(request)
                return stored or _flagged(httpx2.Response(504), from_cache=False, revalidated=False)
            if self._passes_by(request, wishes):
                return self._past(request, await self._below.ask(request))
        nothing = await self._nothing(request) if self.asks_plainly else None
        if nothing is None:
            return await self._through(request, *_key_and_url(request))
        # Where nothing is stored, hishel is asked one thing: whether the answer may be.
        nothing_at = self._clock.monotonic()
        response = await self._below.ask(request)
        try:
            return self._kept(request, nothing, nothing_at, response)
        except BaseException:
            await response.aclose()
            raise

    async def peek(self, request: httpx2.Request) -> httpx2.Response | None:
        """The stored answer, if it may be used without asking the origin. Sends nothing."""
        wishes = _wishes(request)
        if self._passes_by(request, wishes):
            return None
        nothing = await self._look(request)
        if nothing is not None:
            if "only-if-cached" not in wishes:
                request.extensions[NOTHING] = nothing
            return None
        request.extensions[PEEK] = True
        try:
            response = await self._through(request, *_key_and_url(request))
            response.request = request
            return response
        except WouldSend:
            return None
        finally:
            del request.extensions[PEEK]

    async def aclose(self) -> None:
        await self._hishel.aclose()
        await self._entries.ask(self._entries.close)

    async def _nothing(self, request: httpx2.Request) -> Nothing | None:
        """As `_look`, where a moment ago is soon enough."""
        found: Nothing | None = request.extensions.get(NOTHING)
        if found is not None and self._clock.monotonic() - found.at < STILL_NOTHING_S:
            return found
        return await self._look(request)

    async def _look(self, request: httpx2.Request) -> Nothing | None:
        """Where nothing is stored for the request; None when something is."""
        key, url = _key_and_url(request)
        found = await self._entries.ask(self._entries.find, key)
        return None if found else Nothing(key, url, self._clock.monotonic())

    def _passes_by(self, request: httpx2.Request, wishes: Collection[str]) -> bool:
        method_out = request.method not in self._settings.cacheable_methods
        unwanted = bool(request.extensions.get(UNCACHED)) or "no-store" in wishes
        return method_out or "range" in request.headers or unwanted

    def _past(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """An answer that the cache has nothing to do with."""
        self._below.reword(request, response)
        return _flagged(response, from_cache=False, revalidated=False)

    def _kept(
        self, request: httpx2.Request, nothing: Nothing, nothing_at: float, response: httpx2.Response
    ) -> httpx2.Response:
        """The answer to a plain question, pending where it may be kept."""
        said = self._below.reword(request, response)
        if said is None or "transfer-encoding" in said:
            response.headers.pop("transfer-encoding", None)
        if response.is_stream_consumed:
            response = _unread(response)
        pending = None if said is None else self._offered(request, nothing, nothing_at, response, said)
        response.extensions[PENDING] = pending
        return _flagged(response, from_cache=False, revalidated=False)

    def _offered(
        self,
        request: httpx2.Request,
        nothing: Nothing,
        nothing_at: float,
        response: httpx2.Response,
        said: Mapping[str, str],
    ) -> PendingEntry | None:
        status, is_authorized = response.status_code, "authorization" in request.headers
        if not self.is_storable(request.method, status, said.get("cache-control"), "expires" in said, is_authorized):
            return None
        in_cas = status == 200 and bool(request.extensions.get(ARTIFACT))
        tell = partial(_told, request, nothing, status, response.headers)
        pending = offer(self._entries, nothing.key, tell, in_cas=in_cas, nothing_at=nothing_at)
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        if pending is not None and (copied := pending.copying(stream)) is not None:
            response.stream = _KeptStream(copied, stream)
        return pending

    def _judge(self, method: str, status: int, control: str | None, expires: bool, authorized: bool) -> bool:
        """hishel's word on whether an answer may be kept (RFC 9111 section 3), by all that it looks at there."""
        asked = Request(method, "https://any.invalid/", Headers({"authorization": "any"} if authorized else {}))
        said = ({"cache-control": control} if control is not None else {}) | ({"expires": "0"} if expires else {})
        next_state = CacheMiss(request=asked, options=self._options).next(Response(status, Headers(said), iter(())))
        return isinstance(next_state, StoreAndUse)

    async def _through(self, request: httpx2.Request, key: str, url: str) -> httpx2.Response:
        view = ExchangeView(
            self._entries,
            artifact=bool(request.extensions.get(ARTIFACT)),
            request=request,
            takes_guessed=self._takes_guessed(request),
        )
        try:
            response = await self._hishel.handle_async_request(self._disguised(request, view, key, url))
        except BaseException:
            view.let_go()
            raise
        status = response.extensions["caching"]
        response.stream = _ViewedStream(response.stream, view)
        response.extensions[PENDING] = view.pending
        response.extensions[FORGET] = view.forget
        # Without validators hishel calls a plain second answer revalidated; only a 304 is that.
        from_cache = bool(status["from_cache"])
        return _flagged(response, from_cache=from_cache, revalidated=from_cache and bool(status["revalidated"]))

    def _takes_guessed(self, request: httpx2.Request) -> bool:
        if self._settings.force_cache:
            return True
        work_id = request.extensions.get(ABOUT_WORK)
        return bool(self._settings.metadata_ttl_seconds and work_id) and self._may_reuse(str(work_id))

    def _disguised(self, request: httpx2.Request, view: ExchangeView, key: str, url: str) -> httpx2.Request:
        headers = httpx2.Headers(request.headers)
        if self._settings.always_revalidate:
            headers["cache-control"] = "no-cache"
        caching = {"storage": view, "key": key}
        extensions = {**request.extensions, "caching": caching, WIRE_URL: request.url, FORBID: view.forbid}
        return httpx2.Request(
            request.method, mask_url(url), headers=headers, stream=request.stream, extensions=extensions
        )


class _KeptStream(httpx2.AsyncByteStream):
    """A body of which a copy is kept while it is read."""

    def __init__(self, copied: Copied, stream: httpx2.AsyncByteStream) -> None:
        self._copied = copied
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._copied

    async def aclose(self) -> None:
        # Closing the copy discards it when it is not whole; it does not reach the connection.
        await self._copied.aclose()
        await self._stream.aclose()


class _ViewedStream(httpx2.AsyncByteStream):
    """A body that lets go of the cache files it was read from."""

    def __init__(self, stream: Any, view: ExchangeView) -> None:
        self._stream = stream
        self._view = view

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._stream)

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._view.let_go()


def build_cache_transport(
    next_transport: httpx2.AsyncBaseTransport,
    *,
    settings: CacheSettings,
    open_cas: Callable[[str], BinaryIO | None],
    clock: Clock | None = None,
) -> httpx2.AsyncBaseTransport:
    """`next_transport` behind the cache that `settings` describe, or itself when the cache is off."""
    if not settings.enabled:
        return next_transport
    clock = clock or SystemClock()
    entries = open_entries(settings, open_cas=open_cas, clock=clock)
    return CachedTransport(next_transport, settings=settings, entries=entries, clock=clock)


def open_entries(
    settings: CacheSettings, *, open_cas: Callable[[str], BinaryIO | None], clock: Clock | None = None
) -> EntryStore:
    """The entries that `settings` point at. Raises `ConfigError` when their place cannot be used."""
    backend = open_backend(
        settings.backend,
        base_path=Path(settings.base_path),
        sqlite_path=Path(settings.sqlite_path),
        redis_url=settings.redis_url,
        s3_bucket=settings.s3_bucket,
        s3_prefix=settings.s3_prefix,
        ttl_s=settings.ttl_seconds,
    )
    return EntryStore(
        backend,
        ttl_s=settings.ttl_seconds,
        check_ttl_every_s=settings.check_ttl_every_seconds,
        open_cas=open_cas,
        clock=clock or SystemClock(),
    )


def _flagged(response: httpx2.Response, *, from_cache: bool, revalidated: bool) -> httpx2.Response:
    response.extensions["from_cache"] = from_cache
    response.extensions["revalidated"] = revalidated
    return response


def _key_and_url(request: httpx2.Request) -> tuple[str, str]:
    url = index_url(str(request.url))
    return hashlib.sha256(url.encode()).hexdigest(), url


def entry_key(url: str) -> str:
    """The digest is over the whole URL, since a parameter that looks like a key may tell two files apart."""
    return hashlib.sha256(index_url(url).encode()).hexdigest()


def _unread(response: httpx2.Response) -> httpx2.Response:
    """An answer that came whole, as one whose body is still to be read. It has been decoded already."""
    headers = httpx2.Headers(response.headers)
    if headers.pop("content-encoding", None) is not None:
        headers["content-length"] = str(len(response.content))
    stream = httpx2.ByteStream(response.content)
    return httpx2.Response(response.status_code, headers=headers, stream=stream, extensions=response.extensions)


def _header_lists(headers: httpx2.Headers) -> HeaderLists:
    lists: HeaderLists = {}
    for name, value in headers.multi_items():
        lists.setdefault(name, []).append(value)
    return lists


def _told(request: httpx2.Request, nothing: Nothing, status: int, headers: httpx2.Headers) -> StoredAnswer:
    lists, url = _header_lists(headers), mask_url(nothing.url)
    return stored_answer(url, request.method, status, lists, request.headers, nothing.key)


def _wishes(request: httpx2.Request) -> Collection[str]:
    """The words of the request's Cache-Control."""
    wishes = request.headers.get("cache-control")
    return () if wishes is None else {each.strip() for each in wishes.lower().split(",")}


def _lists(headers: Headers) -> HeaderLists:
    return {name: list(headers.get_list(name) or ()) for name in headers}
