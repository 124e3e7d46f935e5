"""Where tasks wait for permits: a queue for each key that is full or paced, and which key is asked for next.

Knows the gatekeeper, its keys and times, and the event loop it is used on; knows nothing of HTTP, jobs or papers.
Promises: a permit is asked for only when its task can use it at once; first come, first served within a key; of the
keys that may be asked for, the one with the longest queue goes first, because it is done last, and none is passed over
for long; at most `most` permits are out at once; a task that is cancelled leaves its queue, or gives its permit back.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest
from itertools import islice
from typing import Any, Protocol

from DocsToKG.ContentDownload.api.gates import Gate, Gatekeeper, GateShut, NotYet, Permit
from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.limits.host_limits import HostPermit
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key
from DocsToKG.core.values import lean_dataclass

# Standing in a queue holds the work's lease; beyond a minute the work had better come back another time.
_LONGEST_WAIT_S = 60.0
_PACE_WEIGHT = 0.1  # of the newest grant in a key's average
_UNKNOWN_WAIT_S = 5.0  # nobody has got a permit of that key while we watched
_MOST_COMPARED = 16  # with ever more, choosing would cost more than it brings
_MOST_PASSED_OVER = 256
_SHORTEST_TOLD_S = 0.001
_LOOK_AGAIN_S = 0.02
_MOST_BEHIND = 16

SlotKey = tuple[str, str]  # `resolver` or `host`, and its name


@lean_dataclass(frozen=True, slots=True)
class Overflow:
    """A work far back in a long queue: whom to call off, the host it waits for, and for how long about."""

    cancel: CancelToken
    host: str
    wait_s: float
    why: str


class Limiter(Protocol):
    """Slots for each key."""

    def acquire(self, key: str, blocking: bool = True) -> bool: ...

    def release(self, key: str) -> None: ...


class CappedGatekeeper:
    """A gatekeeper whose permits for files hold slots of the caller's own limiters too (LIM-04)."""

    def __init__(self, keeper: Gatekeeper, resolvers: Limiter | None, hosts: Limiter | None, *, clock: Clock) -> None:
        self._keeper = keeper
        self._limiters = (resolvers, hosts)
        self._clock = clock

    def ask(self, gate: Gate) -> Permit | NotYet:
        if gate.role != Role.ARTIFACT:  # to look for a copy takes no slot of the caller's (ORC-14)
            return self._keeper.ask(gate)
        held: list[tuple[Limiter, str]] = []
        try:
            answer = self._no_slot(gate, held) or self._keeper.ask(gate)
        except BaseException:
            _release(held)
            raise
        if isinstance(answer, NotYet):
            _release(held)
            return answer
        return CappedPermit(answer, held)

    def _no_slot(self, gate: Gate, held: list[tuple[Limiter, str]]) -> NotYet | None:
        """Takes the slots one after the other; what to wait for when there is none."""
        for limiter, kind, key in zip(
            self._limiters, ("resolver", "host"), (gate.resolver, host_key(gate.url)), strict=True
        ):
            if limiter is None:
                continue
            if not limiter.acquire(key, blocking=False):
                # Who else holds slots does not tell us when they are free.
                again_at = self._clock.monotonic() + _LOOK_AGAIN_S
                return NotYet(f"{kind}:{key}", again_at, f"the caller's own limit of {key}")
            held.append((limiter, key))
        return None

    def on_free(self, callback: Callable[[str], None]) -> None:
        self._keeper.on_free(callback)

    @property
    def executor(self) -> Executor | None:
        return self._keeper.executor


