"""How often and how many at once, per host, per group of hosts and per source.

Grants an exchange or says when to ask again; it never blocks. Every grant is all or nothing, in the order: host's
next allowed time, host rates, source's pace, then all slots together; where the record is shared, all processes
that share it keep each limit together. Knows no URLs beyond their host key, no HTTP and no robots rules; it is told
about Retry-After, crawl-delay and what a host's answers say. While the shared record is away, nothing is granted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from DocsToKG.ContentDownload.api.gates import Gate, NotYet, Permit
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.limits.adaptive import (
    BELIEVED_S,
    ONE_REFUSAL_S,
    AdaptiveThrottle,
    Announced,
    LatencyWatch,
    announced,
)
from DocsToKG.ContentDownload.net.limits.host_patterns import HostLimit, HostPatterns
from DocsToKG.ContentDownload.net.limits.permits import HostPermit, LimitContext, Takes, TimedGate, latest_rule
from DocsToKG.ContentDownload.net.limits.rates import BucketSpec
from DocsToKG.ContentDownload.net.limits.registry import LimitChain, LimitRegistry
from DocsToKG.ContentDownload.net.limits.state import ANY_ROLE, HOLD, KeyLimit, LimitState, Rule
from DocsToKG.ContentDownload.net.limits.stores.base import LimitStore, MemoryLimitStore, StoreUnavailable
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key

__all__ = ["HostLimit", "HostLimits", "HostPermit", "HostStatus"]

# Another process does not tell us that its slot is free: we look.
_POLL_S = 0.05
_POLL_MORE_S = 0.25  # while slots of our own keep us going


class _Full(NamedTuple):
    """A limit without a free slot; `others` hold some of its slots."""

    key_limit: KeyLimit
    others: bool


@dataclass(frozen=True, slots=True)
class HostStatus:
    """How a host may be asked. `wait_s` until the next request, None when it may go now; `lasting` is what does not
    change by itself from one moment to the next."""

    wait_s: float | None
    why: str | None
    limits: Mapping[str, float]
    lasting: tuple[object, ...]


def _status(key_limit: KeyLimit, now: float) -> HostStatus:
    refusal = max(key_limit.refusals.values(), key=lambda rule: rule.at, default=None)
    until = max(key_limit.hold_until, refusal.at if refusal is not None else -math.inf)
    is_held = until > now
    limits = {
        "slots": key_limit.slots_now,
        "maxSlots": key_limit.slots,
        "busy": key_limit.busy,
        "intervalSeconds": round(key_limit.interval_s(str(Role.ARTIFACT)), 3),
        "crawlDelaySeconds": round(key_limit.crawl_delay_s, 3),
        "rateScale": round(key_limit.scale, 3),
    }
    why = refusal.why if refusal is not None and refusal.at >= key_limit.hold_until else "the host asked for a pause"
    lasting = (
        key_limit.slots_now,
        key_limit.slots,
        key_limit.crawl_delay_s,
        key_limit.scale,
        round(key_limit.hold_until, 1),
    )
    return HostStatus(round(until - now, 3) if is_held else None, why if is_held else None, limits, lasting)


class HostLimits:
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
        adaptive: AdaptiveThrottle | None = None,
        store: LimitStore | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        if rate_factor <= 0:
            raise ValueError("rate_factor must be above zero")
        self.notes = tuple(notes)
        self._clock = clock
        self._factor = rate_factor
        self._adaptive = adaptive or AdaptiveThrottle()
        self._store = store or MemoryLimitStore()
        self._jitter = Random()
        self._context = LimitContext(clock, self._store)
        self._lock = self._context.lock
        self._registry = LimitRegistry(
            HostPatterns(default=default_host, hosts=hosts or {}, groups=groups),
            self._store,
            resolver_rates=resolver_rates or {},
            resolver_slots=resolver_slots or {},
            default_resolver_slots=default_resolver_slots,
            factor=rate_factor,
        )

    def close(self) -> None:
        """Give everything back that other processes could wait for."""
        self._context.close()
        with self._lock:
            self._store.close()

    @property
    def executor(self) -> Executor | None:
        """Where a task is to have `ask` called; None: it is quick enough for the event loop."""
        return self._context.executor

    def ask(self, gate: Gate) -> Permit | NotYet:
        host = host_key(gate.url)
        delays = gate.delays if isinstance(gate, TimedGate) else None
        with self._context.asking:
            now = self._clock.monotonic()
            chain = self._registry.known(host, gate.resolver, gate.role)
            if chain is None:
                with self._lock:
                    chain = self._registry.find(host, gate.resolver, gate.role, now)
            if delays is not None and delays.rule is not None:
                delays.asked_again(now)
            try:
                answer: Rule | _Full | HostPermit | None = self._known(chain, now)
                if answer is None and self._needs_slots_only(chain, now) and self._store.take_back(chain.keys):
                    return self._granted(chain, [], now)
                # A record at hand says more: what lacks a slot may have to wait for a rule of time first.
                if answer is None or (isinstance(answer, _Full) and not self._store.shared):
                    answer = self._decide(chain, now)
            except StoreUnavailable as away:
                return NotYet(chain.keys[0], now + away.again_s, away.why, "away")
            if isinstance(answer, HostPermit):
                return answer
            if isinstance(answer, _Full):
                return self._no_slot(answer, now)
            if delays is not None:
                delays.refused(answer.key, answer.kind, since=now, until=answer.at)
            return NotYet(answer.key, answer.at, answer.why, answer.kind)

    def on_free(self, callback: Callable[[str], None]) -> None:
        self._context.callbacks = (*self._context.callbacks, callback)

    def hold(self, host: str, until: float, why: str) -> None:
        """No request to `host` before monotonic time `until`. A hold is never shortened."""
        with self._lock:
            key_limit = self._registry.host(host, self._clock.monotonic())
            if until <= key_limit.hold_until:
                return
            self._hold(key_limit, until, why)
        self._context.notify(key_limit.key)

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """At least `seconds` between two requests to `host`, whatever its configured rate."""
        with self._lock:
            key_limit = self._registry.host(host, self._clock.monotonic())
            if seconds == key_limit.crawl_delay_s:
                return

            def change(records: list[LimitState]) -> tuple[None, bool]:
                key_limit.set_crawl_delay(records[0], seconds)
                return None, True

            key_limit.crawl_delay_s = seconds
            key_limit.refusals.clear()
            self._store.post([key_limit.key], change)
        self._context.notify(key_limit.key)

    def on_answer(self, host: str, status: int, headers: Mapping[str, str], elapsed_s: float) -> None:
        """An answer of `host` came over the network: learn what it says about how the host wants to be asked."""
        announcement = announced(headers, now=self._clock.now())
        with self._lock:
            now = self._clock.monotonic()
            key_limit = self._registry.host(host, now)
            if announcement is not None:
                self._believe(key_limit, announcement, now)
            if self._adaptive.enabled:
                if key_limit.latency is None:
                    key_limit.latency = LatencyWatch(self._factor)
                observe = key_limit.latency.observe(status, elapsed_s, now)
                if observe < 0 or (observe > 0 and key_limit.scale < 1.0):
                    self._adapt(key_limit, observe, now)

    def pause_source(self, name: str, seconds: float, why: str) -> None:
        """This process asks nothing for a source for so long; others are not touched."""
        with self._lock:
            key_limit = self._registry.source(name)
            key_limit.hold_until, key_limit.pause_why = self._clock.monotonic() + seconds, why
            key_limit.refusals.clear()

    def resume_source(self, name: str) -> None:
        with self._lock:
            key_limit = self._registry.source(name)
            key_limit.hold_until, key_limit.pause_why = -math.inf, ""
            key_limit.refusals.clear()
        self._context.notify(key_limit.key)

    def statuses(self, hosts: Collection[str]) -> dict[str, HostStatus]:
        """How the hosts stand that are known here, by the last look at what is shared."""
        with self._lock:
            now = self._clock.monotonic()
            return {
                host: _status(key_limit, now)
                for host in hosts
                if (key_limit := self._registry.hosts.get(host)) is not None
            }

    def interval_s(self, host: str, role: str) -> float:
        """The least seconds between two requests to `host`, by its rates, those of its groups and its crawl-delay."""
        with self._lock:
            key_limits = (self._registry.host(host, self._clock.monotonic()), *self._registry.groups_of(host))
            return max(key_limit.interval_s(role) for key_limit in key_limits)

    def _known(self, chain: LimitChain, now: float) -> Rule | _Full | None:
        """A refusal that needs no look at the shared record."""
        latest: Rule | None = None
        full: KeyLimit | None = None
        for key_limit in chain.key_limits:
            if key_limit.refusals:
                for role in (chain.role, ANY_ROLE):
                    refusal = key_limit.refusals.get(role)
                    if refusal is not None and refusal.at > (now if latest is None else latest.at):
                        latest = refusal
            if key_limit.busy >= key_limit.slots_now:
                full = key_limit
        return latest or (None if full is None else _Full(full, False))

    def _decide(self, chain: LimitChain, now: float) -> Rule | _Full | HostPermit:
        records: list[LimitState] = []

        def look(found: list[LimitState]) -> tuple[Rule | _Full | Takes, bool]:
            records[:] = found
            return self._judge(chain, found, now)

        verdict = self._store.change(chain.keys, look)
        with self._lock:
            for key_limit, state in zip(chain.key_limits, records, strict=True):
                key_limit.note(state, now)
            if isinstance(verdict, Rule):
                refused = next(key_limit for key_limit in chain.key_limits if key_limit.key == verdict.key)
                refused.refusals[ANY_ROLE if verdict.kind == HOLD else chain.role] = verdict
        return verdict if isinstance(verdict, Rule | _Full) else self._granted(chain, verdict, now)

    def _needs_slots_only(self, chain: LimitChain, now: float) -> bool:
        """No distance is kept and nothing is held back, so that a slot of ours may go from one request to the next."""
        for key_limit in chain.key_limits:
            is_timed = key_limit.hold_until > now or key_limit.is_paced(chain.role)
            if is_timed:
                return False
        return True

    def _granted(self, chain: LimitChain, taken: Takes, now: float) -> HostPermit:
        with self._lock:
            for key_limit in chain.key_limits:
                key_limit.busy += 1
                key_limit.used_at = now
        return HostPermit(self._context, chain, taken, now)

    def _judge(self, chain: LimitChain, records: list[LimitState], now: float) -> tuple[Rule | _Full | Takes, bool]:
        latest = latest_rule(chain, records, now)
        if latest.at > now:
            return latest, False
        me, is_gone = self._store.owner, self._store.is_gone
        for key_limit, state in reversed(list(zip(chain.key_limits, records, strict=True))):
            if not key_limit.is_free(state, me, now, is_gone):
                others = any(owner != me for owner in state.busy) or state.next_owner not in ("", me)
                # Who has a slot passes it on to itself, and leaves the next free one to those who have none.
                queues_up = others and not key_limit.busy
                if queues_up:
                    key_limit.queue_up(state, me, now)
                return _Full(key_limit, others), queues_up
        for key_limit, state in zip(chain.key_limits, records, strict=True):
            key_limit.occupy(state, me)
        return [
            key_limit.take(state, chain.role, now) for key_limit, state in zip(chain.key_limits, records, strict=True)
        ], True

    def _no_slot(self, full: _Full, now: float) -> NotYet:
        key_limit = full.key_limit
        every_s = _POLL_MORE_S if key_limit.busy else _POLL_S
        at = now + every_s * (1.0 + self._jitter.random()) if full.others else None
        return NotYet(key_limit.key, at, f"{key_limit.name} has {key_limit.slots_now} requests running")

    def _hold(self, key_limit: KeyLimit, until: float, why: str) -> None:
        def change(records: list[LimitState]) -> tuple[None, bool]:
            state = records[0]
            longer = until > state.hold_until
            if longer:
                state.hold_until, state.hold_why = until, why
            return None, longer

        key_limit.hold_until = until
        key_limit.refusals[ANY_ROLE] = Rule(key_limit.key, until, f"{key_limit.name}: {why}", HOLD)
        self._store.post([key_limit.key], change)

    def _believe(self, key_limit: KeyLimit, announcement: Announced, now: float) -> None:
        """What a host announces comes on top of what is configured, so it can only make us slower."""
        if announcement.pause_s is not None and now + announcement.pause_s > key_limit.hold_until:
            self._hold(key_limit, now + announcement.pause_s, "its headers say that nothing is left")
        limit = announcement._replace(pause_s=None)
        known, since = key_limit.announced
        if limit == (None, None, None) or (known == limit and now - since < BELIEVED_S / 2):
            return
        until = now + BELIEVED_S

        def change(records: list[LimitState]) -> tuple[None, bool]:
            if limit.rate is not None:
                records[0].announced_rate = [limit.rate.amount, limit.rate.per_s, until]
            if limit.at_once is not None:
                records[0].announced_slots = [limit.at_once, until]
            return None, True

        key_limit.announced = (limit, now)
        key_limit.slots_now = min(key_limit.slots_now, limit.at_once or key_limit.slots_now)
        self._store.post([key_limit.key], change)

    def _adapt(self, key_limit: KeyLimit, observe: int, now: float) -> None:
        rule = self._adaptive

        def change(records: list[LimitState]) -> tuple[None, bool]:
            state = records[0]
            if observe > 0:
                state.scale = rule.raised(state.scale)
            elif now - state.slowed_at >= ONE_REFUSAL_S:
                state.scale, state.slowed_at = rule.lowered(state.scale, far=observe < -1), now
            key_limit.scale, key_limit.slots_now = state.scale, key_limit.slots_for(state, now)
            return None, True

        self._store.post([key_limit.key], change)
