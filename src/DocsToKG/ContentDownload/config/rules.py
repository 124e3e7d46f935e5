"""The rules that result for one source, one tier, one host.

Knows how settings of different sections add up. Does not build clients, limits or resolvers; it hands
numbers to those who do. Promises: same configuration, same answers, in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from DocsToKG.ContentDownload.config.aliases import LONG_NAMES, canonical_source, long_source
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig, HostLimitConfig
from DocsToKG.ContentDownload.config.sources import BucketConfig, PolicyConfig, ResolverConfig, RetryConfig
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.bucket import Rate
from DocsToKG.core.product import product_version

# Where a source goes that is named in `resolvers.order`, though it stands in no tier or, for these, in another one.
_HOME_TIERS = {"crossref": "doi_follow"}
_DEFAULT_HOME = "direct_oa"
# What the rules of a source name themselves; every other field of its section is an option of its own.
_COMMON = frozenset({*ResolverConfig.model_fields, "email", "api_key"})


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier with its sources by canonical name, in the order they are tried."""

    name: str
    parallel: int
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceRules:
    """How one source is queried. `pace` is a rate, or a bucket where one was configured."""

    name: str
    long_name: str
    enabled: bool
    timeout_s: float
    retry: RetryPolicy
    pace: Rate | BucketConfig
    obey_robots: bool
    headers: Mapping[str, str]
    base_url: str | None
    email: str | None
    api_key: str | None = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)  # settings that only this source has


@dataclass(frozen=True, slots=True)
class HostRules:
    """Limits of one host: concurrent requests, and rates by kind of request ("*": all together)."""

    max_concurrent: int
    rates: Mapping[str, tuple[Rate, ...]]
    burst: float
    pause_on_429_s: float = 0.0
    stop_on_403: bool = False


def contact_of(config: ContentDownloadConfig) -> str | None:
    """The contact address that requests carry, wherever it was set."""
    return config.contact or config.resolvers.unpaywall.email


def user_agent(config: ContentDownloadConfig) -> str:
    return _filled(config.http.user_agent, contact_of(config))


def tier_plan(config: ContentDownloadConfig, *, only: Collection[str] | None = None) -> tuple[Tier, ...]:
    """The tiers with `resolvers.order` applied; with `only`, without other sources and without empty tiers."""
    order = config.resolvers.order
    tiers = [Tier(t.name, t.parallel, tuple(canonical_source(name) for name in t.sources)) for t in config.tiers]
    placed = {name for tier in tiers for name in tier.sources}
    for name in order:
        if _leaves_for_home(tiers, name):
            tiers = _joined([_without(tier, name) for tier in tiers], name)
        elif name not in placed:
            tiers = _joined(tiers, name)
    if config.index.path is not None and "index" not in placed:
        tiers = _with_index(tiers, alone=config.index.then == "never")
    rank = {name: place for place, name in enumerate(order)}
    ordered = [
        Tier(t.name, t.parallel, tuple(sorted(t.sources, key=lambda name: rank.get(name, len(rank))))) for t in tiers
    ]
    return tuple(ordered) if only is None else tuple(_kept(ordered, only))


def _with_index(tiers: list[Tier], *, alone: bool) -> list[Tier]:
    """The tiers behind that of the index, with those who fetch what it names by id or from its pages, and that of the
    archives."""
    placed = {name for tier in tiers for name in tier.sources}
    first = Tier("index", 1, ("index", *(name for name in ("arxiv", "pmc", "landing") if name in placed)))
    archives = [Tier("index_archives", 1, ("wayback",))] if "wayback" in placed else []
    return [first] if alone else [first, *archives, *tiers]


