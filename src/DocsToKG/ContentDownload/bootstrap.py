"""Where the parts meet: everything is built from the configuration here, and closed in reverse.

The only room that sees the whole configuration; everyone else is handed the slice or the numbers they use. One cache
transport and one shared client per process, one `RateRetryClient` per source, one store, one record.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from DocsToKG.ContentDownload.api.ports import AttemptSink, Client, NullSink
from DocsToKG.ContentDownload.api.types import SourceAttempt, WorkArtifact
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.config.filters import Filters
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig, config_hash
from DocsToKG.ContentDownload.config.rules import (
    HostRules,
    SourceRules,
    all_source_rules,
    group_rules,
    host_rules,
    source_shares,
    tier_plan,
    user_agent,
)
from DocsToKG.ContentDownload.config.sources import BucketConfig
from DocsToKG.ContentDownload.download_execution import CandidateDownload, DownloadRules
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.fallback.orchestrator import FallbackOrchestrator
from DocsToKG.ContentDownload.fallback.sharing import SharedDownload
from DocsToKG.ContentDownload.net.breakers import Breakers
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.cache import CachedTransport, CacheSettings, open_entries
from DocsToKG.ContentDownload.net.client import RateRetryClient
from DocsToKG.ContentDownload.net.connections import Connections
from DocsToKG.ContentDownload.net.entries import EntryStore
from DocsToKG.ContentDownload.net.learned import Adaptive
from DocsToKG.ContentDownload.net.limits import HostLimit, Limits
from DocsToKG.ContentDownload.net.pace import BucketSpec
from DocsToKG.ContentDownload.net.pauses import ARCHIVES, Pauses
from DocsToKG.ContentDownload.net.policy import HostCredentials, SourcePolicy, UrlPolicy
from DocsToKG.ContentDownload.net.refusals import Refusals
from DocsToKG.ContentDownload.net.robots import Robots
from DocsToKG.ContentDownload.net.shared import LimitStore, MemoryStore, default_store_path, open_limit_store, space_of
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.pipeline import HeldFile, ResolverPipeline, WorkLimits
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.ContentDownload.telemetry.spans import job_watch
from DocsToKG.core.breaker import BreakerSettings
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.core.ids import new_run_id, new_worker_id
from DocsToKG.core.urls import host_key
from DocsToKG.transport.client import silence_request_log
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.http1 import LeanTransport
from DocsToKG.transport.names import StaticNames, SystemNames
from DocsToKG.transport.proxy import Proxies

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.runner import RunResult


@dataclass(frozen=True, slots=True)
class Network:
    """The way out: who may ask what, and the client of each source."""

    limits: Limits
    clients: Mapping[str, Client]
    breakers: Breakers | None = None  # None: switched off
    cache: CachedTransport | None = None  # None: switched off
    robots: Robots | None = None  # None: switched off
    refusals: Refusals | None = None  # None: nobody counts them


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run works with."""

    pipeline: ResolverPipeline
    telemetry: RunTelemetry
    store: LocalStore
    network: Network
    catalog: Catalog
    refetch: set[str]  # works that are fetched again although their file is known

    def find_file(self, work_id: str) -> Path | None:
        """Where the record says the file of a work is."""
        found = self.catalog.find_download(work_id)
        return None if found is None else self.store.at(found.path)

    def is_there(self, work_id: str) -> bool | None:
        """Is the file of a work in its place, in its full size? None when no file is known."""
        found = self.catalog.find_download(work_id)
        if found is None:
            return None
        path = self.store.at(found.path)
        return path.is_file() and path.stat().st_size == (found.size_bytes or path.stat().st_size)

    def recorded_path(self, path: str | None) -> str | None:
        """A stored file as records name it: below the storage root."""
        return None if path is None else self.store.relative(Path(path))


