"""Which proxy, if any, stands between us and a host.

Reads the usual variables (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, either case, lower case first) from a mapping
it is given, never from the process. Behind a proxy it is the proxy that resolves and connects, so the guard can judge
the name or literal only, not the address behind it. The connection to the proxy itself goes where the operator put
it, private or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from DocsToKG.transport.hosts import plain_host


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy, an HTTP one unless `scheme` says otherwise. User and password are never shown."""

    host: str
    port: int
    scheme: str = "http"
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def resolves_names(self) -> bool:
        """Does the proxy look names up? Only SOCKS5 without `h` wants an address."""
        return self.scheme != "socks5"


_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class Proxies:
    """Raises ValueError for a proxy we cannot use."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._by_scheme = {scheme: _proxy_of(environment, scheme) for scheme in ("http", "https")}
        exceptions = _variable(environment, "no_proxy").split(",")
        self._exceptions = [item for item in (_exception(text) for text in exceptions) if item[0]]

    def proxy_for(self, scheme: str, host: str, port: int) -> Proxy | None:
        if any(_matches(pattern, only_port, plain_host(host), port) for pattern, only_port in self._exceptions):
            return None
        return self._by_scheme.get(scheme)


def _variable(environment: Mapping[str, str], name: str) -> str:
    return (environment.get(name) or environment.get(name.upper()) or "").strip()


def _proxy_of(environment: Mapping[str, str], scheme: str) -> Proxy | None:
    for name in (f"{scheme}_proxy", "all_proxy"):
        if value := _variable(environment, name):
            return _proxy(name, value)
    return None


def _proxy(name: str, value: str) -> Proxy:
    # The value may hold a password, so no error repeats it.
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise ValueError(f"{name} is not a proxy URL; write it like http://proxy.example.org:3128") from None
    if parts.scheme not in _PORTS or not host:
        kinds = " or ".join(f"{scheme}://" for scheme in _PORTS)
        raise ValueError(f"{name} must be an {kinds} proxy URL, like http://proxy.example.org:3128")
    user = None if parts.username is None else unquote(parts.username)
    password = None if user is None else unquote(parts.password or "")
    return Proxy(host, port, parts.scheme, user, password)


def _exception(text: str) -> tuple[str, int | None]:
    item = text.strip().lower()
    head, colon, port = item.rpartition(":")
    if colon and port.isdecimal() and (":" not in head or head.endswith("]")):
        return plain_host(head).removeprefix("*").removeprefix("."), int(port)
    if item == "*":
        return "*", None
    return plain_host(item).removeprefix("*").removeprefix("."), None


def _matches(pattern: str, only_port: int | None, host: str, port: int) -> bool:
    if only_port is not None and only_port != port:
        return False
    if pattern == "*" or host == pattern or host.endswith(f".{pattern}"):
        return True
    return _in_network(pattern, host)


def _in_network(pattern: str, host: str) -> bool:
    try:
        return ip_address(host) in ip_network(pattern, strict=False)
    except ValueError:
        return False
