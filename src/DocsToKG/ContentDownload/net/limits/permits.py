"""The right to one exchange, from its grant over the moment of sending to its release.

Between grant and sending a task can be late, and two late tasks would meet at the server. So the distance is kept
a second time, over the moments of sending. Knows the limits and the store, not who asks for what.
Promises: nothing is sent on slots that may have become another's; slots are freed once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field

from DocsToKG.ContentDownload.api.gates import Gate
from DocsToKG.ContentDownload.net.limits.breakers import NO_REPORT
from DocsToKG.ContentDownload.net.limits.rates import RateRule, Taken
from DocsToKG.ContentDownload.net.limits.registry import LimitChain
from DocsToKG.ContentDownload.net.limits.state import ANY_ROLE, CONNECTING_S, KeyLimit, LimitState, Rule
from DocsToKG.ContentDownload.net.limits.stores.base import LimitStore, StoreUnavailable
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.tasks import finished_in
from DocsToKG.core.values import lean_dataclass

# Later than this after its grant, a thread must see whether another process has been granted meanwhile.
_LATE_S = 0.01
# How soon to look again whether the record has room for a grant that may have been lost.
_UNSURE_S = 0.005


Takes = list[list[tuple[RateRule, Taken]]]


class LimitContext:
    """What all permits of one process share: the lock under which limits change, the record, and who is told when a
    place has become free.

    A remote store is asked under a lock of its own, in a thread of its own, so that no event loop waits for a server.
    """

    def __init__(self, clock: Clock, store: LimitStore) -> None:
        self.clock = clock
        self.store = store
        self.lock = threading.RLock()
        self.asking = threading.RLock() if store.remote else self.lock
        self.executor = ThreadPoolExecutor(1, "limits") if store.remote else None
        self.callbacks: tuple[Callable[[str], None], ...] = ()

    def notify(self, key: str) -> None:
        for callback in self.callbacks:
            callback(key)

    def close(self) -> None:
        if self.executor is not None:
            self.executor.shutdown()


class HostPermit:
    """The right to one exchange with one host. Call `start` right before sending."""

    __slots__ = (
        *("_context", "_let_go", "_released", "_sent", "_sending", "_started_at", "_taken", "_tenure", "_chain"),
        *("afterwards", "granted_at", "report"),
    )

    def __init__(self, context: LimitContext, chain: LimitChain, taken: Takes, granted_at: float) -> None:
        self.granted_at = granted_at
        self.afterwards: Callable[[], None] | None = None  # what else is to be freed with the slots
        self.report = NO_REPORT  # what its breakers are to be told
        self._context = context
        self._chain = chain
        self._taken = taken
        self._tenure = context.store.tenure
        self._started_at: float | None = None  # while it is on its way to the wire
        self._sent: list[tuple[KeyLimit, list[tuple[RateRule, Taken]]]] = []
        self._sending: Future[float] | None = None  # what a remote store says about a late one
        self._let_go: Callable[[], None] | None = None
        self._released = False

    def start(self) -> float:
        """0.0 when the request may be sent now; otherwise the seconds until it may, and nothing is counted."""
        context = self._context
        with context.asking:
            return self._start(context.clock.monotonic())

    async def started(self) -> float:
        """The same for a task: its event loop does not wait for a server."""
        context, executor = self._context, self._context.executor
        now = context.clock.monotonic()
        if executor is None or not self._needs_store(now):
            with context.lock:
                return self._start(now)
        return await finished_in(executor, self.start)

    def before_send(self) -> float:
        """Right before the first byte: 0.0, or the seconds for which it must still wait.

        Who takes long to connect is not waited for, and by other processes not at all, so others may have gone ahead.
        """
        context, started_at = self._context, self._started_at
        now = context.clock.monotonic()
        if started_at is None or now - started_at < _LATE_S:
            return 0.0
        if context.executor is None or not self._needs_store(now):
            with context.lock:
                return self._sent_late(started_at, now)
        if self._sending is None:
            self._sending = context.executor.submit(self._sent_late_by_store, started_at, now)
        if not self._sending.done():
            return _UNSURE_S
        sending, self._sending = self._sending, None
        return sending.result()

    def _start(self, now: float) -> float:
        if not self._still_holds():
            return _UNSURE_S
        if self._chain.is_paced():
            return self._go(now)
        # Where no distance is kept, nobody else needs to know when it is sent.
        for key_limit in self._chain.sending:
            if key_limit.hold_until > now:
                return max(limit.hold_until for limit in self._chain.sending) - now
        self._started_at = now
        return 0.0

    def _sent_late_by_store(self, started_at: float, now: float) -> float:
        with self._context.asking:
            return self._sent_late(started_at, now)

    def _sent_late(self, started_at: float, now: float) -> float:
        chain = self._chain
        if not self._still_holds():
            return _UNSURE_S
        if now - started_at >= CONNECTING_S:
            return self._go(now)
        if (held_until := max(key_limit.hold_until for key_limit in chain.sending)) > now:
            return held_until - now  # the host asked for a pause meanwhile
        if not self._context.store.shared or not chain.is_paced():
            return 0.0
        if not 0.0 < max(key_limit.interval_s(chain.role) for key_limit in chain.sending) <= now - started_at:
            return 0.0
        delay_s = self._regrant(now) if self._is_late(now) else 0.0
        if delay_s <= 0:
            self._set_out(now)
        return max(0.0, delay_s)

    def cancelled_with(self, cancel: CancelToken) -> CancelToken:
        """For the exchange: cancelled with `cancel`, and before the slots of this permit may be another's."""
        term = self._context.store.term
        if term is None:
            return cancel
        own = CancelToken(parent=cancel)
        forget = term.on_cancel(own.cancel)

        def let_go() -> None:
            forget()
            own.close()

        self._let_go = let_go
        # A term that began after the grant says nothing about its slots.
        if not 0 <= self._context.store.tenure == self._tenure:
            own.cancel()
        return own

    def on_sent(self) -> None:
        """The request is on the wire: from now on others keep their distance."""
        is_paced = self._chain.is_paced()
        if not is_paced and not self._sent:
            self._started_at = None
            return
        with self._context.lock:
            self._arrive()
            if is_paced:
                self._count_from(self._context.clock.monotonic())

    def _count_from(self, now: float) -> None:
        chain, store = self._chain, self._context.store
        for key_limit in chain.sending:
            key_limit.count_from(chain.role, now)

        def move(records: list[LimitState]) -> tuple[None, bool]:
            for key_limit, state in zip(chain.sending, records, strict=True):
                key_limit.count_from(chain.role, now, state)
            return None, True

        if store.shared and now - self.granted_at > _LATE_S:
            store.post(chain.keys[:-1], move)

    def refund(self) -> None:
        context, chain = self._context, self._chain
        with context.lock:
            now = context.clock.monotonic()
            taken, self._taken = self._taken, []
            sent, self._sent = self._sent, []

            def change(records: list[LimitState]) -> tuple[None, bool]:
                _give_back(chain.key_limits, records, taken, now)
                return None, True

            for key_limit, what in sent:
                key_limit.unsend(what, now)
            if taken:
                _look_again(chain.key_limits)
                context.store.post(chain.keys, change)

    def release(self) -> None:
        if self._released:
            return
        self._released = True
        if self._let_go is not None:
            self._let_go()
        context, chain = self._context, self._chain
        with context.lock:
            if self._started_at is not None:
                self._arrive()
            for key_limit in chain.key_limits:
                key_limit.busy -= 1
            # Our own next request may take the slot up; if it must visit the record, one visit serves both.
            context.store.post(chain.keys, chain.vacate, soon=True)
        for key in reversed(chain.keys):
            context.notify(key)
        if self.afterwards is not None:
            self.afterwards()

    def _go(self, now: float) -> float:
        """Set out now, unless a hold or somebody else's request says otherwise; then the seconds to wait."""
        delay_s, role = 0.0, self._chain.role
        with self._context.lock:
            for key_limit in self._chain.sending:
                delay_s = max(delay_s, key_limit.sending_delay_s(role, now))
        if delay_s <= 0 and self._is_late(now):
            delay_s = self._regrant(now)
        if delay_s <= 0:
            self._set_out(now)
        return max(0.0, delay_s)

    def _set_out(self, now: float) -> None:
        with self._context.lock:
            if self._started_at is not None:
                self._arrive()
            self._started_at = now
            for key_limit in self._chain.sending:
                self._sent.append((key_limit, key_limit.set_out(self._chain.role, now)))

    def _arrive(self) -> None:
        started_at, self._started_at = self._started_at, None
        if started_at is not None:
            for key_limit in self._chain.sending:
                key_limit.arrive(started_at)

    def _is_late(self, now: float) -> bool:
        """Has the record shared with others fallen behind, in a way that they could feel?"""
        return self._context.store.shared and now - self.granted_at > _LATE_S and self._chain.is_paced()

    def _needs_store(self, now: float) -> bool:
        return not 0 <= self._context.store.tenure == self._tenure or self._is_late(now)

    def _still_holds(self) -> bool:
        """False where its slots may have gone to others since the grant, and the record has no room for both."""
        store, chain = self._context.store, self._chain
        if 0 <= store.tenure == self._tenure:
            return True

        def fits(records: list[LimitState]) -> tuple[bool, bool]:
            pairs = zip(chain.key_limits, records, strict=True)
            return all(sum(state.busy.values()) <= key_limit.slots_now for key_limit, state in pairs), False

        try:
            if not store.change(chain.keys, fits):
                return False
        except StoreUnavailable:
            return False
        self._tenure = store.tenure
        return True

    def _regrant(self, now: float) -> float:
        """A late thread's start counts from now: its grant is changed for a new one, if there is one."""
        taken, self._taken = self._taken, []
        chain, seen = self._chain, list[LimitState]()

        def change(records: list[LimitState]) -> tuple[float | Takes, bool]:
            seen[:] = records
            _give_back(chain.key_limits, records, taken, now)
            latest = latest_rule(chain, records, now)
            if latest.at > now:
                return latest.at - now, True
            pairs = zip(chain.key_limits, records, strict=True)
            return [key_limit.take(state, chain.role, now) for key_limit, state in pairs], True

        try:
            answer = self._context.store.change(chain.keys, change)
        except StoreUnavailable as away:
            self._taken = taken
            return away.again_s
        with self._context.lock:
            for key_limit, state in zip(chain.key_limits, seen, strict=True):
                key_limit.note(state, now)
        if isinstance(answer, float):
            return answer
        self._taken, self.granted_at = answer, now
        return 0.0


