"""Which addresses may we talk to? Only public unicast ones, unless the operator allowed more.

Knows the special address ranges of IPv4 and IPv6, addresses inside addresses (mapped, NAT64) and the odd
spellings of IPv4 that a resolver would accept (`0x7f.1`, `2130706433`, `0177.0.0.1`).
Does not resolve names and opens nothing. Promises: what it returns was judged, address by address.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from DocsToKG.transport.errors import AddressRefused
from DocsToKG.transport.hosts import patterns_for, plain_host

_Address = IPv4Address | IPv6Address

# IANA special-purpose registries (RFC 6890 and its updates). Python's own `is_global` is not used, because what it
# means differs between patch releases. 168.63.129.16 is a public number that one cloud serves its metadata on.
_REFUSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Only 2000::/3 is handed out as global unicast. Inside it: protocol blocks with Teredo, benchmarks and ORCHID,
# documentation, and 6to4, which is retired and can carry any IPv4 address.
_GLOBAL_V6 = IPv6Network("2000::/3")
_REFUSED_V6 = tuple(IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3ffe::/16", "3fff::/20"))
_NAT64 = IPv6Network("64:ff9b::/96")
_LOCAL_NAMES = ("localhost", "local", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa")


class AddressGuard:
    """Refuses what is not public. `allow_hosts` takes exact names, `*.suffix` or `*`; `allow_networks` takes CIDRs."""

    def __init__(self, *, allow_hosts: Iterable[str] = (), allow_networks: Iterable[str] = ()) -> None:
        self._hosts = frozenset(plain_host(host) for host in allow_hosts)
        self._networks = tuple(ip_network(text, strict=False) for text in allow_networks)

    def judge(self, host: str, addresses: Iterable[str]) -> list[str]:
        """The addresses of `host` that may be connected to, in order; a literal host is its own only address."""
        literal = literal_address(host)
        candidates = [literal] if literal is not None else list(addresses)
        allowed = self._is_allowed_host(host)
        usable = [text for text in candidates if self._is_usable(text, allowed)]
        if not usable:
            raise AddressRefused(f"{host[:255]!r} has no public address; allow it by name if you trust it")
        return usable

    def judge_name(self, host: str) -> None:
        """For a host that a proxy will resolve: refuse private literals and the names of private networks."""
        if literal_address(host) is not None:
            self.judge(host, ())
        elif not self._is_allowed_host(host) and _is_local_name(plain_host(host)):
            raise AddressRefused(f"{host[:255]!r} is a name of a private network; allow it by name if you trust it")

    def _is_allowed_host(self, host: str) -> bool:
        return any(pattern in self._hosts for pattern in patterns_for(host))

    def _is_usable(self, text: str, allowed_host: bool) -> bool:
        try:
            address = ip_address(text)
        except ValueError:
            return False
        return allowed_host or self._is_allowed_address(address) or is_public(address)

    def _is_allowed_address(self, address: _Address) -> bool:
        inner = _mapped(address)
        return any(inner in network for network in self._networks)


def is_public(address: _Address) -> bool:
    """Is this a globally routable unicast address, also when one address hides in another?"""
    address = _mapped(address)
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    if address.scope_id is not None:
        return False
    if address in _NAT64:
        return is_public(_low_32_bits(address))
    return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)


def literal_address(host: str) -> str | None:
    """The address that `host` spells, None when it is a name.

    A host whose last label is a number can only be meant as IPv4 (WHATWG URL, section 3.5): when it is not a valid
    one, it is refused, since resolvers disagree about it.
    """
    text = plain_host(host)
    if ":" in text:
        return _ipv6_literal(text)
    labels = text.split(".")
    if not _looks_numeric(labels[-1]):
        return None
    value = _ipv4_value(labels)
    if value is None:
        raise AddressRefused(f"{host[:255]!r} is neither a name nor an IPv4 address")
    return str(IPv4Address(value))


def _ipv6_literal(text: str) -> str:
    try:
        return str(IPv6Address(text))
    except ValueError:
        raise AddressRefused(f"{text[:255]!r} is not an IPv6 address") from None


def _ipv4_value(labels: list[str]) -> int | None:
    """inet_aton's reading: up to four decimal, octal or hex parts, the last one filling the bytes that are left."""
    parts = [_ipv4_part(label) for label in labels]
    if len(parts) > 4 or None in parts:
        return None
    *heads, last = [part for part in parts if part is not None]
    if any(head > 255 for head in heads) or last >= 256 ** (4 - len(heads)):
        return None
    return last + sum(head << (24 - 8 * place) for place, head in enumerate(heads))


def _ipv4_part(label: str) -> int | None:
    if not label or len(label) > 20 or not label.isascii() or not label.isalnum():
        return None
    try:
        if label.startswith("0x"):
            return int(label[2:] or "0", 16)
        return int(label, 8 if label.startswith("0") else 10)
    except ValueError:
        return None


def _looks_numeric(label: str) -> bool:
    if label.isascii() and label.isdigit():
        return True
    return label.startswith("0x") and all(char in "0123456789abcdef" for char in label[2:])


def _mapped(address: _Address) -> _Address:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _low_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


def _is_local_name(name: str) -> bool:
    return "." not in name or any(name.endswith(f".{suffix}") for suffix in _LOCAL_NAMES)
