"""How often and how many at once, per host, per group of hosts and per source.

Grants an exchange or says when to ask again; it never blocks. Every grant is all or nothing, in the order: host's
next allowed time, host rates, source's pace, then all slots together; where the record is shared, all processes
that share it keep each limit together. Knows no URLs beyond their host key, no HTTP and no robots rules; it is told
about Retry-After, crawl-delay and what a host's answers say. While the shared record is away, nothing is granted.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from DocsToKG.ContentDownload.api.steps import Gate, NotYet, Permit
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.delays import HOLD, INTERVAL, RATE, Delays, TimedGate
from DocsToKG.ContentDownload.net.domains import Domains, HostLimit
from DocsToKG.ContentDownload.net.lanes import CONNECTING_S, Kept, Lane, Rule
from DocsToKG.ContentDownload.net.learned import BELIEVED_S, ONE_REFUSAL_S, Adaptive, Announced, Pulse, announced
from DocsToKG.ContentDownload.net.pace import BucketSpec, Pace, Taken
from DocsToKG.ContentDownload.net.shared import LimitStore, MemoryStore, StoreAway
from DocsToKG.core.bucket import Rate
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key

__all__ = ["HostLimit", "HostPermit", "HostStanding", "Limits"]

# Hosts come from outside, so what is remembered about idle ones is bounded.
_MOST_HOSTS = 20_000
_IDLE_S = 86400.0
_IDLE_SHARED_S = 120.0
# Another process does not tell us that its slot is free: we look.
_POLL_S = 0.05
_POLL_MORE_S = 0.25  # while slots of our own keep us going
# Later than this after its grant, a thread must see whether another process has been granted meanwhile.
_LATE_S = 0.01
# How soon to look again whether another's request is on the wire.
_SENDING_S = 0.005

Takes = list[list[tuple[Pace, Taken]]]


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


class HostPermit:
    """The right to one exchange with one host. Call `start` right before sending."""

    def __init__(self, limits: Limits, gate: Gate, lanes: Sequence[Lane], taken: Takes, granted_at: float) -> None:
        self._limits = limits
        self._released = False
        self.role = gate.role
        self.lanes = lanes
        self.taken = taken
        self.granted_at = granted_at
        self.tenure = limits._store.tenure
        self.started_at: float | None = None
        self.sent: list[tuple[Lane, list[tuple[Pace, Taken]]]] = []
        self._let_go: Callable[[], None] = lambda: None

    def start(self) -> float:
        """0.0 when the request may be sent now; otherwise the seconds until it may, and nothing is counted.

        Between grant and sending a thread can be late, and two late threads would meet at the server.
        So the spacing is kept a second time, over the moments of sending.
        """
        return self._limits._start(self)

    def goes_out(self) -> float:
        """Right before the first byte: 0.0, or the seconds for which it must still wait.

        Who takes long to connect is not waited for, and by other processes not at all, so others may have gone ahead.
        """
        return self._limits._goes_out(self)

    def cut_with(self, cancel: CancelToken) -> CancelToken:
        """For the exchange: cancelled with `cancel`, and before the slots of this permit may be another's."""
        term = self._limits._store.term
        if term is None:
            return cancel
        own = CancelToken(parent=cancel)
        forget = term.on_cancel(own.cancel)

        def let_go() -> None:
            forget()
            own.close()

        self._let_go = let_go
        # A term that began after the grant says nothing about its slots.
        if not self._limits._holds(self):
            own.cancel()
        return own

    def is_sent(self) -> None:
        """The request is on the wire: from now on others keep their distance."""
        self._limits._is_sent(self)

    def refund(self) -> None:
        self._limits._refund(self)

    def release(self) -> None:
        if not self._released:
            self._released = True
            self._let_go()
            self._limits._release(self)


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
        default_resolver_slots: int = 8,
        rate_factor: float = 1.0,
        adaptive: Adaptive | None = None,
        store: LimitStore | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        if rate_factor <= 0:
            raise ValueError("rate_factor must be above zero")
        self.notes = tuple(notes)
        self._clock = clock
        self._domains = Domains(default=default_host, hosts=hosts or {}, groups=groups)
        self._resolver_rates = dict(resolver_rates or {})
        self._resolver_slots = dict(resolver_slots or {})
        self._default_resolver_slots = default_resolver_slots
        self._factor = rate_factor
        self._adaptive = adaptive or Adaptive()
        self._store = store or MemoryStore()
        self._jitter = Random()
        self._lock = threading.Lock()
        self._hosts: dict[str, Lane] = {}
        self._sources: dict[str, Lane] = {}
        self._groups: dict[str, Lane] = {}
        self._groups_by_host: dict[str, tuple[Lane, ...]] = {}
        self._pulses: dict[str, Pulse] = {}
        self._told: dict[str, tuple[Announced, float]] = {}
        self._callbacks: tuple[Callable[[str], None], ...] = ()

    def close(self) -> None:
        """Give everything back that other processes could wait for."""
        with self._lock:
            self._store.close()

    def ask(self, gate: Gate) -> Permit | NotYet:
        host = host_key(gate.url)
        with self._lock:
            now = self._clock.monotonic()
            lanes = [self._host(host, now), *self._groups_of(host), self._source(gate.resolver)]
            delays = gate.delays if isinstance(gate, TimedGate) else Delays()
            delays.asked_again(now)
            try:
                answer = self._known(lanes, now) or self._decide(gate, lanes, now)
            except StoreAway as away:
                return NotYet(lanes[0].key, now + away.again_s, away.why, "away")
            if isinstance(answer, Rule):
                delays.refused(answer.key, answer.kind, since=now, until=answer.at)
                return NotYet(answer.key, answer.at, answer.why, answer.kind)
            return self._no_slot(answer, now) if isinstance(answer, _Full) else answer

    def on_free(self, callback: Callable[[str], None]) -> None:
        self._callbacks = (*self._callbacks, callback)

    def hold(self, host: str, until: float, why: str) -> None:
        """No request to `host` before monotonic time `until`. A hold is never shortened."""
        with self._lock:
            lane = self._host(host, self._clock.monotonic())
            if until <= lane.hold_until:
                return
            self._hold(lane, until, why)
        self._tell(lane.key)

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """At least `seconds` between two requests to `host`, whatever its configured rate."""
        with self._lock:
            lane = self._host(host, self._clock.monotonic())
            if seconds == lane.crawl_delay_s:
                return

            def change(records: list[Kept]) -> tuple[None, bool]:
                lane.set_crawl_delay(records[0], seconds)
                return None, True

            lane.crawl_delay_s, lane.shut = seconds, None
            self._store.post([lane.key], change)
        self._tell(lane.key)

    def resize_host(self, host: str, slots: int) -> None:
        """Let `slots` exchanges run at once; running ones are not cut."""
        with self._lock:
            lane = self._host(host, self._clock.monotonic())
            lane.slots = lane.room = max(1, slots)
        self._tell(lane.key)

    def heard(self, host: str, status: int, headers: Mapping[str, str], elapsed_s: float) -> None:
        """An answer of `host` came over the network: learn what it says about how the host wants to be asked."""
        told = announced(headers, now=self._clock.now())
        with self._lock:
            now = self._clock.monotonic()
            lane = self._host(host, now)
            if told is not None:
                self._believe(lane, told, now)
            if self._adaptive.enabled:
                beat = self._pulse(host).beat(status, elapsed_s, now)
                if beat < 0 or (beat > 0 and lane.scale < 1.0):
                    self._adapt(lane, beat, now)

    def _pulse(self, host: str) -> Pulse:
        found = self._pulses.get(host)
        if found is None:
            found = self._pulses[host] = Pulse(self._factor)
        return found

    def pause_source(self, name: str, seconds: float, why: str) -> None:
        """This process asks nothing for a source for so long; others are not touched."""
        with self._lock:
            lane = self._source(name)
            lane.hold_until, lane.pause_why, lane.shut = self._clock.monotonic() + seconds, why, None

    def resume_source(self, name: str) -> None:
        with self._lock:
            lane = self._source(name)
            lane.hold_until, lane.pause_why, lane.shut = -math.inf, "", None
        self._tell(lane.key)

    def standings(self, hosts: Collection[str]) -> dict[str, HostStanding]:
        """How the hosts stand that are known here, by the last look at what is shared."""
        with self._lock:
            now = self._clock.monotonic()
            return {host: _standing(lane, now) for host in hosts if (lane := self._hosts.get(host)) is not None}

    def scale_of(self, host: str) -> float:
        """The share of its configured rates that `host` is asked at now."""
        with self._lock:
            return self._host(host, self._clock.monotonic()).scale

    def interval_s(self, host: str, role: str) -> float:
        """The least seconds between two requests to `host`, by its rates, those of its groups and its crawl-delay."""
        with self._lock:
            lanes = (self._host(host, self._clock.monotonic()), *self._groups_of(host))
            return max(lane.interval_s(role) for lane in lanes)

    def _known(self, lanes: Sequence[Lane], now: float) -> Rule | _Full | None:
        """A refusal that needs no look at the shared record."""
        if not self._store.shared:
            return None
        shut = [lane.shut for lane in lanes if lane.shut is not None and lane.shut.at > now]
        if shut:
            return max(shut, key=lambda rule: rule.at)
        return next((_Full(lane, False) for lane in reversed(lanes) if lane.busy >= lane.room), None)

    def _decide(self, gate: Gate, lanes: Sequence[Lane], now: float) -> Rule | _Full | HostPermit:
        keys = tuple(lane.key for lane in lanes)
        if self._needs_slots_only(gate.role, lanes, now) and self._store.take_back(keys):
            return self._granted(gate, lanes, [], now)
        records: list[Kept] = []

        def look(found: list[Kept]) -> tuple[Rule | _Full | Takes, bool]:
            records[:] = found
            return self._judge(gate.role, lanes, found, now)

        verdict = self._store.change(keys, look)
        for lane, kept in zip(lanes, records, strict=True):
            lane.note(kept, now)
        if isinstance(verdict, Rule):
            next(lane for lane in lanes if lane.key == verdict.key).shut = verdict
            return verdict
        if isinstance(verdict, _Full):
            return verdict
        return self._granted(gate, lanes, verdict, now)

    def _needs_slots_only(self, role: str, lanes: Sequence[Lane], now: float) -> bool:
        """No distance is kept and nothing is held back, so that a slot of ours may go from one request to the next."""
        return all(lane.hold_until <= now and not lane.is_paced(role) for lane in lanes)

    def _granted(self, gate: Gate, lanes: Sequence[Lane], taken: Takes, now: float) -> HostPermit:
        for lane in lanes:
            lane.busy += 1
            lane.used_at = now
        return HostPermit(self, gate, lanes, taken, now)

    def _judge(
        self, role: str, lanes: Sequence[Lane], records: list[Kept], now: float
    ) -> tuple[Rule | _Full | Takes, bool]:
        latest = self._latest(role, lanes, records, now)
        if latest.at > now:
            return latest, False
        me, is_gone = self._store.owner, self._store.is_gone
        for lane, kept in reversed(list(zip(lanes, records, strict=True))):
            if not lane.is_free(kept, me, now, is_gone):
                others = any(owner != me for owner in kept.busy) or kept.wisher not in ("", me)
                # Who has a slot passes it on to itself, and leaves the next free one to those who have none.
                wishes = others and not lane.busy
                if wishes:
                    lane.wish(kept, me, now)
                return _Full(lane, others), wishes
        for lane, kept in zip(lanes, records, strict=True):
            lane.occupy(kept, me)
        return [lane.take(kept, role, now) for lane, kept in zip(lanes, records, strict=True)], True

    def _latest(self, role: str, lanes: Sequence[Lane], records: list[Kept], now: float) -> Rule:
        # The latest of all times is named, so that nobody is woken only to be sent away again.
        pairs = zip(lanes, records, strict=True)
        return max((rule for lane, kept in pairs for rule in lane.rules(kept, role, now)), key=lambda rule: rule.at)

    def _no_slot(self, full: _Full, now: float) -> NotYet:
        lane = full.lane
        every_s = _POLL_MORE_S if lane.busy else _POLL_S
        at = now + every_s * (1.0 + self._jitter.random()) if full.others else None
        return NotYet(lane.key, at, f"{lane.name} has {lane.room} requests running")

    def _start(self, permit: HostPermit) -> float:
        with self._lock:
            now, lanes = self._clock.monotonic(), permit.lanes[:-1]
            if not self._still_holds(permit):
                return _SENDING_S
            if any(lane.is_sending(permit.role, now) for lane in lanes):
                return _SENDING_S
            delay_s = max(lane.sending_delay_s(permit.role, now) for lane in lanes)
            if delay_s <= 0 and self._is_late(permit, permit.lanes, now):
                delay_s = self._regrant(permit, now)
            if delay_s > 0:
                return delay_s
            self._set_out(permit, lanes, now)
            return 0.0

    def _goes_out(self, permit: HostPermit) -> float:
        now, started_at = self._clock.monotonic(), permit.started_at
        if started_at is None or now - started_at < _LATE_S:
            return 0.0
        with self._lock:
            if not self._still_holds(permit):
                return _SENDING_S
            lanes, took_s = permit.lanes[:-1], now - started_at
            was_passed = took_s >= CONNECTING_S
            interval_s = max(lane.interval_s(permit.role) for lane in lanes)
            if not was_passed and not (self._store.shared and 0.0 < interval_s <= took_s):
                return 0.0
            if was_passed and any(lane.is_sending(permit.role, now) for lane in lanes):
                return _SENDING_S
            delay_s = max(lane.sending_delay_s(permit.role, now) for lane in lanes) if was_passed else 0.0
            if delay_s <= 0 and self._is_late(permit, permit.lanes, now):
                delay_s = self._regrant(permit, now)
            if delay_s <= 0:
                self._arrive(permit)
                self._set_out(permit, lanes, now)
            return max(0.0, delay_s)

    def _holds(self, permit: HostPermit) -> bool:
        return 0 <= self._store.tenure == permit.tenure

    def _still_holds(self, permit: HostPermit) -> bool:
        """False where its slots may have gone to others since the grant, and the record has no room for both."""
        if self._holds(permit):
            return True

        def fits(records: list[Kept]) -> tuple[bool, bool]:
            pairs = zip(permit.lanes, records, strict=True)
            return all(sum(kept.busy.values()) <= lane.room for lane, kept in pairs), False

        try:
            if not self._store.change([lane.key for lane in permit.lanes], fits):
                return False
        except StoreAway:
            return False
        permit.tenure = self._store.tenure
        return True

    def _set_out(self, permit: HostPermit, lanes: Sequence[Lane], now: float) -> None:
        permit.sent += [(lane, lane.sending(permit.role, now)) for lane in lanes]
        permit.started_at = now
        for lane in lanes:
            lane.set_out(now)

    def _is_sent(self, permit: HostPermit) -> None:
        with self._lock:
            now, lanes = self._clock.monotonic(), permit.lanes[:-1]
            self._arrive(permit)
            for lane in lanes:
                lane.count_from(permit.role, now)

            def move(records: list[Kept]) -> tuple[None, bool]:
                for lane, kept in zip(lanes, records, strict=True):
                    lane.count_from(permit.role, now, kept)
                return None, True

            if self._is_late(permit, lanes, now):
                self._store.post([lane.key for lane in lanes], move)

    def _is_late(self, permit: HostPermit, lanes: Sequence[Lane], now: float) -> bool:
        """Has the record shared with others fallen behind, in a way that they could feel?"""
        late = self._store.shared and now - permit.granted_at > _LATE_S
        return late and any(lane.is_paced(permit.role) for lane in lanes)

    def _arrive(self, permit: HostPermit) -> None:
        started_at, permit.started_at = permit.started_at, None
        if started_at is not None:
            for lane in permit.lanes[:-1]:
                lane.arrive(started_at)

    def _regrant(self, permit: HostPermit, now: float) -> float:
        """A late thread's start counts from now: its grant is changed for a new one, if there is one."""
        taken, permit.taken = permit.taken, []
        lanes = permit.lanes
        seen: list[Kept] = []

        def change(records: list[Kept]) -> tuple[float | Takes, bool]:
            seen[:] = records
            self._give_back(lanes, records, taken, now)
            latest = self._latest(permit.role, lanes, records, now)
            if latest.at > now:
                return latest.at - now, True
            return [lane.take(kept, permit.role, now) for lane, kept in zip(lanes, records, strict=True)], True

        try:
            answer = self._store.change([lane.key for lane in lanes], change)
        except StoreAway as away:
            permit.taken = taken
            return away.again_s
        for lane, kept in zip(lanes, seen, strict=True):
            lane.note(kept, now)
        if isinstance(answer, float):
            return answer
        permit.taken, permit.granted_at = answer, now
        return 0.0

    def _refund(self, permit: HostPermit) -> None:
        with self._lock:
            now, lanes = self._clock.monotonic(), permit.lanes
            taken, permit.taken = permit.taken, []
            sent, permit.sent = permit.sent, []

            def change(records: list[Kept]) -> tuple[None, bool]:
                self._give_back(lanes, records, taken, now)
                return None, True

            for lane, what in sent:
                lane.unsend(what, now)
            if taken:
                self._look_again(lanes)
                self._store.post([lane.key for lane in lanes], change)

    def _look_again(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            # A pause that the host asked for is not ours to give back.
            if lane.shut is not None and lane.shut.kind != HOLD:
                lane.shut = None

    def _give_back(self, lanes: Sequence[Lane], records: list[Kept], taken: Takes, now: float) -> None:
        for lane, kept, what in zip(lanes, records, taken, strict=False):
            lane.give_back(kept, what, now)

    def _release(self, permit: HostPermit) -> None:
        me, lanes = self._store.owner, permit.lanes

        def vacate(records: list[Kept]) -> tuple[None, bool]:
            for lane, kept in zip(lanes, records, strict=True):
                lane.vacate(kept, me)
            return None, True

        with self._lock:
            self._arrive(permit)
            for lane in lanes:
                lane.busy -= 1
            # Our own next request may take the slot up; if it must visit the record, one visit serves both.
            self._store.post([lane.key for lane in lanes], vacate, soon=True)
        for lane in reversed(lanes):
            self._tell(lane.key)

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
        known, since = self._told.get(lane.name, (None, 0.0))
        if limit == (None, None, None) or (known == limit and now - since < BELIEVED_S / 2):
            return
        until = now + BELIEVED_S

        def change(records: list[Kept]) -> tuple[None, bool]:
            if limit.rate is not None:
                records[0].told_rate = [limit.rate.amount, limit.rate.per_s, until]
            if limit.at_once is not None:
                records[0].told_slots = [limit.at_once, until]
            return None, True

        self._told[lane.name] = (limit, now)
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

    def _tell(self, key: str) -> None:
        for callback in self._callbacks:
            callback(key)

    def _host(self, name: str, now: float) -> Lane:
        lane = self._hosts.get(name)
        if lane is None:
            if len(self._hosts) >= _MOST_HOSTS:
                self._drop_idle(now)
            lane = self._hosts[name] = self._limited(f"host:{name}", self._domains.limit_of(name))
        return lane

    def _drop_idle(self, now: float) -> None:
        """Forget hosts that could delay nobody any more."""
        idle = [name for name, lane in self._hosts.items() if self._is_idle(lane, now)]
        for name in idle:
            del self._hosts[name]
            self._groups_by_host.pop(name, None)
            self._pulses.pop(name, None)
            self._told.pop(name, None)
        self._store.forget([f"host:{name}" for name in idle])

    def _is_idle(self, lane: Lane, now: float) -> bool:
        """Nothing runs, and nothing that only this process remembers could still delay anyone."""
        shared = self._store.shared
        needed_until = max(lane.used_at + (_IDLE_SHARED_S if shared else _IDLE_S), lane.hold_until)
        return lane.busy == 0 and needed_until < now and (shared or not lane.crawl_delay_s)

    def _groups_of(self, host: str) -> tuple[Lane, ...]:
        found = self._groups_by_host.get(host)
        if found is None:
            groups = self._domains.groups_of(host)
            found = self._groups_by_host[host] = tuple(self._group(pattern, limit) for pattern, limit in groups)
        return found

    def _group(self, pattern: str, limit: HostLimit) -> Lane:
        if pattern not in self._groups:
            self._groups[pattern] = self._limited(f"group:{pattern}", limit)
        return self._groups[pattern]

    def _source(self, name: str) -> Lane:
        lane = self._sources.get(name)
        if lane is None:
            rate = self._resolver_rates.get(name)
            slots = self._resolver_slots.get(name, self._default_resolver_slots)
            rates = {"*": (rate,)} if rate is not None else {}
            lane = self._sources[name] = Lane(
                f"resolver:{name}", slots=slots, rates=rates, burst=1.0, factor=self._factor, kind=RATE
            )
        return lane

    def _limited(self, key: str, limit: HostLimit) -> Lane:
        rates = {str(role): tuple(rates) for role, rates in limit.rates.items()}
        return Lane(key, slots=limit.max_concurrent, rates=rates, burst=limit.burst, factor=self._factor, kind=INTERVAL)
