"""Explain a configuration: tiers, order, the state of every source, the limits.

Knows the configuration and the installed sources. Sends no request and prints nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from DocsToKG.ContentDownload.config.aliases import LONG_NAMES
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.config.rules import SourceRules, contact_of, source_rules, tier_plan, user_agent
from DocsToKG.core.bucket import Rate

_NEEDS_EMAIL = frozenset({"unpaywall"})
_NEEDS_KEY = frozenset({"core"})


class SourceStatus(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"
    MISSING_CREDENTIAL = "missing credential"
    NOT_INSTALLED = "not installed"


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source as people see it. `tier` is None when no tier uses it."""

    name: str
    long_name: str
    tier: str | None
    status: SourceStatus
    way_out: str | None
    key: str | None  # set, missing, or optional (not set); None where there is none
    timeout_s: float
    max_attempts: int
    rate: str
    obeys_robots: bool


@dataclass(frozen=True, slots=True)
class TierView:
    name: str
    parallel: int
    sources: tuple[SourceView, ...]


@dataclass(frozen=True, slots=True)
class HostView:
    host: str
    max_concurrent: int
    rates: dict[str, list[str]]
    burst: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a configuration means."""

    contact: str | None
    user_agent: str
    order: tuple[str, ...]
    tiers: tuple[TierView, ...]
    unused: tuple[SourceView, ...]
    formats: tuple[str, ...]
    budgets: dict[str, float]
    rate_factor: float
    hosts: tuple[HostView, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def explain(config: ContentDownloadConfig, *, installed: Collection[str]) -> Explanation:
    """The meaning of `config` when the sources named in `installed` (canonical names) can run."""
    tiers = tuple(
        TierView(t.name, t.parallel, tuple(_source(config, name, t.name, installed) for name in t.sources))
        for t in tier_plan(config)
    )
    views = {view.name: view for tier in tiers for view in tier.sources}
    return Explanation(
        contact=contact_of(config),
        user_agent=user_agent(config),
        order=tuple(name for name, view in views.items() if view.status is SourceStatus.ENABLED),
        tiers=tiers,
        unused=tuple(_source(config, name, None, installed) for name in LONG_NAMES if name not in views),
        formats=tuple(config.download.formats),
        budgets=config.budgets.model_dump(),
        rate_factor=config.limits.rate_factor,
        hosts=tuple(_hosts(config)),
    )


def _source(config: ContentDownloadConfig, name: str, tier: str | None, installed: Collection[str]) -> SourceView:
    rules = source_rules(config, name)
    status, way_out = _status(rules, installed)
    return SourceView(
        name=name,
        long_name=rules.long_name,
        tier=tier,
        status=status,
        way_out=way_out,
        key=_key(config, rules),
        timeout_s=rules.timeout_s,
        max_attempts=rules.retry.max_attempts,
        rate=_rate_text(config, rules),
        obeys_robots=rules.obey_robots,
    )


def _status(rules: SourceRules, installed: Collection[str]) -> tuple[SourceStatus, str | None]:
    if not rules.enabled:
        return SourceStatus.DISABLED, f"set resolvers.{rules.name}.enabled to true"
    if rules.name not in installed:
        return SourceStatus.NOT_INSTALLED, None
    if rules.name in _NEEDS_EMAIL and rules.email is None:
        return SourceStatus.MISSING_CREDENTIAL, "run: content config set contact you@university.edu"
    if rules.name in _NEEDS_KEY and not (rules.api_key or "").strip():
        return SourceStatus.MISSING_CREDENTIAL, f"set resolvers.{rules.name}.api_key"
    return SourceStatus.ENABLED, None


def _key(config: ContentDownloadConfig, rules: SourceRules) -> str | None:
    """Whether the source's key is set; the key itself is never shown."""
    if "api_key" not in type(getattr(config.resolvers, rules.name)).model_fields:
        return None
    if (rules.api_key or "").strip():
        return "set"
    return "missing" if rules.name in _NEEDS_KEY else "optional"


def _rate_text(config: ContentDownloadConfig, rules: SourceRules) -> str:
    if isinstance(rules.pace, Rate):
        return config.policies[rules.long_name].rate_limit or ""
    bucket = rules.pace
    return f"{bucket.refill_per_sec:g}/second, {bucket.capacity + bucket.burst:g} at once"


def _hosts(config: ContentDownloadConfig) -> list[HostView]:
    at_once = config.orchestrator.max_per_host
    limits = {"(others)": config.limits.default, **dict(sorted(config.limits.hosts.items()))}
    return [
        HostView(
            host=host,
            max_concurrent=limit.max_concurrent or at_once,
            rates={str(role): list(texts) for role, texts in limit.rates.items()},
            burst=limit.burst,
        )
        for host, limit in limits.items()
    ]
