"""The limits that many machines keep together: the records of `HostLimits`, on a Redis or Valkey server.

A change is worked out here on the records as they were seen last, and the server takes it if they are still the same:
one round trip, and one more where another node was faster. Knows owners and records, no rules.
Promises: while the server is away nothing is granted, and what must not get lost is written when it is back; slots
of a dead node come back after its lease, and a node that is cut off ends its exchanges before that; after the server
lost its memory, nothing is granted before every living node has written what it knows and each key's interval is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from DocsToKG.ContentDownload.net.limits.state import LimitState
from DocsToKG.ContentDownload.net.limits.stores.base import Change, StoreUnavailable
from DocsToKG.ContentDownload.net.limits.stores.redis_connection import RedisConnection, ServerUnavailable
from DocsToKG.ContentDownload.net.limits.stores.redis_times import ServerTime, Spelling, copied, merged
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.ids import new_worker_id
from DocsToKG.core.tasks import on_event_loop

T = TypeVar("T")

_TRIES = 25
_AGAIN_S = 0.03
_REPAIR_S = 0.25
_LOOK_S = 0.25  # how often it is worth asking whether an owner is alive
_AT_ONCE = 100  # records in one change
_NO_TENURE = -1
_LONGEST_MARGIN_S = 2.0  # what the end of an exchange may take
_SPOILED = (ValueError, TypeError, LookupError, AttributeError)
_LOST = "the shared limits were lost and are being told anew"


@dataclass(slots=True)
class _Seen:
    """One record as it was seen last: the word it began with, and what it said, in our own time."""

    token: str = ""
    state: LimitState | None = None
    spelling: Spelling = field(default_factory=Spelling)


class RedisLimitStore:
    """The record of every node that names the same server. `space` keeps worlds apart that must not meet.

    `interval_s` tells the distance kept between two requests of a key. A node is heard at least every `beat_s`; one
    that is silent for `lease_s` loses its slots, and counts on them for a little less itself. A freed slot waits up to
    `soon_s` for a change to go with.
    """

    shared = remote = True

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        space: str = "",
        interval_s: Callable[[str], float] = lambda key: 0.0,
        beat_s: float = 1.0,
        lease_s: float = 15.0,
        soon_s: float = 0.02,
        times: ServerTime | None = None,
    ) -> None:
        self.owner = new_worker_id()
        self._clock = clock
        self._interval_s = interval_s
        self._beat_s = beat_s
        self._soon_s = soon_s
        self._tenure_s = lease_s - min(_LONGEST_MARGIN_S, lease_s / 5)
        # A node that just missed the server waits for its answer, rests, and comes back with the next beat.
        self._settle_s = 3 * beat_s + _REPAIR_S
        self._link = RedisConnection(
            url, owner=self.owner, clock=clock, space=space, patience_s=beat_s, lease_s=lease_s, times=times
        )
        self._seen: dict[str, _Seen] = {}
        self._mine: dict[str, int] = {}
        self._owed: list[tuple[tuple[str, ...], Change[None]]] = []
        self._alive_at: dict[str, float] = {}
        self._count = 0
        self._told_epoch = ""  # the epoch in which all that we know was told
        self._base = ""
        self._up_since = self._shut_until = float("-inf")
        self._why = ""
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._hurry = False
        self._closed = False
        self._term = CancelToken()
        self._over = threading.Event()
        # A thread of its own, since the one that beats waits for the server.
        self._watching = threading.Thread(target=self._watch, name="fleet-tenure", daemon=True)
        self._beating = threading.Thread(target=self._beat, name="fleet-limits", daemon=True)
        with self._lock:
            self._try_pay()
        self._beating.start()
        self._watching.start()

    @property
    def tenure(self) -> int:
        """Slots are ours for `lease_s` after the server last heard of us; it may have given them away by then."""
        return _NO_TENURE if self._left_s <= 0 else self._link.lapses

    @property
    def term(self) -> CancelToken:
        return self._term

    @property
    def _left_s(self) -> float:
        return self._link.renewed_at + self._tenure_s - time.monotonic()

    def change(self, keys: Sequence[str], change: Change[T]) -> T:
        with self._lock:
            now = time.monotonic()
            if now < self._shut_until:
                raise StoreUnavailable(self._why, max(_AGAIN_S, self._shut_until - now))
            try:
                return self._visit(keys, change)
            except ServerUnavailable as away:
                raise self._failed(f"the shared limits cannot be read ({away})") from away

    def post(self, keys: Sequence[str], change: Change[None], *, soon: bool = False) -> None:
        self._owed.append((tuple(keys), change))
        if soon and self._soon_s:
            self._wake.set()
        elif on_event_loop():
            self._hurry = True
            self._wake.set()
        else:
            with self._lock:
                self._try_pay()

    def take_back(self, keys: Sequence[str]) -> bool:
        """Never: a slot that is owed goes with the next change in the same round trip."""
        return False

    def is_gone(self, owner: str) -> bool:
        """Its lease is over. Not believed right after the server was away, when nobody could renew one."""
        now = time.monotonic()
        if now - self._alive_at.get(owner, float("-inf")) < _LOOK_S or now - self._up_since < self._settle_s:
            return False
        if not self._link.is_alive(owner):
            return True
        self._alive_at[owner] = now
        return False

    def forget(self, keys: Sequence[str]) -> None:
        with self._lock:
            for key in keys:
                if key not in self._mine:
                    self._seen.pop(key, None)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._shut_until = float("-inf")
            self._wake.set()
            for key in list(self._mine):
                self._owed.append(((key,), self._leave))
            if self._try_pay():
                self._link.leave()
        self._over.set()
        self._beating.join()
        self._watching.join()
        self._link.close()

    def _leave(self, records: list[LimitState]) -> tuple[None, bool]:
        records[0].busy.pop(self.owner, None)
        return None, True

    def _visit(self, keys: Sequence[str], change: Change[T]) -> T:
        for _ in range(_TRIES):
            self._tell_all()
            done = self._attempt(keys, change)
            if done is not None:
                return done[0]
        raise StoreUnavailable("the shared limits are being read by others", _AGAIN_S)

    def _attempt(self, keys: Sequence[str], change: Change[T]) -> tuple[T] | None:
        """The result, or None when the records were not as we knew them; now we know them."""
        owed = self._owed[:_AT_ONCE]
        wanted = list(dict.fromkeys([*(key for keys, _ in owed for key in keys), *keys]))
        records = {key: self._record(key) for key in wanted}
        changed: set[str] = set()
        for owed_keys, owed_change in owed:
            if owed_change([records[key] for key in owed_keys])[1]:
                changed.update(owed_keys)
        result, wrote = change([records[key] for key in keys])
        if wrote:
            changed.update(keys)
        if not self._exchange(wanted, {key: records[key] for key in wanted if key in changed}):
            return None
        del self._owed[: len(owed)]
        return (result,)

    def _exchange(self, keys: Sequence[str], changed: dict[str, LimitState]) -> bool:
        texts = {key: self._spell(key, state) for key, state in changed.items()}
        token = self._new_token()
        sent = [f"{token} {texts[key]}" if key in texts else "" for key in keys]
        reply = self._link.exchange(keys, [self._seen[key].token for key in keys], sent)
        if reply.kind == "ok":
            for key, state in changed.items():
                self._seen[key].token, self._seen[key].state = token, copied(state)
                self._count_mine(key, state.busy.get(self.owner, 0))
        elif reply.kind == "stale":
            for key, value in zip(keys, reply.values, strict=True):
                self._saw(key, value)
        else:
            self._told_epoch = ""
        return reply.kind == "ok"

    def _record(self, key: str) -> LimitState:
        seen = self._seen.setdefault(key, _Seen())
        state = copied(seen.state) if seen.state is not None else LimitState()
        epoch = self._link.epoch
        if epoch is None or not seen.token.startswith(f"{epoch.id}."):
            # Written in an earlier life of the server or by nobody: somebody may have been granted just before.
            self._quiet(state, self._epoch_began() + self._interval_s(key))
        return state

    def _quiet(self, state: LimitState, since: float) -> LimitState:
        until = since + self._settle_s
        if max(self._clock.monotonic(), state.hold_until) < until:
            state.hold_until, state.hold_why = until, _LOST
        return state

    def _saw(self, key: str, value: str) -> None:
        seen = self._seen.setdefault(key, _Seen())
        token, _, text = value.partition(" ")
        seen.token = token
        if not text:
            return  # what is gone there is still known here
        try:
            seen.state = seen.spelling.decode(text, self._offset_s)
        except _SPOILED:
            seen.state = self._quiet(seen.state or LimitState(), self._clock.monotonic() + self._interval_s(key))

    def _spell(self, key: str, state: LimitState) -> str:
        return self._seen[key].spelling.encode(state, self._offset_s)

    def _new_token(self) -> str:
        self._count += 1
        epoch = self._link.epoch
        return f"{epoch.id if epoch is not None else ''}.{self.owner}.{self._count}"

    @property
    def _offset_s(self) -> float:
        return self._link.times.offset_s

    def _epoch_began(self) -> float:
        """In our own time."""
        return self._link.epoch.began_s - self._offset_s if self._link.epoch is not None else float("-inf")

    def _count_mine(self, key: str, running: int) -> None:
        if running:
            self._mine[key] = running
        else:
            self._mine.pop(key, None)

    def _tell_all(self) -> None:
        """First of all in an epoch, on a new connection, or after our lease was over: what we know, and what runs."""
        if not self._link.is_up:
            self._told_epoch = ""
            self._up_since = time.monotonic()
        for _ in range(_TRIES):
            if self._link.is_up and self._link.epoch is not None and self._told_epoch == self._link.epoch.text:
                break
            self._tell_once()
        else:
            raise StoreUnavailable("the shared limits are being read by others", _AGAIN_S)
        left_s = self._epoch_began() + self._settle_s - self._clock.monotonic()
        if left_s > 0 and not self._closed:
            raise StoreUnavailable(_LOST, min(left_s, self._settle_s))

    def _tell_once(self) -> None:
        reply = self._link.exchange((), (), ())
        if reply.kind != "ok" or self._link.epoch is None:
            return
        if self._link.epoch.base != self._base:
            # The server counts time from elsewhere now: nothing is written as it was.
            self._base = self._link.epoch.base
            for seen in self._seen.values():
                seen.token, seen.spelling = "", Spelling()
        epoch, known = self._link.epoch.text, list(self._seen)
        for at in range(0, len(known), _AT_ONCE):
            if not self._tell_some(known[at : at + _AT_ONCE]):
                return
        self._told_epoch = epoch

    def _tell_some(self, keys: list[str]) -> bool:
        """Our knowledge of `keys` goes into what is there."""
        mine = {key: self._seen[key].state for key in keys}
        for _ in range(_TRIES):
            reply = self._link.exchange(keys, ["?"] * len(keys), [""] * len(keys))
            if reply.kind != "stale":
                return False
            for key, value in zip(keys, reply.values, strict=True):
                self._saw(key, value)
            told = {key: self._with_mine(key, state) for key, state in mine.items()}
            if self._exchange(keys, told):
                return True
        return False

    def _with_mine(self, key: str, known: LimitState | None) -> LimitState:
        there, running = self._record(key), self._mine.get(key, 0)
        if not self._seen[key].token:
            there.busy = {}
        state = merged(known, there) if known is not None else there
        state.busy = {owner: number for owner, number in there.busy.items() if owner != self.owner}
        if running:
            state.busy[self.owner] = running
        return state

    def _failed(self, why: str) -> StoreUnavailable:
        self._link.drop()
        self._why = why
        self._shut_until = time.monotonic() + _REPAIR_S
        return StoreUnavailable(why, _REPAIR_S)

    def _try_pay(self) -> bool:
        try:
            while True:
                self.change((), lambda records: (None, False))
                if not self._owed:
                    return True
        except StoreUnavailable:
            return False

    def _watch(self) -> None:
        """End the term, and with it every exchange, when our tenure ends or is found to have ended."""
        lapses = self._link.lapses
        while not self._over.wait(self._left_s if self._left_s > 0 else self._beat_s):
            if self._left_s <= 0 or lapses != self._link.lapses:
                lapses = self._link.lapses
                term, self._term = self._term, CancelToken()
                term.cancel()

    def _beat(self) -> None:
        while not self._closed:
            if self._wake.wait(self._beat_s):
                if not self._hurry:
                    time.sleep(self._soon_s)
                self._hurry = False
                self._wake.clear()
            with self._lock:
                if not self._closed:
                    self._try_pay()
