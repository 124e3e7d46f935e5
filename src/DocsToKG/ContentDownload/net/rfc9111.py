"""hishel's reading of RFC 9111 over our entries; no other module knows hishel.

Knows how hishel names requests, answers and entries. Does not know when it is asked: `cache` decides that, and loads
this module with the first answer that hishel has to judge.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from dataclasses import replace
from typing import BinaryIO

import httpx2
from hishel import AsyncBaseStorage, CacheMiss, CacheOptions, Entry, Headers, Request, Response, StoreAndUse
from hishel.httpx2 import AsyncCacheTransport

from DocsToKG.ContentDownload.net.cache import CacheSettings
from DocsToKG.ContentDownload.net.entries import EntryStore, HeaderLists, StoredAnswer
from DocsToKG.ContentDownload.net.offers import PendingEntry, offer, stored_answer, varying
from DocsToKG.ContentDownload.net.rewording import GUESSED, BelowCache


class Rules:
    """hishel above `below`, for one cache."""

    def __init__(self, below: BelowCache, entries: EntryStore, settings: CacheSettings) -> None:
        self._entries = entries
        self._options = CacheOptions(
            shared=not settings.cache_private,
            supported_methods=list(settings.cacheable_methods),
            allow_stale=settings.allow_stale,
        )
        # hishel wants a storage of its own; every request brings its view instead.
        unused = ExchangeView(entries, artifact=False)
        rfc = False if settings.force_cache else self._options
        self.exchange = AsyncCacheTransport(below, storage=unused, rfc=rfc).handle_async_request

    def view(self, *, artifact: bool, request: httpx2.Request, takes_guessed: bool) -> ExchangeView:
        return ExchangeView(self._entries, artifact=artifact, request=request, takes_guessed=takes_guessed)

    def may_be_kept(self, method: str, status: int, control: str | None, *, expires: bool, authorized: bool) -> bool:
        """hishel's word on whether an answer may be kept (RFC 9111 section 3), by all that it looks at there."""
        asked = Request(method, "https://any.invalid/", Headers({"authorization": "any"} if authorized else {}))
        said = ({"cache-control": control} if control is not None else {}) | ({"expires": "0"} if expires else {})
        next_state = CacheMiss(request=asked, options=self._options).next(Response(status, Headers(said), iter(())))
        return isinstance(next_state, StoreAndUse)


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


def _lists(headers: Headers) -> HeaderLists:
    return {name: list(headers.get_list(name) or ()) for name in headers}