def latest_rule(chain: LimitChain, records: Sequence[LimitState], now: float) -> Rule:
    """The latest of all times is named, so that nobody is woken only to be sent away again."""
    pairs = zip(chain.key_limits, records, strict=True)
    return max(
        (rule for key_limit, state in pairs for rule in key_limit.rules(state, chain.role, now)),
        key=lambda rule: rule.at,
    )


def _look_again(key_limits: Sequence[KeyLimit]) -> None:
    for key_limit in key_limits:
        # A pause that the host asked for is not ours to give back.
        key_limit.refusals = {role: rule for role, rule in key_limit.refusals.items() if role == ANY_ROLE}


def _give_back(key_limits: Sequence[KeyLimit], records: list[LimitState], taken: Takes, now: float) -> None:
    for key_limit, state, what in zip(key_limits, records, taken, strict=False):
        key_limit.give_back(state, what, now)


class RateWaits:
    """What one request was held up by, from its first asking to its grant."""

    __slots__ = ("_since", "_until", "rule", "seconds")

    def __init__(self) -> None:
        self.rule: tuple[str, str] | None = None  # what it was sent away for and has not come back from
        self.seconds: dict[tuple[str, str], float] = {}  # by key (`host:...` or `resolver:...`) and rule
        self._since = 0.0
        self._until = 0.0

    def refused(self, key: str, rule: str, *, since: float, until: float) -> None:
        """Sent away at `since`, with the advice to come back at `until`."""
        self.rule, self._since, self._until = (key, rule), since, until

    def asked_again(self, now: float) -> None:
        """Back before the gate. Coming later than advised is not the rule's doing."""
        if self.rule is not None:
            self.add(*self.rule, min(now, self._until) - self._since)
            self.rule = None

    def add(self, key: str, rule: str, seconds: float) -> None:
        self.seconds[key, rule] = self.seconds.get((key, rule), 0.0) + seconds


@lean_dataclass(frozen=True, slots=True)
class TimedGate(Gate):
    """A gate that remembers what it made its request wait for."""

    delays: RateWaits = field(default_factory=RateWaits, compare=False, repr=False)
