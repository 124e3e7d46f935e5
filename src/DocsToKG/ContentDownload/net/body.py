"""An answer whose body has not been read: bounded, timed, counted, and let go of exactly once."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

import httpx2

from DocsToKG.ContentDownload.api.gates import Permit
from DocsToKG.ContentDownload.api.ranges import LEAST_BYTES, Whole, whole_of
from DocsToKG.ContentDownload.api.types import Hop, Reason
from DocsToKG.ContentDownload.api.walls import says_challenge
from DocsToKG.ContentDownload.errors import CandidateRejected, ContentDownloadError
from DocsToKG.ContentDownload.net.cache import FORGET, PENDING
from DocsToKG.ContentDownload.net.cutting import unless_cut
from DocsToKG.ContentDownload.net.faults import WIRE_ERRORS, WIRE_ERRORS_OR_CUT, Retryable, cut_off, describe, fault_of
from DocsToKG.ContentDownload.net.journal import About, Journal
from DocsToKG.ContentDownload.net.limits.breakers import BreakerReport
from DocsToKG.ContentDownload.net.offers import PendingEntry
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import mask_url
from DocsToKG.transport.decoding import Decoder, lenient_decoder
from DocsToKG.transport.errors import BodyTooLarge, DeadlineExceeded

_DRAIN_BYTES = 64 * 1024
_DRAIN_S = 1.0  # a new connection takes no longer
_SLOWEST_BYTES_PER_S = 1024
_SEEN_AT_ONCE = 64 * 1024
_LARGE_BLOCK = 64 * 1024
_LOOK_S = 5.0
_BREAKS = frozenset({Reason.SIZE_MISMATCH, Reason.TIMEOUT, Reason.CONN_ERROR})


class StreamedBody:
    """Implements `OpenBody`. Holds the permit until `aclose`; `confirm` may come after that."""

    whole: Whole | None = None  # the file that this is the rest of
    may_go_on = False  # whether the rest may be asked for, should it break off

    def __init__(
        self,
        response: httpx2.Response,
        about: About,
        permit: Permit | None,
        journal: Journal,
        clock: Clock,
        deadline: float,
        elapsed_s: float,
        patience_s: float = float("inf"),
        chunk_bytes: int | None = None,
        is_replay: bool = False,
        cancel: CancelToken | None = None,
    ) -> None:
        self.url = about.url
        self.status = response.status_code
        self.headers = dict(response.headers.items())
        self.content_type: str | None = self.headers.get("content-type")
        self.content_length = _as_length(self.headers.get("content-length", ""))
        self.hops: tuple[Hop, ...] = ()
        self.from_cache = bool(response.extensions.get("from_cache"))
        self.revalidated = bool(response.extensions.get("revalidated"))
        self.is_replay = is_replay  # an archive shows what another server once answered
        # A bot check stands in the way.
        self.is_challenge = "cf-mitigated" in self.headers and says_challenge(self.headers["cf-mitigated"])
        self.elapsed_s = elapsed_s
        self.max_bytes: int | None = None
        self.tells_failures = False
        self.watched: BreakerReport | None = None  # breakers that still wait for the end of the body
        self._response = response
        self._pending: PendingEntry | None = response.extensions.get(PENDING)
        self._closed = False
        self._about = about
        self._cancel = cancel or about.call.cancel  # that of this exchange
        self._permit = permit
        self._journal = journal
        self._clock = clock
        self._deadline = deadline
        self._patience_s = patience_s
        self._chunk_bytes = chunk_bytes
        self._waited_s = 0.0
        self._awaited = 0
        # A body that is in memory already did not come through a stream whose bytes could be counted.
        self._counted = not (self.from_cache or response.is_stream_consumed)
        self._decoder: Decoder | None = None
        if "content-encoding" in self.headers and not response.is_stream_consumed:
            self._decoder = lenient_decoder(self.headers["content-encoding"])
        self._whole = False
        self._ended = False
        self._downloaded = 0
        self._received = 0  # decoded
        self._blocks: AsyncIterator[bytes] | None = None
        self._looked_at: deque[bytes] = deque()
        self._portions: Portions | None = None  # of the body that is being read
        self._is_looking = False
        self._trouble: ContentDownloadError | None = None  # met while looking, told to whoever reads

    @property
    def locations(self) -> tuple[str, ...]:
        """Where a redirect leads; more than one place when the answer contradicts itself."""
        if "location" not in self.headers:
            return ()
        return tuple(dict.fromkeys(filter(None, self._response.headers.get_list("location"))))

    def chunks(self) -> AsyncIterator[bytes]:
        self._refuse_above_cap(self.content_length or 0)
        if self._chunk_bytes is None:
            return Blocks(self._read)
        self._portions = Portions(self._read, self._chunk_bytes)
        return self._portions

    async def look(self, most: int) -> bytes:
        """The body's beginning, about `most` bytes of it, within a few seconds; `chunks` gives it again."""
        until, size = self._clock.monotonic() + _LOOK_S, 0
        self._is_looking = True
        try:
            while size < most and self._clock.monotonic() < until:
                block = await self._next()
                if block is None:
                    break
                self._looked_at.append(block)
                size += len(block)
        except ContentDownloadError as trouble:
            self._trouble = trouble
        self._is_looking = False
        return b"".join(self._looked_at)[:most]

    async def _read(self) -> bytes | None:
        if self._looked_at:
            return self._looked_at.popleft()
        if self._trouble is not None:
            raise self._trouble
        return await self._next()

    async def _next(self) -> bytes | None:
        """The next block, decoded; None at the end of a body that is whole."""
        if self._ended:
            return None
        while (block := await self._arrival()) is not None:
            self._downloaded += len(block)
            if self._decoder is not None:
                # What a decoder swallows (all that follows the end of a gzip stream) must count too.
                self._refuse_above_cap(self._downloaded)
                block = self._decoded(block)
            if block:
                self._received += len(block)
                self._refuse_above_cap(self._received)
                return block
        self._ended = True
        self._end()
        return None

    def _decoded(self, block: bytes) -> bytes:
        assert self._decoder is not None
        try:
            return self._decoder.feed(block, None if self.max_bytes is None else self.max_bytes - self._received)
        except BodyTooLarge as error:
            self._refuse_above_cap(error.limit + 1)
            raise
        except httpx2.DecodingError as error:
            raise self._broken(error) from None

    async def drain(self) -> bool:
        """Read a short body to its end, so that the connection can be used again. True when it was, and soon."""
        length, call, began = self.content_length, self._about.call, self._clock.monotonic()
        if length is None or length > _DRAIN_BYTES:
            return False
        with contextlib.suppress(*WIRE_ERRORS, TimeoutError):
            try:
                async with asyncio.timeout(_DRAIN_S):
                    while await anext(self._source(), None) is not None:
                        call.cancel.raise_if_cancelled()
                        if self._clock.monotonic() - began > _DRAIN_S:
                            return False
                self._whole = not self._cancel.cancelled
            finally:
                if call.budget is not None:
                    call.budget.spend(self._clock.monotonic() - began)
        return self._whole

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            if isinstance(self._blocks, AsyncGenerator):
                await self._blocks.aclose()
            await self._response.aclose()
        except WIRE_ERRORS:
            pass  # what was read counts by itself
        finally:
            self._portions = None  # it knows this body too: what refers to itself waits for the garbage collector
            if self._permit is not None:
                self._permit.release()
            self._tell_breakers(broken=False)
            if self._pending is not None and self._pending.holds_body:
                self._pending.discard()

    def confirm(self, sha256: str) -> None:
        if self._pending is not None and self._whole:
            self._pending.confirm(sha256)

    def becomes_file(self) -> None:
        """The page that was asked for is a file, whose bytes the store will hold once it is proved."""
        if self._pending is not None:
            self._pending.without_body()

    def reject(self) -> None:
        """The bytes are not what was promised, so the cache must not give them again. Also after `confirm`."""
        if self._pending is not None:
            self._pending.withdraw()
        forget = self._response.extensions.get(FORGET)
        if self.from_cache and callable(forget):
            forget()

    def publish(self) -> None:
        """Let the cache show this page, if it was read whole, with the body just read."""
        if self._pending is not None and self._whole:
            self._pending.confirm()

    async def _arrival(self) -> bytes | None:
        """The next block as it comes."""
        call = self._about.call
        call.cancel.raise_if_cancelled()
        began = self._clock.monotonic()
        try:
            block = await unless_cut(self._cancel, call.cancel, anext(self._source(), None))
            # Transports that do not know the deadline are held to it here, between two blocks.
            if block is not None and time.monotonic() > self._deadline:
                raise httpx2.ReadTimeout("deadline")
            if block is not None:
                self._awaited += len(block)
                self._waited_s += self._clock.monotonic() - began
                if self._waited_s >= self._patience_s:
                    self._refuse_trickle()
            elif self._decoder is not None:
                self._decoder.finish()
        except WIRE_ERRORS_OR_CUT as error:
            # A transfer that we cut ourselves is no failure of the server.
            call.cancel.raise_if_cancelled()
            if self._cancel.cancelled:
                self._journal.cut(self._about)
                raise cut_off(self.url) from None
            raise self._broken(error) from None
        finally:
            if call.budget is not None:
                call.budget.spend(self._clock.monotonic() - began)
        return block

    def _source(self) -> AsyncIterator[bytes]:
        """The bytes of the stream, without httpx2's layers over it."""
        if self._blocks is None:
            response = self._response
            if response.is_stream_consumed:  # it came whole, and has been decoded
                stream: object = httpx2.ByteStream(response.content)
            else:
                stream = response.stream
                response.is_stream_consumed = True
            assert isinstance(stream, httpx2.AsyncByteStream)
            self._blocks = aiter(stream)
        return self._blocks

    def _refuse_trickle(self) -> None:
        """A byte now and then would keep us until all the work's time is spent and no other copy can be tried."""
        if self._awaited < self._waited_s * _SLOWEST_BYTES_PER_S:
            raise httpx2.ReadTimeout("trickle")
        self._awaited, self._waited_s = 0, 0.0

    def _broken(self, error: BaseException) -> Exception:
        fault = fault_of(error, in_body=True, role=self._about.role)
        # Our own time being up says nothing about a server that was sending.
        ours = isinstance(error, DeadlineExceeded) or time.monotonic() > self._deadline
        self._tell_breakers(broken=fault.reason in _BREAKS and not ours)
        whole = self._begun() if fault.retry and not ours else None
        if fault.reason is Reason.SIZE_MISMATCH or whole is not None:
            self._tell_body(cut_by=fault.reason)
        elif self.tells_failures:
            self._journal.failed(self._about, fault.reason)
        failure = fault.failure(self.url, describe(error))
        if isinstance(failure, Retryable):
            failure.whole = whole
        return failure

    def _end(self) -> None:
        announced, received = self.content_length, self._downloaded
        if self._counted and announced is not None and announced != received:
            self._tell_body(cut_by=Reason.SIZE_MISMATCH)
            self._tell_breakers(broken=True)
            detail = f"{received} of {announced} bytes came"
            failure = Retryable(Reason.SIZE_MISMATCH, detail, url=mask_url(self.url))
            failure.whole = self._begun() if received < announced else None
            raise failure
        if (self.status == 200 or self.whole is not None) and not self.from_cache:
            self._tell_body()
        self._whole = True

    def _begun(self) -> Whole | None:
        """The file that broke off, where enough of it came and what is missing may be asked for."""
        if not self.may_go_on or self.from_cache or self._passed_on() < LEAST_BYTES:
            return None
        return self.whole or whole_of(self.url, self.headers, self.content_length)

    def _passed_on(self) -> int:
        """How many bytes the reader has; what waited to be joined to more is lost with it."""
        return self._received - (self._portions.waiting if self._portions is not None else 0)

    def _tell_breakers(self, *, broken: bool) -> None:
        """Once: a body that stalls or breaks off is a failure of its host, like no answer; any other end is none."""
        watched, self.watched = self.watched, None
        if watched is not None:
            watched.broke_off() if broken else watched.answered(200 if self.is_replay else self.status)

    def _tell_body(self, *, cut_by: Reason | None = None) -> None:
        if self._is_looking:
            return  # nobody has asked for this body yet
        self._journal.body(
            self._about,
            http_status=self.status,
            content_type=self.content_type,
            bytes_written=self._received if cut_by is None else self._passed_on(),
            length_header=self.content_length,
            cut_by=cut_by,
        )

    def _refuse_above_cap(self, size: int) -> None:
        if self.max_bytes is not None and size > self.max_bytes:
            if self.tells_failures:
                self._journal.failed(self._about, Reason.TOO_LARGE)
            detail = f"more than {self.max_bytes} bytes"
            raise CandidateRejected(Reason.TOO_LARGE, detail, url=mask_url(self.url), http_status=self.status)


