"""One easy handle of libcurl: its options, and its callbacks.

Handles are used again, and only what differs from the last use is set. Promises: a callback never raises, since
libcurl would print the error and end the exchange with another one; what went wrong is kept in the transfer.
"""

from __future__ import annotations

import contextlib
import socket
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import httpx2
import pycurl

from DocsToKG.transport.curl.connections import Connections, Ends
from DocsToKG.transport.curl.routes import Route, Routes
from DocsToKG.transport.curl.transfer import HIGH_WATER_BYTES, Transfer
from DocsToKG.transport.curl.trust import TrustStore, machine_trust_store
from DocsToKG.transport.decoding import ACCEPTED
from DocsToKG.transport.engine import REPEATABLE_METHODS, Request, Timings, check_sendable
from DocsToKG.transport.errors import AddressRefused, ConnectionWentStale, NotSent

_PROXY_TYPES = {
    "http": pycurl.PROXYTYPE_HTTP,
    "https": 2,  # CURLPROXY_HTTPS, which pycurl has no name for
    "socks5": pycurl.PROXYTYPE_SOCKS5,
    "socks5h": pycurl.PROXYTYPE_SOCKS5_HOSTNAME,
}
_LONG_LINE = 1024
_PAUSE: int = pycurl.WRITEFUNC_PAUSE
_GO_ON: int = pycurl.PREREQFUNC_OK
_ABORT: int = pycurl.PREREQFUNC_ABORT
_NO_SOCKET: int = pycurl.SOCKET_BAD
_SOCKET_GOOD: int = pycurl.SOCKOPT_OK
# What libcurl writes itself, from the body it is given.
_FRAMING = frozenset({"content-length", "transfer-encoding", "expect"})


class HandleSettings:
    """What all handles of an engine have in common."""

    def __init__(
        self,
        *,
        routes: Routes,
        connections: Connections,
        trust: TrustStore | None,
        idle_expiry_s: float,
        max_age_s: float,
        touch: Callable[[Transfer], None],
        opened: Callable[[int], None],
        monotonic: Callable[[], float],
    ) -> None:
        self.routes = routes
        self.connections = connections
        self._trust = trust
        self.idle_expiry_s = max(1, round(idle_expiry_s))
        self.max_age_s = max(1, round(max_age_s))
        self.touch = touch
        self.opened = opened
        self.monotonic = monotonic
        self.turn = 0  # counts the calls into libcurl
        self.forgettings = 0  # how often it was told to forget pins: each handle then sets its own again

    @property
    def trust(self) -> TrustStore:
        """Looked for with the first request."""
        self._trust = self._trust or machine_trust_store()
        return self._trust


