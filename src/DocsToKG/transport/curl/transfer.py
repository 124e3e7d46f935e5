"""One exchange: what has come, what is awaited, how it ended.

libcurl's callbacks put bytes and errors in here; tasks take them out. Nothing in here calls libcurl: pausing and
ending are asked of the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

import httpx2

from DocsToKG.transport.curl.connections import Connection
from DocsToKG.transport.curl.head import Head, parse_head
from DocsToKG.transport.curl.routes import Addresses, Route
from DocsToKG.transport.decoding import Decoder, decoder_for
from DocsToKG.transport.engine import Headers, Request, Timings, read_all
from DocsToKG.transport.errors import BodyTooLarge, DeadlineExceeded, HeadersTooLarge

HIGH_WATER_BYTES = 128 * 1024
LOW_WATER_BYTES = 32 * 1024
_MAX_INTERIM_HEADS = 8
_NEVER = float("inf")
_NO_BODY = frozenset({204, 304})


class Driver(Protocol):
    """What a transfer asks of whoever runs libcurl."""

    def resume(self, transfer: Transfer) -> None: ...

    def drop(self, transfer: Transfer) -> None: ...

    def await_body(self, transfer: Transfer) -> None: ...

    def timings(self, transfer: Transfer) -> Timings: ...


class Transfer:
    """A `Response` once its head is there."""

    head: Head | None = None
    error: Exception | None = None
    refused: Exception | None = None  # what kept libcurl from one of the addresses; others may do
    over = False  # libcurl is done with it, or was told to stop
    fresh = False  # only a new connection will do
    again = False  # nothing of this try counts: send it once more, on a fresh connection
    sends = 0
    connection: Connection | None = None
    reused = False
    seen_at_turn = 0
    peer = ""
    received = 0  # bytes of the body as they came, framing apart
    decoded = 0
    paused = False
    sent_at = 0.0
    last = 0.0  # when bytes came last, or when somebody began to wait for them
    buffered = 0
    touched = False
    head_is_known = False  # to the task that asked
    _timings: Timings | None = None
    _interim_bytes = 0
    _interim = 0
    _decoder: Decoder | None = None
    _waiter: asyncio.Future[None] | None = None

    def __init__(
        self, driver: Driver, request: Request, route: Route, url: str, addresses: Addresses, began: float
    ) -> None:
        self.driver = driver
        self.request = request
        self.route = route
        self.sent_url = url
        self.addresses = addresses
        self.began = began
        self.name_s = 0.0
        self.limits = limits = request.limits
        self._connect_by = _NEVER if limits.connect_s is None else began + limits.connect_s
        self._shortest_s = _NEVER
        for limit_s in (limits.connect_s, limits.first_byte_s, limits.silence_s):
            if limit_s is not None and limit_s < self._shortest_s:
                self._shortest_s = limit_s
        self.head_lines: list[bytes] = []
        self._chunks: list[bytes] = []

    # what libcurl brings

    def take_header_line(self, line: bytes) -> None:
        """The first line of a head, its last, long ones, and what is too much of it."""
        if self.head is not None:
            return  # a trailer
        lines = self.head_lines
        lines.append(line)
        ends = line in (b"\r\n", b"\n") and len(lines) > 1
        size = self._interim_bytes + sum(map(len, lines))
        if len(lines) > self.limits.max_header_lines + 2 or size > self.limits.max_header_bytes:
            raise HeadersTooLarge(f"the head of the response exceeds {self.limits.max_header_bytes} bytes or "
                                  f"{self.limits.max_header_lines} lines")  # fmt: skip
        if ends:
            self._take_head(size)

    def _take_head(self, size: int) -> None:
        head = parse_head(self.head_lines)
        self.head_lines = []
        if head.status == 101:
            raise httpx2.RemoteProtocolError("the server switched to a protocol we did not ask for")
        if head.status < 200:
            self._interim += 1
            self._interim_bytes = size
            if self._interim > _MAX_INTERIM_HEADS:
                raise httpx2.RemoteProtocolError("the server sent interim responses without end")
            return
        if self.connection is not None and head.http_version.startswith("HTTP/1"):
            self.connection.exclusive = True
            if head.doubtful:
                self.connection.spoil()
        self.head = head
        most, announced = self.limits.max_announced, head.length
        if most is not None and announced is not None and announced > most and self.has_body:
            raise BodyTooLarge(limit=most, announced=announced)
        if self.request.decode and self.has_body and "content-encoding" in head.headers:
            self._decoder = decoder_for(head.headers["content-encoding"])

    def take_body(self, data: bytes) -> None:
        self.received += len(data)
        if self._decoder is not None:
            most = self.limits.max_bytes
            data = self._decoder.feed(data, None if most is None else most - self.decoded)
        self.decoded += len(data)
        if self.limits.max_bytes is not None and self.decoded > self.limits.max_bytes:
            raise BodyTooLarge(limit=self.limits.max_bytes)
        if data:
            self._chunks.append(data)
            self.buffered += len(data)

    def finish(self, error: Exception | None, timings: Timings | None = None) -> None:
        """Nothing more will come. What has come before an error can still be read; then the error is raised."""
        if self.over:
            return
        self.over = True
        self._timings = timings
        if error is None and self.error is None and self._decoder is not None:
            try:
                self._decoder.finish()
            except httpx2.RemoteProtocolError as cut:
                error = cut
        if self.error is None:
            self.error = error
        self.wake()

    @property
    def is_waited_for(self) -> bool:
        return self._waiter is not None

    def wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # what the engine asks

    @property
    def has_body(self) -> bool:
        return self.head is not None and self.request.method != "HEAD" and self.head.status not in _NO_BODY

    def due(self) -> float:
        """The moment at which the next limit is over. A body that nobody reads is not late."""
        limits, due = self.limits, self._connect_by
        if self.head is not None:
            due = _NEVER if limits.silence_s is None or self._waiter is None else self.last + limits.silence_s
        elif self.sent_at:
            due = _NEVER if limits.first_byte_s is None else self.sent_at + limits.first_byte_s
        return due if limits.deadline is None else min(due, limits.deadline)

    def look_by(self, now: float) -> float:
        """No limit is over before, whatever happens until then."""
        by = now + self._shortest_s if self.sent_at else min(now + self._shortest_s, self._connect_by)
        return by if self.limits.deadline is None else min(by, self.limits.deadline)

    def lateness(self, now: float) -> Exception:
        """What it means that the moment has come."""
        host = repr(self.route.host)
        if self.limits.deadline is not None and now >= self.limits.deadline:
            return DeadlineExceeded("the time given to this request is over")
        if self.head is not None:
            return httpx2.ReadTimeout(f"{host} sent nothing for {self.limits.silence_s:g} s")
        if self.sent_at:
            return httpx2.ReadTimeout(f"{host} did not answer within {self.limits.first_byte_s:g} s")
        return httpx2.ConnectTimeout(f"connecting to {host} took longer than {self.limits.connect_s:g} s")

    async def wait_for_head(self) -> None:
        while self.head is None and not self.over:
            await self._wait()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        if self.head is not None:
            self.driver.await_body(self)
        try:
            await self._waiter
        finally:
            self._waiter = None

    # what a reader asks

    @property
    def status(self) -> int:
        return self._known_head().status

    @property
    def reason(self) -> str:
        return self._known_head().reason

    @property
    def http_version(self) -> str:
        return self._known_head().http_version

    @property
    def headers(self) -> Headers:
        return self._known_head().headers

    @property
    def url(self) -> str:
        return self.request.url

    @property
    def timings(self) -> Timings:
        return self._timings or self.driver.timings(self)

    def _known_head(self) -> Head:
        if self.head is None:
            raise RuntimeError("the head of the response is not there yet")
        return self.head

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self.over:
                if self.error is not None:
                    raise self.error
                raise StopAsyncIteration
            try:
                await self._wait()
            except BaseException:
                self.driver.drop(self)
                raise
        return self._take()

    def _take(self) -> bytes:
        chunks = self._chunks
        block = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        self._chunks = []
        self.buffered = 0
        if self.paused:
            self.driver.resume(self)
        return block

    async def read(self, max_bytes: int | None = None) -> bytes:
        try:
            return await read_all(self, max_bytes)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        self._chunks = []
        self.buffered = 0
        if not self.over:
            self.driver.drop(self)
