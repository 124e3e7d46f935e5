"""Which limits hold for a host: its own, and those of every group of hosts it belongs to.

Knows names and patterns (`*.example.org`). Does not count, wait or remember anything about hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.core.bucket import BucketSpec, Rate

# Longer than this nobody is kept waiting after a store lost its memory; nodes that know of a longer quota keep it.
_LONGEST_S = 60.0


@dataclass(frozen=True, slots=True)
class HostLimit:
    """What one host may be asked: `max_concurrent` at once, and the rates per role (`"*"` holds for all)."""

    max_concurrent: int = 2
    rates: Mapping[Role | str, tuple[Rate, ...]] = field(default_factory=dict)
    burst: float = 1.0


class HostPatterns:
    """The configured limits, by host name."""

    def __init__(
        self, *, default: HostLimit, hosts: Mapping[str, HostLimit], groups: Mapping[str, HostLimit] | None = None
    ) -> None:
        self._default = default
        self._hosts = dict(hosts)
        self._groups = {pattern.lower(): limit for pattern, limit in (groups or {}).items()}

    def limit_of(self, host: str) -> HostLimit:
        """The limit of the host itself, else of the nearest `*.parent`, else the default."""
        if host in self._hosts:
            return self._hosts[host]
        for parent in _parents(host):
            wild = self._hosts.get("*." + parent)
            if wild is not None:
                return wild
        return self._default

    def groups_of(self, host: str) -> tuple[tuple[str, HostLimit], ...]:
        """Every group `host` belongs to, with its cap. `*.example.org` holds `example.org` too: one site, one cap."""
        if not self._groups:
            return ()
        bare = host.partition(":")[0]
        patterns = dict.fromkeys([host, bare, "*." + bare, *("*." + parent for parent in _parents(bare))])
        return tuple((pattern, self._groups[pattern]) for pattern in patterns if pattern in self._groups)


def _parents(host: str) -> Iterator[str]:
    labels = host.split(".")
    for start in range(1, len(labels)):
        yield ".".join(labels[start:])


def quiet_times(
    *,
    default_host: HostLimit,
    hosts: Mapping[str, HostLimit],
    groups: Mapping[str, HostLimit],
    sources: Mapping[str, Rate | BucketSpec],
    factor: float,
) -> Callable[[str], float]:
    """Seconds by the key of a limit: the interval of its slowest rate."""
    domains = HostPatterns(default=default_host, hosts=hosts)

    def quiet_s(key: str) -> float:
        kind, _, name = key.partition(":")
        if kind == "resolver":
            rates = [sources[name]] if name in sources else []
        else:
            limit = groups.get(name, default_host) if kind == "group" else domains.limit_of(name)
            rates = [rate for several in limit.rates.values() for rate in several]
        return max((_interval_s(rate) / factor for rate in rates), default=0.0)

    return quiet_s


def _interval_s(rate: Rate | BucketSpec) -> float:
    if isinstance(rate, BucketSpec):
        return min(_LONGEST_S, 1.0 / rate.refill_per_sec)
    return 1.0 / rate.per_second if rate.per_s <= _LONGEST_S else 0.0
