"""This machine and this program: versions, open files, names on the network, and the ways out that settings name."""

from __future__ import annotations

import platform
import resource
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from DocsToKG.ContentDownload.doctor.base import Finding, failed, ok, warning
from DocsToKG.core.product import product_version
from DocsToKG.transport.proxy import Proxies


@dataclass(slots=True)
class MachineCheck:
    """`files` is how many may be open at once in one process; `node` the name that others see."""

    files: int
    node: str | None
    name: str = "this machine"
    needed: bool = False

    def look(self) -> Iterator[Finding]:
        yield ok("program", f"docstokg {product_version()}, Python {platform.python_version()}, {platform.system()}")
        if self.node is not None:
            yield ok("node", self.node)
        yield self._open_files()

    def _open_files(self) -> Finding:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft in (resource.RLIM_INFINITY, -1) or soft >= self.files:
            return ok("open files", f"{soft} allowed, about {self.files} needed")
        how = f"ulimit -n {self.files}" if hard >= self.files or hard < 0 else "raise the hard limit"
        advice = f"{how}, or LimitNOFILE={max(65536, self.files)} in a systemd unit"
        return warning("open files", f"{soft} allowed, about {self.files} needed", advice)


@dataclass(slots=True)
class NamesCheck:
    """Whether names of the web become addresses."""

    hosts: Sequence[str]
    name: str = "names (DNS)"
    needed: bool = False

    def look(self) -> Iterator[Finding]:
        unknown = []
        for host in self.hosts:
            try:
                socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
            except OSError:
                unknown.append(host)
        if not unknown:
            yield ok("names", f"found: {', '.join(self.hosts)}")
        elif len(unknown) < len(self.hosts):
            yield warning("names", f"not found: {', '.join(unknown)}", "see to the name server (/etc/resolv.conf)")
        else:
            advice = "see to the line and the name server (/etc/resolv.conf); behind a proxy set http.proxy"
            yield failed("names", f"not found: {', '.join(unknown)}", advice)


@dataclass(slots=True)
class PortCheck:
    """Something that only has to take connections."""

    name: str
    host: str
    port: int
    advice: str
    needed: bool = False

    def look(self) -> Iterator[Finding]:
        try:
            socket.create_connection((self.host, self.port), timeout=5).close()
        except OSError as error:
            yield failed("reachable", f"{self.host}:{self.port}: {error.strerror or type(error).__name__}", self.advice)
            return
        yield ok("reachable", f"{self.host}:{self.port}")


@dataclass(slots=True)
class ProxyCheck:
    """The proxies of `settings`, read as the transport reads them."""

    settings: Mapping[str, str]
    name: str = "proxy"
    needed: bool = False

    def look(self) -> Iterator[Finding]:
        try:
            proxies = Proxies(self.settings)
        except ValueError as error:
            yield failed("address", str(error), "see to http.proxy, or to HTTP_PROXY and HTTPS_PROXY")
            return
        found = (proxies.proxy_for(scheme, "", 0) for scheme in ("http", "https"))
        for host, port in sorted({(one.host, one.port) for one in found if one is not None}):
            yield from PortCheck(self.name, host, port, "see to http.proxy").look()


@dataclass(slots=True)
class CollectorCheck:
    """The collector of traces at `url`. Runs go on without."""

    url: str
    name: str = "traces"
    needed: bool = False

    def look(self) -> Iterator[Finding]:
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            host, port = None, 0
        if host is None:
            yield failed("address", "it cannot be read", "write telemetry.otlp_endpoint as http://127.0.0.1:4318")
        else:
            advice = "see to telemetry.otlp_endpoint; runs go on without"
            yield from PortCheck(self.name, host, port, advice).look()
