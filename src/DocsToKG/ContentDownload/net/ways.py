"""Which lanes a request passes: that of its host, those of the host's groups, that of its source.

Knows what is configured for each and makes a lane when it is first met. Takes no decision and no lock; the caller sees
to it that one thread at a time is inside. Promises: one lane per key for as long as anything depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from DocsToKG.ContentDownload.net.delays import INTERVAL, RATE
from DocsToKG.ContentDownload.net.domains import Domains, HostLimit
from DocsToKG.ContentDownload.net.lanes import Kept, Lane
from DocsToKG.ContentDownload.net.limit_store import LimitStore
from DocsToKG.ContentDownload.net.pace import BucketSpec
from DocsToKG.core.bucket import Rate

# Hosts come from outside, so what is remembered about idle ones is bounded.
_MOST_HOSTS = 20_000
_IDLE_S = 86400.0
_IDLE_SHARED_S = 120.0
_ANY_NUMBER = 2**31


class Way:
    """The lanes of requests in one role from one source to one host."""

    __slots__ = ("_owner", "keys", "lanes", "role", "sending")

    def __init__(self, lanes: tuple[Lane, ...], role: str, owner: str) -> None:
        self.lanes = lanes
        self.role = role
        self.keys = tuple(lane.key for lane in lanes)
        self.sending = lanes[:-1]  # where the moment of sending counts: a source has no wire
        self._owner = owner

    def is_paced(self) -> bool:
        """Does it matter to anyone when a request is sent?"""
        return any(lane.is_paced(self.role) for lane in self.lanes)

    def vacate(self, records: list[Kept]) -> tuple[None, bool]:
        """The change that frees a slot in each lane."""
        for lane, kept in zip(self.lanes, records, strict=True):
            lane.vacate(kept, self._owner)
        return None, True


class Ways:
    """The lanes of one process."""

    def __init__(
        self,
        domains: Domains,
        store: LimitStore,
        *,
        resolver_rates: Mapping[str, Rate | BucketSpec],
        resolver_slots: Mapping[str, int],
        default_resolver_slots: int | None,
        factor: float,
    ) -> None:
        self.hosts: dict[str, Lane] = {}
        self._domains = domains
        self._store = store
        self._resolver_rates = dict(resolver_rates)
        self._resolver_slots = dict(resolver_slots)
        # A source that nobody limited has as many as there are workers, wherever they are.
        self._default_resolver_slots = default_resolver_slots or _ANY_NUMBER
        self._factor = factor
        self._sources: dict[str, Lane] = {}
        self._groups: dict[str, Lane] = {}
        self._groups_by_host: dict[str, tuple[Lane, ...]] = {}
        self._ways: dict[tuple[str, str, str], Way] = {}

    def find(self, host: str, resolver: str, role: str, now: float) -> Way:
        place = (host, resolver, role)
        found = self._ways.get(place)
        if found is None:
            lanes = (self.host(host, now), *self.groups_of(host), self.source(resolver))
            found = self._ways[place] = Way(lanes, role, self._store.owner)
        return found

    def host(self, name: str, now: float) -> Lane:
        lane = self.hosts.get(name)
        if lane is None:
            if len(self.hosts) >= _MOST_HOSTS:
                self._drop_idle(now)
            lane = self.hosts[name] = self._limited(f"host:{name}", self._domains.limit_of(name))
        return lane

    def groups_of(self, host: str) -> tuple[Lane, ...]:
        found = self._groups_by_host.get(host)
        if found is None:
            groups = self._domains.groups_of(host)
            found = self._groups_by_host[host] = tuple(self._group(pattern, limit) for pattern, limit in groups)
        return found

    def source(self, name: str) -> Lane:
        lane = self._sources.get(name)
        if lane is None:
            rate = self._resolver_rates.get(name)
            slots = self._resolver_slots.get(name, self._default_resolver_slots)
            rates = {"*": (rate,)} if rate is not None else {}
            lane = self._sources[name] = Lane(
                f"resolver:{name}", slots=slots, rates=rates, burst=1.0, factor=self._factor, kind=RATE
            )
        return lane

    def _group(self, pattern: str, limit: HostLimit) -> Lane:
        if pattern not in self._groups:
            self._groups[pattern] = self._limited(f"group:{pattern}", limit)
        return self._groups[pattern]

    def _limited(self, key: str, limit: HostLimit) -> Lane:
        rates = {str(role): tuple(rates) for role, rates in limit.rates.items()}
        return Lane(key, slots=limit.max_concurrent, rates=rates, burst=limit.burst, factor=self._factor, kind=INTERVAL)

    def _drop_idle(self, now: float) -> None:
        """Forget hosts that could delay nobody any more."""
        idle = {name for name, lane in self.hosts.items() if self._is_idle(lane, now)}
        for name in idle:
            del self.hosts[name]
            self._groups_by_host.pop(name, None)
        self._ways = {place: way for place, way in self._ways.items() if place[0] not in idle}
        self._store.forget([f"host:{name}" for name in idle])

    def _is_idle(self, lane: Lane, now: float) -> bool:
        """Nothing runs, and nothing that only this process remembers could still delay anyone."""
        shared = self._store.shared
        needed_until = max(lane.used_at + (_IDLE_SHARED_S if shared else _IDLE_S), lane.hold_until)
        return lane.busy == 0 and needed_until < now and (shared or not lane.crawl_delay_s)
