"""One wish, from its first URL to its last."""

from __future__ import annotations

import http.cookiejar
import re
from dataclasses import dataclass, field

import httpx2

from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.ranges import Rest
from DocsToKG.ContentDownload.api.types import Hop, Role, Verb
from DocsToKG.ContentDownload.net.journal import About

_MOST_COOKIES = 50
_LONGEST_COOKIE = 4096
_ENDLESS_AGE = re.compile(r"max-age\W+\d{12}", re.IGNORECASE)


@dataclass(slots=True)
class Journey:
    """What is asked, for whom, and where it has been."""

    verb: Verb
    url: str
    role: Role
    call: Call
    headers: dict[str, str]
    index: str | None = None  # the source whose own service is asked; pages and files lie on others' hosts
    artifact: bool = False
    is_probe: bool = False  # only the head of the answer is wanted
    rest: Rest | None = None  # only this is missing of the file
    hops: list[Hop] = field(default_factory=list)
    seen: set[tuple[str, str]] = field(default_factory=set)
    # Some sites set a cookie and redirect to themselves; it lives as long as this journey. Most set none.
    cookies: httpx2.Cookies | None = None
    _about: About | None = None  # the request that was told of last

    @property
    def method(self) -> str:
        return "HEAD" if self.verb is Verb.HEAD else "GET"

    @property
    def wants_body(self) -> bool:
        return self.verb is not Verb.HEAD and not self.is_probe

    def about(self, url: str) -> About:
        if self._about is None or self._about.url != url:
            self._about = About(url, self.verb, self.role, self.call)
        return self._about

    def is_new(self, url: str) -> bool:
        """Whether we come here for the first time, or at least with other cookies; from now on it is not."""
        cookie = ""
        if self.cookies is not None:
            probe = httpx2.Request("GET", url)
            self.cookies.set_cookie_header(probe)
            cookie = probe.headers.get("cookie", "")
        place = (url, cookie)
        known = place in self.seen
        self.seen.add(place)
        return not known

    def take_cookies(self, response: httpx2.Response) -> None:
        """Keep what the answer sets, as far as it is sound: a cookie from outside may be unreadable or without end."""
        if "set-cookie" not in response.headers:
            return
        lines = response.headers.get_list("set-cookie")[:_MOST_COOKIES]
        sound = [("set-cookie", line) for line in lines if _is_sound(line)]
        if sound and self.cookies is None:
            self.cookies = httpx2.Cookies()
        if sound and self.cookies is not None and len(self.cookies) < _MOST_COOKIES:
            self.cookies.extract_cookies(httpx2.Response(200, headers=sound, request=response.request))


def _is_sound(line: str) -> bool:
    if not line.isascii() or not line.isprintable() or len(line) > _LONGEST_COOKIE or _ENDLESS_AGE.search(line):
        return False
    try:
        # What the jar stumbles over it reports with a traceback on standard error.
        http.cookiejar.parse_ns_headers([line])  # type: ignore[attr-defined]
    except Exception:
        return False
    return True


class Moved(Exception):
    """The answer is elsewhere."""

    def __init__(self, hop: Hop, url: str) -> None:
        super().__init__("redirect")
        self.hop = hop
        self.url = url
