"""One lane per host, group of hosts and source: its rules, and what must be remembered to keep them.

`Lane` holds the configured rules of one key and what this process knows of it; `Kept` is what all who share the
limits must know. Knows no clock, no lock and no file. Promises: looking changes nothing; a take can be given back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from DocsToKG.ContentDownload.net.delays import HOLD
from DocsToKG.ContentDownload.net.learned import Announced, Pulse
from DocsToKG.ContentDownload.net.pace import BucketSpec, Memory, Pace, Spacing, Taken, pace_of
from DocsToKG.core.bucket import Rate

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
class Kept:
    """What is remembered of one key. Times are the machine's monotonic time."""

    busy: dict[str, int] = field(default_factory=dict)  # running exchanges, by owner
    hold_until: float = -math.inf
    hold_why: str = ""
    crawl_delay_s: float = 0.0
    last_grant: float = -math.inf
    paces: dict[str, Memory] = field(default_factory=dict)
    scale: float = 1.0  # of the configured rates; below 1 after the host was overwhelmed
    slowed_at: float = -math.inf
    told_rate: list[float] = field(default_factory=list)  # amount, per_s, until: what the host itself announced
    told_slots: list[float] = field(default_factory=list)  # number, until
    wisher: str = ""  # the owner who waits for another's slot
    wished_at: float = -math.inf

    def encode(self) -> str:
        return _ENCODER.encode([getattr(self, name) for name in self.__slots__])

    @classmethod
    def decode(cls, text: str) -> Kept:
        return cls(*json.loads(text))

    def demands(self) -> object:
        """What must be seen by those who have slots at hand; taking and freeing slots is not."""
        wish = self.wished_at if self.wisher else None
        told = (tuple(self.told_rate), tuple(self.told_slots))
        return (self.hold_until, self.crawl_delay_s, self.scale, told, self.wisher, wish)

    def moved(self, shift_s: float) -> Kept:
        """The same after a restart of the machine, whose monotonic time then began anew. Nothing runs any more."""
        quotas = {name: _moved_runs(runs, shift_s) for name, runs in self.paces.items() if name.startswith("q")}
        return Kept(
            hold_until=self.hold_until + shift_s,
            hold_why=self.hold_why,
            crawl_delay_s=self.crawl_delay_s,
            paces=quotas,
            scale=self.scale,
        )


def _moved_runs(runs: Memory, shift_s: float) -> Memory:
    return [value if at % 3 == 2 else value + shift_s for at, value in enumerate(runs)]


def _is_strict(pace: Pace) -> bool:
    """Does it keep a distance between any two, worth waiting for?"""
    return isinstance(pace, Spacing) and pace.burst <= 1.0 and pace.interval_s >= _WORTH_S


def _is_felt(pace: Pace) -> bool:
    return not isinstance(pace, Spacing) or pace.interval_s >= _FELT_S


class Rule(NamedTuple):
    """One rule of time: nobody passes before `at`."""

    key: str
    at: float
    why: str
    kind: str


