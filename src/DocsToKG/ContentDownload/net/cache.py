"""Cache or network? An answer that is stored goes through hishel (`rfc9111`), which is loaded with the first of them.

Follows RFC 9111 with the operator's knobs. Above hishel the URL is canonical and free of secrets, below
it the real one is asked for. Promises: an answer becomes visible to others only when it is confirmed,
errors and ranges are never stored, and a file's entry is its headers plus its CAS digest.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import httpx2

from DocsToKG.ContentDownload.net.entries import STILL_NOTHING_S, EntryStore, HeaderLists, StoredAnswer
from DocsToKG.ContentDownload.net.offers import PendingEntry, offer, stored_answer
from DocsToKG.ContentDownload.net.pending import Copied
from DocsToKG.ContentDownload.net.rewording import (
    ABOUT_WORK,
    FORBID,
    PEEK,
    WIRE_URL,
    BelowCache,
    WouldSend,
)
from DocsToKG.ContentDownload.net.stores.choice import open_backend
from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.core.tasks import loaded
from DocsToKG.core.urls import index_url, mask_url

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.net.rfc9111 import ExchangeView, Rules

# Keys of a request's extensions. ARTIFACT: the body will be kept in the CAS. UNCACHED: go past the cache.
ARTIFACT, UNCACHED = "artifact", "uncached"
PENDING = "pending_entry"
FORGET = "forget_entry"
NOTHING = "nothing_stored"

# Directives of answers that need no parser, and the statuses that are kept without any (RFC 9110 section 15.1).
_FLAGS = frozenset({"immutable", "must-revalidate", "no-cache", "no-store", "no-transform", "private", "public"})
_TIMES = frozenset({"max-age", "s-maxage", "stale-if-error", "stale-while-revalidate"})
_FOR_ALL = frozenset({"must-revalidate", "public", "s-maxage"})
_KEPT_UNASKED = frozenset({200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501})


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
        self.is_storable = lru_cache(maxsize=256)(self._judge)  # answers are of few kinds
        self.asks_plainly = not (settings.force_cache or settings.always_revalidate)

    @cached_property
    def _rules(self) -> Rules:
        """hishel, which takes a fifth of a second to load: a pull that finds nothing stored does without."""
        from DocsToKG.ContentDownload.net.rfc9111 import Rules

        return Rules(self._below, self._entries, self._settings)

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
        await self._below.aclose()
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
        """Whether an answer may be kept (RFC 9111 section 3). hishel says so where the rule is not plain."""
        words = _plain_directives(control)
        if words is None:
            return self._rules.may_be_kept(method, status, control, expires=expires, authorized=authorized)
        private = self._settings.cache_private
        if (
            method not in self._settings.cacheable_methods
            or status < 200
            or status in (206, 304)
            or "no-store" in words
        ):
            return False
        if not private and ("private" in words or (authorized and not words & _FOR_ALL)):
            return False
        explicit = words & ({"public", "max-age", "private"} if private else {"public", "max-age", "s-maxage"})
        return bool(explicit) or expires or status in _KEPT_UNASKED

    async def _through(self, request: httpx2.Request, key: str, url: str) -> httpx2.Response:
        rules = await self._loaded_rules()
        view = rules.view(
            artifact=bool(request.extensions.get(ARTIFACT)), request=request, takes_guessed=self._takes_guessed(request)
        )
        try:
            response = await rules.exchange(self._disguised(request, view, key, url))
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

    async def _loaded_rules(self) -> Rules:
        await loaded("DocsToKG.ContentDownload.net.rfc9111")
        return self._rules

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


def _plain_directives(control: str | None) -> frozenset[str] | None:
    """The words of a Cache-Control header in its usual form; None when there is more to it."""
    words = set()
    for part in control.split(",") if control else ():
        name, equals, seconds = part.strip(" \t").partition("=")
        if not (name in _TIMES and seconds.isdecimal() and seconds.isascii() if equals else name in _FLAGS):
            return None
        words.add(name)
    return frozenset(words)


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