class Handle:
    """Serves one transfer at a time."""

    def __init__(self, settings: HandleSettings) -> None:
        self.curl = pycurl.Curl()
        self.curl.handle = self
        self.route: Route | None = None
        self.transfer: Transfer | None = None
        self._settings = settings
        self._known: dict[int, Any] = {}
        self._opened: list[int] = []
        self._said: object = None
        self._wanted: object = None
        self._said_method = "GET"  # empty: one with a body
        self._opening: socket.socket | None = None
        self._set_common()

    def _set_common(self) -> None:
        settings, setopt = self._settings, self.curl.setopt
        setopt(pycurl.NOSIGNAL, 1)
        setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        setopt(pycurl.FOLLOWLOCATION, 0)
        setopt(pycurl.PATH_AS_IS, 1)
        setopt(pycurl.NOPROXY, "")  # else the environment's counts
        setopt(pycurl.MAXAGE_CONN, settings.idle_expiry_s)
        setopt(pycurl.MAXLIFETIME_CONN, settings.max_age_s)
        for option, value in ((pycurl.CAINFO, settings.trust.file), (pycurl.CAPATH, settings.trust.folder)):
            if value is not None:
                setopt(option, value)
            else:
                self.curl.unsetopt(option)
        setopt(pycurl.HEADERFUNCTION, self._on_header)
        setopt(pycurl.WRITEFUNCTION, self._on_body)
        setopt(pycurl.PREREQFUNCTION, self._on_ready)
        setopt(pycurl.OPENSOCKETFUNCTION, self._on_open)
        setopt(pycurl.SOCKOPTFUNCTION, self._on_opened)

    # options

    def prepare(self, transfer: Transfer, stale_pins: list[str]) -> None:
        """Everything libcurl has to know of this exchange."""
        request, route = transfer.request, transfer.route
        self.transfer = transfer
        self._opened.clear()
        setopt = self.curl.setopt
        setopt(pycurl.URL, transfer.sent_url)
        if self.route is not route:
            self._set_route(route)
            self._said = None
        # One host is told the same again and again.
        said = (request.method, tuple(request.headers), request.decode, request.body is None)
        if self._said != said:
            setopt(pycurl.HTTPHEADER, _header_lines(request, route))
            self._said = said
        if stale_pins:
            self._settings.forgettings += 1
        pins = (transfer.addresses.pins, self._settings.forgettings)
        wanted = (pins, transfer.limits.connect_s, transfer.fresh, request.http2, route.secure)
        if self._wanted != wanted:
            self._set_wanted(transfer, stale_pins)
            self._wanted = wanted
        if request.body is not None or self._said_method != request.method:
            self._set_method(request)

    def _set_wanted(self, transfer: Transfer, stale_pins: list[str]) -> None:
        request, connect_s = transfer.request, transfer.limits.connect_s
        http2 = request.http2 and transfer.route.secure
        self.curl.setopt(pycurl.RESOLVE, [*stale_pins, *transfer.addresses.pins])
        self._set(pycurl.CONNECTTIMEOUT_MS, 0 if connect_s is None else max(1, int(connect_s * 1000)))
        self._set(pycurl.FRESH_CONNECT, int(transfer.fresh))
        self._set(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS if http2 else pycurl.CURL_HTTP_VERSION_1_1)
        self._set(pycurl.PIPEWAIT, int(http2))

    def _set(self, option: int, value: Any) -> None:
        if self._known.get(option) != value:
            self.curl.setopt(option, list(value) if isinstance(value, tuple) else value)
            self._known[option] = value

    def _set_route(self, route: Route) -> None:
        self.route = route
        target, proxy = route.target, route.proxy
        to: tuple[str, ...] = ()
        if target is not None:
            address = f"[{target.address}]" if ":" in target.address else target.address
            to = (f"::{address}:{target.port}",)
        self._set(pycurl.CONNECT_TO, to)
        if proxy is None:
            self._set(pycurl.PROXY, "")  # else the environment's counts
            return
        host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
        self._set(pycurl.PROXY, host)
        self._set(pycurl.PROXYPORT, proxy.port)
        self._set(pycurl.PROXYTYPE, _PROXY_TYPES[proxy.scheme])
        self._set(pycurl.HTTPPROXYTUNNEL, int(route.secure))
        self._set(pycurl.PROXYUSERNAME, proxy.user or "")
        self._set(pycurl.PROXYPASSWORD, proxy.password or "")

    def _set_method(self, request: Request) -> None:
        if self._said_method != "GET":
            self.curl.setopt(pycurl.HTTPGET, 1)
            self.curl.unsetopt(pycurl.CUSTOMREQUEST)
        plain = request.body is None
        self._said_method = request.method if plain else ""
        if request.method == "GET" and plain:
            return
        if request.method == "HEAD" and plain:
            self.curl.setopt(pycurl.NOBODY, 1)
            return
        if request.body is not None:
            self.curl.setopt(pycurl.POST, 1)
            self.curl.setopt(pycurl.POSTFIELDSIZE_LARGE, len(request.body))
            self.curl.setopt(pycurl.POSTFIELDS, request.body)
        self.curl.setopt(pycurl.CUSTOMREQUEST, request.method)

    # callbacks

    def _on_header(self, line: bytes) -> int | None:
        transfer = self.transfer
        if transfer is None:
            return 0
        lines = transfer.head_lines
        if lines and 2 < len(line) < _LONG_LINE and len(lines) <= transfer.limits.max_header_lines:
            lines.append(line)  # in the middle of a head
            return None
        if not transfer.sends:
            return None  # the proxy's answer to CONNECT
        if not transfer.touched:
            self._settings.touch(transfer)
        try:
            if transfer.head is None and self._came_too_early(transfer):
                raise ConnectionWentStale("the kept connection held bytes that belong to no request")
            transfer.take_header_line(line)
            return None
        except Exception as error:
            transfer.error = error
            return 0

    def _came_too_early(self, transfer: Transfer) -> bool:
        """A kept TLS connection may hold decrypted bytes that no look at its socket shows: the end of the record that
        ended the last body. The response then begins in the very call that sends the request."""
        connection = transfer.connection
        if not transfer.reused or transfer.seen_at_turn != self._settings.turn:
            return False
        if connection is None or not (connection.secure and connection.exclusive):
            return False
        if connection.may_have_been_answered():
            return False
        transfer.again = transfer.request.method in REPEATABLE_METHODS
        return True

    def _on_body(self, data: bytes) -> int | None:
        transfer = self.transfer
        if transfer is None:
            return 0
        if transfer.buffered >= HIGH_WATER_BYTES:
            transfer.paused = True
            return _PAUSE
        if not transfer.touched:
            self._settings.touch(transfer)
        try:
            transfer.take_body(data)
        except Exception as error:
            transfer.error = error
            return 0
        return None

    def _on_ready(self, peer: str, own: str, peer_port: int, own_port: int) -> int:
        """Connected, and about to send: the last moment to say no, on new and on kept connections."""
        transfer = self.transfer
        if transfer is None:
            return _ABORT
        try:
            error = self._objection(transfer, (peer, own, peer_port, own_port))
        except Exception as raised:
            error = raised
        if error is None:
            return _GO_ON
        transfer.error = error
        return _ABORT

    def _objection(self, transfer: Transfer, ends: Ends) -> Exception | None:
        settings, request, route = self._settings, transfer.request, transfer.route
        if transfer.sends and request.method not in REPEATABLE_METHODS:
            return ConnectionWentStale("the server had closed the kept connection")
        transfer.reused = not self._opened
        if transfer.reused:
            connection = settings.connections.between(ends)
            if not settings.routes.may_stay(route, ends[0]):
                return AddressRefused(f"{route.host[:255]!r} may no longer be reached at its old address")
            if connection is None or not connection.is_quiet():
                transfer.again = True
                return ConnectionWentStale("the kept connection is no longer quiet")
        else:
            connection = settings.connections.opened(ends, self._opened, route.secure)
            if ends[0] not in transfer.addresses.allowed:
                return AddressRefused(f"{route.host[:255]!r} was reached at an address that nobody judged")
        if request.before_send is not None and not request.before_send():
            return NotSent(f"the request to {route.host[:255]!r} was taken back before it was sent")
        transfer.connection = connection
        transfer.peer = ends[0]
        transfer.sends += 1
        transfer.seen_at_turn = settings.turn
        transfer.sent_at = transfer.last = settings.monotonic()
        if request.on_sent is not None:
            request.on_sent()
        return None

    def _on_open(self, purpose: int, address: Any) -> Any:
        """libcurl is about to connect: only to an address that was judged for this host."""
        transfer = self.transfer
        try:
            text = _text_of(address.addr)
            if transfer is None or text not in transfer.addresses.allowed:
                if transfer is not None:
                    transfer.refused = AddressRefused(f"{transfer.route.host[:255]!r} has an address nobody judged")
                return _NO_SOCKET
            self._opening = socket.socket(address.family, address.socktype, address.protocol)
            return self._opening
        except Exception as error:
            if transfer is not None:
                transfer.refused = httpx2.ConnectError(f"no socket: {type(error).__name__}")
            return _NO_SOCKET

    def _on_opened(self, fileno: int, purpose: int) -> int:
        """libcurl works on a copy of the socket that `_on_open` gave it."""
        with contextlib.suppress(Exception):
            if self._opening is not None:
                self._opening.close()
                self._opening = None
            self._opened.append(fileno)
            self._settings.opened(fileno)
            self._settings.connections.opening(fileno)
        return _SOCKET_GOOD

    # what is asked outside of callbacks

    def timings(self, transfer: Transfer) -> Timings:
        info = self.curl.getinfo
        return Timings(
            transfer.name_s,
            info(pycurl.CONNECT_TIME),
            info(pycurl.APPCONNECT_TIME),
            info(pycurl.STARTTRANSFER_TIME),
            info(pycurl.TOTAL_TIME),
        )