class CappedPermit:
    """A permit, and the slots of the caller's that go with it."""

    def __init__(self, permit: Any, held: list[tuple[Limiter, str]]) -> None:
        self._permit = permit
        self._held = held

    def release(self) -> None:
        self._permit.release()
        _release(self._held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._permit, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("_permit", "_held"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._permit, name, value)


def _release(held: list[tuple[Limiter, str]]) -> None:
    while held:
        limiter, key = held.pop()
        limiter.release(key)


class _Waiter:
    """A task in a queue. `permit` is set with what it waits for."""

    __slots__ = ("call", "gate", "key", "permit", "was_lacking")

    def __init__(self, gate: Gate, call: Call, key: str) -> None:
        self.gate = gate
        self.call = call
        self.key = key
        self.permit: asyncio.Future[HostPermit] = asyncio.get_running_loop().create_future()
        self.was_lacking: Counter[SlotKey] = Counter()


@dataclass(slots=True, eq=False)
class _Queue:
    """Who waits for one key, why, how fast it moves, and for how long a slot was lacking."""

    why: str = ""
    waiters: deque[_Waiter] = field(default_factory=deque)
    last_grant: float | None = None
    average_s: float = 0.0  # between two grants
    lack: SlotKey | None = None
    lack_since: float = 0.0
    lacked_s: Counter[SlotKey] = field(default_factory=Counter)

    def granted(self, now: float) -> None:
        last = now if self.last_grant is None else self.last_grant
        self.average_s += _PACE_WEIGHT * (now - last - self.average_s)
        self.last_grant = now

    def is_lacking(self, lack: SlotKey | None, now: float) -> None:
        if self.lack is not None:
            self.lacked_s[self.lack] += now - self.lack_since  # type: ignore[assignment]  # seconds, not a count
        self.lack, self.lack_since = lack, now


class PermitQueues:
    """Implements `api.gates.Gates` for the tasks of one event loop."""

    def __init__(self, keeper: Gatekeeper, *, clock: Clock, most: int | None = None) -> None:
        self._keeper = keeper
        self._clock = clock
        self._most = math.inf if most is None else most
        self._most_behind = _MOST_BEHIND + (0 if most is None else most)
        self._queues: dict[str, _Queue] = {}  # a key without waiters is not there
        self._askable: dict[str, int] = {}  # keys whose first waiter is worth asking for, and since which choice
        self._asked: dict[str, _Waiter] = {}  # by key, for whom a remote store is being asked
        self._moved: set[str] = set()  # keys that have moved meanwhile
        self._choices = 0
        self._due: dict[str, float] = {}  # the earliest moment to ask for a key again
        self._timers: list[tuple[float, str]] = []
        self._timer: asyncio.Task[None] | None = None
        self._timer_at = math.inf
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._pump_is_due = False
        self.used = 0
        self._behind = 0  # files that came and wait for their proof
        self.is_closing = False  # nobody may wait any more
        keeper.on_free(self._key_moved)

    async def permit(self, gate: Gate, call: Call) -> HostPermit:
        """Returns with the permit; raises `GateShut` when that would take too long."""
        if self._loop is None:
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        key = f"host:{host_key(gate.url)}"
        queue = self._queues.get(key)
        no_one_waits = queue is None and not self._askable  # who stands already goes first
        if no_one_waits and self._may_grant and self._keeper.executor is None:
            answer = self._ask(gate, call)
            if not isinstance(answer, NotYet):
                return self._take(answer)
            key = answer.key
            self._note(answer)
            return await self._stand(gate, call, key, answer)
        return await self._stand(gate, call, key, None)

    async def _stand(self, gate: Gate, call: Call, key: str, answer: NotYet | None) -> HostPermit:
        if self.is_closing:
            raise Cancelled
        waiter = self._join(key, _Waiter(gate, call, key), answer)
        if answer is None and len(self._queues[key].waiters) == 1:
            self._mark_askable(key)
        waits = call.waits
        try:
            if waits is None:
                return await waiter.permit
            with waits.at_gate():
                return await waiter.permit
        except asyncio.CancelledError:
            self._leave(waiter)
            raise
        except GateShut:
            if waits is not None:
                waits.shut_host = host_key(gate.url)
            raise

    def cap(self, resolvers: Limiter | None, hosts: Limiter | None) -> None:
        """Caps of the caller's own, held for the length of an exchange: a slot of the source, then one of the host."""
        self._keeper = CappedGatekeeper(self._keeper, resolvers, hosts, clock=self._clock)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """A file has come and waits for its proof, in memory. With many of them no new permit is given out."""
        self._behind += 1
        try:
            yield
        finally:
            self._behind -= 1
            if self._askable:
                self._pump_soon()

    @property
    def _may_grant(self) -> bool:
        return self.used + len(self._asked) < self._most and self._behind < self._most_behind

    # for people who look, and for whoever has too many waiting

    @property
    def waiting(self) -> int:
        """How many tasks stand in a queue."""
        return sum(len(queue.waiters) for queue in list(self._queues.values()))

    @property
    def blocked(self) -> int:
        """How many of them could not go on if more permits might be out. From any thread."""
        askable = filter(None, (self._queues.get(key) for key in [*self._askable, *self._asked]))
        return self.waiting - sum(len(queue.waiters) for queue in askable)

    @property
    def is_idle(self) -> bool:
        """More permits could be out, and there is nobody to ask for."""
        return self.used < self._most and not self._askable and not self._asked

    def waits(self) -> Counter[str]:
        """What tasks wait for, and how many. From any thread."""
        counted: Counter[str] = Counter()
        for key, queue in list(self._queues.items()):
            counted[queue.why or key] += len(queue.waiters)
        return counted

    def crowds(self, keep: int, may: Callable[[CancelToken], bool]) -> list[Overflow]:
        """The works to part with so that about `keep` stay: the last ones of the longest queues, if they `may` go."""
        now = self._clock.monotonic()
        level = _level([len(queue.waiters) for queue in self._queues.values()], keep)
        # Where not even one may stay at each key, the keys that stay shut for longest go without.
        bare = max(0, len(self._queues) - keep) if level <= 1 else 0
        without = set(nlargest(bare, self._queues, key=lambda key: self._wait_s(key, 0, now)))
        return [
            Overflow(waiter.call.cancel, host_key(waiter.gate.url), self._wait_s(key, place, now), queue.why or key)
            for key, queue in self._queues.items()
            for kept in (0 if key in without else level,)
            for place, waiter in enumerate(islice(queue.waiters, kept, None), kept)
            if may(waiter.call.cancel)
        ]

    def _wait_s(self, key: str, place: int, now: float) -> float:
        """How long the one at `place` in a queue may wait."""
        queue = self._queues[key]
        shut_s = max(0.0, self._due.get(key, now) - now)
        return shut_s + (place * queue.average_s if queue.last_grant is not None else _UNKNOWN_WAIT_S)

    # asking

    def _ask(self, gate: Gate, call: Call) -> HostPermit | NotYet:
        answer = self._keeper.ask(gate)
        if isinstance(answer, NotYet):
            if answer.at is not None and answer.at - self._clock.monotonic() > _LONGEST_WAIT_S:
                if call.waits is not None:
                    call.waits.shut_host = host_key(gate.url)
                raise GateShut(answer.at, answer.why)
            return answer
        return answer  # type: ignore[return-value]  # what `Limits` grants

    def _take(self, permit: HostPermit) -> HostPermit:
        self.used += 1
        permit.afterwards = self._freed
        return permit

    def _freed(self) -> None:
        """A permit was released; from any thread."""
        if threading.get_ident() != self._thread and self._loop is not None:
            self._call_soon(self._freed_here)
        else:
            self._freed_here()

    def _freed_here(self) -> None:
        self.used -= 1
        if self._askable:
            self._pump_soon()

    def _pump_soon(self) -> None:
        if not self._pump_is_due and self._loop is not None:
            self._pump_is_due = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Ask for those who may go, while permits may be had."""
        self._pump_is_due = False
        while self._may_grant and (key := self._next_askable()) is not None:
            if (waiter := self._first(key)) is None:
                continue
            if self._keeper.executor is None:
                self._answered(key, waiter, partial(self._ask, waiter.gate, waiter.call))
            else:
                self._asked[key] = waiter
                answer = self._keeper.executor.submit(self._ask, waiter.gate, waiter.call)
                answer.add_done_callback(partial(self._call_soon, self._answered_elsewhere, key, waiter))

    def _next_askable(self) -> str | None:
        if not self._askable:
            return None
        self._choices += 1
        key = next(iter(self._askable))
        if len(self._askable) > 1 and self._choices - self._askable[key] < _MOST_PASSED_OVER:
            most = -1
            for one in islice(self._askable, _MOST_COMPARED):
                waiting = len(self._queues[one].waiters) if one in self._queues else 0
                if waiting > most:
                    key, most = one, waiting
        del self._askable[key]
        return key

    def _first(self, key: str) -> _Waiter | None:
        queue = self._queues.get(key)
        while queue is not None and queue.waiters[0].permit.cancelled():  # its task is about to leave
            self._drop_first(key)
            queue = self._queues.get(key)
        return None if queue is None else queue.waiters[0]

    def _answered_elsewhere(self, key: str, waiter: _Waiter, answer: Future[HostPermit | NotYet]) -> None:
        del self._asked[key]
        queue = self._queues.get(key)
        if queue is not None and queue.waiters[0] is waiter and not waiter.permit.cancelled():
            self._answered(key, waiter, answer.result)
        elif answer.exception() is None and not isinstance(permit := answer.result(), NotYet):
            permit.refund()
            permit.release()
        if key in self._moved:
            self._moved.discard(key)
            self._mark_askable(key)
        if self._askable:
            self._pump_soon()

    def _answered(self, key: str, waiter: _Waiter, ask: Callable[[], HostPermit | NotYet]) -> None:
        queue, now = self._queues[key], self._clock.monotonic()
        try:
            answer = ask()
        except Exception as error:  # this task's own fault, or its `GateShut`; the others are asked for
            self._drop_first(key)
            waiter.permit.set_exception(error)
            self._mark_askable(key)
            return
        if not isinstance(answer, NotYet):
            queue.granted(now)
            queue.is_lacking(None, now)
            self._drop_first(key)
            waiter.permit.set_result(self._take(answer))
            self._mark_askable(key)
            return
        self._note(answer)
        if answer.key == key:
            queue.why = answer.why
            queue.is_lacking(_lack(answer), now)
            return
        self._drop_first(key)
        self._join(answer.key, waiter, answer)
        self._mark_askable(key)

    # queues

    def _join(self, key: str, waiter: _Waiter, answer: NotYet | None) -> _Waiter:
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue("a free worker" if answer is None else answer.why)
        now = self._clock.monotonic()
        if answer is not None:
            queue.is_lacking(_lack(answer), now)
        else:
            queue.is_lacking(queue.lack, now)
        waiter.key = key
        waiter.was_lacking = queue.lacked_s.copy()
        queue.waiters.append(waiter)
        return waiter

    def _drop_first(self, key: str) -> None:
        self._tell_lacks(self._queues[key].waiters.popleft())
        self._forget_if_empty(key)

    def _leave(self, waiter: _Waiter) -> None:
        """Its task was cancelled."""
        permit = waiter.permit
        if permit.done() and not permit.cancelled():
            if permit.exception() is None:
                permit.result().refund()
                permit.result().release()
            return
        queue = self._queues.get(waiter.key)
        if queue is not None and waiter in queue.waiters:
            was_first = queue.waiters[0] is waiter
            self._tell_lacks(waiter)
            queue.waiters.remove(waiter)
            self._forget_if_empty(waiter.key)
            if was_first:
                self._mark_askable(waiter.key)

    def _tell_lacks(self, waiter: _Waiter) -> None:
        waits, queue = waiter.call.waits, self._queues[waiter.key]
        if waits is None or waits.on_slot_wait is None:
            return
        queue.is_lacking(queue.lack, self._clock.monotonic())
        for (kind, name), seconds in queue.lacked_s.items():
            lacked_s = seconds - waiter.was_lacking[kind, name]
            if lacked_s >= _SHORTEST_TOLD_S:
                waits.on_slot_wait(kind, name, lacked_s)

    def _forget_if_empty(self, key: str) -> None:
        if not self._queues[key].waiters:
            del self._queues[key]

    # what moves

    def _key_moved(self, key: str) -> None:
        """From any thread. Whoever was refused meanwhile stands in a queue by the time that the loop hears of it."""
        if self._loop is None:
            return
        if threading.get_ident() == self._thread:
            self._mark_askable(key)
        else:
            self._call_soon(self._mark_askable, key)

    def _call_soon(self, function: Callable[..., object], *args: object) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits there any more
            self._loop.call_soon_threadsafe(function, *args)

    def _mark_askable(self, key: str) -> None:
        if key in self._asked:
            self._moved.add(key)
        elif key not in self._askable and key in self._queues:
            self._askable[key] = self._choices
            self._pump_soon()

    def _note(self, answer: NotYet) -> None:
        """Remember when to ask for this key again. Without a time, a freed slot says so."""
        if answer.at is None or answer.at >= self._due.get(answer.key, math.inf):
            return
        self._due[answer.key] = answer.at
        heapq.heappush(self._timers, (answer.at, answer.key))
        self._set_timer()

    def _set_timer(self) -> None:
        if not self._timers or self._timers[0][0] >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._timers[0][0]
        self._timer = asyncio.get_running_loop().create_task(self._ring())

    async def _ring(self) -> None:
        await self._clock.sleep_until(self._timer_at)
        self._timer, self._timer_at = None, math.inf
        now = self._clock.monotonic()
        while self._timers and self._timers[0][0] <= now:
            at, key = heapq.heappop(self._timers)
            if self._due.get(key) == at:
                del self._due[key]
                self._mark_askable(key)
        self._set_timer()


def _lack(answer: NotYet) -> SlotKey | None:
    """The slot that is missing; None for a rule of time."""
    if answer.kind != "slot":
        return None
    prefix, _, name = answer.key.partition(":")
    return ("resolver" if prefix == "resolver" else "host"), name


def _level(lengths: list[int], keep: int) -> int:
    """How long each queue may stay so that all together hold about `keep`; short ones leave their share to others."""
    left = keep
    for number, length in enumerate(sorted(lengths)):
        share = max(1, left // (len(lengths) - number))
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)