def source_rules(config: ContentDownloadConfig, name: str) -> SourceRules:
    """Everything that holds for the source of this name (either name)."""
    short, long = canonical_source(name), long_source(name)
    section, policy = getattr(config.resolvers, short), config.policies[long]
    contact, api_key = contact_of(config), getattr(section, "api_key", None)
    return SourceRules(
        name=short,
        long_name=long,
        enabled=section.enabled,
        timeout_s=policy.timeout_s if "timeout_s" in policy.model_fields_set else config.budgets.per_source_s,
        retry=_retry_policy(section.retry, policy),
        pace=_pace(policy.rate_limit, section.rate_limit),
        obey_robots=policy.obey_robots and config.robots.enabled,
        headers={key: _filled(text, contact) for key, text in policy.custom_headers.items()},
        base_url=section.base_url,
        email=getattr(section, "email", None) or contact,
        api_key=api_key.get_secret_value() if api_key is not None else None,
        options={name: getattr(section, name) for name in type(section).model_fields if name not in _COMMON},
    )


def all_source_rules(config: ContentDownloadConfig) -> dict[str, SourceRules]:
    return {name: source_rules(config, name) for name in LONG_NAMES}


def source_shares(config: ContentDownloadConfig) -> dict[str, float]:
    """By source: the seconds it may use to say where one paper is. Its own timeout allows it at least one request."""
    return {name: max(config.budgets.per_source_s, source_rules(config, name).timeout_s) for name in LONG_NAMES}


def host_rules(config: ContentDownloadConfig) -> tuple[HostRules, dict[str, HostRules]]:
    """The limits of hosts that are not listed, and of those that are. `rate_factor` is not applied yet."""
    at_once = config.orchestrator.max_per_host
    hosts = {host.lower(): _host(limit, at_once) for host, limit in config.limits.hosts.items()}
    return _host(config.limits.default, at_once), hosts


def group_rules(config: ContentDownloadConfig) -> dict[str, HostRules]:
    """The caps over several hosts together, by pattern. `rate_factor` is not applied yet."""
    at_once = config.orchestrator.max_per_host
    return {pattern.lower(): _host(limit, at_once) for pattern, limit in config.limits.groups.items()}


def _host(limit: HostLimitConfig, at_once: int) -> HostRules:
    rates = {str(role): tuple(Rate.parse(text) for text in texts) for role, texts in limit.rates.items()}
    return HostRules(limit.max_concurrent or at_once, rates, limit.burst, limit.pause_on_429_s, limit.stop_on_403)


def _retry_policy(retry: RetryConfig, policy: PolicyConfig) -> RetryPolicy:
    return RetryPolicy(
        max_attempts=policy.max_retries + 1,
        base_s=retry.base_delay_ms / 1000,
        cap_s=retry.max_delay_ms / 1000,
        jitter_s=retry.jitter_ms / 1000,
        statuses=frozenset(retry.retry_statuses),
    )


def _pace(rate_text: str | None, bucket: BucketConfig | None) -> Rate | BucketConfig:
    """The rate alone, the bucket alone, or the tighter of both; the default bucket when neither is set."""
    if rate_text is None:
        return bucket or BucketConfig()
    rate = Rate.parse(rate_text)
    return bucket if bucket is not None and bucket.refill_per_sec < rate.per_second else rate


def _joined(tiers: list[Tier], name: str) -> list[Tier]:
    home = _HOME_TIERS.get(name, _DEFAULT_HOME)
    at = next((place for place, tier in enumerate(tiers) if tier.name == home), len(tiers) - 1)
    tier = tiers[at]
    return [*tiers[:at], Tier(tier.name, tier.parallel, (*tier.sources, name)), *tiers[at + 1 :]]


def _leaves_for_home(tiers: list[Tier], name: str) -> bool:
    """Whether another tier has this source before this one."""
    home = next((tier for tier in tiers if tier.name == _HOME_TIERS.get(name)), None)
    return home is not None and name not in home.sources


def _without(tier: Tier, name: str) -> Tier:
    return Tier(tier.name, tier.parallel, tuple(source for source in tier.sources if source != name))


def _kept(tiers: list[Tier], only: Collection[str]) -> list[Tier]:
    kept = [Tier(t.name, t.parallel, tuple(name for name in t.sources if name in only)) for t in tiers]
    return [tier for tier in kept if tier.sources]


def _filled(template: str, contact: str | None) -> str:
    if contact is None:
        template = re.sub(r"\s*\([^()]*\{contact\}[^()]*\)", "", template)
    return template.replace("{version}", product_version()).replace("{contact}", contact or "")