@contextmanager
def open_parts(
    cfg: ContentDownloadConfig,
    *,
    worker_id: str | None = None,
    run_id: str | None = None,
    clock: Clock | None = None,
    share: Literal["host", "guest"] | None = None,
) -> Iterator[Parts]:
    """Everything a run needs, ready to work; closed again when the block ends. `share` says whose the record is where
    several processes keep one."""
    clock = clock or SystemClock()
    _refuse_missing_backends(cfg)
    root = Path(cfg.telemetry.manifest_path).parent
    database = database_path(cfg)
    with ExitStack() as stack:
        store = open_store(cfg)
        limits = stack.enter_context(closing(_limits(cfg, clock)))
        telemetry = stack.enter_context(
            RunTelemetry(
                root,
                run_id=run_id or new_run_id(),
                config_hash=config_hash(cfg),
                clock=clock,
                sinks=(*cfg.telemetry.sinks, "sqlite"),
                database=database,
                worker_id=worker_id or new_worker_id(),
                notes=[*_notes(cfg), *limits.notes],
                share=share,
            )
        )
        catalog = stack.enter_context(Catalog(database))
        attempts = job_watch(clock).attempts(telemetry)
        network = stack.enter_context(open_network(cfg, store=store, attempts=attempts, clock=clock, limits=limits))
        stack.callback(_tell_network, network, telemetry)
        refetch: set[str] = set()
        pipeline = _pipeline(
            cfg,
            network,
            store,
            clock,
            attempts=telemetry,
            on_source=telemetry.source_attempt,
            already=lambda work: None if work.work_id in refetch else _already(catalog, store, work),
        )
        stack.callback(pipeline.close)
        yield Parts(pipeline, telemetry, store, network, catalog, refetch)


@contextmanager
def open_planning(cfg: ContentDownloadConfig) -> Iterator[tuple[ResolverPipeline, Network]]:
    """A pipeline that only looks, and its way out: nothing is stored and nothing recorded."""
    clock = SystemClock()
    store = LocalStore(Path(cfg.storage.root_dir), cas_enabled=cfg.storage.cas_enabled)
    with (
        closing(_limits(cfg, clock)) as limits,
        open_network(cfg, store=store, attempts=NullSink(), clock=clock, limits=limits) as network,
    ):
        pipeline = _pipeline(cfg, network, store, clock, attempts=NullSink())
        try:
            yield pipeline, network
        finally:
            pipeline.close()


def build_pipeline_from_config(cfg: ContentDownloadConfig) -> ResolverPipeline:
    """A pipeline for embedding: `process` obtains works; its attempts are recorded, its outcomes are the caller's.

    Its `close` closes everything that was opened for it.
    """
    stack = ExitStack()
    pipeline = stack.enter_context(open_parts(cfg)).pipeline
    pipeline.on_close(stack.close)
    return pipeline


def run_from_config(
    cfg: ContentDownloadConfig, artifacts: Iterable[str | Mapping[str, Any] | WorkArtifact]
) -> RunResult:
    """Obtain `artifacts` in one call; the same wiring as every command."""
    from DocsToKG.ContentDownload.runner import DownloadRun

    with DownloadRun(cfg) as run:
        return run.process_artifacts(artifacts)


def _notes(cfg: ContentDownloadConfig) -> list[str]:
    """What a reader of the summary must know to judge the figures."""
    notes = []
    if not cfg.robots.enabled:
        notes.append("robots.txt was not read in this run")
    if cfg.limits.rate_factor != 1.0:
        notes.append(f"every rate was multiplied by {cfg.limits.rate_factor:g}")
    return notes


def _tell_network(network: Network, telemetry: RunTelemetry) -> None:
    """What whoever reads the figures should know: a cache that failed cost requests, a robots.txt copies."""
    troubles: Mapping[str, int] = network.cache.troubles if network.cache is not None else {}
    if troubles:
        telemetry.note(f"the cache failed and was gone past: {_counted(troubles)}")
    decisions: Mapping[str, int] = network.robots.decisions if network.robots is not None else {}
    for note in network.refusals.notes if network.refusals is not None else ():
        telemetry.note(note)
    if set(decisions) - {"allowed", "exempt"}:
        telemetry.note(f"robots.txt was asked before each page and file: {_counted(decisions)}")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{what} {count}" for what, count in sorted(counts.items()))


