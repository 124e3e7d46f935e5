"""The limits of one host, group of hosts or source, and what must be remembered to keep them.

`KeyLimit` holds the configured rules of one key and what this process knows of it; `LimitState` is what all who share
the limits must know. Knows no clock, no lock and no file. Promises: looking changes nothing; a take can be given back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from DocsToKG.ContentDownload.net.limits.adaptive import Announced, LatencyWatch
from DocsToKG.ContentDownload.net.limits.rates import GCRA, BucketSpec, Memory, RateRule, Taken, rate_rule
from DocsToKG.core.bucket import Rate

# The rules of time: a pause that the host asked for, the interval between requests to a host, the rate of a source.
HOLD, INTERVAL, RATE = "hold", "interval", "rate"
ANY_ROLE = ""
_CRAWL = "s:crawl"
# One who waits for a slot of another process asks again within this time, or has gone.
_WISH_S = 0.2
# Who takes longer than this to connect is not waited for.
CONNECTING_S = 5.0
_WORTH_S = 0.02
# How soon to look again whether another's request is on the wire.
_SENDING_S = 0.005
# A shorter distance than this is lost in the time that sending takes.
_FELT_S = 0.001
_ENCODER = json.JSONEncoder(separators=(",", ":"))  # kept, because making one takes as long as using it


@dataclass(slots=True)
class LimitState:
    """What is remembered of one key. Times are the machine's monotonic time."""

    busy: dict[str, int] = field(default_factory=dict)  # running exchanges, by owner
    hold_until: float = -math.inf
    hold_why: str = ""
    crawl_delay_s: float = 0.0
    last_grant: float = -math.inf
    paces: dict[str, Memory] = field(default_factory=dict)
    scale: float = 1.0  # of the configured rates; below 1 after the host was overwhelmed
    slowed_at: float = -math.inf
    announced_rate: list[float] = field(default_factory=list)  # amount, per_s, until: what the host itself announced
    announced_slots: list[float] = field(default_factory=list)  # number, until
    next_owner: str = ""  # the owner who waits for another's slot
    next_owner_since: float = -math.inf

    def encode(self) -> str:
        return _ENCODER.encode([getattr(self, name) for name in self.__slots__])

    @classmethod
    def decode(cls, text: str) -> LimitState:
        return cls(*json.loads(text))

    def demands(self) -> object:
        """What must be seen by those who have slots at hand; taking and freeing slots is not."""
        queue_up = self.next_owner_since if self.next_owner else None
        announced = (tuple(self.announced_rate), tuple(self.announced_slots))
        return (self.hold_until, self.crawl_delay_s, self.scale, announced, self.next_owner, queue_up)

    def moved(self, shift_s: float) -> LimitState:
        """The same after a restart of the machine, whose monotonic time then began anew. Nothing runs any more."""
        quotas = {name: _moved_runs(runs, shift_s) for name, runs in self.paces.items() if name.startswith("q")}
        return LimitState(
            hold_until=self.hold_until + shift_s,
            hold_why=self.hold_why,
            crawl_delay_s=self.crawl_delay_s,
            paces=quotas,
            scale=self.scale,
        )


def _moved_runs(runs: Memory, shift_s: float) -> Memory:
    return [value if at % 3 == 2 else value + shift_s for at, value in enumerate(runs)]


def _is_strict(pace: RateRule) -> bool:
    """Does it keep a distance between any two, worth waiting for?"""
    return isinstance(pace, GCRA) and pace.burst <= 1.0 and pace.interval_s >= _WORTH_S


def _is_felt(pace: RateRule) -> bool:
    return not isinstance(pace, GCRA) or pace.interval_s >= _FELT_S


class Rule(NamedTuple):
    """One rule of time: nobody passes before `at`."""

    key: str
    at: float
    why: str
    kind: str


