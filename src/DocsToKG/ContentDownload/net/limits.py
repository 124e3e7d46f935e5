"""How often and how many at once, per host, per group of hosts and per source.

Grants an exchange or says when to ask again; it never blocks. Every grant is all or nothing, in the order: host's
next allowed time, host rates, source's pace, then all slots together; where the record is shared, all processes
that share it keep each limit together. Knows no URLs beyond their host key, no HTTP and no robots rules; it is told
about Retry-After, crawl-delay and what a host's answers say. While the shared record is away, nothing is granted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from DocsToKG.ContentDownload.api.gates import Gate, NotYet, Permit
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.delays import HOLD, TimedGate
from DocsToKG.ContentDownload.net.domains import Domains, HostLimit
from DocsToKG.ContentDownload.net.host_permits import Gatehouse, HostPermit, Takes, latest_rule
from DocsToKG.ContentDownload.net.lanes import Kept, Lane, Rule
from DocsToKG.ContentDownload.net.learned import BELIEVED_S, ONE_REFUSAL_S, Adaptive, Announced, Pulse, announced
from DocsToKG.ContentDownload.net.limit_store import LimitStore, MemoryStore, StoreAway
from DocsToKG.ContentDownload.net.pace import BucketSpec
from DocsToKG.ContentDownload.net.ways import Way, Ways
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key

__all__ = ["HostLimit", "HostPermit", "HostStanding", "Limits"]

# Another process does not tell us that its slot is free: we look.
_POLL_S = 0.05
_POLL_MORE_S = 0.25  # while slots of our own keep us going


class _Full(NamedTuple):
    """A lane without a free slot; `others` hold some of its slots."""

    lane: Lane
    others: bool


@dataclass(frozen=True, slots=True)
class HostStanding:
    """How a host may be asked. `wait_s` until the next request, None when it may go now; `lasting` is what does not
    change by itself from one moment to the next."""

    wait_s: float | None
    why: str | None
    limits: Mapping[str, float]
    lasting: tuple[object, ...]


def _standing(lane: Lane, now: float) -> HostStanding:
    shut = lane.shut if lane.shut is not None and lane.shut.at > now else None
    until = max(lane.hold_until, shut.at if shut is not None else -math.inf)
    is_held = until > now
    limits = {
        "slots": lane.room,
        "maxSlots": lane.slots,
        "busy": lane.busy,
        "intervalSeconds": round(lane.interval_s(str(Role.ARTIFACT)), 3),
        "crawlDelaySeconds": round(lane.crawl_delay_s, 3),
        "rateScale": round(lane.scale, 3),
    }
    why = shut.why if shut is not None and shut.at >= lane.hold_until else "the host asked for a pause"
    lasting = (lane.room, lane.slots, lane.crawl_delay_s, lane.scale, round(lane.hold_until, 1))
    return HostStanding(round(until - now, 3) if is_held else None, why if is_held else None, limits, lasting)


class Limits:
    """The gatekeeper of one process; with a shared `store`, of all processes that use the same."""

    def __init__(
        self,
        *,
        clock: Clock,
        default_host: HostLimit,
        hosts: Mapping[str, HostLimit] | None = None,
        groups: Mapping[str, HostLimit] | None = None,
        resolver_rates: Mapping[str, Rate | BucketSpec] | None = None,
        resolver_slots: Mapping[str, int] | None = None,
        default_resolver_slots: int | None = None,
        rate_factor: float = 1.0,
        adaptive: Adaptive | None = None,
        store: LimitStore | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        if rate_factor <= 0:
            raise ValueError("rate_factor must be above zero")
        self.notes = tuple(notes)
        self._clock = clock
        self._factor = rate_factor
        self._adaptive = adaptive or Adaptive()
        self._store = store or MemoryStore()
        self._jitter = Random()
        self._house = Gatehouse(clock, self._store)
        self._lock = self._house.lock
        self._ways = Ways(
            Domains(default=default_host, hosts=hosts or {}, groups=groups),
            self._store,
            resolver_rates=resolver_rates or {},
            resolver_slots=resolver_slots or {},
            default_resolver_slots=default_resolver_slots,
            factor=rate_factor,
        )

    def close(self) -> None:
        """Give everything back that other processes could wait for."""
        with self._lock:
            self._store.close()

    def ask(self, gate: Gate) -> Permit | NotYet:
        host = host_key(gate.url)
        delays = gate.delays if isinstance(gate, TimedGate) else None
        with self._lock:
            now = self._clock.monotonic()
            way = self._ways.find(host, gate.resolver, gate.role, now)
            if delays is not None and delays.rule is not None:
                delays.asked_again(now)
            try:
                known = self._known(way, now) if self._store.shared else None
                answer = known or self._decide(way, now)
            except StoreAway as away:
                return NotYet(way.keys[0], now + away.again_s, away.why, "away")
            if isinstance(answer, HostPermit):
                return answer
            if isinstance(answer, _Full):
                return self._no_slot(answer, now)
            if delays is not None:
                delays.refused(answer.key, answer.kind, since=now, until=answer.at)
            return NotYet(answer.key, answer.at, answer.why, answer.kind)

    def on_free(self, callback: Callable[[str], None]) -> None:
        self._house.callbacks = (*self._house.callbacks, callback)

    def hold(self, host: str, until: float, why: str) -> None:
        """No request to `host` before monotonic time `until`. A hold is never shortened."""
        with self._lock:
            lane = self._ways.host(host, self._clock.monotonic())
            if until <= lane.hold_until:
                return
            self._hold(lane, until, why)
        self._house.tell(lane.key)

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """At least `seconds` between two requests to `host`, whatever its configured rate."""
        with self._lock:
            lane = self._ways.host(host, self._clock.monotonic())
            if seconds == lane.crawl_delay_s:
                return

            def change(records: list[Kept]) -> tuple[None, bool]:
                lane.set_crawl_delay(records[0], seconds)
                return None, True

            lane.crawl_delay_s, lane.shut = seconds, None
            self._store.post([lane.key], change)
        self._house.tell(lane.key)

    def heard(self, host: str, status: int, headers: Mapping[str, str], elapsed_s: float) -> None:
        """An answer of `host` came over the network: learn what it says about how the host wants to be asked."""
        told = announced(headers, now=self._clock.now())
        with self._lock:
            now = self._clock.monotonic()
            lane = self._ways.host(host, now)
            if told is not None:
                self._believe(lane, told, now)
            if self._adaptive.enabled:
                if lane.pulse is None:
                    lane.pulse = Pulse(self._factor)
                beat = lane.pulse.beat(status, elapsed_s, now)
                if beat < 0 or (beat > 0 and lane.scale < 1.0):
                    self._adapt(lane, beat, now)

    def pause_source(self, name: str, seconds: float, why: str) -> None:
        """This process asks nothing for a source for so long; others are not touched."""
        with self._lock:
            lane = self._ways.source(name)
            lane.hold_until, lane.pause_why, lane.shut = self._clock.monotonic() + seconds, why, None

    def resume_source(self, name: str) -> None:
        with self._lock:
            lane = self._ways.source(name)
            lane.hold_until, lane.pause_why, lane.shut = -math.inf, "", None
        self._house.tell(lane.key)

    def standings(self, hosts: Collection[str]) -> dict[str, HostStanding]:
        """How the hosts stand that are known here, by the last look at what is shared."""
        with self._lock:
            now = self._clock.monotonic()
            return {host: _standing(lane, now) for host in hosts if (lane := self._ways.hosts.get(host)) is not None}

    def interval_s(self, host: str, role: str) -> float:
        """The least seconds between two requests to `host`, by its rates, those of its groups and its crawl-delay."""
        with self._lock:
            lanes = (self._ways.host(host, self._clock.monotonic()), *self._ways.groups_of(host))
            return max(lane.interval_s(role) for lane in lanes)

    def _known(self, way: Way, now: float) -> Rule | _Full | None:
        """A refusal that needs no look at the shared record."""
        latest: Rule | None = None
        full: Lane | None = None
        for lane in way.lanes:
            if lane.shut is not None and lane.shut.at > (now if latest is None else latest.at):
                latest = lane.shut
            if lane.busy >= lane.room:
                full = lane
        return latest or (None if full is None else _Full(full, False))

    def _decide(self, way: Way, now: float) -> Rule | _Full | HostPermit:
        if self._needs_slots_only(way, now) and self._store.take_back(way.keys):
            return self._granted(way, [], now)
        records: list[Kept] = []

        def look(found: list[Kept]) -> tuple[Rule | _Full | Takes, bool]:
            records[:] = found
            return self._judge(way, found, now)

        verdict = self._store.change(way.keys, look)
        for lane, kept in zip(way.lanes, records, strict=True):
            lane.note(kept, now)
        if isinstance(verdict, Rule):
            next(lane for lane in way.lanes if lane.key == verdict.key).shut = verdict
            return verdict
        if isinstance(verdict, _Full):
            return verdict
        return self._granted(way, verdict, now)

    def _needs_slots_only(self, way: Way, now: float) -> bool:
        """No distance is kept and nothing is held back, so that a slot of ours may go from one request to the next."""
        for lane in way.lanes:
            is_timed = lane.hold_until > now or lane.is_paced(way.role)
            if is_timed:
                return False
        return True

    def _granted(self, way: Way, taken: Takes, now: float) -> HostPermit:
        for lane in way.lanes:
            lane.busy += 1
            lane.used_at = now
        return HostPermit(self._house, way, taken, now)

    def _judge(self, way: Way, records: list[Kept], now: float) -> tuple[Rule | _Full | Takes, bool]:
        latest = latest_rule(way, records, now)
        if latest.at > now:
            return latest, False
        me, is_gone = self._store.owner, self._store.is_gone
        for lane, kept in reversed(list(zip(way.lanes, records, strict=True))):
            if not lane.is_free(kept, me, now, is_gone):
                others = any(owner != me for owner in kept.busy) or kept.wisher not in ("", me)
                # Who has a slot passes it on to itself, and leaves the next free one to those who have none.
                wishes = others and not lane.busy
                if wishes:
                    lane.wish(kept, me, now)
                return _Full(lane, others), wishes
        for lane, kept in zip(way.lanes, records, strict=True):
            lane.occupy(kept, me)
        return [lane.take(kept, way.role, now) for lane, kept in zip(way.lanes, records, strict=True)], True

    def _no_slot(self, full: _Full, now: float) -> NotYet:
        lane = full.lane
        every_s = _POLL_MORE_S if lane.busy else _POLL_S
        at = now + every_s * (1.0 + self._jitter.random()) if full.others else None
        return NotYet(lane.key, at, f"{lane.name} has {lane.room} requests running")

    def _hold(self, lane: Lane, until: float, why: str) -> None:
        def change(records: list[Kept]) -> tuple[None, bool]:
            kept = records[0]
            longer = until > kept.hold_until
            if longer:
                kept.hold_until, kept.hold_why = until, why
            return None, longer

        lane.hold_until = until
        lane.shut = Rule(lane.key, until, f"{lane.name}: {why}", HOLD)
        self._store.post([lane.key], change)

    def _believe(self, lane: Lane, told: Announced, now: float) -> None:
        """What a host announces comes on top of what is configured, so it can only make us slower."""
        if told.pause_s is not None and now + told.pause_s > lane.hold_until:
            self._hold(lane, now + told.pause_s, "its headers say that nothing is left")
        limit = told._replace(pause_s=None)
        known, since = lane.announced
        if limit == (None, None, None) or (known == limit and now - since < BELIEVED_S / 2):
            return
        until = now + BELIEVED_S

        def change(records: list[Kept]) -> tuple[None, bool]:
            if limit.rate is not None:
                records[0].told_rate = [limit.rate.amount, limit.rate.per_s, until]
            if limit.at_once is not None:
                records[0].told_slots = [limit.at_once, until]
            return None, True

        lane.announced = (limit, now)
        lane.room = min(lane.room, limit.at_once or lane.room)
        self._store.post([lane.key], change)

    def _adapt(self, lane: Lane, beat: int, now: float) -> None:
        rule = self._adaptive

        def change(records: list[Kept]) -> tuple[None, bool]:
            kept = records[0]
            if beat > 0:
                kept.scale = rule.raised(kept.scale)
            elif now - kept.slowed_at >= ONE_REFUSAL_S:
                kept.scale, kept.slowed_at = rule.lowered(kept.scale, far=beat < -1), now
            lane.scale, lane.room = kept.scale, lane.slots_for(kept, now)
            return None, True

        self._store.post([lane.key], change)
