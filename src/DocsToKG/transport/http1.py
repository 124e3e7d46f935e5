"""HTTP/1.1 under httpx2: one request out, one answer in, connections kept for the next.

Reads from `request.extensions`: `timeout` (httpx2's), `deadline` (monotonic seconds for the whole exchange, body
included) and `cancel` (a `CancelToken`). Puts `peer`, the address connected to, into `response.extensions`. Follows no
redirect, keeps no cookie, retries nothing but a kept connection that had died. Thread-safe, with no thread of its own.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import NoReturn

import httpx2

from DocsToKG.core.cancel import Cancelled
from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.transport.body import Body, body_of
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.dial import Dialer, Route
from DocsToKG.transport.errors import ClosedEarly, ConnectionWentStale
from DocsToKG.transport.fields import Fields
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.head import Head, parse_head
from DocsToKG.transport.idle import IdleWires, Place
from DocsToKG.transport.messages import LightResponse
from DocsToKG.transport.names import NameResolver
from DocsToKG.transport.outgoing import body_blocks, encode_head, may_be_sent_again
from DocsToKG.transport.patience import Patience
from DocsToKG.transport.proxy import Proxies
from DocsToKG.transport.wire import Awaited, Wire

_MAX_INTERIM_ANSWERS = 8
_MAX_DRAIN_BYTES = 64 * 1024


class LeanTransport(httpx2.BaseTransport):
    """Talks to addresses the guard judged, and to no others."""

    def __init__(
        self,
        *,
        guard: AddressGuard,
        names: NameResolver,
        connect_to: ConnectTo | None = None,
        proxies: Proxies | None = None,
        ssl_context: ssl.SSLContext | None = None,
        max_idle_per_host: int = 8,
        max_idle: int = 64,
        max_open: int | None = None,
        idle_expiry_s: float = 30.0,
        max_header_bytes: int = 64 * 1024,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._max_header_bytes = max_header_bytes
        self._dialer = Dialer(
            guard=guard,
            names=names,
            connect_to=connect_to,
            proxies=proxies,
            ssl_context=ssl_context,
            max_header_bytes=max_header_bytes,
        )
        self._idle = IdleWires(
            clock=self._clock,
            max_per_host=max_idle_per_host,
            max_total=max_idle,
            expiry_s=idle_expiry_s,
            max_open=max_open,
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer with its body unread. Read it to the end, or close it, to give the connection back."""
        return self.begin(request).response()

    def begin(self, request: httpx2.Request) -> Sent:
        """Send the request, on a kept connection or, where there is none or it had died, on a fresh one. Its answer is
        for whoever asks for it, once something has come or at once."""
        patience = Patience.of(request, self._clock)
        patience.check()
        route = self._dialer.route(request.url)
        wire, place = self._idle.take(route)
        try:
            if wire is not None:
                wire.begin(patience)
                try:
                    return self._sent(wire, route, request, patience, place)
                except ConnectionWentStale:
                    if not may_be_sent_again(request):
                        raise
            return self._sent(self._dialer.dial(route, patience), route, request, patience, place)
        except BaseException:
            place.give_back()
            raise

    def close(self) -> None:
        """Close the idle connections. Exchanges under way end by themselves and keep nothing."""
        self._idle.close()

    def _sent(self, wire: Wire, route: Route, request: httpx2.Request, patience: Patience, place: Place) -> Sent:
        try:
            self._send(wire, request, _head_bytes(route, request))
        except BaseException:
            wire.close()
            raise
        return Sent(self, wire, route, request, patience, place)

    def _sent_again(self, sent: Sent) -> Sent:
        fresh = self._dialer.dial(sent.route, sent.patience)
        return self._sent(fresh, sent.route, sent.request, sent.patience, sent.place)

    def _heard(self, sent: Sent) -> httpx2.Response:
        wire, request = sent.wire, sent.request
        try:
            head = self._receive_head(wire, request.method)
            sent.patience.start_body()
            keep = head.keep_alive and "close" not in request.headers.get("connection", "").lower()
            stream = AnswerStream(wire, body_of(head, wire), sent.place, keep)
        except BaseException:
            wire.close()
            raise
        about = {"http_version": head.version, "reason_phrase": head.reason, "peer": wire.peer}
        return LightResponse(head.status, Fields.received(head), stream, about)

    def _send(self, wire: Wire, request: httpx2.Request, head: bytes) -> None:
        asked, blocks = request.extensions, body_blocks(request)
        # Head and a small body leave in one packet.
        first = head + next(blocks, b"")
        try:
            # Connecting may have taken so long that others have gone ahead; whoever spaces requests says so here.
            while "goes_out" in asked and (delay_s := asked["goes_out"]()) > 0:
                wire.rest(delay_s)
            wire.send(first)
            # Whoever spaces requests counts from here: connecting may have taken its time.
            if "sent" in asked:
                asked["sent"]()
            for block in blocks:
                wire.send(block)
        except httpx2.WriteError as error:
            if wire.reused:
                raise ConnectionWentStale("the server had closed the kept connection") from error
            raise

    def _receive_head(self, wire: Wire, method: str) -> Head:
        for _ in range(_MAX_INTERIM_ANSWERS + 1):
            try:
                block = wire.receive_head(self._max_header_bytes)
            except httpx2.ReadError as error:
                if wire.is_unheard:
                    raise ConnectionWentStale("the server had closed the kept connection") from error
                raise
            head = parse_head(block or _no_answer(wire), method)
            if head.status >= 200:
                return head
            if head.status == 101:
                raise httpx2.RemoteProtocolError("the server switched to a protocol we did not ask for")
        raise httpx2.RemoteProtocolError("the server sent interim answers without end")


