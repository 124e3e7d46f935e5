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
    place = _place(plain[1])
    url = httpx2.URL(place)
    url._uri_reference = place._uri_reference._replace(path=plain[2])
    return url


@lru_cache(maxsize=1024)
def _place(origin: str) -> httpx2.URL:
    return httpx2.URL(f"{origin}/")
