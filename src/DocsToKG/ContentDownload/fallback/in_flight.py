"""Fetch each address once in a run; other works that name it get the bytes from the store.

Knows which addresses are in flight and which bytes each one gave. Every work validates the bytes for itself. Promises:
one fetch of an address at a time in this process; after a failed fetch the next work tries again. Used on one event
loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import nullcontext
from typing import BinaryIO

from DocsToKG.ContentDownload.api.ports import AttemptSink, Call, Client, NullSink, OpenBody, Page
from DocsToKG.ContentDownload.api.ranges import Rest
from DocsToKG.ContentDownload.api.types import (
    Attempt,
    AttemptStatus,
    DownloadPlan,
    DownloadStreamResult,
    Reason,
    Role,
    StoredCopy,
    Verb,
    WorkArtifact,
)
from DocsToKG.ContentDownload.errors import TransientFailure
from DocsToKG.ContentDownload.fallback.orchestrator import Download
from DocsToKG.ContentDownload.validation.forms import form_of
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import BadUrl, host_key, index_url, mask_url

_CHUNK_BYTES = 1 << 20
OpenStored = Callable[[str], BinaryIO | None]


class DeduplicatedDownload:
    """A `Download` that waits for a running fetch of the same address. `open_stored` opens stored bytes by digest."""

    def __init__(
        self,
        download: Download,
        *,
        open_stored: OpenStored,
        clock: Clock,
        remembered: int = 4096,
        attempts: AttemptSink | None = None,
    ) -> None:
        self._download = download
        self._attempts = attempts or NullSink()
        self.open_stored = open_stored
        self._clock = clock
        self._remembered = remembered
        self._in_flight: dict[str, asyncio.Event] = {}
        self._fetched: OrderedDict[str, DownloadStreamResult] = OrderedDict()

    async def __call__(
        self, plan: DownloadPlan, work: WorkArtifact, client: Client, call: Call, claim: Callable[[], bool]
    ) -> StoredCopy | None:
        key = _key(plan)
        while (over := self._in_flight.get(key)) is not None:
            with call.waits.asleep() if call.waits is not None else nullcontext():
                await over.wait()
        over = self._in_flight[key] = asyncio.Event()
        try:
            source = StoredClient(self, client, key, plan) if key in self._fetched else client
            copy = await self._download(plan, work, source, call, claim)
        except TransientFailure:
            # Other bytes may come another time: the next one asks the network.
            self.forget(key)
            raise
        else:
            # Bytes that were unwrapped before they were stored are not what the address gives.
            if copy is not None and copy.sha256 == copy.stream.sha256:
                self._remember(key, copy.stream)
            return copy
        finally:
            del self._in_flight[key]
            over.set()

    def fetched(self, key: str) -> DownloadStreamResult | None:
        return self._fetched.get(key)

    def forget(self, key: str) -> None:
        self._fetched.pop(key, None)

    def record_served(self, plan: DownloadPlan, body: StoredBody, call: Call) -> None:
        """Record the same two attempts as for a cache hit (TEL-07)."""
        for status in (AttemptStatus.HTTP_GET, AttemptStatus.CACHE_HIT):
            self._attempts.attempt(_served_line(plan, body, call, self._clock, status))

    def _remember(self, key: str, stream: DownloadStreamResult) -> None:
        self._fetched[key] = stream
        self._fetched.move_to_end(key)
        while len(self._fetched) > self._remembered:
            self._fetched.popitem(last=False)


class StoredClient:
    """Answers for one address from the store, or from the network when the stored bytes are gone or were rejected."""

    def __init__(self, shared: DeduplicatedDownload, network: Client, key: str, plan: DownloadPlan) -> None:
        self._shared = shared
        self._network = network
        self._key = key
        self._plan = plan

    async def fetch(self, url: str, role: Role, call: Call, *, headers: Mapping[str, str] | None = None) -> Page:
        return await self._network.fetch(url, role, call, headers=headers)

    async def head(self, url: str, role: Role, call: Call, *, headers: Mapping[str, str] | None = None) -> Page:
        return await self._network.head(url, role, call, headers=headers)

    def interval_s(self, url: str) -> float:
        return self._network.interval_s(url)

    async def open(
        self,
        url: str,
        role: Role,
        call: Call,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
        rest: Rest | None = None,
    ) -> OpenBody:
        if rest is not None:
            return await self._network.open(url, role, call, headers=headers, max_bytes=max_bytes, rest=rest)
        fetched = self._shared.fetched(self._key)
        file = None if fetched is None else await asyncio.to_thread(self._shared.open_stored, fetched.sha256)
        if fetched is None or file is None:
            return await self._network.open(url, role, call, headers=headers, max_bytes=max_bytes)
        body = StoredBody(file, fetched, forget=lambda: self._shared.forget(self._key))
        self._shared.record_served(self._plan, body, call)
        return body


class StoredBody:
    """Stored bytes in the form of a response."""

    from_cache = True
    revalidated = False

    def __init__(self, file: BinaryIO, fetched: DownloadStreamResult, *, forget: Callable[[], None]) -> None:
        self._file = file
        self.url = fetched.final_url
        self.status = fetched.http_status
        self.hops = fetched.hops
        known = {"content-type": fetched.content_type, "etag": fetched.etag}
        self.headers: Mapping[str, str] = {name: value for name, value in known.items() if value is not None}
        self.reject = forget

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await asyncio.to_thread(self._file.read, _CHUNK_BYTES):
            yield chunk

    async def aclose(self) -> None:
        self._file.close()

    def confirm(self, sha256: str) -> None:
        """Nothing to do: the cache entry was confirmed when the bytes arrived."""


def _served_line(plan: DownloadPlan, body: StoredBody, call: Call, clock: Clock, status: AttemptStatus) -> Attempt:
    return Attempt(
        ts=clock.now(),
        resolver=plan.resolver_name,
        url=mask_url(plan.url),
        verb=Verb.GET,
        status=status,
        http_status=body.status,
        content_type=body.headers.get("content-type"),
        reason=Reason.OK if status is AttemptStatus.CACHE_HIT else None,
        work_id=call.work_id,
        host=host_key(plan.url),
        role=Role.ARTIFACT,
        from_cache=True,
    )


def _key(plan: DownloadPlan) -> str:
    try:
        return f"{form_of(plan).name} {index_url(plan.url)}"
    except BadUrl:
        return plan.url
