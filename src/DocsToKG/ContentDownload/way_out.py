"""The way out, built from the configuration: limits, clients, cache, breakers, robots.

Knows which setting goes into which part of the network. Does not know works, files or records. One cache transport and
one shared client per process, one `RateRetryClient` per source.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from DocsToKG.ContentDownload.api.ports import AttemptSink, Client
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.config.rules import (
    HostRules,
    SourceRules,
    all_source_rules,
    group_rules,
    host_rules,
    user_agent,
)
from DocsToKG.ContentDownload.config.sources import BucketConfig
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.cache import CachedTransport, CacheSettings, open_entries
from DocsToKG.ContentDownload.net.client import RateRetryClient
from DocsToKG.ContentDownload.net.entries import EntryStore
from DocsToKG.ContentDownload.net.limits.adaptive import AdaptiveThrottle
from DocsToKG.ContentDownload.net.limits.blocklist import HostBlocklist
from DocsToKG.ContentDownload.net.limits.breakers import Breakers
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.net.limits.rates import BucketSpec
from DocsToKG.ContentDownload.net.limits.retry_after import ARCHIVES, RetryAfterRules
from DocsToKG.ContentDownload.net.limits.stores.base import LimitStore, MemoryLimitStore
from DocsToKG.ContentDownload.net.policy import HostCredentials, SourcePolicy, UrlPolicy
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.core.breaker import BreakerSettings
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import Clock
from DocsToKG.core.tasks import LoopThread
from DocsToKG.core.urls import host_key
from DocsToKG.transport.adapters import AsyncEngineTransport
from DocsToKG.transport.client import silence_request_log
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.names import StaticNames, SystemNames
from DocsToKG.transport.proxy import Proxies

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.net.limits.redis_breakers import RedisBreakers
    from DocsToKG.ContentDownload.net.robots.check import Robots, SharedRobotsCache
    from DocsToKG.transport.connect import ConnectTo
    from DocsToKG.transport.curl import CurlEngine


@dataclass(frozen=True, slots=True)
class Network:
    """The way out: who may ask what, and the client of each source."""

    limits: HostLimits
    gates: PermitQueues
    clients: Mapping[str, Client]
    breakers: Breakers | None = None  # None: switched off
    cache: CachedTransport | None = None  # None: switched off
    robots: Robots | None = None  # None: switched off
    blocklist: HostBlocklist | None = None  # None: nobody counts them


@contextmanager
def open_cache(cfg: ContentDownloadConfig) -> Iterator[EntryStore]:
    """The entries of the cache alone, to be counted or cleared."""
    with closing(open_entries(cache_settings(cfg), open_cas=lambda sha256: None)) as entries:
        yield entries


def is_cache_there(cfg: ContentDownloadConfig) -> bool:
    """Whether there is a cache to look at; looking must not make one. One on a server always is."""
    place = {"file": cfg.hishel.base_path, "sqlite": cfg.hishel.sqlite_path}.get(cfg.hishel.backend)
    return place is None or Path(place).exists()


@contextmanager
def open_network(
    cfg: ContentDownloadConfig,
    *,
    store: LocalStore,
    attempts: AttemptSink,
    clock: Clock,
    limits: HostLimits,
    loop: LoopThread,
    offline: bool = False,
) -> Iterator[Network]:
    """For the tasks of `loop`, where it is closed. `offline`: nothing is sent, and only what the cache has is found."""
    rules = all_source_rules(cfg)
    credentials = _credentials(rules)
    blocklist = _blocklist(cfg)
    agent = user_agent(cfg)
    silence_request_log()
    gates = PermitQueues(limits, clock=clock, most=min(cfg.orchestrator.max_workers, cfg.http.max_connections))
    url_policy = UrlPolicy(http_hosts=cfg.http.allow_http_hosts, credentials=credentials)
    with (
        _open_stack(_http_stack(cfg, agent, credentials, store, clock, offline), loop) as stack,
        _together(cfg, clock) as (breakers_on_server, shared_cache),
    ):
        breakers = _breakers(cfg, attempts, clock, breakers_on_server)
        shared: dict[str, Any] = {
            "gates": gates,
            "retry_after_rules": _retry_after_rules(cfg),
            "breakers": breakers,
        }
        robots = None
        if cfg.robots.enabled:
            robots = _robots(cfg, stack.http, limits, url_policy, attempts, clock, shared_cache, shared)
        clients = {
            name: RateRetryClient(
                name,
                http=stack.http,
                cache=stack.cache,
                limits=limits,
                robots=robots,
                url_policy=url_policy,
                policy=source_policy(cfg, rule, agent),
                attempts=attempts,
                clock=clock,
                random=random.random,
                max_redirects=cfg.http.max_redirects,
                blocklist=blocklist,
                **shared,
            )
            for name, rule in rules.items()
        }
        yield Network(limits, gates, clients, breakers, stack.cache, robots, blocklist)


@contextmanager
def _open_stack(stack: HttpStack, loop: LoopThread) -> Iterator[HttpStack]:
    try:
        yield stack
    finally:
        loop.run(stack.aclose())


@contextmanager
def _together(
    cfg: ContentDownloadConfig, clock: Clock
) -> Iterator[tuple[RedisBreakers | None, SharedRobotsCache | None]]:
    """Where breakers and robots.txt are kept; None: in this process."""
    if cfg.rate_limit.redis_url is None or cfg.rate_limit.backend != "redis":
        yield None, None
        return
    from DocsToKG.ContentDownload.net.limits.redis_breakers import RedisBreakers
    from DocsToKG.ContentDownload.net.limits.stores.sqlite import space_of
    from DocsToKG.ContentDownload.net.robots.redis_cache import RedisRobotsCache

    url, space = cfg.rate_limit.redis_url.get_secret_value(), space_of(cfg.http.connect_to)
    with (
        closing(RedisBreakers(url, clock=clock, space=space)) as fleet,
        closing(RedisRobotsCache(url, space=space)) as shared_cache,
    ):
        yield fleet, shared_cache


def _robots(
    cfg: ContentDownloadConfig,
    http: Any,
    limits: HostLimits,
    url_policy: UrlPolicy,
    attempts: AttemptSink,
    clock: Clock,
    shared_cache: SharedRobotsCache | None,
    shared: Mapping[str, Any],
) -> Robots:
    from DocsToKG.ContentDownload.net.robots.check import Robots

    return Robots(
        http=http,
        limits=limits,
        url_policy=url_policy,
        attempts=attempts,
        clock=clock,
        random=random.random,
        keep_s=cfg.robots.ttl_seconds,
        deny_s=cfg.robots.unreachable_seconds,
        exempt=cfg.robots.exempt,
        shared_cache=shared_cache,
        **shared,
    )


def _retry_after_rules(cfg: ContentDownloadConfig) -> RetryAfterRules:
    default, hosts = host_rules(cfg)
    mirror = cfg.resolvers.wayback.base_url
    return RetryAfterRules(
        {host: rule.pause_on_429_s for host, rule in hosts.items()},
        default_s=default.pause_on_429_s,
        archives=[*ARCHIVES, *([host_key(mirror)] if mirror else [])],
    )


def _blocklist(cfg: ContentDownloadConfig) -> HostBlocklist:
    default, hosts = host_rules(cfg)
    return HostBlocklist([host for host, rule in hosts.items() if rule.stop_on_403], others=default.stop_on_403)


def _breakers(
    cfg: ContentDownloadConfig, attempts: AttemptSink, clock: Clock, server: RedisBreakers | None
) -> Breakers | None:
    knobs = cfg.breakers
    if not knobs.enabled:
        return None
    settings = BreakerSettings(
        threshold=knobs.failure_threshold,
        window_s=knobs.window_seconds,
        min_samples=knobs.minimum_samples,
        open_s=knobs.open_seconds,
        longest_open_s=knobs.max_open_seconds,
        test_count=knobs.half_open_tests,
    )
    if server is None:
        return Breakers(clock=clock, settings=settings, sink=attempts)
    return Breakers(clock=clock, settings=settings, sink=attempts, make=server.make, executor=server.executor)


def _http_stack(
    cfg: ContentDownloadConfig,
    agent: str,
    credentials: Mapping[str, HostCredentials],
    store: LocalStore,
    clock: Clock,
    offline: bool,
) -> HttpStack:
    from DocsToKG.ContentDownload.net.offline import NoNetwork

    http = cfg.http
    wire = NoNetwork() if offline else AsyncEngineTransport(_engine(cfg))
    return build_http_stack(
        wire,
        user_agent=agent,
        timeout_connect_s=http.timeout_connect_s,
        timeout_read_s=http.timeout_read_s,
        credentials=credentials,
        cache=cache_settings(cfg),
        open_cas=store.open,
        clock=clock,
    )


def _engine(cfg: ContentDownloadConfig) -> CurlEngine:
    from DocsToKG.transport.curl import CurlEngine

    http = cfg.http
    return CurlEngine(
        guard=AddressGuard(allow_hosts=http.allow_private_hosts),
        names=StaticNames(http.names, fallback=SystemNames()) if http.names else SystemNames(),
        connect_to=_connect_to(http.connect_to),
        proxies=_proxies(http.proxy.mapping()),
        max_idle=http.max_keepalive,
        max_open=http.max_connections,
    )


def _connect_to(rules: Mapping[str, str]) -> ConnectTo | None:
    from DocsToKG.transport.connect import ConnectTo

    try:
        return ConnectTo(rules) if rules else None
    except ValueError as error:
        raise ConfigError(f"http.connect_to: {error}") from error


def _proxies(settings: Mapping[str, str]) -> Proxies:
    try:
        return Proxies(settings)
    except ValueError as error:
        raise ConfigError(f"http.proxy: {error}") from None


def cache_settings(cfg: ContentDownloadConfig) -> CacheSettings:
    knobs = cfg.hishel
    return CacheSettings(
        base_path=Path(knobs.base_path),
        enabled=knobs.enabled,
        backend=knobs.backend,
        ttl_seconds=knobs.ttl_seconds,
        check_ttl_every_seconds=knobs.check_ttl_every_seconds,
        force_cache=knobs.force_cache,
        allow_heuristics=knobs.allow_heuristics,
        metadata_ttl_seconds=knobs.metadata_ttl_seconds,
        allow_stale=knobs.allow_stale,
        always_revalidate=knobs.always_revalidate,
        cache_private=knobs.cache_private,
        cacheable_methods=knobs.cacheable_methods,
        sqlite_path=Path(knobs.sqlite_path),
        redis_url=knobs.redis_url.get_secret_value() if knobs.redis_url is not None else None,
        s3_bucket=knobs.s3_bucket,
        s3_prefix=knobs.s3_prefix,
    )


def open_limits(cfg: ContentDownloadConfig, clock: Clock) -> HostLimits:
    default, hosts = host_rules(cfg)
    knobs, rules = cfg.limits, all_source_rules(cfg)
    store, note = _limit_store(cfg, clock)
    return HostLimits(
        clock=clock,
        default_host=_host_limit(default),
        hosts={host: _host_limit(rule) for host, rule in hosts.items()},
        groups={pattern: _host_limit(rule) for pattern, rule in group_rules(cfg).items()},
        resolver_rates={name: _pace(rule.pace) for name, rule in rules.items()},
        resolver_slots=cfg.orchestrator.max_per_resolver,
        default_resolver_slots=cfg.orchestrator.default_per_resolver,
        rate_factor=knobs.rate_factor,
        adaptive=AdaptiveThrottle(**knobs.adaptive.model_dump()),
        store=store,
        notes=[note] if note else [],
    )


def _limit_store(cfg: ContentDownloadConfig, clock: Clock) -> tuple[LimitStore, str | None]:
    """Where limits are counted, and what a reader of the summary must know about it."""
    from DocsToKG.ContentDownload.net.limits.stores.sqlite import default_store_path, open_limit_store, space_of

    if cfg.rate_limit.backend == "redis" and cfg.rate_limit.redis_url is not None:
        return _fleet_store(cfg, clock, cfg.rate_limit.redis_url.get_secret_value()), None
    if not cfg.limits.shared:
        return MemoryLimitStore(), "limits held for this process only: limits.shared is off"
    given = cfg.limits.store_path
    path = Path(given).expanduser() if given else default_store_path(os.environ)
    return open_limit_store(path, clock=clock, space=space_of(cfg.http.connect_to))


def _fleet_store(cfg: ContentDownloadConfig, clock: Clock, url: str) -> LimitStore:
    from DocsToKG.ContentDownload.net.limits.host_patterns import quiet_times
    from DocsToKG.ContentDownload.net.limits.stores.redis import RedisLimitStore
    from DocsToKG.ContentDownload.net.limits.stores.sqlite import space_of

    default, hosts = host_rules(cfg)
    quiet_s = quiet_times(
        default_host=_host_limit(default),
        hosts={host: _host_limit(rule) for host, rule in hosts.items()},
        groups={pattern: _host_limit(rule) for pattern, rule in group_rules(cfg).items()},
        sources={name: _pace(rule.pace) for name, rule in all_source_rules(cfg).items()},
        factor=cfg.limits.rate_factor,
    )
    return RedisLimitStore(url, clock=clock, space=space_of(cfg.http.connect_to), interval_s=quiet_s)


def _host_limit(rule: HostRules) -> HostLimit:
    return HostLimit(rule.max_concurrent, rule.rates, rule.burst)


def _pace(pace: Rate | BucketConfig) -> Rate | BucketSpec:
    return pace if isinstance(pace, Rate) else BucketSpec(pace.capacity, pace.refill_per_sec, pace.burst)


def source_policy(cfg: ContentDownloadConfig, rule: SourceRules, agent: str) -> SourcePolicy:
    return SourcePolicy(
        name=rule.name,
        timeout_s=rule.timeout_s,
        retry=rule.retry,
        obey_robots=rule.obey_robots,
        headers={"User-Agent": agent, **rule.headers},
        inline_cap_s=cfg.http.retry_after_cap_s,
        deadline_s=cfg.http.timeout_total_s,
        trickle_s=cfg.http.timeout_stall_s,
        chunk_bytes=cfg.download.chunk_size_bytes,
        wait_s=_wait_s(cfg, rule),
    )


def _wait_s(cfg: ContentDownloadConfig, rule: SourceRules) -> float:
    """The longest single wait: a source's own timeout wins over the general one."""
    has_own = "timeout_s" in cfg.policies[rule.long_name].model_fields_set
    return rule.timeout_s if has_own else min(rule.timeout_s, cfg.http.timeout_read_s)


def resolver_settings(rules: Mapping[str, SourceRules]) -> dict[str, ResolverSettings]:
    return {
        name: ResolverSettings(base_url=rule.base_url, email=rule.email, api_key=rule.api_key, options=rule.options)
        for name, rule in rules.items()
    }


def _credentials(rules: Mapping[str, SourceRules]) -> dict[str, HostCredentials]:
    return registry.credentials(resolver_settings(rules))
