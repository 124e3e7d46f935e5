"""Complete the given settings with the defaults before they are validated.

Knows which settings speak of the same thing: a policy and a resolver section, a bucket and a rate, two
Redis addresses. Promises: a given value wins over a default; where both of a pair are given the
tighter one applies; completing twice changes nothing. Shapes it does not understand are left to validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from DocsToKG.ContentDownload.config.aliases import LONG_NAMES, UnknownSource, canonical_source, long_source
from DocsToKG.ContentDownload.config.defaults import default_settings

_SYNONYMS = {"timeout_ms": "timeout_s", "retries_max": "max_retries", "robots_respect": "obey_robots"}


class SettingsClash(ValueError):
    """Two spellings of one setting disagree."""


def complete(given: Mapping[str, Any]) -> dict[str, Any]:
    """The given settings, completed."""
    settings = one_spelling(given)
    defaults = default_settings()
    for source, long in LONG_NAMES.items():
        _complete_source(settings, defaults["policies"][long], source, long)
    completed = merge(defaults, settings)
    _share_redis(completed)
    return completed


def one_spelling(given: Mapping[str, Any]) -> dict[str, Any]:
    """Sources by their canonical names and policies in their canonical words, wherever they are keys."""
    settings = dict(given)
    if isinstance(policies := settings.get("policies"), Mapping):
        settings["policies"] = {
            key: _policy_words(value, key) for key, value in _renamed(policies, long_source, "policies").items()
        }
    if isinstance(resolvers := settings.get("resolvers"), Mapping):
        settings["resolvers"] = _renamed(resolvers, canonical_source, "resolvers")
    if isinstance(engine := settings.get("orchestrator"), Mapping):
        slots = engine.get("max_per_resolver")
        if isinstance(slots, Mapping):
            renamed = _renamed(slots, canonical_source, "orchestrator.max_per_resolver")
            settings["orchestrator"] = {**engine, "max_per_resolver": renamed}
    return settings


def merge(weak: Mapping[str, Any], strong: Mapping[str, Any]) -> dict[str, Any]:
    """Both, key by key; where both say something that is not a section, `strong` holds."""
    merged = dict(weak)
    for key, value in strong.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(below, value) if both else value  # type: ignore[arg-type]
    return merged


def _renamed(table: Mapping[str, Any], rename: Callable[[str], str], where: str) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for key, value in table.items():
        try:
            name = rename(key) if isinstance(key, str) and key != "order" else key
        except UnknownSource:
            name = key
        if name in renamed:
            raise SettingsClash(f"{where}.{key} and {where}.{name} are the same source; keep one")
        renamed[name] = value
    return renamed


def _policy_words(policy: Any, source: str) -> Any:
    if not isinstance(policy, Mapping):
        return policy
    words: dict[str, Any] = {}
    for key, value in policy.items():
        name = _SYNONYMS.get(str(key), str(key))
        if name in words:
            raise SettingsClash(f"policies.{source}: {key} and {name} are the same setting; keep one")
        in_ms = key == "timeout_ms" and isinstance(value, int | float)
        words[name] = value / 1000 if in_ms else value
    return words


def _complete_source(settings: dict[str, Any], defaults: Mapping[str, Any], source: str, long: str) -> None:
    policy = _table(settings, "policies", long)
    section = _table(settings, "resolvers", source)
    if policy is None or section is None:
        return
    bucket = section.get("rate_limit")
    if bucket is not None and "rate_limit" not in policy:
        policy["rate_limit"] = None
    _complete_retries(policy, section, int(defaults["max_retries"]))
    settings["policies"] = {**(settings.get("policies") or {}), long: policy}
    settings["resolvers"] = {**(settings.get("resolvers") or {}), source: section}


def _complete_retries(policy: dict[str, Any], section: dict[str, Any], default_retries: int) -> None:
    """`max_retries: n` and `retry.max_attempts: n + 1` say the same; the smaller of two given ones holds."""
    retry = section.get("retry")
    if retry is not None and not isinstance(retry, Mapping):
        return
    given = [policy.get("max_retries"), _less_one((retry or {}).get("max_attempts"))]
    counts = [count for count in given if count is not None]
    if not all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts):
        return
    retries = min(counts, default=default_retries)
    policy["max_retries"] = retries
    section["retry"] = {**(retry or {}), "max_attempts": retries + 1}


def _less_one(count: Any) -> Any:
    return count - 1 if isinstance(count, int) and not isinstance(count, bool) else count


def _table(settings: Mapping[str, Any], section: str, key: str) -> dict[str, Any] | None:
    """The table at `section.key` as a copy; None when something that is no table stands in the way."""
    outer = settings.get(section) or {}
    inner = (outer.get(key) or {}) if isinstance(outer, Mapping) else None
    return dict(inner) if isinstance(inner, Mapping) else None


def _share_redis(settings: dict[str, Any]) -> None:
    """One Redis serves the limits and the cache unless the cache names its own."""
    limits, cache = settings.get("rate_limit"), settings.get("hishel")
    if not (isinstance(limits, Mapping) and isinstance(cache, Mapping)) or cache.get("backend") != "redis":
        return
    if cache.get("redis_url") is None and limits.get("redis_url") is not None:
        settings["hishel"] = {**cache, "redis_url": limits["redis_url"]}