class Sent:
    """A request that is on the wire. One of `response` and `close` is to be called, once."""

    __slots__ = ("_transport", "patience", "place", "request", "route", "wire")

    def __init__(
        self,
        transport: LeanTransport,
        wire: Wire,
        route: Route,
        request: httpx2.Request,
        patience: Patience,
        place: Place,
    ) -> None:
        self._transport = transport
        self.wire = wire
        self.route = route
        self.request = request
        self.patience = patience
        self.place = place

    def awaited(self) -> Awaited:
        """What to wait for, for those who would not block a thread."""
        return self.wire.awaited()

    def response(self) -> httpx2.Response:
        """The answer with its body unread."""
        try:
            try:
                return self._transport._heard(self)
            except ConnectionWentStale:
                if not may_be_sent_again(self.request):
                    raise
            return self._transport._heard(self._transport._sent_again(self))
        except BaseException:
            self.place.give_back()
            raise

    def close(self) -> None:
        """Nobody wants the answer any more."""
        self.wire.close()
        self.place.give_back()


class AnswerStream(httpx2.SyncByteStream):
    """The body as httpx2 reads it. Gives the connection back with the last byte, closes it on any trouble."""

    def __init__(self, wire: Wire, body: Body, place: Place, keep: bool) -> None:
        self._wire = wire
        self._body = body
        self._place = place
        self._keep = keep
        self._settled = False
        if body.finished:
            self._settle()

    def __iter__(self) -> Iterator[bytes]:
        return self

    @property
    def is_over(self) -> bool:
        """Nothing more will come."""
        return self._settled

    def awaited(self) -> Awaited | None:
        """What to wait for before the next block; None when it is there, or none will come."""
        return None if self._settled or self._wire.has_more() else self._wire.awaited()

    def close(self) -> None:
        if not self._settled and self._keep:
            self._drain()
        if not self._settled:
            self._end()

    def __next__(self) -> bytes:
        if self._settled:
            raise StopIteration
        try:
            block = self._body.read()
        except BaseException:
            self._end()
            raise
        if self._body.finished:
            self._settle()
        if not block:
            raise StopIteration
        return block

    def _drain(self) -> None:
        """Take what has already arrived: the short page of a redirect is no reason to lose its connection."""
        self._wire.stop_waiting()
        received = 0
        try:
            while not self._settled and received <= _MAX_DRAIN_BYTES:
                received += len(next(self, b""))
        except (httpx2.TransportError, Cancelled):
            return

    def _settle(self) -> None:
        if not self._keep or self._wire.has_bytes_ahead or self._wire.ragged:
            self._end()
            return
        self._settled = True
        self._wire.finish()
        self._place.keep(self._wire)

    def _end(self) -> None:
        self._settled = True
        self._wire.close()
        self._place.give_back()


def _head_bytes(route: Route, request: httpx2.Request) -> bytes:
    if not route.is_forwarded or route.proxy is None:
        return encode_head(request, request.url.raw_path)
    authority = request.url.netloc
    extra = [(b"Proxy-Authorization", route.proxy.authorization)] if route.proxy.authorization is not None else []
    return encode_head(request, b"http://" + authority + request.url.raw_path, extra)


def _no_answer(wire: Wire) -> NoReturn:
    if wire.is_unheard:
        raise ConnectionWentStale("the server had closed the kept connection")
    raise ClosedEarly("the server closed the connection without an answer")