class KeyLimit:
    """The rules of one key, and this process's own part in it."""

    def __init__(
        self,
        key: str,
        *,
        slots: int,
        rates: Mapping[str, tuple[Rate | BucketSpec, ...]],
        burst: float,
        factor: float,
        kind: str,
    ) -> None:
        self.key = key
        self.name = key.partition(":")[2]
        self.kind = kind
        self.slots = max(1, slots)
        self.busy = 0  # exchanges of this process
        self.used_at = -math.inf
        # What the last look at the shared record said. It may have become stricter since, hardly ever milder.
        self.refusals: dict[str, Rule] = {}  # by role; under no role, what holds for all
        self.hold_until = -math.inf
        self.pause_why = ""  # an operator's word, which holds in this process
        self.scale = 1.0
        self.slots_now = self.slots
        self.has_announced_rate = False  # the host has announced a rate of its own
        self.announced: tuple[Announced | None, float] = (None, 0.0)  # what it announced last, and when
        self.latency: LatencyWatch | None = None
        # Kept a second time, over the moments of sending instead of granting.
        self.sent: dict[str, Memory] = {}
        self._on_their_way: list[float] = []  # started, and not yet on the wire
        self._rates = rates
        self._burst = burst
        self._factor = factor
        self._crawl_delay_s = 0.0
        self._paces: dict[str, list[RateRule]] = {}  # the configured ones, by role
        self._felt: dict[str, list[RateRule]] = {}  # those over the moments of sending, by role

    @property
    def crawl_delay_s(self) -> float:
        return self._crawl_delay_s

    @crawl_delay_s.setter
    def crawl_delay_s(self, seconds: float) -> None:
        if seconds != self._crawl_delay_s:
            self._crawl_delay_s, self._felt = seconds, {}

    def rules(self, state: LimitState, role: str, now: float) -> Iterator[Rule]:
        why = self.pause_why or state.hold_why
        yield Rule(self.key, max(state.hold_until, self.hold_until), f"{self.name}: {why}", HOLD)
        for pace, scale in self._active(state, role, now):
            at = pace.ready_at(state.paces.setdefault(pace.name, []), now, scale)
            yield Rule(self.key, at, f"{self.kind} of {self.name}", self.kind)

    def slots_for(self, state: LimitState, now: float) -> int:
        """Fewer after the host was overwhelmed, as its rate is; never more than it has announced."""
        own = math.ceil(self.slots * state.scale)
        announced = int(state.announced_slots[0]) if state.announced_slots and now < state.announced_slots[1] else own
        return max(1, min(own, announced))

    def is_free(self, state: LimitState, me: str, now: float, is_gone: Callable[[str], bool]) -> bool:
        """A slot is free, and is not another process's turn."""
        # Of our own, the record may still count some that are free already.
        left = self.slots_for(state, now) - self.busy - sum(state.busy.values()) + state.busy.get(me, 0)
        if left <= 0:
            for owner in [owner for owner in state.busy if owner != me and is_gone(owner)]:
                left += state.busy.pop(owner)
        others_turn = state.next_owner not in ("", me) and now - state.next_owner_since < _WISH_S
        return left > (1 if others_turn else 0)

    def queue_up(self, state: LimitState, me: str, now: float) -> None:
        """Stand in line for a slot that another process holds, unless somebody stands there already."""
        if state.next_owner in ("", me) or now - state.next_owner_since >= _WISH_S:
            state.next_owner, state.next_owner_since = me, now

    def take(self, state: LimitState, role: str, now: float) -> list[tuple[RateRule, Taken]]:
        """Count one start."""
        state.last_grant = now
        return [
            (pace, pace.take(state.paces.setdefault(pace.name, []), now, scale))
            for pace, scale in self._active(state, role, now)
        ]

    def occupy(self, state: LimitState, me: str) -> None:
        state.busy[me] = state.busy.get(me, 0) + 1
        if state.next_owner == me:
            state.next_owner = ""

    def vacate(self, state: LimitState, me: str) -> None:
        left = state.busy.pop(me, 0) - 1
        if left > 0:
            state.busy[me] = left

    def give_back(self, state: LimitState, taken: list[tuple[RateRule, Taken]], now: float) -> None:
        for pace, what in reversed(taken):
            pace.give_back(state.paces.setdefault(pace.name, []), what, now)

    def note(self, state: LimitState, now: float) -> None:
        """Remember what the record says, for answers that need no look at it. A hold is never shortened."""
        self.hold_until = max(self.hold_until, state.hold_until)
        self.crawl_delay_s = state.crawl_delay_s
        self.scale = state.scale
        self.slots_now = self.slots_for(state, now)
        self.has_announced_rate = bool(state.announced_rate)

    def is_paced(self, role: str) -> bool:
        """Does it matter when a request is sent?"""
        return self.has_announced_rate or bool(self._felt[role] if role in self._felt else self._sending(role))

    def interval_s(self, role: str) -> float:
        """The distance kept between two requests, as far as it is an even one; 0.0 when there is none."""
        paces = [*self._crawling(), *self._configured(role)]
        evenly = (pace for pace in paces if isinstance(pace, GCRA))
        return max((pace.interval_s / self._scale_of(pace) for pace in evenly), default=0.0)

    def set_crawl_delay(self, state: LimitState, seconds: float) -> None:
        state.crawl_delay_s = seconds
        last = max(state.last_grant, self.used_at)
        state.paces[_CRAWL] = [last + seconds] if seconds > 0 and last > -math.inf else []

    def sending_delay_s(self, role: str, now: float) -> float:
        """Seconds until one more may be sent by this process; 0.0 when it may go now."""
        ready, paces = max(now, self.hold_until), self._sending(role)
        if paces and self._on_their_way and self._must_wait_for_others(paces, now):
            return _SENDING_S
        for pace in paces:
            ready = max(ready, pace.ready_at(self.sent.setdefault(pace.name, []), now, self._scale_of(pace)))
        return ready - now

    def _must_wait_for_others(self, paces: list[RateRule], now: float) -> bool:
        """Until a request is on the wire, nobody knows from when to keep distance."""
        self._on_their_way = [at for at in self._on_their_way if now - at < CONNECTING_S]
        return bool(self._on_their_way) and any(_is_strict(pace) for pace in paces)

    def set_out(self, role: str, now: float) -> list[tuple[RateRule, Taken]]:
        """One more is on its way to the wire; what that counts for."""
        self._on_their_way.append(now)
        return [
            (pace, pace.take(self.sent.setdefault(pace.name, []), now, self._scale_of(pace)))
            for pace in self._sending(role)
        ]

    def arrive(self, started_at: float) -> None:
        if started_at in self._on_their_way:
            self._on_their_way.remove(started_at)

    def count_from(self, role: str, now: float, state: LimitState | None = None) -> None:
        """The request was on the wire at `now`: distances count from then, here or in the shared record."""
        if state is None:
            active = [(pace, self._scale_of(pace), self.sent) for pace in self._sending(role)]
        else:
            active = [(pace, scale, state.paces) for pace, scale in self._active(state, role, now)]
        for pace, scale, memories in active:
            memory = memories.setdefault(pace.name, [])
            if memory and isinstance(pace, GCRA) and _is_strict(pace):
                memory[0] = max(memory[0], now + pace.interval_s / scale)

    def unsend(self, sent: list[tuple[RateRule, Taken]], now: float) -> None:
        for pace, what in reversed(sent):
            pace.give_back(self.sent.setdefault(pace.name, []), what, now)

    def _sending(self, role: str) -> list[RateRule]:
        """What the moments of sending are kept apart by; none where that would not be felt."""
        found = self._felt.get(role)
        if found is None:
            found = self._felt[role] = [*self._crawling(), *filter(_is_felt, self._configured(role))]
        return found

    def _crawling(self) -> list[RateRule]:
        return [GCRA(self._crawl_delay_s, name=_CRAWL)] if self._crawl_delay_s > 0 else []

    def _scale_of(self, pace: RateRule) -> float:
        return 1.0 if pace.name == _CRAWL else self.scale

    def _active(self, state: LimitState, role: str, now: float) -> Iterator[tuple[RateRule, float]]:
        """Each pace that holds now, and by how much it is slowed down."""
        if state.crawl_delay_s > 0:
            yield GCRA(state.crawl_delay_s, name=_CRAWL), 1.0
        if state.announced_rate and now < state.announced_rate[2]:
            yield (
                rate_rule(Rate(state.announced_rate[0], state.announced_rate[1]), burst=1.0, factor=1.0, name="told"),
                1.0,
            )
        for pace in self._configured(role):
            yield pace, state.scale

    def _configured(self, role: str) -> list[RateRule]:
        if role not in self._paces:
            self._paces[role] = [
                rate_rule(rate, burst=self._burst, factor=self._factor, name=f"{of}:{number}")
                for of in dict.fromkeys(("*", role))
                for number, rate in enumerate(self._rates.get(of, ()))
            ]
        return self._paces[role]