def database_path(cfg: ContentDownloadConfig) -> Path:
    """The catalog. A run cannot do without one; when its sink is off, it is kept out of the user's sight."""
    root = Path(cfg.telemetry.manifest_path).parent
    if cfg.catalog.path is not None:
        return Path(cfg.catalog.path)
    return root / "manifest.sqlite" if "sqlite" in cfg.telemetry.sinks else root / "state" / "catalog.sqlite"


def _refuse_missing_backends(cfg: ContentDownloadConfig) -> None:
    """A backend that is configured and cannot be had stops the run; it is never silently replaced."""
    for key, chosen, available in (
        ("storage.backend", cfg.storage.backend, "fs"),
        ("queue.backend", cfg.queue.backend, "sqlite"),
        ("catalog.backend", cfg.catalog.backend, "sqlite"),
        ("rate_limit.backend", cfg.rate_limit.backend, "local"),
        ("storage.layout", cfg.storage.layout, "policy_path"),
    ):
        if chosen != available:
            raise ConfigError(f"{key}: {chosen!r} is not available in this version; set it to {available!r}")


@contextmanager
def open_queue(cfg: ContentDownloadConfig, *, clock: Clock | None = None) -> Iterator[WorkQueue]:
    queue = WorkQueue(
        cfg.queue.path, wal_mode=cfg.queue.wal_mode, clock=clock, max_attempts=cfg.orchestrator.max_job_attempts
    )
    try:
        yield queue
    finally:
        queue.close()


def open_store(cfg: ContentDownloadConfig) -> LocalStore:
    store = LocalStore(
        Path(cfg.storage.root_dir), cas_enabled=cfg.storage.cas_enabled, min_free_bytes=cfg.storage.min_free_bytes
    )
    store.prepare()
    return store


@contextmanager
def open_cache(cfg: ContentDownloadConfig) -> Iterator[EntryStore]:
    """The entries of the cache alone, to be counted or cleared."""
    with closing(open_entries(_cache_settings(cfg), open_cas=lambda sha256: None)) as entries:
        yield entries


@contextmanager
def open_network(
    cfg: ContentDownloadConfig, *, store: LocalStore, attempts: AttemptSink, clock: Clock, limits: Limits
) -> Iterator[Network]:
    rules = all_source_rules(cfg)
    breakers = _breakers(cfg, attempts, clock)
    credentials = _credentials(rules)
    refusals = _refusals(cfg)
    agent = user_agent(cfg)
    silence_request_log()
    url_policy = UrlPolicy(http_hosts=cfg.http.allow_http_hosts, credentials=credentials)
    shared: dict[str, Any] = {
        "connections": Connections(cfg.http.max_connections),
        "pauses": _pauses(cfg),
        "breakers": breakers,
    }
    with closing(_http_stack(cfg, agent, credentials, store, clock)) as stack:
        robots = _robots(cfg, stack.http, limits, url_policy, attempts, clock, shared) if cfg.robots.enabled else None
        clients = {
            name: RateRetryClient(
                name,
                http=stack.http,
                cache=stack.cache,
                gate=limits,
                limits=limits,
                robots=robots,
                url_policy=url_policy,
                policy=_policy(cfg, rule, agent),
                attempts=attempts,
                clock=clock,
                random=random.random,
                max_redirects=cfg.http.max_redirects,
                refusals=refusals,
                **shared,
            )
            for name, rule in rules.items()
        }
        yield Network(limits, clients, breakers, stack.cache, robots, refusals)


