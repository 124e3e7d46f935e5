"""Event streams of a tenant for any number of readers: one poll of the ledger, however many read.

Knows the history's feed and its cursors. Does not know HTTP. Promises: a reader misses nothing and gets nothing twice;
one that is too slow is disconnected with a notice and holds up nobody; one that returns with its cursor goes on there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import anyio
import anyio.to_thread

from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.control.history.feed import Cursor, FeedPage, HistoryFeed
from DocsToKG.Orchestrator.control.jobs.service import ServedLedger
from DocsToKG.Orchestrator.events.envelope import envelopes

_log = logging.getLogger("DocsToKG.Orchestrator.api")
_PAGE = 500


class StreamEvent(NamedTuple):
    """One event: its number in the ledger, the cursor after it, and its envelope."""

    seq: int
    cursor: str
    event: dict[str, Any]


class Notice(NamedTuple):
    """Something about the stream itself: `connected`, `passed` (events between are gone), `dropped` (too slow),
    `ending`."""

    word: str
    text: str


_CONNECTED = Notice("connected", "events from here on follow")


@dataclass(eq=False)
class LogReader:
    """A reader of a log: when the line was written that it is being sent; None where it has all lines."""

    sending_from: float | None = None


class _Reader:
    """The events that one reader has not read yet."""

    def __init__(self, most: int) -> None:
        self.waiting: deque[StreamEvent] = deque()
        self.wake = asyncio.Event()
        self.too_slow = False
        self._most = most

    def put(self, events: Sequence[StreamEvent]) -> bool:
        """Whether these events overflow the reader's buffer."""
        late = not self.too_slow and len(self.waiting) + len(events) > self._most
        if late:
            self.too_slow = True
            self.waiting.clear()
        elif not self.too_slow:
            self.waiting.extend(events)
        self.wake.set()
        return late


@dataclass
class _Hub:
    """The readers of one tenant, and the cursor up to which the ledger was read for them."""

    cursor: Cursor
    readers: set[_Reader]
    lock: asyncio.Lock
    users: int = 0  # those that are about to listen, too
    task: asyncio.Task[None] | None = None


