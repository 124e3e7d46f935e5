"""libcurl's multi interface, driven by the event loop.

Knows sockets to watch, timers and which transfer is whose. One loop, one engine; nothing in here waits. Promises: at
most a handful of exchanges are started in one turn of the loop; a task that is cancelled takes its exchange out of
libcurl before it goes on; no limit of a request runs inside libcurl's own queues.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from typing import NamedTuple

import httpx2
import pycurl

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.curl import failures
from DocsToKG.transport.curl.connections import Connections
from DocsToKG.transport.curl.failures import Failure, error_of
from DocsToKG.transport.curl.handle import Handle, Handles, HandleSettings
from DocsToKG.transport.curl.routes import Addresses, Route, Routes
from DocsToKG.transport.curl.sockets import Sockets
from DocsToKG.transport.curl.transfer import LOW_WATER_BYTES, Transfer
from DocsToKG.transport.curl.trust import TrustStore
from DocsToKG.transport.engine import REPEATABLE_METHODS, Limits, Request, Response, Timings
from DocsToKG.transport.errors import ConnectionWentStale, DeadlineExceeded
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.names import NameResolver
from DocsToKG.transport.proxy import Proxies

_STARTS_A_TURN = 32
_MAX_TRIES = 3
_SHORTEST_WATCH_S = 0.02
_WAKE_BYTES = 64 * 1024
_WAKE_AFTER_S = 0.003
_NEVER = float("inf")
# The connection was of no use, and nothing of a response has come: a repeatable request goes out once more.
_CONNECTION_GONE = frozenset(
    {
        failures.UNSUPPORTED_PROTOCOL,
        failures.WEIRD_SERVER_REPLY,
        failures.HTTP2,
        failures.GOT_NOTHING,
        failures.SEND_ERROR,
        failures.RECV_ERROR,
        failures.HTTP2_STREAM,
    }
)


class Holding(NamedTuple):
    """`pins` are the places of exchanges under way, whose addresses libcurl was told."""

    exchanges: int
    idle_handles: int
    pins: int


class CurlEngine:
    """An `Engine` over libcurl. Belongs to the event loop that first uses it.

    Idle connections are closed to stay within `max_open`; where so many are in use, libcurl has further exchanges wait
    while their limits of time run, so whoever sets it asks for no more at once.
    """

    def __init__(
        self,
        *,
        guard: AddressGuard,
        names: NameResolver,
        connect_to: ConnectTo | None = None,
        proxies: Proxies | None = None,
        trust: TrustStore | None = None,
        max_idle: int = 64,
        max_open: int | None = None,
        idle_expiry_s: float = 30.0,
        max_age_s: float = 600.0,
        max_streams: int = 100,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._routes = Routes(guard=guard, names=names, connect_to=connect_to, proxies=proxies)
        self._sockets = Sockets()
        self._settings = HandleSettings(
            routes=self._routes,
            connections=Connections(),
            trust=trust,
            idle_expiry_s=idle_expiry_s,
            max_age_s=max_age_s,
            touch=self._touch,
            opened=self._sockets.opened,
            monotonic=self._clock.monotonic,
        )
        self._max_idle = max_idle
        self._max_open = max_open
        self._max_streams = max_streams
        self._multi: pycurl.CurlMulti  # made with the first request
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._active: dict[Transfer, Handle] = {}
        self._handles = Handles(self._settings)
        self._touched: list[Transfer] = []
        self._to_wake: set[Transfer] = set()
        self._waiting: deque[Transfer] = deque()
        self._starts_left = _STARTS_A_TURN
        self._turn_ends = False
        self._running = 0
        self._timer: asyncio.TimerHandle | None = None
        self._act_at = _NEVER
        self._acts_soon = False
        self._watch: asyncio.TimerHandle | None = None
        self._watch_at = _NEVER
        self._pins: Counter[str] = Counter()
        self._stale_pins: set[str] = set()

    # one exchange

    async def fetch(self, request: Request) -> Response:
        self._check_open()
        began = self._clock.monotonic()
        limits = request.limits
        if limits.deadline is not None and began >= limits.deadline:
            raise DeadlineExceeded("the time given to this request is over")
        route, url = self._routes.of(request.url)
        fresh, name_s = False, 0.0
        addresses = self._routes.known(route)
        if addresses is None:
            addresses = await self._addresses(route, limits, began)
            name_s = self._clock.monotonic() - began
        for tries_left in range(_MAX_TRIES - 1, -1, -1):
            self._check_open()
            transfer = Transfer(self, request, route, url, addresses, began)
            transfer.fresh, transfer.name_s = fresh, name_s
            self._enter(transfer)
            try:
                await transfer.wait_for_head()
            except BaseException:
                self.drop(transfer)
                raise
            if transfer.head is not None and not transfer.again:
                return transfer
            if not (transfer.again and tries_left):
                break
            fresh, began = True, self._clock.monotonic()
        raise transfer.error or httpx2.TransportError("the exchange ended without a response")

    async def _addresses(self, route: Route, limits: Limits, began: float) -> Addresses:
        by = _NEVER if limits.connect_s is None else began + limits.connect_s
        by = min(by, _NEVER if limits.deadline is None else limits.deadline)
        try:
            return await self._routes.addresses(route, timeout_s=None if by == _NEVER else max(0.0, by - began))
        except httpx2.ConnectTimeout:
            if limits.deadline is not None and by == limits.deadline:
                raise DeadlineExceeded("the time given to this request is over") from None
            raise

    async def aclose(self) -> None:
        """End every exchange at once and close every connection; whoever waits gets an error."""
        if self._closed:
            return
        self._closed = True
        for transfer in (*self._active, *self._waiting):
            transfer.error = transfer.error or httpx2.TransportError("the engine is closed")
            self.drop(transfer)
            transfer.wake()
        self._waiting.clear()
        self._handles.close()
        for timer in (self._timer, self._watch):
            if timer is not None:
                timer.cancel()
        if self._loop is not None:
            self._multi.close()
            self._loop.remove_reader(self._sockets.fileno())
        self._sockets.close()

    def _check_open(self) -> None:
        if self._closed:
            raise httpx2.TransportError("the engine is closed")
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            loop.add_reader(self._sockets.fileno(), self._on_ready)
            self._multi = multi = pycurl.CurlMulti()
            multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
            multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
            multi.setopt(pycurl.M_MAXCONNECTS, max(1, self._max_idle))
            multi.setopt(pycurl.M_MAX_CONCURRENT_STREAMS, self._max_streams)
            if self._max_open is not None:
                multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, self._max_open)
        elif self._loop is not loop:
            raise RuntimeError("an engine belongs to one event loop")

    def holding(self) -> Holding:
        """What it has at the moment."""
        return Holding(len(self._active) + len(self._waiting), len(self._handles), len(self._pins))

    # starting, a few in each turn of the loop

    def _enter(self, transfer: Transfer) -> None:
        if self._starts_left and not self._waiting:
            self._starts_left -= 1
            self._start(transfer)
            self._on_turn()  # the request goes out now
        else:
            self._waiting.append(transfer)
        if not self._turn_ends:
            self._turn_ends = True
            self._running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._turn_ends = False
        self._starts_left = _STARTS_A_TURN
        while self._waiting and self._starts_left:
            transfer = self._waiting.popleft()
            if not transfer.over:
                self._starts_left -= 1
                self._start(transfer)
        if self._waiting:
            self._turn_ends = True
            self._running_loop().call_soon(self._next_turn)

    def _start(self, transfer: Transfer) -> None:
        handle = self._handles.take(transfer.route)
        stale = [pin for pin in self._stale_pins if pin not in self._pins]
        try:
            handle.prepare(transfer, [f"-{pin}" for pin in stale])
            self._multi.add_handle(handle.curl)
        except Exception as error:
            handle.transfer = None
            handle.curl.close()
            transfer.finish(_refused(error))
            return
        self._stale_pins.clear()
        for place in transfer.addresses.places:
            self._pins[place] += 1
        self._active[transfer] = handle
        self._watch_until(transfer.look_by(transfer.began))

    # libcurl and the loop

    def _on_socket(self, what: int, fileno: int, multi: object, data: object) -> None:
        """libcurl says which sockets to watch, and for what."""
        try:  # noqa: SIM105 - called for every exchange
            self._sockets.want(what, fileno)
        except OSError:
            pass  # it has been closed meanwhile

    def _on_timer(self, timeout_ms: int) -> None:
        """libcurl says when it wants to be called, whatever happens on its sockets."""
        if timeout_ms == 0:
            if not self._acts_soon and not self._closed:
                self._acts_soon = True
                self._running_loop().call_soon(self._on_turn)
            return
        loop = self._running_loop()
        self._act_at = _NEVER if timeout_ms < 0 else loop.time() + timeout_ms / 1000
        # It changes its mind often, and mostly for later: a timer that comes too early looks again.
        if self._timer is None or self._act_at < self._timer.when():
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._act_at < _NEVER and not self._closed:
            self._timer = self._running_loop().call_at(self._act_at, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if self._running_loop().time() < self._act_at:
            self._set_timer()
        else:
            self._act_at = _NEVER
            self._on_turn()

    def _on_turn(self) -> None:
        self._acts_soon = False
        if not self._closed:
            self._act(pycurl.SOCKET_TIMEOUT, 0)
            self._settle()

    def _on_ready(self) -> None:
        if self._closed:
            return
        for fileno, events in self._sockets.ready():
            self._act(fileno, events)
        self._settle()

    def _act(self, fileno: int, events: int) -> None:
        self._settings.turn += 1
        _, self._running = self._multi.socket_action(fileno, events)

    def _settle(self) -> None:
        """After libcurl has worked: what has ended, and whom to wake."""
        if self._running < len(self._active):
            self._collect()
        if self._touched:
            self._wake_touched()

    def _touch(self, transfer: Transfer) -> None:
        transfer.touched = True
        self._touched.append(transfer)

    def _wake_touched(self) -> None:
        """Readers are woken for a head, for much of a body, and else after a moment in which more may come."""
        now = self._clock.monotonic()
        touched, self._touched = self._touched, []
        for transfer in touched:
            transfer.touched = False
            transfer.last = now
            if not transfer.is_waited_for:
                continue
            if transfer.head_is_known and transfer.buffered < _WAKE_BYTES:
                self._wake_later(transfer)
            else:
                transfer.head_is_known = transfer.head is not None
                transfer.wake()

    def _wake_later(self, transfer: Transfer) -> None:
        if not self._to_wake:
            self._running_loop().call_later(_WAKE_AFTER_S, self._wake_all)
        self._to_wake.add(transfer)

    def _wake_all(self) -> None:
        for transfer in self._to_wake:
            transfer.wake()
        self._to_wake.clear()

    def _collect(self) -> None:
        multi = self._multi
        while True:
            left, good, failed = multi.info_read()
            for curl in good:
                self._finish(curl.handle, 0, "")
            for curl, code, text in failed:
                self._finish(curl.handle, code, text)
            if not left:
                return

    def _finish(self, handle: Handle, code: int, text: str) -> None:
        transfer = handle.transfer
        if transfer is None:
            return
        error = None if code == 0 else self._error(handle, transfer, code, text)
        if transfer.head is not None:
            transfer.again = False
        elif code in _CONNECTION_GONE and transfer.sends and transfer.error is None and self._may_repeat(transfer):
            transfer.again = True
        if code == 0 and transfer.connection is not None:
            transfer.connection.rest()
        timings = handle.timings(transfer)
        self._release(transfer)
        transfer.finish(error, timings)

    def _may_repeat(self, transfer: Transfer) -> bool:
        """A response that never began, on a connection that others had used before or use too."""
        return transfer.reused and transfer.request.method in REPEATABLE_METHODS

    def _error(self, handle: Handle, transfer: Transfer, code: int, text: str) -> Exception:
        if transfer.error is not None:
            return transfer.error
        if code in _CONNECTION_GONE and transfer.head is None and transfer.reused and transfer.sends:
            return ConnectionWentStale("the kept connection was closed before it answered")
        if code == failures.COULDNT_CONNECT and transfer.refused is not None:
            return transfer.refused
        if code == failures.OPERATION_TIMEDOUT:
            return transfer.lateness(self._clock.monotonic())
        info = handle.curl.getinfo
        proxied = transfer.route.proxy is not None
        failure = Failure(
            code,
            text,
            transfer.route.host,
            proxied,
            info(pycurl.HTTP_CONNECTCODE) if proxied else 0,
            info(pycurl.SSL_VERIFYRESULT),
            transfer.head is not None,
            transfer.head.length if transfer.head is not None else None,
            transfer.received,
        )
        return error_of(failure)

    def _release(self, transfer: Transfer) -> None:
        """Out of libcurl; the handle waits for the next transfer."""
        handle = self._active.pop(transfer)
        handle.transfer = None
        try:  # noqa: SIM105 - called for every exchange
            self._multi.remove_handle(handle.curl)
        except pycurl.error:
            pass
        for place in transfer.addresses.places:
            self._pins[place] -= 1
            if not self._pins[place]:
                del self._pins[place]
                self._stale_pins.add(place)
        self._handles.give_back(handle)

    # what transfers ask for

    def drop(self, transfer: Transfer) -> None:
        """Nobody wants the rest: at once out of libcurl, which closes a connection with an unfinished response."""
        if transfer in self._active:
            self._release(transfer)
        transfer.finish(transfer.error or httpx2.StreamClosed())

    def resume(self, transfer: Transfer) -> None:
        if transfer.buffered > LOW_WATER_BYTES or transfer not in self._active:
            return
        transfer.paused = False
        self._settings.turn += 1
        with contextlib.suppress(pycurl.error):
            self._active[transfer].curl.pause(pycurl.PAUSE_CONT)

    def await_body(self, transfer: Transfer) -> None:
        """A reader has come: only from now on is silence counted."""
        transfer.last = self._clock.monotonic()

    def timings(self, transfer: Transfer) -> Timings:
        handle = self._active.get(transfer)
        return Timings() if handle is None else handle.timings(transfer)

    # limits: one watch for all transfers, set for the earliest moment at which one of them can be late

    def _watch_until(self, moment: float) -> None:
        if moment >= self._watch_at:
            return
        if self._watch is not None:
            self._watch.cancel()
        self._watch_at = moment
        wait_s = max(_SHORTEST_WATCH_S, moment - self._clock.monotonic())
        self._watch = self._running_loop().call_later(wait_s, self._look_at_limits)

    def _look_at_limits(self) -> None:
        self._watch, self._watch_at = None, _NEVER
        now, next_due = self._clock.monotonic(), _NEVER
        late: list[Transfer] = []
        for transfer in self._active:
            if transfer.due() <= now:
                late.append(transfer)
            else:
                next_due = min(next_due, transfer.look_by(now))
        for transfer in late:
            transfer.error = transfer.error or transfer.lateness(now)
            self.drop(transfer)
        if next_due < _NEVER:
            self._watch_until(next_due)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None
        return self._loop


def _refused(error: Exception) -> Exception:
    if not isinstance(error, pycurl.error):
        return error
    return httpx2.LocalProtocolError(f"libcurl does not take the request (code {error.args[0]})")