class Lane:
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
        self.shut: Rule | None = None
        self.hold_until = -math.inf
        self.pause_why = ""  # an operator's word, which holds in this process
        self.scale = 1.0
        self.room = self.slots
        self.is_told = False  # the host has announced a rate of its own
        self.announced: tuple[Announced | None, float] = (None, 0.0)  # what it announced last, and when
        self.pulse: Pulse | None = None
        # Kept a second time, over the moments of sending instead of granting.
        self.sent: dict[str, Memory] = {}
        self._on_their_way: list[float] = []  # started, and not yet on the wire
        self._rates = rates
        self._burst = burst
        self._factor = factor
        self._crawl_delay_s = 0.0
        self._paces: dict[str, list[Pace]] = {}  # the configured ones, by role
        self._felt: dict[str, list[Pace]] = {}  # those over the moments of sending, by role

    @property
    def crawl_delay_s(self) -> float:
        return self._crawl_delay_s

    @crawl_delay_s.setter
    def crawl_delay_s(self, seconds: float) -> None:
        if seconds != self._crawl_delay_s:
            self._crawl_delay_s, self._felt = seconds, {}

    def rules(self, kept: Kept, role: str, now: float) -> Iterator[Rule]:
        why = self.pause_why or kept.hold_why
        yield Rule(self.key, max(kept.hold_until, self.hold_until), f"{self.name}: {why}", HOLD)
        for pace, scale in self._active(kept, role, now):
            at = pace.ready_at(kept.paces.setdefault(pace.name, []), now, scale)
            yield Rule(self.key, at, f"{self.kind} of {self.name}", self.kind)

    def slots_for(self, kept: Kept, now: float) -> int:
        """Fewer after the host was overwhelmed, as its rate is; never more than it has announced."""
        own = math.ceil(self.slots * kept.scale)
        told = int(kept.told_slots[0]) if kept.told_slots and now < kept.told_slots[1] else own
        return max(1, min(own, told))

    def is_free(self, kept: Kept, me: str, now: float, is_gone: Callable[[str], bool]) -> bool:
        """A slot is free, and is not another process's turn."""
        # Of our own, the record may still count some that are free already.
        left = self.slots_for(kept, now) - self.busy - sum(kept.busy.values()) + kept.busy.get(me, 0)
        if left <= 0:
            for owner in [owner for owner in kept.busy if owner != me and is_gone(owner)]:
                left += kept.busy.pop(owner)
        others_turn = kept.wisher not in ("", me) and now - kept.wished_at < _WISH_S
        return left > (1 if others_turn else 0)

    def wish(self, kept: Kept, me: str, now: float) -> None:
        """Stand in line for a slot that another process holds, unless somebody stands there already."""
        if kept.wisher in ("", me) or now - kept.wished_at >= _WISH_S:
            kept.wisher, kept.wished_at = me, now

    def take(self, kept: Kept, role: str, now: float) -> list[tuple[Pace, Taken]]:
        """Count one start."""
        kept.last_grant = now
        return [
            (pace, pace.take(kept.paces.setdefault(pace.name, []), now, scale))
            for pace, scale in self._active(kept, role, now)
        ]

    def occupy(self, kept: Kept, me: str) -> None:
        kept.busy[me] = kept.busy.get(me, 0) + 1
        if kept.wisher == me:
            kept.wisher = ""

    def vacate(self, kept: Kept, me: str) -> None:
        left = kept.busy.pop(me, 0) - 1
        if left > 0:
            kept.busy[me] = left

    def give_back(self, kept: Kept, taken: list[tuple[Pace, Taken]], now: float) -> None:
        for pace, what in reversed(taken):
            pace.give_back(kept.paces.setdefault(pace.name, []), what, now)

    def note(self, kept: Kept, now: float) -> None:
        """Remember what the record says, for answers that need no look at it. A hold is never shortened."""
        self.hold_until = max(self.hold_until, kept.hold_until)
        self.crawl_delay_s = kept.crawl_delay_s
        self.scale = kept.scale
        self.room = self.slots_for(kept, now)
        self.is_told = bool(kept.told_rate)

    def is_paced(self, role: str) -> bool:
        """Does it matter when a request is sent?"""
        return self.is_told or bool(self._felt[role] if role in self._felt else self._sending(role))

    def interval_s(self, role: str) -> float:
        """The distance kept between two requests, as far as it is an even one; 0.0 when there is none."""
        paces = [*self._crawling(), *self._configured(role)]
        evenly = (pace for pace in paces if isinstance(pace, Spacing))
        return max((pace.interval_s / self._scale_of(pace) for pace in evenly), default=0.0)

    def set_crawl_delay(self, kept: Kept, seconds: float) -> None:
        kept.crawl_delay_s = seconds
        last = max(kept.last_grant, self.used_at)
        kept.paces[_CRAWL] = [last + seconds] if seconds > 0 and last > -math.inf else []

    def sending_delay_s(self, role: str, now: float) -> float:
        """Seconds until one more may be sent by this process; 0.0 when it may go now."""
        ready, paces = max(now, self.hold_until), self._sending(role)
        if paces and self._on_their_way and self._must_wait_for_others(paces, now):
            return _SENDING_S
        for pace in paces:
            ready = max(ready, pace.ready_at(self.sent.setdefault(pace.name, []), now, self._scale_of(pace)))
        return ready - now

    def _must_wait_for_others(self, paces: list[Pace], now: float) -> bool:
        """Until a request is on the wire, nobody knows from when to keep distance."""
        self._on_their_way = [at for at in self._on_their_way if now - at < CONNECTING_S]
        return bool(self._on_their_way) and any(_is_strict(pace) for pace in paces)

    def set_out(self, role: str, now: float) -> list[tuple[Pace, Taken]]:
        """One more is on its way to the wire; what that counts for."""
        self._on_their_way.append(now)
        return [
            (pace, pace.take(self.sent.setdefault(pace.name, []), now, self._scale_of(pace)))
            for pace in self._sending(role)
        ]

    def arrive(self, started_at: float) -> None:
        if started_at in self._on_their_way:
            self._on_their_way.remove(started_at)

    def count_from(self, role: str, now: float, kept: Kept | None = None) -> None:
        """The request was on the wire at `now`: distances count from then, here or in the shared record."""
        if kept is None:
            active = [(pace, self._scale_of(pace), self.sent) for pace in self._sending(role)]
        else:
            active = [(pace, scale, kept.paces) for pace, scale in self._active(kept, role, now)]
        for pace, scale, memories in active:
            memory = memories.setdefault(pace.name, [])
            if memory and isinstance(pace, Spacing) and _is_strict(pace):
                memory[0] = max(memory[0], now + pace.interval_s / scale)

    def unsend(self, sent: list[tuple[Pace, Taken]], now: float) -> None:
        for pace, what in reversed(sent):
            pace.give_back(self.sent.setdefault(pace.name, []), what, now)

    def _sending(self, role: str) -> list[Pace]:
        """What the moments of sending are kept apart by; none where that would not be felt."""
        found = self._felt.get(role)
        if found is None:
            found = self._felt[role] = [*self._crawling(), *filter(_is_felt, self._configured(role))]
        return found

    def _crawling(self) -> list[Pace]:
        return [Spacing(self._crawl_delay_s, name=_CRAWL)] if self._crawl_delay_s > 0 else []

    def _scale_of(self, pace: Pace) -> float:
        return 1.0 if pace.name == _CRAWL else self.scale

    def _active(self, kept: Kept, role: str, now: float) -> Iterator[tuple[Pace, float]]:
        """Each pace that holds now, and by how much it is slowed down."""
        if kept.crawl_delay_s > 0:
            yield Spacing(kept.crawl_delay_s, name=_CRAWL), 1.0
        if kept.told_rate and now < kept.told_rate[2]:
            yield pace_of(Rate(kept.told_rate[0], kept.told_rate[1]), burst=1.0, factor=1.0, name="told"), 1.0
        for pace in self._configured(role):
            yield pace, kept.scale

    def _configured(self, role: str) -> list[Pace]:
        if role not in self._paces:
            self._paces[role] = [
                pace_of(rate, burst=self._burst, factor=self._factor, name=f"{of}:{number}")
                for of in dict.fromkeys(("*", role))
                for number, rate in enumerate(self._rates.get(of, ()))
            ]
        return self._paces[role]
