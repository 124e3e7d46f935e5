"""Which limits a request must keep: that of its host, those of the host's groups, that of its source.

Knows what is configured for each and makes a limit when it is first met. Takes no decision and no lock; the caller sees
to it that one thread at a time is inside. Promises: one limit per key for as long as anything depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from DocsToKG.ContentDownload.net.limits.host_patterns import HostLimit, HostPatterns
from DocsToKG.ContentDownload.net.limits.rates import BucketSpec
from DocsToKG.ContentDownload.net.limits.state import INTERVAL, RATE, KeyLimit, LimitState
from DocsToKG.ContentDownload.net.limits.stores.base import LimitStore
from DocsToKG.core.bucket import Rate

# Hosts come from outside, so what is remembered about idle ones is bounded.
_MOST_HOSTS = 20_000
_IDLE_S = 86400.0
_IDLE_SHARED_S = 120.0
_ANY_NUMBER = 2**31


class LimitChain:
    """The limits of requests in one role from one source to one host."""

    __slots__ = ("_owner", "key_limits", "keys", "role", "sending")

    def __init__(self, key_limits: tuple[KeyLimit, ...], role: str, owner: str) -> None:
        self.key_limits = key_limits
        self.role = role
        self.keys = tuple(key_limit.key for key_limit in key_limits)
        self.sending = key_limits[:-1]  # where the moment of sending counts: a source has no wire
        self._owner = owner

    def is_paced(self) -> bool:
        """Does it matter to anyone when a request is sent?"""
        for key_limit in self.key_limits:  # noqa: SIM110 (asked several times for each request; a generator costs more)
            if key_limit.is_paced(self.role):
                return True
        return False

    def vacate(self, records: list[LimitState]) -> tuple[None, bool]:
        """The change that frees a slot of each limit."""
        for key_limit, state in zip(self.key_limits, records, strict=True):
            key_limit.vacate(state, self._owner)
        return None, True


class LimitRegistry:
    """The limits of one process."""

    def __init__(
        self,
        patterns: HostPatterns,
        store: LimitStore,
        *,
        resolver_rates: Mapping[str, Rate | BucketSpec],
        resolver_slots: Mapping[str, int],
        default_resolver_slots: int | None,
        factor: float,
    ) -> None:
        self.hosts: dict[str, KeyLimit] = {}
        self._patterns = patterns
        self._store = store
        self._resolver_rates = dict(resolver_rates)
        self._resolver_slots = dict(resolver_slots)
        # A source that nobody limited has as many as there are workers, wherever they are.
        self._default_resolver_slots = default_resolver_slots or _ANY_NUMBER
        self._factor = factor
        self._sources: dict[str, KeyLimit] = {}
        self._groups: dict[str, KeyLimit] = {}
        self._groups_by_host: dict[str, tuple[KeyLimit, ...]] = {}
        self._chains: dict[tuple[str, str, str], LimitChain] = {}

    def known(self, host: str, resolver: str, role: str) -> LimitChain | None:
        """What `find` would give, without a lock, if it was found before."""
        return self._chains.get((host, resolver, role))

    def find(self, host: str, resolver: str, role: str, now: float) -> LimitChain:
        place = (host, resolver, role)
        found = self._chains.get(place)
        if found is None:
            key_limits = (self.host(host, now), *self.groups_of(host), self.source(resolver))
            found = self._chains[place] = LimitChain(key_limits, role, self._store.owner)
        return found

    def host(self, name: str, now: float) -> KeyLimit:
        key_limit = self.hosts.get(name)
        if key_limit is None:
            if len(self.hosts) >= _MOST_HOSTS:
                self._drop_idle(now)
            key_limit = self.hosts[name] = self._limited(f"host:{name}", self._patterns.limit_of(name))
        return key_limit

    def groups_of(self, host: str) -> tuple[KeyLimit, ...]:
        found = self._groups_by_host.get(host)
        if found is None:
            groups = self._patterns.groups_of(host)
            found = self._groups_by_host[host] = tuple(self._group(pattern, limit) for pattern, limit in groups)
        return found

    def source(self, name: str) -> KeyLimit:
        key_limit = self._sources.get(name)
        if key_limit is None:
            rate = self._resolver_rates.get(name)
            slots = self._resolver_slots.get(name, self._default_resolver_slots)
            rates = {"*": (rate,)} if rate is not None else {}
            key_limit = self._sources[name] = KeyLimit(
                f"resolver:{name}", slots=slots, rates=rates, burst=1.0, factor=self._factor, kind=RATE
            )
        return key_limit

    def _group(self, pattern: str, limit: HostLimit) -> KeyLimit:
        if pattern not in self._groups:
            self._groups[pattern] = self._limited(f"group:{pattern}", limit)
        return self._groups[pattern]

    def _limited(self, key: str, limit: HostLimit) -> KeyLimit:
        rates = {str(role): tuple(rates) for role, rates in limit.rates.items()}
        return KeyLimit(
            key, slots=limit.max_concurrent, rates=rates, burst=limit.burst, factor=self._factor, kind=INTERVAL
        )

    def _drop_idle(self, now: float) -> None:
        """Forget hosts that could delay nobody any more."""
        idle = {name for name, key_limit in self.hosts.items() if self._is_idle(key_limit, now)}
        for name in idle:
            del self.hosts[name]
            self._groups_by_host.pop(name, None)
        self._chains = {place: chain for place, chain in self._chains.items() if place[0] not in idle}
        self._store.forget([f"host:{name}" for name in idle])

    def _is_idle(self, key_limit: KeyLimit, now: float) -> bool:
        """Nothing runs, and nothing that only this process remembers could still delay anyone."""
        shared = self._store.shared
        needed_until = max(key_limit.used_at + (_IDLE_SHARED_S if shared else _IDLE_S), key_limit.hold_until)
        return key_limit.busy == 0 and needed_until < now and (shared or not key_limit.crawl_delay_s)
