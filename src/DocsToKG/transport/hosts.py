"""How rules name hosts: exactly, by `*.suffix`, or by `*`.

Knows only text. `*.example.org` means the hosts below example.org, not example.org itself.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator


def plain_host(host: str) -> str:
    """Lower case, without IPv6 brackets or the root's trailing dot, and with look-alike digits and dots made plain."""
    text = unicodedata.normalize("NFKC", host).replace("\u3002", ".").strip().lower()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return text[:-1] if text.endswith(".") else text


def patterns_for(host: str) -> Iterator[str]:
    """Every pattern that names `host`, the most exact first."""
    name = plain_host(host)
    yield name
    while "." in name:
        name = name.partition(".")[2]
        yield f"*.{name}"
    yield "*"


def host_and_port(host: str, port: int) -> str:
    """`host:port` as it is written in a Host header, with brackets around IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
