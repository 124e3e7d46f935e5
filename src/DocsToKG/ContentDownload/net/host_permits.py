"""The right to one exchange, from its grant over the moment of sending to its release.

Between grant and sending a thread can be late, and two late threads would meet at the server. So the distance is kept
a second time, over the moments of sending. Knows lanes and the record, not who asks for what.
Promises: nothing is sent on slots that may have become another's; slots are freed once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from DocsToKG.ContentDownload.net.delays import HOLD
from DocsToKG.ContentDownload.net.lanes import CONNECTING_S, Kept, Lane, Rule
from DocsToKG.ContentDownload.net.limit_store import LimitStore, StoreAway
from DocsToKG.ContentDownload.net.pace import Pace, Taken
from DocsToKG.ContentDownload.net.ways import Way
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock

# Later than this after its grant, a thread must see whether another process has been granted meanwhile.
_LATE_S = 0.01
# How soon to look again whether the record has room for a grant that may have been lost.
_UNSURE_S = 0.005

Takes = list[list[tuple[Pace, Taken]]]


class Gatehouse:
    """What all permits of one process share: the lock under which lanes change, the record, and who is told when a
    place has become free."""

    def __init__(self, clock: Clock, store: LimitStore) -> None:
        self.clock = clock
        self.store = store
        self.lock = threading.Lock()
        self.callbacks: tuple[Callable[[str], None], ...] = ()

    def tell(self, key: str) -> None:
        for callback in self.callbacks:
            callback(key)


class HostPermit:
    """The right to one exchange with one host. Call `start` right before sending."""

    __slots__ = (
        *("_house", "_let_go", "_released", "_sent", "_started_at", "_taken", "_tenure", "_way"),
        *("afterwards", "granted_at"),
    )

    def __init__(self, house: Gatehouse, way: Way, taken: Takes, granted_at: float) -> None:
        self.granted_at = granted_at
        self.afterwards: Callable[[], None] | None = None  # what else is to be freed with the slots
        self._house = house
        self._way = way
        self._taken = taken
        self._tenure = house.store.tenure
        self._started_at: float | None = None  # while it is on its way to the wire
        self._sent: list[tuple[Lane, list[tuple[Pace, Taken]]]] = []
        self._let_go: Callable[[], None] | None = None
        self._released = False

    def start(self) -> float:
        """0.0 when the request may be sent now; otherwise the seconds until it may, and nothing is counted."""
        house = self._house
        with house.lock:
            return self._go(house.clock.monotonic()) if self._still_holds() else _UNSURE_S

    def goes_out(self) -> float:
        """Right before the first byte: 0.0, or the seconds for which it must still wait.

        Who takes long to connect is not waited for, and by other processes not at all, so others may have gone ahead.
        """
        house, way, started_at = self._house, self._way, self._started_at
        now = house.clock.monotonic()
        if started_at is None or now - started_at < _LATE_S:
            return 0.0
        with house.lock:
            if not self._still_holds():
                return _UNSURE_S
            if now - started_at >= CONNECTING_S:
                return self._go(now)
            if (held_until := max(lane.hold_until for lane in way.sending)) > now:
                return held_until - now  # the host asked for a pause meanwhile
            if not house.store.shared or not way.is_paced():
                return 0.0
            if not 0.0 < max(lane.interval_s(way.role) for lane in way.sending) <= now - started_at:
                return 0.0
            delay_s = self._regrant(now) if self._is_late(now) else 0.0
            if delay_s <= 0:
                self._set_out(now)
            return max(0.0, delay_s)

    def cut_with(self, cancel: CancelToken) -> CancelToken:
        """For the exchange: cancelled with `cancel`, and before the slots of this permit may be another's."""
        term = self._house.store.term
        if term is None:
            return cancel
        own = CancelToken(parent=cancel)
        forget = term.on_cancel(own.cancel)

        def let_go() -> None:
            forget()
            own.close()

        self._let_go = let_go
        # A term that began after the grant says nothing about its slots.
        if not 0 <= self._house.store.tenure == self._tenure:
            own.cancel()
        return own

    def is_sent(self) -> None:
        """The request is on the wire: from now on others keep their distance."""
        house, way = self._house, self._way
        with house.lock:
            self._arrive()
            for lane in way.sending:
                if lane.is_paced(way.role):
                    self._count_from(house.clock.monotonic())
                    break

    def _count_from(self, now: float) -> None:
        way, store = self._way, self._house.store
        for lane in way.sending:
            lane.count_from(way.role, now)

        def move(records: list[Kept]) -> tuple[None, bool]:
            for lane, kept in zip(way.sending, records, strict=True):
                lane.count_from(way.role, now, kept)
            return None, True

        if store.shared and now - self.granted_at > _LATE_S:
            store.post(way.keys[:-1], move)

    def refund(self) -> None:
        house, way = self._house, self._way
        with house.lock:
            now = house.clock.monotonic()
            taken, self._taken = self._taken, []
            sent, self._sent = self._sent, []

            def change(records: list[Kept]) -> tuple[None, bool]:
                _give_back(way.lanes, records, taken, now)
                return None, True

            for lane, what in sent:
                lane.unsend(what, now)
            if taken:
                _look_again(way.lanes)
                house.store.post(way.keys, change)

    def release(self) -> None:
        if self._released:
            return
        self._released = True
        if self._let_go is not None:
            self._let_go()
        house, way = self._house, self._way
        with house.lock:
            if self._started_at is not None:
                self._arrive()
            for lane in way.lanes:
                lane.busy -= 1
            # Our own next request may take the slot up; if it must visit the record, one visit serves both.
            house.store.post(way.keys, way.vacate, soon=True)
        for key in reversed(way.keys):
            house.tell(key)
        if self.afterwards is not None:
            self.afterwards()

    def _go(self, now: float) -> float:
        """Set out now, unless a hold or somebody else's request says otherwise; then the seconds to wait."""
        delay_s, role = 0.0, self._way.role
        for lane in self._way.sending:
            delay_s = max(delay_s, lane.sending_delay_s(role, now))
        if delay_s <= 0 and self._is_late(now):
            delay_s = self._regrant(now)
        if delay_s <= 0:
            self._set_out(now)
        return max(0.0, delay_s)

    def _set_out(self, now: float) -> None:
        if self._started_at is not None:
            self._arrive()
        self._started_at = now
        for lane in self._way.sending:
            self._sent.append((lane, lane.set_out(self._way.role, now)))

    def _arrive(self) -> None:
        started_at, self._started_at = self._started_at, None
        if started_at is not None:
            for lane in self._way.sending:
                lane.arrive(started_at)

    def _is_late(self, now: float) -> bool:
        """Has the record shared with others fallen behind, in a way that they could feel?"""
        return self._house.store.shared and now - self.granted_at > _LATE_S and self._way.is_paced()

    def _still_holds(self) -> bool:
        """False where its slots may have gone to others since the grant, and the record has no room for both."""
        store, way = self._house.store, self._way
        if 0 <= store.tenure == self._tenure:
            return True

        def fits(records: list[Kept]) -> tuple[bool, bool]:
            pairs = zip(way.lanes, records, strict=True)
            return all(sum(kept.busy.values()) <= lane.room for lane, kept in pairs), False

        try:
            if not store.change(way.keys, fits):
                return False
        except StoreAway:
            return False
        self._tenure = store.tenure
        return True

    def _regrant(self, now: float) -> float:
        """A late thread's start counts from now: its grant is changed for a new one, if there is one."""
        taken, self._taken = self._taken, []
        way, seen = self._way, list[Kept]()

        def change(records: list[Kept]) -> tuple[float | Takes, bool]:
            seen[:] = records
            _give_back(way.lanes, records, taken, now)
            latest = latest_rule(way, records, now)
            if latest.at > now:
                return latest.at - now, True
            pairs = zip(way.lanes, records, strict=True)
            return [lane.take(kept, way.role, now) for lane, kept in pairs], True

        try:
            answer = self._house.store.change(way.keys, change)
        except StoreAway as away:
            self._taken = taken
            return away.again_s
        for lane, kept in zip(way.lanes, seen, strict=True):
            lane.note(kept, now)
        if isinstance(answer, float):
            return answer
        self._taken, self.granted_at = answer, now
        return 0.0


def latest_rule(way: Way, records: Sequence[Kept], now: float) -> Rule:
    """The latest of all times is named, so that nobody is woken only to be sent away again."""
    pairs = zip(way.lanes, records, strict=True)
    return max((rule for lane, kept in pairs for rule in lane.rules(kept, way.role, now)), key=lambda rule: rule.at)


def _look_again(lanes: Sequence[Lane]) -> None:
    for lane in lanes:
        # A pause that the host asked for is not ours to give back.
        if lane.shut is not None and lane.shut.kind != HOLD:
            lane.shut = None


def _give_back(lanes: Sequence[Lane], records: list[Kept], taken: Takes, now: float) -> None:
    for lane, kept, what in zip(lanes, records, taken, strict=False):
        lane.give_back(kept, what, now)