class EventStreams:
    """All event streams of one application. Lives on one event loop."""

    def __init__(
        self,
        feed: HistoryFeed,
        ledger: ServedLedger,
        *,
        buffer_events: int = 1000,
        heartbeat_s: float = 15.0,
        poll_s: float = 0.5,
        max_streams: int = 200,
    ) -> None:
        self._feed, self._ledger = feed, ledger
        self._buffer, self._poll_s, self._max = buffer_events, poll_s, max_streams
        self.heartbeat_s = heartbeat_s
        self.dropped = 0  # readers that were too slow, so far
        self.log_readers: set[LogReader] = set()
        self._hubs: dict[str, _Hub] = {}
        self._open = 0
        self._ending: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads: anyio.CapacityLimiter | None = None

    @property
    def open_streams(self) -> int:
        return self._open

    @property
    def followed_tenants(self) -> int:
        """Tenants whose events are read for at least one stream."""
        return len(self._hubs)

    def close(self) -> None:
        """End every stream; from the event loop."""
        self._ended().set()
        for hub in self._hubs.values():
            for reader in hub.readers:
                reader.wake.set()

    def close_soon(self) -> None:
        """The same from another thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.close)

    @property
    def is_closed(self) -> bool:
        return self._ended().is_set()

    def refuse_if_full(self) -> None:
        if self._open >= self._max or self.is_closed:
            raise Problem(503, "TOO_MANY_STREAMS", "too many streams are open", headers={"Retry-After": "5"})

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """One more stream is open."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    async def sleep(self, seconds: float) -> None:
        """Wait, unless the service ends."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended().wait()

    async def threaded(self, call: Callable[[], Any]) -> Any:
        """In a thread of the streams' own, so that they never take those of the requests."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(4)
        return await anyio.to_thread.run_sync(call, limiter=self._threads)

    async def follow(
        self, tenant: str, after: Cursor | None, wanted: Callable[[dict[str, Any]], bool]
    ) -> AsyncGenerator[StreamEvent | Notice | None]:
        """Events from a cursor on, or from now on; None where a heartbeat is due. Ends after a notice that says so.

        The first notice is `connected`: everything that happens after it is sent.
        """
        reader = _Reader(self._buffer)
        seen: set[int] = set()
        hub = await self._hub(tenant)
        try:
            if after is not None:
                yield _CONNECTED
                async for missed in self._backlog(tenant, after, hub, reader, seen):
                    if isinstance(missed, Notice) or wanted(missed.event):
                        yield missed
            else:
                await self._catch_up(tenant, hub)
                hub.readers.add(reader)
                yield _CONNECTED
            async for found in self._live(reader, seen):
                if not isinstance(found, StreamEvent) or wanted(found.event):
                    yield found
        finally:
            hub.readers.discard(reader)
            hub.users -= 1
            self._stop_if_unused(tenant, hub)

    async def _backlog(
        self, tenant: str, after: Cursor, hub: _Hub, reader: _Reader, seen: set[int]
    ) -> AsyncIterator[StreamEvent | Notice]:
        """What happened since the cursor; at its end the reader is among those of the hub."""
        joined = False
        while True:
            page: FeedPage = await self.threaded(partial(self._feed.after, after, tenant, _PAGE))
            if page.passed:
                yield Notice("passed", "events before these are no longer kept")
            for news in await self._envelopes(page):
                if joined:
                    seen.add(news.seq)
                yield news
            after = page.cursor
            if not page.more and joined:
                return
            if not page.more:
                # From here on the hub sends; what both have read in between is known by its number.
                await self._catch_up(tenant, hub)
                hub.readers.add(reader)
                joined = True

    async def _live(self, reader: _Reader, seen: set[int]) -> AsyncIterator[StreamEvent | Notice | None]:
        while not self.is_closed:
            reader.wake.clear()
            while reader.waiting:
                news = reader.waiting.popleft()
                if news.seq not in seen:
                    yield news
            if reader.too_slow:
                yield Notice("dropped", "read too slowly; come back with the last event's id")
                return
            if reader.wake.is_set() or self.is_closed:
                continue
            try:
                async with asyncio.timeout(self.heartbeat_s):
                    await reader.wake.wait()
            except TimeoutError:
                yield None
        yield Notice("ending", "the service ends; come back with the last event's id")

    async def _hub(self, tenant: str) -> _Hub:
        hub = self._hubs.get(tenant)
        if hub is None:
            cursor: Cursor = await self.threaded(partial(self._feed.now, tenant))
            hub = self._hubs.setdefault(tenant, _Hub(cursor, set(), asyncio.Lock()))
        hub.users += 1
        if hub.task is None:
            hub.task = asyncio.get_running_loop().create_task(self._run(tenant, hub))
        return hub

    async def _run(self, tenant: str, hub: _Hub) -> None:
        while not self.is_closed:
            try:
                await self._catch_up(tenant, hub)
            except Exception as error:  # without this task its readers would wait for ever
                _log.warning("events: %s", type(error).__name__)
            await self.sleep(self._poll_s)

    async def _catch_up(self, tenant: str, hub: _Hub) -> None:
        """Read new events and hand them to every reader."""
        async with hub.lock:
            while True:
                page: FeedPage = await self.threaded(partial(self._feed.after, hub.cursor, tenant, _PAGE))
                news = await self._envelopes(page)
                hub.cursor = page.cursor
                if news:
                    self.dropped += sum(reader.put(news) for reader in hub.readers)
                if not page.more:
                    return

    async def _envelopes(self, page: FeedPage) -> list[StreamEvent]:
        if not page.events:
            return []
        told = await self.threaded(partial(envelopes, self._ledger, [event.row for event in page.events]))
        return [
            StreamEvent(event.row.seq, str(event.cursor), made) for event, made in zip(page.events, told, strict=True)
        ]

    def _stop_if_unused(self, tenant: str, hub: _Hub) -> None:
        """Without readers the ledger is not polled."""
        if hub.users == 0:
            if hub.task is not None:
                hub.task.cancel()
                hub.task = None
            if self._hubs.get(tenant) is hub:
                del self._hubs[tenant]

    def _ended(self) -> asyncio.Event:
        if self._ending is None:
            self._ending, self._loop = asyncio.Event(), asyncio.get_running_loop()
        return self._ending
