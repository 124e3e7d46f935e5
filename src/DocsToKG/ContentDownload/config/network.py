"""Settings of everything that speaks to the network: client, robots, cache, limits per host, breakers.

Knows names, defaults and bounds. Does not know where a setting came from or who uses it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from DocsToKG.ContentDownload.config.section import RateTexts, Secret, Section, Words


class ProxyConfig(Section):
    """Where to connect when the network is only reachable through a proxy."""

    http: Secret | None = Field(
        default=None,
        description="Proxy for http addresses (http, https, socks5 or socks5h); also read from HTTP_PROXY.",
    )
    https: Secret | None = Field(
        default=None, description="Proxy for https addresses, as for http; also read from HTTPS_PROXY."
    )
    no_proxy: Words = Field(
        default=(), description="Hosts that are reached without the proxy; also read from NO_PROXY."
    )

    def mapping(self) -> dict[str, str]:
        """The settings in clear, under the names the transport reads."""
        urls = {"http_proxy": self.http, "https_proxy": self.https}
        found = {name: url.get_secret_value() for name, url in urls.items() if url is not None}
        return {**found, "no_proxy": ",".join(self.no_proxy)} if self.no_proxy else found


class HttpConfig(Section):
    """The HTTP client that all sources share."""

    user_agent: str = Field(
        default="DocsToKG-ContentDownload/{version} (+mailto:{contact})",
        min_length=1,
        max_length=400,
        description="How requests name us; {version} and {contact} are filled in.",
    )
    timeout_connect_s: float = Field(default=10.0, gt=0, le=600, description="Seconds to wait for a connection.")
    timeout_read_s: float = Field(default=60.0, gt=0, le=3600, description="Seconds to wait for the next bytes.")
    timeout_stall_s: float = Field(
        default=10.0, gt=0, le=3600, description="Seconds a file may bring next to nothing before it is given up."
    )
    timeout_total_s: float = Field(
        default=900.0, gt=0, le=86_400, description="Seconds the whole transfer of a file may take."
    )
    retry_after_cap_s: float = Field(
        default=60.0,
        ge=0,
        le=3600,
        description="Longest pause that a server may request before the job is queued again.",
    )
    max_connections: int = Field(
        default=128, ge=1, le=10_000, description="Connections open at once, all hosts together."
    )
    max_keepalive: int = Field(default=64, ge=0, le=10_000, description="Idle connections kept for the next request.")
    max_redirects: int = Field(default=10, ge=0, le=20, description="Hops followed from one address before giving up.")
    allow_http_hosts: Words = Field(
        default=(), description="Hosts that may be requested without TLS; all others are https only."
    )
    allow_private_hosts: Words = Field(default=(), description="Hosts whose address may be private or loopback.")
    connect_to: dict[str, str] = Field(
        default_factory=dict,
        description="Logical host (or *) to a loopback target such as plain://127.0.0.1:8080; for sandboxes and tests.",
    )
    names: dict[str, Words] = Field(
        default_factory=dict,
        description="Fixed answers instead of DNS: host (or *.suffix, or *) to addresses; for sandboxes and tests.",
    )
    proxy: ProxyConfig = Field(default=ProxyConfig(), description="Proxy settings; empty means direct.")

    @field_validator("user_agent")
    @classmethod
    def _one_line(cls, value: str) -> str:
        if not value.isprintable() or not value.isascii():
            raise ValueError("must be one line of printable ASCII, since it is sent as a header")
        return value


class RobotsConfig(Section):
    """Whether robots.txt is obeyed, and how long an answer is kept."""

    enabled: bool = Field(
        default=True, description="Obey robots.txt and its crawl-delay; APIs opt out by their policy."
    )
    ttl_seconds: int = Field(default=86_400, ge=60, le=604_800, description="How long a robots.txt is kept.")
    unreachable_seconds: int = Field(
        default=300, ge=1, le=86_400, description="How long a host is left alone whose robots.txt cannot be read."
    )
    exempt: Words = Field(
        default=("web.archive.org", "zenodo.org/api/"),
        description="Where robots.txt is not asked: archives of record and API paths that serve files; "
        "a host, or a host with the beginning of a path.",
    )


class HishelConfig(Section):
    """The HTTP cache (RFC 9111)."""

    enabled: bool = Field(default=True, description="Cache responses, and request only what changed.")
    backend: Literal["file", "sqlite", "redis", "s3"] = Field(default="file", description="Where cache entries live.")
    base_path: str = Field(default="state/hishel-cache", min_length=1, description="Folder of the file backend.")
    sqlite_path: str = Field(
        default="state/hishel-cache.sqlite", min_length=1, description="File of the sqlite backend."
    )
    redis_url: Secret | None = Field(
        default=None, description="Server of the redis backend; default: rate_limit.redis_url."
    )
    s3_bucket: str | None = Field(
        default=None, description="Bucket of the s3 backend; endpoint and credentials come from AWS_* variables."
    )
    s3_prefix: str = Field(default="hishel-cache/", description="Key prefix of the s3 backend.")
    ttl_seconds: int = Field(
        default=2_592_000, ge=1, description="How long an entry is kept at rest; not its freshness."
    )
    check_ttl_every_seconds: int = Field(default=600, ge=1, description="How often old entries are swept.")
    force_cache: bool = Field(default=False, description="Also cache responses that the server marks as not cacheable.")
    allow_heuristics: bool = Field(default=False, description="Guess a freshness where the server gives none.")
    metadata_ttl_seconds: int = Field(
        default=3600,
        ge=0,
        le=604_800,
        description="How long an index's answer without a lifetime or a tag is good, for works whose file is known.",
    )
    allow_stale: bool = Field(default=False, description="Serve a stale entry at once, without asking.")
    always_revalidate: bool = Field(default=False, description="Revalidate an entry with the server before every use.")
    cache_private: bool = Field(default=True, description="Act as a private cache: entries marked private are kept.")
    cacheable_methods: Words = Field(default=("GET",), description="Request methods whose answers may be kept.")


class HostLimitConfig(Section):
    """Limits of one host: concurrent requests, and requests per second."""

    max_concurrent: int | None = Field(
        default=None, ge=1, le=1000, description="Exchanges at once; default: orchestrator.max_per_host."
    )
    rates: dict[Literal["*", "metadata", "landing", "artifact"], RateTexts] = Field(
        default_factory=dict, description="Rates by kind of request (* = all together), like '10/second'; all hold."
    )
    burst: float = Field(
        default=1.0, ge=1, le=1000, description="Requests that may start together; 1 keeps strict distance."
    )
    pause_on_429_s: float = Field(
        default=0.0,
        ge=0,
        le=86_400,
        description="Seconds without requests to the host after a 429, whatever Retry-After says.",
    )
    stop_on_403: bool = Field(
        default=False,
        description="Ask the host, and those of its domain marked so too, no more in a run in which it answered 403 "
        "five times in a row.",
    )


class AdaptiveConfig(Section):
    """How a host's rate goes down when it answers 429 or 503 again and again, or ever more slowly, and comes back."""

    enabled: bool = Field(default=True, description="Send requests to a host more slowly while it is overloaded.")
    decrease: float = Field(
        default=0.5,
        gt=0,
        lt=1,
        description="What its rate is multiplied by at the third refusal in 20 answers; the second counts half.",
    )
    increase: float = Field(
        default=0.1, gt=0, le=1, description="Share of its rate that comes back with 20 good answers or 10 seconds."
    )
    floor: float = Field(default=0.1, gt=0, le=1, description="Share of its rate that is always kept.")