class Handles:
    """Handles for the next transfers: best one that served the same route, else the one that rested longest."""

    def __init__(self, settings: HandleSettings, most: int = 256) -> None:
        self._settings = settings
        self._most = most
        self._free: OrderedDict[Route, list[Handle]] = OrderedDict()
        self._count = 0

    def take(self, route: Route) -> Handle:
        if route not in self._free:
            if self._count < self._most // 2:
                return Handle(self._settings)
            route = next(iter(self._free))
        same = self._free[route]
        handle = same.pop()
        if not same:
            del self._free[route]
        self._count -= 1
        return handle

    def give_back(self, handle: Handle) -> None:
        if handle.route is None or self._count >= self._most:
            handle.curl.close()
            return
        self._free.setdefault(handle.route, []).append(handle)
        self._count += 1

    def close(self) -> None:
        self._most = 0
        for handles in self._free.values():
            for handle in handles:
                handle.curl.close()
        self._free.clear()
        self._count = 0

    def __len__(self) -> int:
        return self._count


def _text_of(address: Any) -> str:
    host = address[0]
    return host.decode("ascii") if isinstance(host, bytes) else str(host)


def _header_lines(request: Request, route: Route) -> list[bytes | str]:
    check_sendable(request.method, request.headers)
    lines: list[str] = []
    names = set()
    for name, value in request.headers:
        lower = name.lower()
        names.add(lower)
        if lower not in _FRAMING:
            lines.append(f"{name}: {value}" if value else f"{name};")
    if "host" not in names:
        lines.append(f"Host: {route.host_header}")
    if "accept" not in names:
        lines.append("Accept:")
    if "accept-encoding" not in names:
        lines.append(f"Accept-Encoding: {ACCEPTED if request.decode else 'identity'}")
    if request.body is not None:
        lines.append("Expect:")
        if "content-type" not in names:
            lines.append("Content-Type:")
    return [line if line.isascii() else line.encode("utf-8") for line in lines]
