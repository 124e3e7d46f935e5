"""Breakers that many machines share on a Redis or Valkey server: what one finds failing, all leave alone.

The rules are `core.breaker`'s; each change is worked out on the state as it was seen last, and the server takes it if
that still holds. Promises: a test of a half-open breaker is counted once, whoever asks at once; a failure is told
before the next request; successes of a closed one are told within `look_s`, which is also how late an opening may
be seen elsewhere. While the server is away each node goes by what it knows; requests are stopped by the limits then.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from DocsToKG.ContentDownload.net.limits.stores.redis_connection import RedisConnection, ServerUnavailable
from DocsToKG.ContentDownload.net.limits.stores.redis_times import ServerTime
from DocsToKG.core.breaker import Breaker, BreakerSettings, BreakerState, CheckResult, Ticket, Transition
from DocsToKG.core.clock import Clock
from DocsToKG.core.ids import new_worker_id

T = TypeVar("T")

_TRIES = 25
_REST_S = 1.0
_MOST_OWED = 1000
_UNSEEN = "?"


class RedisBreakers:
    """Makes the breakers of one node, all on one connection. As a clock, it tells the server's time."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        space: str = "",
        look_s: float = 0.25,
        patience_s: float = 1.0,
        times: ServerTime | None = None,
    ) -> None:
        self.look_s = look_s
        self.executor = ThreadPoolExecutor(1, "breakers")
        self._clock = clock
        self._owner = new_worker_id()
        self._link = RedisConnection(
            url, owner=self._owner, clock=clock, space=space, patience_s=patience_s, keep_s=86400.0, times=times
        )
        self._lock = threading.Lock()
        self._rest_until = -math.inf
        self._count = 0

    def make(
        self, settings: BreakerSettings, clock: Clock, *, key: str, on_transition: Callable[[Transition], None]
    ) -> Breaker:
        return RedisBreaker(self, settings, key=key, on_transition=on_transition)

    def now(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        """The server's time, as far as it is known: windows and tests then mean the same to every node."""
        offset_s = self._link.times.offset_s
        return self._clock.monotonic() + (0.0 if math.isnan(offset_s) else offset_s)

    async def sleep_until(self, moment: float) -> None:
        await self._clock.sleep_until(self._clock.monotonic() + moment - self.monotonic())

    def new_token(self) -> str:
        self._count += 1
        return f"{self.epoch_id}.{self._owner}.{self._count}"

    @property
    def epoch_id(self) -> str:
        return self._link.epoch.id if self._link.epoch is not None else ""

    def exchange(self, key: str, token: str, value: str) -> tuple[bool, str]:
        """Whether `value` was written, and otherwise what is there; raises `Away`."""
        with self._lock:
            now = self._clock.monotonic()
            if now < self._rest_until:
                raise ServerUnavailable("resting")
            try:
                for _ in range(_TRIES):
                    reply = self._link.exchange([f"breaker:{key}"], [token], [value])
                    if reply.kind in ("ok", "stale"):
                        return reply.kind == "ok", reply.values[0] if reply.values else ""
            except ServerUnavailable:
                self._rest_until = now + _REST_S
                raise
            raise ServerUnavailable("busy")

    def close(self) -> None:
        self.executor.shutdown()
        with self._lock:
            self._link.leave()
            self._link.close()


class RedisBreaker(Breaker):
    """One breaker that all nodes share."""

    def __init__(
        self,
        server: RedisBreakers,
        settings: BreakerSettings,
        *,
        key: str,
        on_transition: Callable[[Transition], None],
    ) -> None:
        self._inside = False
        self._noted: list[Transition] = []
        super().__init__(settings, server, key=key, on_transition=self._note)
        self._server = server
        self._tell = on_transition
        self._told = BreakerState.CLOSED
        self._token = _UNSEEN
        self._seen_at = -math.inf
        self._owed: list[Callable[[], Any]] = []  # told to nobody yet
        self._agreed = self._dump()  # what all knew when we looked last
        self._new = self._there = self._agreed  # what the server has

    def check(self) -> CheckResult:
        return self._do(lambda: Breaker.check(self))

    def look(self) -> CheckResult:
        with self._lock:
            return Breaker.look(self) if self._inside else self._do(lambda: Breaker.look(self))

    def record_success(self, *, ticket: Ticket | None = None) -> None:
        self._do(lambda: Breaker.record_success(self, ticket=ticket), owed=True)

    def record_failure(self, *, retry_after_s: float | None = None, ticket: Ticket | None = None) -> None:
        def fail() -> None:
            Breaker.record_failure(self, retry_after_s=retry_after_s, ticket=ticket)

        self._do(fail, owed=True, waits=False)

    def record_nothing(self, ticket: Ticket) -> None:
        self._do(lambda: Breaker.record_nothing(self, ticket), owed=True)

    def force_open(self, why: str) -> None:
        self._do(lambda: Breaker.force_open(self, why), owed=True, waits=False)

    def force_closed(self, why: str) -> None:
        self._do(lambda: Breaker.force_closed(self, why), owed=True, waits=False)

    def unforce(self, why: str) -> None:
        self._do(lambda: Breaker.unforce(self, why), owed=True, waits=False)

    def _do(self, action: Callable[[], T], *, owed: bool = False, waits: bool = True) -> T:
        """On the state that all share; where it was closed a moment ago, what `waits` goes with the next look."""
        with self._lock:
            self._inside = True
            try:
                return self._here(action, owed) if waits and self._is_calm() else self._shared(action, owed)
            finally:
                self._inside = False
                self._tell_noted()

    def _is_calm(self) -> bool:
        """Closed, and seen so a moment ago."""
        fresh = 0 <= self._clock.monotonic() - self._seen_at < self._server.look_s
        return fresh and self._state is BreakerState.CLOSED and len(self._owed) < _MOST_OWED

    def _here(self, action: Callable[[], T], owed: bool) -> T:
        result = action()
        if owed:
            self._owed.append(action)
        # What it changed is told when all have agreed.
        self._noted.clear()
        return result

    def _shared(self, action: Callable[[], T], owed: bool) -> T:
        for _ in range(_TRIES):
            self._noted.clear()
            self._load(self._agreed)
            for late in self._owed:
                late()
            result = action()
            try:
                if self._agree():
                    return result
            except ServerUnavailable:
                break
        self._seen_at = -math.inf
        if owed:
            self._owed = [*self._owed[1 - _MOST_OWED :], action]
        return result

    def _agree(self) -> bool:
        """Make the state here that of all; False when theirs was another than we knew, which we know now."""
        mine, token = self._dump(), self._server.new_token()
        changed = mine != self._there
        text = f"{token} {json.dumps(mine)}" if changed else ""
        done, there = self._server.exchange(self.key, self._token, text)
        if not done:
            self._saw(there)
            return False
        self._token = token if changed else self._token
        self._agreed = self._there = mine
        self._owed, self._seen_at = [], self._clock.monotonic()
        return True

    def _saw(self, value: str) -> None:
        known = self._token.split(".")[0]
        self._token, _, text = value.partition(" ")
        self._there = self._new
        try:
            self._load(json.loads(text))
        except (ValueError, TypeError, LookupError):
            return  # what is gone or spoiled there is still known here
        self._there = self._dump()
        was_lost = known not in (_UNSEEN, self._server.epoch_id)
        if was_lost and self._agreed["state"] == BreakerState.OPEN and self._state is BreakerState.CLOSED:
            return
        self._agreed, self._told = self._there, self._state

    def _note(self, change: Transition) -> None:
        self._noted.append(change)
        if not self._inside:  # somebody only looked; it happens again when all can agree on it
            self._noted.clear()

    def _tell_noted(self) -> None:
        """Each change once, however often it had to be worked out."""
        noted, self._noted = self._noted, []
        for change in noted:
            if change.old is self._told or change.new is not self._told:
                self._told = change.new
                self._tell(change)

    def _dump(self) -> dict[str, Any]:
        window = self._window
        return {
            "state": self._state.value,
            "forced": self._forced,
            "period": self._period,
            "numbers": self._numbers,
            "reopenings": self._reopenings,
            "rate": self._rate_when_opened,
            "passed": self._passed,
            "open_until": self._open_until,
            "asked_until": self._asked_until,
            "tests": [[number, began] for number, began in self._tests.items()],
            "window": [list(window._numbers), list(window._total), list(window._failed)],
        }

    def _load(self, kept: dict[str, Any]) -> None:
        window = [[int(number) for number in part] for part in kept["window"]]
        if [len(part) for part in window] != [len(self._window._numbers)] * 3:
            raise ValueError("not the window of a breaker")
        self._calm = None
        self._state, self._forced = BreakerState(kept["state"]), bool(kept["forced"])
        self._period, self._numbers = int(kept["period"]), int(kept["numbers"])
        self._reopenings, self._passed = int(kept["reopenings"]), int(kept["passed"])
        self._rate_when_opened = float(kept["rate"])
        self._asked_until = float(kept["asked_until"])
        # A server whose clock was set back must not lock anything for years.
        latest = max(self._asked_until, self._clock.monotonic() + self._settings.longest_open_s)
        self._open_until = min(float(kept["open_until"]), latest)
        self._tests = {int(number): float(began) for number, began in kept["tests"]}
        self._window._numbers, self._window._total, self._window._failed = window
