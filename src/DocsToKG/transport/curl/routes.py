"""From a URL to what libcurl is told: which origin, through which proxy, to which addresses.

The order is the point: name, address, guard, then libcurl connects to judged addresses and to no others, while TLS
and the Host header keep the logical name. A connect_to rule replaces the judged address at the last moment; behind a
proxy that looks names up itself the guard judges the name alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import httpx2

from DocsToKG.transport.connect import ConnectTo, Target
from DocsToKG.transport.guard import AddressGuard, literal_address
from DocsToKG.transport.hosts import host_and_port
from DocsToKG.transport.names import NameResolver
from DocsToKG.transport.proxy import Proxies, Proxy

_DEFAULT_PORTS = {"http": 80, "https": 443}
# Nothing of such a URL needs escaping or has a second reading; all others are read by httpx2.
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PLAIN = re.compile(
    rf"(https?)://((?:[a-z0-9_-]+\.)*[a-z][a-z0-9-]*|(?:{_BYTE}\.){{3}}{_BYTE})(?::([0-9]{{1,5}}))?"
    r"(/[A-Za-z0-9._~!$&'()*+,;=:@/?%-]*)"
)
_MAX_URL_BYTES = 64 * 1024
_MAX_ADDRESSES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """Where the requests of one origin go; there is one for each. `origin` is what libcurl is given for it: its scheme
    says whether the connection is secured, which a connect_to rule may change; `host` and `port` are the logical
    ones."""

    origin: str
    host: str
    port: int
    host_header: str
    secure: bool
    literal: str | None
    target: Target | None
    proxy: Proxy | None

    @property
    def looks_names_up(self) -> bool:
        return self.proxy is None or not self.proxy.resolves_names


class Addresses(NamedTuple):
    """What the guard allowed: the addresses that a connection may go to, and the pins that lead libcurl there, with the
    `host:port` of each, by which it is removed."""

    allowed: frozenset[str]
    pins: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


class Routes:
    """Finds the route of each URL, and judges the addresses behind it."""

    def __init__(
        self,
        *,
        guard: AddressGuard,
        names: NameResolver,
        connect_to: ConnectTo | None,
        proxies: Proxies | None,
    ) -> None:
        self._guard = guard
        self._names = names
        self._connect_to = connect_to or ConnectTo({})
        self._proxies = proxies or Proxies({})
        # One origin is asked for again and again, and the guard's rules do not change.
        self._known = lru_cache(maxsize=4096)(self._route)
        self._judged = lru_cache(maxsize=4096)(self._pinned)
        self.may_stay = lru_cache(maxsize=4096)(self._may_stay)

    def of(self, url: str) -> tuple[Route, str]:
        """The route, and the URL that libcurl is given."""
        if len(url) > _MAX_URL_BYTES:
            raise httpx2.UnsupportedProtocol("the URL is too long")
        plain = _PLAIN.fullmatch(url)
        if plain is not None and "/." not in url:
            scheme, host, port, target = plain.groups()
            route = self._known(scheme, host, int(port) if port else None)
            return route, route.origin + target
        parsed = httpx2.URL(url)
        host = parsed.raw_host.decode("ascii").lower()
        if parsed.scheme not in _DEFAULT_PORTS or not host:
            raise httpx2.UnsupportedProtocol("only http and https URLs with a host can be requested")
        route = self._known(parsed.scheme, host, parsed.port)
        return route, route.origin + parsed.raw_path.decode("ascii")

    def _route(self, scheme: str, host: str, port: int | None) -> Route:
        default = _DEFAULT_PORTS[scheme]
        port = port or default
        if port > 65535:
            raise httpx2.UnsupportedProtocol("the port of the URL is no port")
        target = self._connect_to.target(host, port)
        proxy = None if target is not None else self._proxies.proxy_for(scheme, host, port)
        secure = scheme == "https" if target is None else target.tls
        literal = literal_address(host)
        sent_scheme = "https" if secure else "http"
        authority = _authority(host.rstrip(".") if secure else host, literal)
        if port != _DEFAULT_PORTS[sent_scheme]:
            authority += f":{port}"
        header = f"[{host}]" if ":" in host else host
        if port != default:
            header += f":{port}"
        return Route(f"{sent_scheme}://{authority}", host, port, header, secure, literal, target, proxy)

    def known(self, route: Route) -> Addresses | None:
        """What `addresses` gives, where it needs no look-up."""
        if route.proxy is not None or route.literal is not None:
            return None
        found = self._names.known(route.host)
        return None if found is None else self._judged(route, tuple(found))

    async def addresses(self, route: Route, *, timeout_s: float | None) -> Addresses:
        """Look up and judge. Raises `NameNotFound`, `AddressRefused` or `httpx2.ConnectTimeout`."""
        if route.proxy is None:
            return await self._direct(route, timeout_s)
        proxy = route.proxy
        reached = literal_address(proxy.host)
        found = [reached] if reached else await self._names.lookup(proxy.host, proxy.port, timeout_s=timeout_s)
        way = Addresses(frozenset(found)) if reached else _pinned(proxy.host, proxy.port, found)
        if proxy.resolves_names:
            self._guard.judge_name(route.host)
            return way
        beyond = await self._direct(route, timeout_s)
        return Addresses(way.allowed, way.pins + beyond.pins, way.places + beyond.places)

    async def _direct(self, route: Route, timeout_s: float | None) -> Addresses:
        if route.literal is not None:
            judged = self._guard.judge(route.host, ())
            return Addresses(frozenset(judged if route.target is None else (route.target.address,)))
        found = await self._names.lookup(route.host, route.port, timeout_s=timeout_s)
        return self._judged(route, tuple(found))

    def _pinned(self, route: Route, found: tuple[str, ...]) -> Addresses:
        judged = self._guard.judge(route.host, found)[:_MAX_ADDRESSES]
        if route.target is not None:
            return Addresses(frozenset((route.target.address,)))
        host = route.host.rstrip(".") if route.secure else route.host
        return _pinned(host, route.port, judged)

    def _may_stay(self, route: Route, address: str) -> bool:
        """Is the address of a kept connection still one that this host may have? Asked on every reuse."""
        if route.target is not None:
            return address == route.target.address
        if route.proxy is not None:
            return True  # the operator put the proxy where it is
        try:
            return bool(self._guard.judge(route.host, [address]))
        except httpx2.ConnectError:
            return False


def _authority(host: str, literal: str | None) -> str:
    if literal is None:
        return host
    return f"[{literal}]" if ":" in literal else literal


def _pinned(host: str, port: int, addresses: list[str]) -> Addresses:
    place = host_and_port(host, port)
    listed = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    return Addresses(frozenset(addresses), (f"{place}:{listed}",), (place,))
