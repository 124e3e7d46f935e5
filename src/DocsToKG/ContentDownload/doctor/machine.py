"""This machine and this program: versions, open files, names on the network."""

from __future__ import annotations

import platform
import resource
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from DocsToKG.ContentDownload.doctor.base import Finding, failed, ok, warning
from DocsToKG.core.product import product_version


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
    """Something that only has to take connections: a proxy, a collector of traces."""

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
