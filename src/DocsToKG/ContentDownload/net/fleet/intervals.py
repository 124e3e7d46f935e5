"""How long a key must be quiet so that what was granted before, and forgotten, is not followed too soon.

Knows the configured limits only; what a host asked for beyond them is told anew by the nodes that heard it.
Promises: no wait of more than a minute; a quota over a longer time is kept by the nodes that know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from DocsToKG.ContentDownload.net.domains import Domains, HostLimit
from DocsToKG.ContentDownload.net.pace import BucketSpec
from DocsToKG.core.bucket import Rate

_LONGEST_S = 60.0


def quiet_times(
    *,
    default_host: HostLimit,
    hosts: Mapping[str, HostLimit],
    groups: Mapping[str, HostLimit],
    sources: Mapping[str, Rate | BucketSpec],
    factor: float,
) -> Callable[[str], float]:
    """Seconds by the key of a lane: the interval of its slowest rate."""
    domains = Domains(default=default_host, hosts=hosts)

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
