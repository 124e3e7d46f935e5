"""Which hosts and sources are left alone for a while, because they kept failing.

Knows what an exchange says about its host and, where an index was asked, about its source; the rules of opening are
`core.breaker`'s. Promises: where a breaker is open no request goes out, and the asker learns when to come back; every
change of state reaches the record.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from DocsToKG.ContentDownload.api.ports import AttemptSink
from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.net.faults import OutOfTime
from DocsToKG.core.breaker import Breaker, BreakerSettings, BreakerState, CheckResult, Ticket, Transition
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key, mask_url

log = logging.getLogger(__name__)

# The server is broken or away. 520 to 524 are a content network's words for an origin in that state.
_BROKEN = frozenset({500, 502, 503, 504, *range(520, 525)})
_NO_ANSWER = frozenset({Reason.CONN_ERROR, Reason.TIMEOUT, Reason.TLS_ERROR})
# Answers about our haste, not about the server's health.
_NOT_NOW = frozenset({408, 425})
_TOO_MANY = 429
# In the record, an opening with these words was caused by the same failure as that of the breaker named.
TOGETHER = "together with"
# Hosts come from outside, so the number of those remembered is bounded.
_MOST_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class BreakerStatus:
    """How one breaker stands, for whoever wants to see."""

    key: str
    state: BreakerState
    forced: bool
    failure_rate: float
    retry_in_s: float | None


class Breakers:
    """The breakers of one process or, by `make`, of many machines, by `host:<host>` and `resolver:<name>`."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: BreakerSettings,
        sink: AttemptSink,
        most_keys: int = _MOST_KEYS,
        make: Callable[..., Breaker] = Breaker,
        executor: Executor | None = None,
    ) -> None:
        """`make` builds the breaker of a key. Those on a server may wait for it: a task calls `look` and `enter` in
        the `executor`, where reports are made, too."""
        self._make = make
        self.executor = executor
        self._clock = clock
        self._settings = settings
        self._sink = sink
        self._most_keys = most_keys
        self._lock = threading.Lock()
        self._breakers: dict[str, Breaker] = {}
        self._chains: dict[tuple[str, str | None], tuple[Breaker, ...]] = {}  # those of a host and a source
        self._now = _Failure()

    def look(self, url: str, resolver: str | None = None) -> None:
        """Raises `TransientFailure(breaker_open)` where an exchange would be refused; takes nothing."""
        for breaker in self._of(url, resolver):
            result = breaker.look()
            if not result.allowed:
                raise _refusal(breaker.key, result, url)

    def enter(self, url: str, resolver: str | None = None, trial: bool = False) -> BreakerReport:
        """Leave to send one request now, or `TransientFailure(breaker_open)`.

        `resolver` only when an index is asked: what becomes of a file on somebody's host says nothing about the index
        that named it. Of a `trial` only an answer counts, since having none was to be expected.
        """
        entered: list[tuple[Breaker, Ticket]] = []
        for breaker in self._of(url, resolver):
            result = breaker.check()
            if result.ticket is None:
                _give_back(entered)
                raise _refusal(breaker.key, result, url)
            entered.append((breaker, result.ticket))
        return BreakerReport(entered, trial, self._now, self.executor)

    def get(self, key: str) -> Breaker:
        """The breaker of `host:<host>` or `resolver:<name>`; made on first use."""
        return self._breakers.get(key) or self._made(key)

    def _made(self, key: str) -> Breaker:
        with self._lock:
            breaker = self._breakers.get(key)
            if breaker is None:
                self._make_room()
                breaker = self._make(self._settings, self._clock, key=key, on_transition=self._tell)
                self._breakers[key] = breaker
            return breaker

    def statuses(self, state: BreakerState | None = None) -> list[BreakerStatus]:
        """Every breaker known, or those in one state."""
        with self._lock:
            known = list(self._breakers.values())
        found = [_status(breaker) for breaker in known]
        return [status for status in found if state is None or status.state is state]

    def _of(self, url: str, resolver: str | None) -> tuple[Breaker, ...]:
        place = (host_key(url), resolver)
        found = self._chains.get(place)
        if found is None:
            keys = [f"host:{place[0]}", *([] if resolver is None else [f"resolver:{resolver}"])]
            found = self._chains[place] = tuple(map(self.get, keys))
        return found

    def _make_room(self) -> None:
        if len(self._breakers) < self._most_keys:
            return
        self._chains = {}
        self._breakers = {key: kept for key, kept in self._breakers.items() if not kept.is_idle()}
        if len(self._breakers) < self._most_keys:
            return
        # Closed ones go first, then those met longest ago; half at once, so that a flood of names is not sifted each
        # time. A forced state was somebody's decision and stays.
        going = sorted(
            (key for key, kept in self._breakers.items() if not kept.forced),
            key=lambda key: self._breakers[key].state is not BreakerState.CLOSED,
        )
        for key in going[: max(1, self._most_keys // 2)]:
            del self._breakers[key]

    def _tell(self, change: Transition) -> None:
        why = change.why
        if change.new is BreakerState.OPEN and self._now.opened is not None:
            why = f"{why}; {TOGETHER} {self._now.opened}"
        elif change.new is BreakerState.OPEN and self._now.is_told:
            self._now.opened = change.key
        log.info("breaker of %s: %s to %s (%s)", _named(change.key), change.old, change.new, why)
        self._sink.breaker_transition(
            change.key, change.old.value, change.new.value, reason=why, reset_timeout_s=change.reset_s
        )


class _Failure(threading.local):
    """The failure that this thread is telling its breakers about, and the first of them that it opened."""

    is_told = False
    opened: str | None = None


class BreakerReport:
    """One exchange under the eyes of its breakers, who are to learn how it ended, each once."""

    __slots__ = ("_entered", "_executor", "_failing", "_trial")

    def __init__(
        self,
        entered: Sequence[tuple[Breaker, Ticket]],
        trial: bool,
        failing: _Failure,
        executor: Executor | None = None,
    ) -> None:
        self._entered = entered
        self._executor = executor
        self._trial = trial
        self._failing = failing

    def answered(self, status: int, *, retry_after_s: float | None = None) -> None:
        """An answer came. A page that is not there is the answer of a server in good health."""
        if status in _BROKEN or (status == _TOO_MANY and retry_after_s is None):
            self._fail(retry_after_s)
        elif status in _NOT_NOW or status == _TOO_MANY or status >= 500:
            # A 429 that names a time holds the host back already; that is obeyed, and no sign of ill health.
            self.says_nothing()
        else:
            self._settle(_record_success)

    def unanswered(self, reason: str | None) -> None:
        """No answer came, for this reason."""
        if reason in _NO_ANSWER and not self._trial:
            self._fail(None)
        else:
            self.says_nothing()

    def raised(self, error: BaseException) -> None:
        """It ended with `error`, ours or the server's."""
        if isinstance(error, CandidateRejected | TransientFailure) and not isinstance(error, OutOfTime):
            self.unanswered(error.reason)
        else:
            self.says_nothing()

    def broke_off(self) -> None:
        """An answer began and its body stalled or ended short."""
        self._fail(None)

    def says_nothing(self) -> None:
        """Nothing was sent, or we broke it off ourselves."""
        self._settle(_give_back)

    def _fail(self, retry_after_s: float | None) -> None:
        self._settle(partial(self._record_failure, retry_after_s))

    def _record_failure(self, retry_after_s: float | None, entered: Sequence[tuple[Breaker, Ticket]]) -> None:
        self._failing.is_told = True
        try:
            for breaker, ticket in entered:
                breaker.record_failure(retry_after_s=retry_after_s, ticket=ticket)
        finally:
            self._failing.is_told, self._failing.opened = False, None

    def _settle(self, record: Callable[[Sequence[tuple[Breaker, Ticket]]], None]) -> None:
        """Tell the breakers that have not heard yet; each hears once."""
        entered, self._entered = self._entered, ()
        if not entered or self._executor is None:
            record(entered)
            return
        with contextlib.suppress(RuntimeError):  # the run is over, and its breakers are closed
            self._executor.submit(record, entered)


# Of an exchange that nobody watches.
NO_REPORT = BreakerReport((), trial=False, failing=_Failure())


def _record_success(entered: Sequence[tuple[Breaker, Ticket]]) -> None:
    for breaker, ticket in entered:
        breaker.record_success(ticket=ticket)


def _give_back(entered: Sequence[tuple[Breaker, Ticket]]) -> None:
    for breaker, ticket in entered:
        breaker.record_nothing(ticket)


def _refusal(key: str, result: CheckResult, url: str) -> TransientFailure:
    named, wait_s = _named(key), result.retry_in_s
    if wait_s is None:
        detail = f"breaker of {named} is forced open"
    elif result.state is BreakerState.OPEN:
        detail = f"breaker of {named} is open for {wait_s:.0f} s"
    else:
        detail = f"breaker of {named} is half-open and its tests are running; come back in {wait_s:.0f} s"
    return TransientFailure(Reason.BREAKER_OPEN, detail, url=mask_url(url), retry_after_s=wait_s, tested=result.tested)


def _named(key: str) -> str:
    return key.replace(":", " ", 1)


def _status(breaker: Breaker) -> BreakerStatus:
    result = breaker.look()
    return BreakerStatus(breaker.key, result.state, breaker.forced, result.failure_rate, result.retry_in_s)