class Blocks:
    """What `take` gives, until it gives None."""

    def __init__(self, take: Callable[[], Awaitable[bytes | None]]) -> None:
        self._take = take

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        block = await self._take()
        if block is None:
            raise StopAsyncIteration
        return block


class Portions:
    """What `take` gives, joined or cut to `size` bytes; not joined at the beginning, where a reader looks at what it
    gets, nor where blocks are large enough: joining copies."""

    def __init__(self, take: Callable[[], Awaitable[bytes | None]], size: int) -> None:
        self._take = take
        self._size = size
        self._passed = 0
        self._blocks: deque[bytes] = deque()
        self._ended = False
        self.waiting = 0  # bytes that have been taken and not given

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not (length := self._next_length()):
            if self._ended:
                raise StopAsyncIteration
            block = await self._take()
            if block is None:
                self._ended = True
            else:
                self._blocks.append(block)
                self.waiting += len(block)
        portion = self._blocks.popleft() if length == len(self._blocks[0]) else self._cut(length)
        self.waiting -= length
        self._passed += length
        return portion

    def _next_length(self) -> int:
        """Of the portion that can be given; 0 when more has to come first."""
        if not self._blocks:
            return 0
        first = len(self._blocks[0])
        if self._passed < _SEEN_AT_ONCE or first >= _LARGE_BLOCK:
            return min(self._size, first)
        return min(self._size, self.waiting) if self._ended or self.waiting >= self._size else 0

    def _cut(self, length: int) -> bytes:
        """The first `length` bytes that wait; copied only where blocks have to be joined or cut."""
        parts = []
        while length:
            block = self._blocks.popleft()
            if len(block) > length:
                self._blocks.appendleft(block[length:])
                block = block[:length]
            parts.append(block)
            length -= len(block)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _as_length(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
