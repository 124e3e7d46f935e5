"""The server's time in terms of this machine's monotonic clock, and records written in it.

Every answer of the server carries its time; the answer that came fastest tells the distance between the two clocks
best. This machine's wall clock plays no part. Promises: a time that nobody changed is written back as it was read, and
is read back as it was written, to the last bit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from DocsToKG.ContentDownload.net.limits.rates import Memory
from DocsToKG.ContentDownload.net.limits.state import LimitState

# Two clocks of good machines drift apart by less than this, in seconds per second.
_DRIFT = 0.0005
# A larger leap than this was made by somebody who set the server's clock.
_LEAP_S = 0.25
# In one second. A power of two loses nothing of a float, and the server never reckons with them.
_TICKS = 2**44
_ENCODER = json.JSONEncoder(separators=(",", ":"))


class ServerTime:
    """How far the server's clock is ahead of our monotonic one."""

    def __init__(self) -> None:
        self._offset_s = self._doubt_s = self._at = math.nan

    @property
    def offset_s(self) -> float:
        return self._offset_s

    def heard(self, server_s: float, asked_at: float, answered_at: float) -> bool:
        """Learn from one answer; False when the server's clock has been set since the last one."""
        offset_s, doubt_s = server_s - (asked_at + answered_at) / 2, (answered_at - asked_at) / 2
        grown_s = self._doubt_s + _DRIFT * max(0.0, answered_at - self._at)
        leapt = abs(offset_s - self._offset_s) > doubt_s + grown_s + _LEAP_S
        if leapt or math.isnan(self._offset_s) or doubt_s <= grown_s:
            self._offset_s, self._doubt_s, self._at = offset_s, doubt_s, answered_at
        return not leapt


class Spelling:
    """The times of one record as they were read or written last: ticks of the server to our own seconds."""

    __slots__ = ("_ours", "_theirs")

    def __init__(self) -> None:
        self._ours: dict[int, float] = {}
        self._theirs: dict[float, int] = {}

    def decode(self, text: str, offset_s: float) -> LimitState:
        theirs: dict[int, float] = {}
        shift = round(offset_s * _TICKS)

        def ours(value: int | None) -> float:
            if value is None:
                return -math.inf
            theirs[value] = self._ours.get(value, (value - shift) / _TICKS)
            return theirs[value]

        state = _each_time(LimitState(*json.loads(text)), ours)
        self._know(theirs)
        return state

    def encode(self, state: LimitState, offset_s: float) -> str:
        written: dict[int, float] = {}
        shift = round(offset_s * _TICKS)

        def theirs(value: float) -> int | None:
            if value == -math.inf:
                return None
            ticks = self._theirs.get(value, round(value * _TICKS) + shift)
            written[ticks] = value
            return ticks

        fields = _each_time(state, theirs)
        self._know(written)
        return _ENCODER.encode([getattr(fields, name) for name in LimitState.__slots__])

    def _know(self, times: dict[int, float]) -> None:
        self._ours, self._theirs = times, {ours: theirs for theirs, ours in times.items()}


def _each_time(state: LimitState, moved: Callable[[Any], Any]) -> LimitState:
    """The same record with every time in it replaced."""
    return LimitState(
        busy=dict(state.busy),
        hold_until=moved(state.hold_until),
        hold_why=state.hold_why,
        crawl_delay_s=state.crawl_delay_s,
        last_grant=moved(state.last_grant),
        paces={name: list(_each_of_pace(name, memory, moved)) for name, memory in state.paces.items()},
        scale=state.scale,
        slowed_at=moved(state.slowed_at),
        announced_rate=[*state.announced_rate[:2], *map(moved, state.announced_rate[2:])],
        announced_slots=[*state.announced_slots[:1], *map(moved, state.announced_slots[1:])],
        next_owner=state.next_owner,
        next_owner_since=moved(state.next_owner_since),
    )


def _each_of_pace(name: str, memory: Memory, moved: Callable[[Any], Any]) -> Iterator[Any]:
    """A spacing remembers a time; a quota first, last and count; a bucket tokens and a time."""
    for at, value in enumerate(memory):
        is_time = {"s": True, "q": at % 3 != 2, "b": at == 1}[name[0]]
        yield moved(value) if is_time else value


def copied(state: LimitState) -> LimitState:
    """One that may be changed without changing the other."""
    return _each_time(state, lambda value: value)


def merged(mine: LimitState, theirs: LimitState) -> LimitState:
    """What two know of one key, the stricter of each. Who runs is not ours to say for others."""
    paces = {**mine.paces, **theirs.paces}
    for name in mine.paces.keys() & theirs.paces.keys():
        paces[name] = _stricter(name, mine.paces[name], theirs.paces[name])
    longer = mine if mine.hold_until > theirs.hold_until else theirs
    return LimitState(
        busy=dict(theirs.busy),
        hold_until=longer.hold_until,
        hold_why=longer.hold_why,
        crawl_delay_s=max(mine.crawl_delay_s, theirs.crawl_delay_s),
        last_grant=max(mine.last_grant, theirs.last_grant),
        paces=paces,
        scale=min(mine.scale, theirs.scale),
        slowed_at=max(mine.slowed_at, theirs.slowed_at),
        announced_rate=max(mine.announced_rate, theirs.announced_rate, key=lambda told: told[2:]),
        announced_slots=max(mine.announced_slots, theirs.announced_slots, key=lambda told: told[1:]),
        next_owner=theirs.next_owner,
        next_owner_since=theirs.next_owner_since,
    )


def _stricter(name: str, one: Memory, other: Memory) -> Memory:
    if not one or not other:
        return one or other
    if name[0] == "q":
        return max(one, other, key=lambda runs: sum(runs[2::3]))
    # A bucket with fewer tokens, or counted later, gives less; a spacing with the later arrival does.
    return min(one, other, key=lambda memory: (memory[0], -memory[1])) if name[0] == "b" else max(one, other)
