"""Where connections to a logical host really go: for sandboxes and tests on this machine.

A rule maps `host`, `host:port`, `*.suffix` or `*` to `plain://127.0.0.1:8080` or `tls://127.0.0.1:8443`. It is
applied after the name was resolved and its answer judged, so that everything above sees the logical host.
Promises: no rule leads off this machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from DocsToKG.transport.hosts import host_and_port, patterns_for, plain_host


@dataclass(frozen=True, slots=True)
class Target:
    """A loopback address to connect to. Without `tls` the connection stays plain, also for https URLs."""

    address: str
    port: int
    tls: bool


class ConnectTo:
    """The most exact rule wins: host and port, host, suffix, `*`."""

    def __init__(self, rules: Mapping[str, str]) -> None:
        self._targets = {_rule_key(rule): _target(rule, value) for rule, value in rules.items()}
        self._known = lru_cache(maxsize=1024)(self._look_up)  # hosts are asked many times

    def target(self, host: str, port: int) -> Target | None:
        """Where to connect for this host, or None when no rule names it."""
        return self._known(host, port) if self._targets else None

    def _look_up(self, host: str, port: int) -> Target | None:
        return next((self._targets[key] for key in _keys(host, port) if key in self._targets), None)


def _keys(host: str, port: int) -> Iterator[str]:
    for pattern in patterns_for(host):
        yield host_and_port(pattern, port)
        yield pattern


def _rule_key(rule: str) -> str:
    head, colon, port = rule.rpartition(":")
    if colon and port.isdecimal() and (":" not in head or head.startswith("[")):
        return host_and_port(plain_host(head), int(port))
    return plain_host(rule)


def _target(rule: str, value: str) -> Target:
    try:
        parts = urlsplit(value)
        port, host = parts.port, parts.hostname or ""
        address = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise ValueError(f"connect_to rule {rule!r}: {value!r} is not like plain://127.0.0.1:8080") from None
    if parts.scheme not in ("plain", "tls") or not port or parts.path not in ("", "/"):
        raise ValueError(f"connect_to rule {rule!r}: {value!r} is not like plain://127.0.0.1:8080")
    if not address.is_loopback:
        raise ValueError(f"connect_to rule {rule!r}: {host!r} is not a loopback address; only this machine is allowed")
    return Target(str(address), port, parts.scheme == "tls")
