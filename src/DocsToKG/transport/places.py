"""Addresses as httpx2 has them, read once for each host.

Of the addresses at one host only the path differs, and most paths need no escaping. Those are put together from the
place that is known already; all others are read by httpx2. What comes out is the same.
"""

from __future__ import annotations

import re
from functools import lru_cache

import httpx2

_PLAIN = re.compile(r"(https?://[a-z0-9.-]{1,255}(?::[0-9]{1,5})?)(/[A-Za-z0-9._~/-]{0,4096})")


def url_of(text: str) -> httpx2.URL:
    """`httpx2.URL(text)`."""
    plain = _PLAIN.fullmatch(text)
    if plain is None or "/." in text:
        return httpx2.URL(text)
    return KnownUrl(_place(plain[1]), plain[2])


class Place:
    """One host's part of an address: as text, without the path, and read."""

    __slots__ = ("netloc", "origin", "url")

    def __init__(self, origin: str) -> None:
        self.url = httpx2.URL(f"{origin}/")
        self.origin = str(self.url)[:-1]
        self.netloc = self.url.netloc


class KnownUrl(httpx2.URL):
    """A path at a place that was read before. The two are put together for those who ask for more than is here."""

    netloc: bytes = b""
    raw_path: bytes = b""

    def __init__(self, place: Place, path: str) -> None:
        self.place = place
        self._path = path
        self.netloc = place.netloc
        self.raw_path = path.encode("ascii")

    def __str__(self) -> str:
        return self.place.origin + self._path

    def __getattr__(self, name: str) -> object:
        if name != "_uri_reference":
            raise AttributeError(name)
        self._uri_reference = self.place.url._uri_reference._replace(path=self._path)
        return self._uri_reference


@lru_cache(maxsize=1024)
def _place(origin: str) -> Place:
    return Place(origin)
