"""The shim below the cache: asks for the real URL, and words answers so that only the right ones are kept.

Knows where hishel's reading of RFC 9111 is not ours: heuristic freshness, errors, answers without a date,
redirects and links that carry a signature. Does not know hishel itself.
"""

from __future__ import annotations

import re
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache

import httpx2

from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import mask_text, mask_url

# Keys of a request's extensions between the two shims.
WIRE_URL, PEEK, FORBID = "wire_url", "peek", "forbid_storing"
# Of a request to an index: the work it is about.
ABOUT_WORK = "about_work"
# Our own word in an answer's Cache-Control: its lifetime is ours, since its server says nothing.
GUESSED = "docstokg-guessed"
_FRESHNESS = re.compile("max-age|s-maxage|no-cache|no-store", re.IGNORECASE)
_SAYINGS = frozenset({"cache-control", "expires", "pragma", "etag", "last-modified", "set-cookie"})


class WouldSend(Exception):
    """A peek found nothing that may be used as it is."""


class BelowCache(httpx2.AsyncBaseTransport):
    """Asks for the real URL, and words the answer so that hishel keeps what we want kept."""

    def __init__(
        self,
        next_transport: httpx2.AsyncBaseTransport,
        *,
        allow_heuristics: bool,
        clock: Clock,
        index_ttl_s: float = 0.0,
    ) -> None:
        self.ask = next_transport.handle_async_request  # the answer as it came
        self.aclose = next_transport.aclose  # type: ignore[method-assign]
        self._allow_heuristics = allow_heuristics
        self._index_ttl_s = int(index_ttl_s)
        self._clock = clock

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.extensions.get(PEEK):
            raise WouldSend
        response = await self.ask(self._real(request) if WIRE_URL in request.extensions else request)
        if self.reword(request, response) is None:
            request.extensions.get(FORBID, lambda: None)()
        return response

    def _real(self, request: httpx2.Request) -> httpx2.Request:
        url = request.extensions.get(WIRE_URL, request.url)
        ours = (WIRE_URL, FORBID, "caching")
        extensions = {name: value for name, value in request.extensions.items() if name not in ours}
        return httpx2.Request(
            request.method, url, headers=request.headers, stream=request.stream, extensions=extensions
        )

    def reword(self, request: httpx2.Request, response: httpx2.Response) -> dict[str, str] | None:
        """Word the answer so that hishel keeps what we want kept. Returns what its headers say afterwards; None when it
        must not be kept in any case."""
        headers = response.headers
        said = dict(headers.items())
        if not _is_date(said.get("date")):
            # Without a Date hishel believes the answer to be new for ever (RFC 9110 section 6.6.1).
            said["date"] = headers["date"] = formatdate(self._clock.now(), usegmt=True)
        if response.status_code >= 400 or _must_not_be_kept(request, said):
            headers["cache-control"] = "no-store"
            return None
        control = said.get("cache-control", "")
        if self._index_ttl_s and ABOUT_WORK in request.extensions and _says_nothing(request, response, said):
            said["cache-control"] = headers["cache-control"] = f"max-age={self._index_ttl_s}, {GUESSED}"
        elif not self._allow_heuristics and "expires" not in said and not _FRESHNESS.search(control):
            said["cache-control"] = headers["cache-control"] = f"{control}, no-cache" if control else "no-cache"
        return said


def _says_nothing(request: httpx2.Request, response: httpx2.Response, said: dict[str, str]) -> bool:
    """Whether an answer tells neither how long it holds nor how to ask whether it still does, and is for anybody."""
    silent = _SAYINGS.isdisjoint(said)
    return silent and response.status_code == 200 and "authorization" not in request.headers


def _must_not_be_kept(request: httpx2.Request, said: dict[str, str]) -> bool:
    """A signed link is a secret of use only whole; what depends on a cookie, or on anything, is for one alone."""
    location, links = said.get("location", ""), said.get("link", "")
    signed = (location and mask_url(location) != location) or (links and mask_text(links) != links)
    vary = said.get("vary", "").lower()
    # `*` means that no other request may be given this answer, whatever its headers (RFC 9110 section 12.5.5).
    return bool(signed) or "*" in vary or ("cookie" in vary and "cookie" in request.headers)


@lru_cache(maxsize=64)  # all answers of one second say the same
def _is_date(text: str | None) -> bool:
    try:
        return text is not None and parsedate_to_datetime(text) is not None
    except (TypeError, ValueError, OverflowError):
        return False
