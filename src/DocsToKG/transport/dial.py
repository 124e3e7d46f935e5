"""From a URL's host to an open connection.

The order is the point: name, address, guard, then the connection goes to exactly an address the guard
judged, while TLS and Host keep the logical name. A connect_to rule replaces the judged address at the last moment;
behind a proxy the guard judges the name alone.
"""

from __future__ import annotations

import socket
import ssl
import threading
from functools import lru_cache
from typing import NamedTuple

import httpx2

from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.guard import AddressGuard, literal_address
from DocsToKG.transport.head import parse_head
from DocsToKG.transport.hosts import host_and_port
from DocsToKG.transport.names import NameResolver
from DocsToKG.transport.outgoing import encode_fields
from DocsToKG.transport.patience import Patience
from DocsToKG.transport.places import KnownUrl
from DocsToKG.transport.proxy import Proxies, Proxy
from DocsToKG.transport.wire import Wire

_MAX_ADDRESSES = 4
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Route(NamedTuple):
    """Where a request goes. Equal routes may share connections."""

    scheme: str
    host: str
    port: int
    proxy: Proxy | None = None

    @property
    def is_forwarded(self) -> bool:
        """Does a proxy get the whole request, rather than a tunnel?"""
        return self.proxy is not None and self.scheme == "http"


class Dialer:
    """Opens connections for routes. Keeps none."""

    def __init__(
        self,
        *,
        guard: AddressGuard,
        names: NameResolver,
        connect_to: ConnectTo | None,
        proxies: Proxies | None,
        ssl_context: ssl.SSLContext | None,
        max_header_bytes: int,
    ) -> None:
        self._guard = guard
        self._names = names
        self._connect_to = connect_to or ConnectTo({})
        self._proxies = proxies or Proxies({})
        self._ssl_context = ssl_context
        self._ssl_lock = threading.Lock()
        self._max_header_bytes = max_header_bytes
        self._route_to = lru_cache(maxsize=1024)(lambda place: self._route(place.url))

    def route(self, url: httpx2.URL) -> Route:
        """The way to the place of `url`, found once for each."""
        return self._route_to(url.place) if isinstance(url, KnownUrl) else self._route(url)

    def _route(self, url: httpx2.URL) -> Route:
        scheme, host = url.scheme, url.raw_host.decode("ascii").lower()
        if scheme not in _DEFAULT_PORTS or not host:
            raise httpx2.UnsupportedProtocol("only http and https URLs with a host can be requested")
        port = url.port or _DEFAULT_PORTS[scheme]
        if self._connect_to.target(host, port) is not None:
            return Route(scheme, host, port)
        return Route(scheme, host, port, self._proxies.proxy_for(scheme, host, port))

    def dial(self, route: Route, patience: Patience) -> Wire:
        """An open connection, ready for a request; its exchange has begun."""
        patience.start_connecting()
        if route.proxy is not None:
            return self._dial_proxy(route, route.proxy, patience)
        addresses = self._guard.judge(route.host, self._resolve(route.host, route.port, patience))
        port, tls = route.port, route.scheme == "https"
        target = self._connect_to.target(route.host, route.port)
        if target is not None:
            addresses, port, tls = [target.address], target.port, target.tls
        wire = _connect_first(route.host, addresses, port, patience)
        return self._secured(wire, route.host) if tls else wire

    def _dial_proxy(self, route: Route, proxy: Proxy, patience: Patience) -> Wire:
        self._guard.judge_name(route.host)
        wire = _connect_first(proxy.host, self._resolve(proxy.host, proxy.port, patience), proxy.port, patience)
        if route.is_forwarded:
            return wire
        try:
            self._open_tunnel(wire, route, proxy)
        except BaseException:
            wire.close()
            raise
        return self._secured(wire, route.host)

    def _open_tunnel(self, wire: Wire, route: Route, proxy: Proxy) -> None:
        target = host_and_port(route.host, route.port).encode("ascii")
        fields = [(b"Host", target)]
        if proxy.authorization is not None:
            fields.append((b"Proxy-Authorization", proxy.authorization))
        wire.send(b"CONNECT %s HTTP/1.1%s" % (target, encode_fields(tuple(fields))))
        block = wire.receive_head(self._max_header_bytes)
        if not block:
            raise httpx2.ProxyError("the proxy closed the connection without an answer")
        status = parse_head(block, "CONNECT").status
        if not 200 <= status < 300 or wire.has_bytes_ahead:
            raise httpx2.ProxyError(f"the proxy did not open a tunnel: status {status}")

    def _secured(self, wire: Wire, host: str) -> Wire:
        try:
            wire.start_tls(self._context(), host.rstrip("."))
        except BaseException:
            wire.close()
            raise
        return wire

    def _context(self) -> ssl.SSLContext:
        with self._ssl_lock:
            if self._ssl_context is None:
                self._ssl_context = ssl.create_default_context()
                self._ssl_context.set_alpn_protocols(["http/1.1"])
            return self._ssl_context

    def _resolve(self, host: str, port: int, patience: Patience) -> list[str]:
        try:
            literal = literal_address(host)
            if literal is not None:
                return [literal]
            return self._names.resolve(host, port, timeout_s=patience.connect_wait(), cancel=patience.cancel)
        except httpx2.ConnectTimeout as error:
            raise patience.timed_out(httpx2.ConnectTimeout, str(error)) from None


def _connect_first(host: str, addresses: list[str], port: int, patience: Patience) -> Wire:
    """The first address that answers. Each gets its share of the time, so that one dead address does not use it up."""
    tries = addresses[:_MAX_ADDRESSES]
    failure: Exception = httpx2.ConnectError(f"{host!r} has no address to connect to")
    for left in range(len(tries), 0, -1):
        wait_s = patience.connect_wait()
        try:
            return _connect(tries[-left], port, patience, None if wait_s is None else wait_s / left)
        except TimeoutError:
            failure = patience.timed_out(httpx2.ConnectTimeout, f"connecting to {host!r} took too long")
        except OSError as error:
            failure = patience.broken(httpx2.ConnectError, error)
    raise failure


def _connect(address: str, port: int, patience: Patience, wait_s: float | None) -> Wire:
    wire = Wire(socket.AF_INET6 if ":" in address else socket.AF_INET, patience)
    try:
        wire.connect(address, port, wait_s)
    except BaseException:
        wire.close()
        raise
    return wire
