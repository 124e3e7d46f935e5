"""This machine and this program: versions, open files, names on the network, and the ways out that settings name."""

from __future__ import annotations

import platform
import resource
import socket
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from DocsToKG.core.checks import Finding, failed, ok, warning
from DocsToKG.core.product import product_version
from DocsToKG.transport.proxy import Proxies


def check_machine(files: int, node: str | None) -> Iterator[Finding]:
    """`files` is how many one process may have open at the same time; `node` is the name that other machines see."""
    yield ok("program", f"docstokg {product_version()}, Python {platform.python_version()}, {platform.system()}")
    if node is not None:
        yield ok("node", node)
    yield _open_files(files)


def _open_files(files: int) -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1) or soft >= files:
        return ok("open files", f"{soft} allowed, about {files} needed")
    how = f"ulimit -n {files}" if hard >= files or hard < 0 else "raise the hard limit"
    advice = f"{how}, or LimitNOFILE={max(65536, files)} in a systemd unit"
    return warning("open files", f"{soft} allowed, about {files} needed", advice)


def check_names(hosts: Sequence[str]) -> Iterator[Finding]:
    """Whether DNS resolves names of the web."""
    unknown = []
    for host in hosts:
        try:
            socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
        except OSError:
            unknown.append(host)
    if not unknown:
        yield ok("names", f"found: {', '.join(hosts)}")
    elif len(unknown) < len(hosts):
        yield warning("names", f"not found: {', '.join(unknown)}", "see to the name server (/etc/resolv.conf)")
    else:
        advice = "see to the line and the name server (/etc/resolv.conf); behind a proxy set http.proxy"
        yield failed("names", f"not found: {', '.join(unknown)}", advice)


def check_port(host: str, port: int, advice: str) -> Iterator[Finding]:
    """Something that only has to accept connections."""
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        yield failed("reachable", f"{host}:{port}: {error.strerror or type(error).__name__}", advice)
        return
    yield ok("reachable", f"{host}:{port}")


def check_proxies(settings: Mapping[str, str]) -> Iterator[Finding]:
    """The proxies of `settings`, read as the transport reads them."""
    try:
        proxies = Proxies(settings)
    except ValueError as error:
        yield failed("address", str(error), "see to http.proxy, or to HTTP_PROXY and HTTPS_PROXY")
        return
    found = (proxies.proxy_for(scheme, "", 0) for scheme in ("http", "https"))
    for host, port in sorted({(one.host, one.port) for one in found if one is not None}):
        yield from check_port(host, port, "see to http.proxy")


def check_collector(url: str) -> Iterator[Finding]:
    """The collector of traces at `url`. Runs work without it."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        host, port = None, 0
    if host is None:
        yield failed("address", "it cannot be read", "write telemetry.otlp_endpoint as http://127.0.0.1:4318")
    else:
        advice = "see to telemetry.otlp_endpoint; runs go on without"
        yield from check_port(host, port, advice)