def _robots(
    cfg: ContentDownloadConfig,
    http: Any,
    limits: Limits,
    url_policy: UrlPolicy,
    attempts: AttemptSink,
    clock: Clock,
    shared: Mapping[str, Any],
) -> Robots:
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
        **shared,
    )


def _pauses(cfg: ContentDownloadConfig) -> Pauses:
    default, hosts = host_rules(cfg)
    mirror = cfg.resolvers.wayback.base_url
    return Pauses(
        {host: rule.pause_on_429_s for host, rule in hosts.items()},
        default_s=default.pause_on_429_s,
        archives=[*ARCHIVES, *([host_key(mirror)] if mirror else [])],
    )


def _refusals(cfg: ContentDownloadConfig) -> Refusals:
    default, hosts = host_rules(cfg)
    return Refusals([host for host, rule in hosts.items() if rule.stop_on_403], others=default.stop_on_403)


def _breakers(cfg: ContentDownloadConfig, attempts: AttemptSink, clock: Clock) -> Breakers | None:
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
    return Breakers(clock=clock, settings=settings, sink=attempts)


def _http_stack(
    cfg: ContentDownloadConfig, agent: str, credentials: Mapping[str, HostCredentials], store: LocalStore, clock: Clock
) -> HttpStack:
    http = cfg.http
    wire = LeanTransport(
        guard=AddressGuard(allow_hosts=http.allow_private_hosts),
        names=StaticNames(http.names, fallback=SystemNames()) if http.names else SystemNames(),
        connect_to=_connect_to(http.connect_to),
        proxies=Proxies(http.proxy.mapping()),
        max_idle=http.max_keepalive,
        max_open=http.max_connections,
        clock=clock,
    )
    return build_http_stack(
        wire,
        user_agent=agent,
        timeout_connect_s=http.timeout_connect_s,
        timeout_read_s=http.timeout_read_s,
        credentials=credentials,
        cache=_cache_settings(cfg),
        open_cas=store.open,
        clock=clock,
    )


def _connect_to(rules: Mapping[str, str]) -> ConnectTo | None:
    try:
        return ConnectTo(rules) if rules else None
    except ValueError as error:
        raise ConfigError(f"http.connect_to: {error}") from error


def _cache_settings(cfg: ContentDownloadConfig) -> CacheSettings:
    knobs = cfg.hishel
    return CacheSettings(
        base_path=Path(knobs.base_path),
        enabled=knobs.enabled,
        backend=knobs.backend,
        ttl_seconds=knobs.ttl_seconds,
        check_ttl_every_seconds=knobs.check_ttl_every_seconds,
        force_cache=knobs.force_cache,
        allow_heuristics=knobs.allow_heuristics,
        allow_stale=knobs.allow_stale,
        always_revalidate=knobs.always_revalidate,
        cache_private=knobs.cache_private,
        cacheable_methods=knobs.cacheable_methods,
        sqlite_path=Path(knobs.sqlite_path),
        redis_url=knobs.redis_url.get_secret_value() if knobs.redis_url is not None else None,
        s3_bucket=knobs.s3_bucket,
        s3_prefix=knobs.s3_prefix,
    )


def _limits(cfg: ContentDownloadConfig, clock: Clock) -> Limits:
    default, hosts = host_rules(cfg)
    knobs, rules = cfg.limits, all_source_rules(cfg)
    store, note = _limit_store(cfg, clock)
    return Limits(
        clock=clock,
        default_host=_host_limit(default),
        hosts={host: _host_limit(rule) for host, rule in hosts.items()},
        groups={pattern: _host_limit(rule) for pattern, rule in group_rules(cfg).items()},
        resolver_rates={name: _pace(rule.pace) for name, rule in rules.items()},
        resolver_slots=cfg.orchestrator.max_per_resolver,
        default_resolver_slots=cfg.orchestrator.per_resolver,
        rate_factor=knobs.rate_factor,
        adaptive=Adaptive(**knobs.adaptive.model_dump()),
        store=store,
        notes=[note] if note else [],
    )


