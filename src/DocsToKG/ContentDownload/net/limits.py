"""How often and how many at once, per host and per source.

Grants an exchange or says when to ask again; it never blocks. One lock makes every grant all or
nothing, in the order: host's next allowed time, host rates, source's pace, then both slots together.
Knows no URLs beyond their host key, no HTTP and no robots rules; it is told about Retry-After and crawl-delay.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from DocsToKG.ContentDownload.api.steps import Gate, NotYet, Permit
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.delays import HOLD, INTERVAL, RATE, Delays, TimedGate
from DocsToKG.ContentDownload.net.pace import BucketSpec, Pace, Spacing, Undo, bucket_of, pace_of
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key

# Hosts come from outside, so what is remembered about idle ones is bounded.
_MOST_HOSTS = 20_000
_CRAWL = "crawl-delay"


@dataclass(frozen=True, slots=True)
class HostLimit:
    """What one host may be asked: `max_concurrent` at once, and the rates per role (`"*"` holds for all)."""

    max_concurrent: int = 2
    rates: Mapping[Role | str, tuple[Rate, ...]] = field(default_factory=dict)
    burst: float = 1.0


class _Rule(NamedTuple):
    """One rule of time: nobody passes before `at`."""

    key: str
    at: float
    why: str
    kind: str


class _Host:
    """What is remembered of one host."""

    def __init__(self, limit: HostLimit, factor: float) -> None:
        self.slots = max(1, limit.max_concurrent)
        self.busy = 0
        self.hold_until = -math.inf
        self.hold_why = ""
        self.crawl_delay_s = 0.0
        self.last_grant = -math.inf
        self._limit = limit
        self._factor = factor
        # Kept twice: over the moments of granting, and over the moments of sending.
        self._granted: dict[str, list[Pace]] = {}
        self._started: dict[str, list[Pace]] = {}

    def grant_paces(self, role: str) -> list[Pace]:
        return self._all_roles(self._granted, role)

    def start_paces(self, role: str) -> list[Pace]:
        return self._all_roles(self._started, role)

    def idle(self, now: float) -> bool:
        """Nothing runs, and nothing remembered could still delay anyone."""
        return self.busy == 0 and not self.crawl_delay_s and max(self.last_grant + 86400.0, self.hold_until) < now

    def learn_crawl_delay(self, seconds: float) -> None:
        self.crawl_delay_s = seconds
        for kept in (self._granted, self._started):
            kept[_CRAWL] = [Spacing(seconds)] if seconds > 0 else []
            for pace in kept[_CRAWL] if self.last_grant > -math.inf else ():
                pace.take(self.last_grant)

    def _all_roles(self, kept: dict[str, list[Pace]], role: str) -> list[Pace]:
        return kept.get(_CRAWL, []) + self._of(kept, "*") + self._of(kept, role)

    def _of(self, kept: dict[str, list[Pace]], role: str) -> list[Pace]:
        if role not in kept:
            rates = self._limit.rates.get(role, ())
            kept[role] = [pace_of(rate, burst=self._limit.burst, factor=self._factor) for rate in rates]
        return kept[role]


@dataclass(slots=True)
class _Source:
    """What is remembered of one resolver."""

    slots: int
    pace: Pace | None
    busy: int = 0


class HostPermit:
    """The right to one exchange with one host. Call `start` right before sending."""

    def __init__(self, limits: Limits, gate: Gate, host: str, undo: list[Undo]) -> None:
        self._limits = limits
        self._gate = gate
        self._host = host
        self._undo = undo
        self._released = False

    def start(self) -> float:
        """0.0 when the request may be sent now; otherwise the seconds until it may, and nothing is counted.

        Between grant and sending a thread can be late, and two late threads would meet at the server.
        So the spacing is kept a second time, over the moments of sending.
        """
        delay_s, undo = self._limits._start(self._host, self._gate.role)
        self._undo += undo
        return delay_s

    def refund(self) -> None:
        undo, self._undo = self._undo, []
        self._limits._refund(undo)

    def release(self) -> None:
        if not self._released:
            self._released = True
            self._limits._release(self._host, self._gate.resolver)


class Limits:
    """The gatekeeper of one process."""

    def __init__(
        self,
        *,
        clock: Clock,
        default_host: HostLimit,
        hosts: Mapping[str, HostLimit] | None = None,
        resolver_rates: Mapping[str, Rate | BucketSpec] | None = None,
        resolver_slots: Mapping[str, int] | None = None,
        default_resolver_slots: int = 8,
        rate_factor: float = 1.0,
    ) -> None:
        if rate_factor <= 0:
            raise ValueError("rate_factor must be above zero")
        self._clock = clock
        self._default_host = default_host
        self._host_limits = dict(hosts or {})
        self._resolver_rates = dict(resolver_rates or {})
        self._resolver_slots = dict(resolver_slots or {})
        self._default_resolver_slots = default_resolver_slots
        self._factor = rate_factor
        self._lock = threading.Lock()
        self._hosts: dict[str, _Host] = {}
        self._sources: dict[str, _Source] = {}
        self._callbacks: tuple[Callable[[str], None], ...] = ()

    def ask(self, gate: Gate) -> Permit | NotYet:
        host_name = host_key(gate.url)
        with self._lock:
            now = self._clock.monotonic()
            host, source = self._host(host_name, now), self._source(gate.resolver)
            delays = gate.delays if isinstance(gate, TimedGate) else Delays()
            delays.asked_again(now)
            refusal = self._refusal(gate, host_name, host, source, now, delays)
            return refusal or self._grant(gate, host_name, host, source, now)

    def on_free(self, callback: Callable[[str], None]) -> None:
        self._callbacks = (*self._callbacks, callback)

    def hold(self, host: str, until: float, why: str) -> None:
        """No request to `host` before monotonic time `until`. A hold is never shortened."""
        with self._lock:
            state = self._host(host, self._clock.monotonic())
            if until <= state.hold_until:
                return
            state.hold_until, state.hold_why = until, why
        self._tell(f"host:{host}")

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """At least `seconds` between two requests to `host`, whatever its configured rate."""
        with self._lock:
            state = self._host(host, self._clock.monotonic())
            if seconds == state.crawl_delay_s:
                return
            state.learn_crawl_delay(seconds)
        self._tell(f"host:{host}")

    def resize_host(self, host: str, slots: int) -> None:
        """Let `slots` exchanges run at once; running ones are not cut."""
        with self._lock:
            self._host(host, self._clock.monotonic()).slots = max(1, slots)
        self._tell(f"host:{host}")

    def _refusal(
        self, gate: Gate, name: str, host: _Host, source: _Source, now: float, delays: Delays
    ) -> NotYet | None:
        # The latest of all times is named, so that nobody is woken only to be sent away again.
        latest = max(self._timed(gate, name, host, source, now), key=lambda rule: rule.at)
        if latest.at > now:
            delays.refused(latest.key, latest.kind, since=now, until=latest.at)
            return NotYet(latest.key, latest.at, latest.why)
        if source.busy >= source.slots:
            return NotYet(f"resolver:{gate.resolver}", None, f"{gate.resolver} has {source.slots} requests running")
        if host.busy >= host.slots:
            return NotYet(f"host:{name}", None, f"{name} has {host.slots} requests running")
        return None

    def _timed(self, gate: Gate, name: str, host: _Host, source: _Source, now: float) -> Iterable[_Rule]:
        key = f"host:{name}"
        yield _Rule(key, host.hold_until, f"{name}: {host.hold_why}", HOLD)
        for pace in host.grant_paces(gate.role):
            yield _Rule(key, pace.ready_at(now), f"interval of {name}", INTERVAL)
        if source.pace is not None:
            why = f"rate of {gate.resolver}"
            yield _Rule(f"resolver:{gate.resolver}", source.pace.ready_at(now), why, RATE)

    def _grant(self, gate: Gate, name: str, host: _Host, source: _Source, now: float) -> HostPermit:
        paces = host.grant_paces(gate.role) + ([source.pace] if source.pace is not None else [])
        undo = [pace.take(now) for pace in paces]
        host.busy += 1
        source.busy += 1
        host.last_grant = now
        return HostPermit(self, gate, name, undo)

    def _start(self, host_name: str, role: str) -> tuple[float, list[Undo]]:
        with self._lock:
            now = self._clock.monotonic()
            host = self._host(host_name, now)
            paces = host.start_paces(role)
            ready = max([now, host.hold_until, *(pace.ready_at(now) for pace in paces)])
            if ready > now:
                return ready - now, []
            return 0.0, [pace.take(now) for pace in paces]

    def _refund(self, undo: list[Undo]) -> None:
        with self._lock:
            for take_back in reversed(undo):
                take_back()

    def _release(self, host_name: str, resolver: str) -> None:
        with self._lock:
            self._hosts[host_name].busy -= 1
            self._sources[resolver].busy -= 1
        self._tell(f"resolver:{resolver}")
        self._tell(f"host:{host_name}")

    def _tell(self, key: str) -> None:
        for callback in self._callbacks:
            callback(key)

    def _host(self, name: str, now: float) -> _Host:
        host = self._hosts.get(name)
        if host is None:
            if len(self._hosts) >= _MOST_HOSTS:
                self._hosts = {key: kept for key, kept in self._hosts.items() if not kept.idle(now)}
            host = self._hosts[name] = _Host(self._limit_of(name), self._factor)
        return host

    def _limit_of(self, name: str) -> HostLimit:
        """The limit of the host itself, else of the nearest `*.parent`, else the default."""
        if name in self._host_limits:
            return self._host_limits[name]
        labels = name.split(".")
        for start in range(1, len(labels)):
            wild = self._host_limits.get("*." + ".".join(labels[start:]))
            if wild is not None:
                return wild
        return self._default_host

    def _source(self, name: str) -> _Source:
        source = self._sources.get(name)
        if source is None:
            slots = max(1, self._resolver_slots.get(name, self._default_resolver_slots))
            source = self._sources[name] = _Source(slots, self._source_pace(name))
        return source

    def _source_pace(self, name: str) -> Pace | None:
        rate = self._resolver_rates.get(name)
        if rate is None:
            return None
        if isinstance(rate, BucketSpec):
            return bucket_of(rate, factor=self._factor, clock=self._clock)
        return pace_of(rate, burst=1.0, factor=self._factor)
