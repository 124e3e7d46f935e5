"""The limits of each host: rates, requests at once, and robots.txt.

The numbers are those that the services publish. A sandbox multiplies the rates, because at real rates some thousand
papers take hours. Crawl delays in robots.txt are already divided and hold as served.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from DocsToKG.Sandbox.publishers import BY_HOST, Publisher


@dataclass(frozen=True, slots=True)
class HostLimit:
    """At most `rate_per_s` with `burst` on top, `concurrent` at once, and `interval_s` from start to start."""

    rate_per_s: float
    burst: float
    concurrent: int
    interval_s: float = 0.0

    def times(self, factor: float) -> HostLimit:
        """A burst is a second or so of the rate, so it grows with it; a single step stays one."""
        burst = self.burst * factor if self.burst > 1 else 1.0
        return replace(self, rate_per_s=self.rate_per_s * factor, burst=burst, interval_s=self.interval_s / factor)


DEFAULT_LIMIT = HostLimit(rate_per_s=8, burst=10, concurrent=4)
# A key is a host, or a host with the start of a path that has a limit of its own.
HOST_LIMITS: Mapping[str, HostLimit] = {
    "api.unpaywall.org": HostLimit(10, 20, 8),
    "api.openalex.org": HostLimit(100, 100, 20),
    "content.openalex.org": HostLimit(100, 100, 20),
    "api.crossref.org": HostLimit(10, 10, 3),
    "doi.org": HostLimit(10, 20, 8),
    "arxiv.org": HostLimit(1 / 15, 1, 1, interval_s=15),
    "export.arxiv.org": HostLimit(1 / 3, 1, 1, interval_s=3),
    "pmc-oa-opendata.s3.amazonaws.com": HostLimit(50, 50, 10),
    "pmc.ncbi.nlm.nih.gov": HostLimit(3, 3, 4),
    "www.ncbi.nlm.nih.gov": HostLimit(3, 3, 4),
    "www.ebi.ac.uk": HostLimit(10, 10, 4),
    "europepmc.org": HostLimit(1 / 0.75, 1, 4, interval_s=0.75),
    "api.semanticscholar.org": HostLimit(1, 5, 4),
    "doaj.org": HostLimit(2, 5, 4),
    "api.openaire.eu": HostLimit(2, 5, 4),
    "api.datacite.org": HostLimit(500 / 300, 10, 4),
    "api.fatcat.wiki": HostLimit(2, 5, 4),
    "api.core.ac.uk": HostLimit(0.5, 5, 4),
    "api.archives-ouvertes.fr": HostLimit(2, 5, 4),
    "www.osti.gov": HostLimit(2, 5, 4),
    "web.archive.org": HostLimit(10, 10, 4),
    "web.archive.org/cdx": HostLimit(0.5, 5, 4),
}


class Limits:
    """The limits of this sandbox: published ones times a factor, and literal crawl delays."""

    def __init__(self, *, rate_factor: float, overrides: Mapping[str, HostLimit] | None = None) -> None:
        if rate_factor <= 0:
            raise ValueError("the rate factor must be above zero")
        self.rate_factor = rate_factor
        self._limits = {key: limit.times(rate_factor) for key, limit in HOST_LIMITS.items()}
        self._default = DEFAULT_LIMIT.times(rate_factor)
        for publisher in BY_HOST.values():
            if publisher.crawl_delay_s:
                self._limits[publisher.host] = HostLimit(
                    1 / publisher.crawl_delay_s, 1, 4, interval_s=publisher.crawl_delay_s
                )
        self._limits.update(overrides or {})

    def key_of(self, host: str, path: str) -> str:
        """The key a request counts under."""
        limit_key = f"{host}/{path.lstrip('/').partition('/')[0]}"
        return limit_key if limit_key in self._limits else host

    def of(self, limit_key: str) -> HostLimit:
        return self._limits.get(limit_key, self._default)


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """What a host's robots.txt says to everyone. `status` other than 200 means there is no file to read."""

    allow: tuple[str, ...] = ()
    disallow: tuple[str, ...] = ()
    crawl_delay_s: float = 0.0
    status: int = 200

    def permits(self, path: str) -> bool:
        """RFC 9309 section 2.2.2: the longest match decides, and Allow wins a tie; 5xx forbids everything."""
        if self.status >= 400:
            return self.status < 500
        allowed = max((len(rule) for rule in self.allow if path.startswith(rule)), default=0)
        denied = max((len(rule) for rule in self.disallow if path.startswith(rule)), default=0)
        return allowed >= denied

    def text(self) -> str:
        lines = ["# Invented host of the DocsToKG sandbox", "User-agent: *"]
        lines += [f"Crawl-delay: {self.crawl_delay_s:g}"] if self.crawl_delay_s else []
        lines += [f"Allow: {rule}" for rule in self.allow] + [f"Disallow: {rule}" for rule in self.disallow]
        return "\n".join(lines) + "\n"


def robots_for(host: str, rate_factor: float) -> RobotsRules:
    if host in ("arxiv.org", "www.arxiv.org"):
        allow, disallow = ("/abs", "/pdf", "/html", "/list"), ("/api", "/e-print", "/src", "/search")
        return RobotsRules(allow=allow, disallow=disallow, crawl_delay_s=15 / rate_factor)
    if host == "export.arxiv.org":
        # The API is published for programs, so only the rest is ruled here.
        return RobotsRules(allow=("/abs", "/pdf", "/api"), disallow=("/search",), crawl_delay_s=3 / rate_factor)
    if host in ("europepmc.org", "pmc.ncbi.nlm.nih.gov", "www.ncbi.nlm.nih.gov"):
        return RobotsRules(disallow=("/search",))
    publisher = BY_HOST.get(host)
    return _publisher_robots(publisher) if publisher else RobotsRules(status=404)


def _publisher_robots(publisher: Publisher) -> RobotsRules:
    if publisher.robots == "down":
        return RobotsRules(status=503)
    if publisher.robots == "disallow":
        return RobotsRules(allow=("/about",), disallow=("/",))
    return RobotsRules(disallow=("/search", "/admin/"), crawl_delay_s=publisher.crawl_delay_s)