def _limit_store(cfg: ContentDownloadConfig, clock: Clock) -> tuple[LimitStore, str | None]:
    """Where limits are counted, and what a reader of the summary must know about it."""
    if not cfg.limits.shared:
        return MemoryStore(), "limits held for this process only: limits.shared is off"
    given = cfg.limits.store_path
    path = Path(given).expanduser() if given else default_store_path(os.environ)
    return open_limit_store(path, clock=clock, space=space_of(cfg.http.connect_to))


def _host_limit(rule: HostRules) -> HostLimit:
    return HostLimit(rule.max_concurrent, rule.rates, rule.burst)


def _pace(pace: Rate | BucketConfig) -> Rate | BucketSpec:
    return pace if isinstance(pace, Rate) else BucketSpec(pace.capacity, pace.refill_per_sec, pace.burst)


def _policy(cfg: ContentDownloadConfig, rule: SourceRules, agent: str) -> SourcePolicy:
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


def _resolver_settings(rules: Mapping[str, SourceRules]) -> dict[str, ResolverSettings]:
    return {
        name: ResolverSettings(base_url=rule.base_url, email=rule.email, api_key=rule.api_key, options=rule.options)
        for name, rule in rules.items()
    }


def _credentials(rules: Mapping[str, SourceRules]) -> dict[str, HostCredentials]:
    return registry.credentials(_resolver_settings(rules))


def _pipeline(
    cfg: ContentDownloadConfig,
    network: Network,
    store: LocalStore,
    clock: Clock,
    *,
    attempts: AttemptSink,
    on_source: Callable[[SourceAttempt], None] = lambda attempt: None,
    already: Callable[[WorkArtifact], HeldFile | None] = lambda work: None,
) -> ResolverPipeline:
    rules = all_source_rules(cfg)
    usable = {name for name in registry.names() if rules[name].enabled}
    tiers = tier_plan(cfg, only=usable)
    identify = [name for name in cfg.resolvers.identify if name in usable]
    wanted = dict.fromkeys([*identify, *(name for tier in tiers for name in tier.sources)])
    download = CandidateDownload(
        store,
        DownloadRules(
            cfg.download.max_bytes, cfg.download.min_pdf_bytes, cfg.download.head_enabled, cfg.download.formats
        ),
        clock,
        attempts,
    )
    filters = Filters.of(cfg.filters)
    fallback = FallbackOrchestrator(
        tiers=[replace(tier, parallel=min(tier.parallel, cfg.budgets.max_concurrent)) for tier in tiers],
        resolvers=registry.build(wanted, settings=_resolver_settings(rules)),
        clients=network.clients,
        download=SharedDownload(download, open_stored=store.open, clock=clock, attempts=attempts),
        clock=clock,
        identify=identify,
        formats=cfg.download.formats,
        source_s=source_shares(cfg),
        allow=filters.refuses_plan,
        lacks=filters.lacks,
        refuse=filters.refuses_work,
        on_source=on_source,
    )
    return ResolverPipeline(
        fallback=fallback,
        gate=network.limits,
        clock=clock,
        limits=WorkLimits(cfg.budgets.total_timeout_s, cfg.budgets.total_attempts),
        already=already,
        refuse=filters.refuses_work,
        threads=cfg.budgets.max_concurrent,
    )


def _already(catalog: Catalog, store: LocalStore, work: WorkArtifact) -> HeldFile | None:
    """A file that was stored and recorded, though the ledger was not told: adopted instead of fetched again."""
    found = catalog.find_download(work.work_id)
    if found is None:
        return None
    path = store.at(found.path)
    if path.is_file() and path.stat().st_size != found.size_bytes:
        store.drop_damaged(found.sha256, found.path)
    if not path.exists() and store.adopt(found.sha256, found.path) is None:
        return None
    return HeldFile(found.sha256, found.size_bytes or 0)