class LimitsConfig(Section):
    """Limits per host, for all sources together. Limits that a server announces lower these at once."""

    rate_factor: float = Field(
        default=1.0, gt=0, le=1000, description="Multiplies every rate; above 1 only against a sandbox you own."
    )
    default: HostLimitConfig = Field(default=HostLimitConfig(), description="For hosts that are not listed.")
    hosts: dict[str, HostLimitConfig] = Field(default_factory=dict, description="Limits of hosts by name.")
    groups: dict[str, HostLimitConfig] = Field(
        default_factory=dict,
        description="One more cap over several hosts together, like *.example.org (example.org is among them).",
    )
    adaptive: AdaptiveConfig = Field(default=AdaptiveConfig(), description="Back off where a host is overwhelmed.")
    shared: bool = Field(
        default=True, description="All processes of a user keep the limits together; false: each for itself."
    )
    store_path: str | None = Field(
        default=None,
        min_length=1,
        description="File they share; default: docstokg/limits.sqlite in $XDG_STATE_HOME or ~/.local/state.",
    )


class BreakersConfig(Section):
    """When a host or source that keeps failing is left alone, and for how long."""

    enabled: bool = Field(default=True, description="Leave hosts and sources alone for a while when they keep failing.")
    failure_threshold: float = Field(
        default=0.5, ge=0, le=1, description="Share of failed requests at which a breaker opens."
    )
    window_seconds: float = Field(default=60.0, gt=0, le=86_400, description="How far back requests are counted.")
    minimum_samples: int = Field(
        default=10, ge=1, le=100_000, description="Requests in the window before a breaker may open."
    )
    open_seconds: float = Field(
        default=30.0, gt=0, le=86_400, description="How long it stays open; doubles each time the tests fail."
    )
    max_open_seconds: float = Field(
        default=600.0, gt=0, le=86_400, description="Where the doubling ends; a longer Retry-After still holds."
    )
    half_open_tests: int = Field(
        default=3, ge=1, le=1000, description="Requests let through as tests; all must succeed to close it."
    )

    @model_validator(mode="after")
    def _doubling_goes_up(self) -> BreakersConfig:
        if self.max_open_seconds < self.open_seconds:
            raise ValueError("max_open_seconds must not be below open_seconds")
        return self


class RateLimitConfig(Section):
    """Where rates and waits are counted."""

    backend: Literal["local", "redis"] = Field(default="local", description="local: this machine; redis: a fleet.")
    redis_url: Secret | None = Field(default=None, description="Server that a fleet shares its limits through.")
