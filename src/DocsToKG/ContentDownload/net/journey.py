"""One wish, from its first URL to its last."""

from __future__ import annotations

from dataclasses import dataclass, field

import httpx2

from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.types import Hop, Role, Verb
from DocsToKG.ContentDownload.net.journal import About


@dataclass(slots=True)
class Journey:
    """What is asked, for whom, and where it has been."""

    verb: Verb
    url: str
    role: Role
    call: Call
    headers: dict[str, str]
    artifact: bool = False
    hops: list[Hop] = field(default_factory=list)
    seen: set[tuple[str, str]] = field(default_factory=set)
    # Some sites set a cookie and redirect to themselves; it lives as long as this journey.
    cookies: httpx2.Cookies = field(default_factory=httpx2.Cookies)

    @property
    def method(self) -> str:
        return "HEAD" if self.verb is Verb.HEAD else "GET"

    def about(self, url: str) -> About:
        return About(url, self.verb, self.role, self.call)

    def is_new(self, url: str) -> bool:
        """Whether we come here for the first time, or at least with other cookies; from now on it is not."""
        probe = httpx2.Request("GET", url)
        self.cookies.set_cookie_header(probe)
        place = (url, probe.headers.get("cookie", ""))
        known = place in self.seen
        self.seen.add(place)
        return not known


class Moved(Exception):
    """The answer is elsewhere."""

    def __init__(self, hop: Hop, url: str) -> None:
        super().__init__("redirect")
        self.hop = hop
        self.url = url
