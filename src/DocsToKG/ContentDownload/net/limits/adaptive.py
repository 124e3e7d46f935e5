"""What a host says about its limits: in headers, by refusing, or by becoming slow.

`announced` reads the headers that services use for it; `Pulse` judges a host's answers one by one. Both are pure
rules: they say what was learned, and whoever keeps the limits acts on it.
Promises: nothing learned ever raises a configured limit; nonsense in a header teaches nothing.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from DocsToKG.core.bucket import Rate

LONGEST_PAUSE_S = 3600.0
# A host that announced a limit is believed for this long after it last said so.
BELIEVED_S = 3600.0

_OVERWHELMED = frozenset({429, 503})
_LONGEST_HEADER = 400
_NUMBER = re.compile(r"\d{1,13}(?:\.\d{1,6})?")
_INTERVAL = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhd]?)")
_UNIT_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# Both drafts of RateLimit-Policy: `100;w=60` and `"name";q=100;w=60`.
_POLICY = re.compile(r"(?:^|[;\s,])(?:q=)?(\d{1,9})\s*;\s*w=(\d{1,7})")
_LEFT = re.compile(r"(?:remaining|\br)\s*=\s*(\d{1,13})")
_BACK = re.compile(r"(?:reset|\bt)\s*=\s*(\d{1,13})")
# A reset of this many seconds is a date, in seconds or in milliseconds.
_EPOCH, _EPOCH_MS = 1e9, 1e12

_TELLING = frozenset(
    {
        *("x-rate-limit-limit", "x-rate-limit-interval", "x-concurrency-limit"),
        *("x-ratelimit-remaining", "x-ratelimit-reset"),
        *("ratelimit", "ratelimit-policy", "ratelimit-remaining", "ratelimit-reset"),
    }
)

_SAMPLES = 20
_SLOW_S = 1.0
_SLOWER = 3.0
_GOOD_RUN = 20
_GOOD_TIME_S = 10.0
# Requests that were under way together are refused together; that is one refusal, not many.
ONE_REFUSAL_S = 1.0
_OFTEN = 3


class Announced(NamedTuple):
    """What one answer's headers say: a rate, how many at once, and for how long there is nothing left."""

    rate: Rate | None = None
    at_once: int | None = None
    pause_s: float | None = None


def announced(headers: Mapping[str, str], *, now: float) -> Announced | None:
    """What the headers (names in lower case) of an answer at Unix time `now` announce; None when nothing."""
    if _TELLING.isdisjoint(headers):
        return None
    found = Announced(_rate(headers), _at_once(headers), _pause_s(headers, now))
    return None if found == (None, None, None) else found


def _rate(headers: Mapping[str, str]) -> Rate | None:
    amount = _number(headers, "x-rate-limit-limit")
    interval = _INTERVAL.fullmatch(_text(headers, "x-rate-limit-interval").lower())
    if amount and interval is not None:
        return _rate_of(amount, float(interval[1]) * _UNIT_S[interval[2]])
    rates = [_rate_of(float(q), float(w)) for q, w in _POLICY.findall(_text(headers, "ratelimit-policy"))]
    return min((rate for rate in rates if rate is not None), key=lambda rate: rate.per_second, default=None)


def _rate_of(amount: float, per_s: float) -> Rate | None:
    return Rate(amount, per_s) if amount > 0 and 0 < per_s <= 86400.0 else None


def _at_once(headers: Mapping[str, str]) -> int | None:
    number = _number(headers, "x-concurrency-limit")
    return max(1, int(min(number, 1000))) if number is not None else None


def _pause_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until the host has something left for us, when it says that it has nothing now."""
    for left, back in (
        (_number(headers, "x-ratelimit-remaining"), _number(headers, "x-ratelimit-reset")),
        (_number(headers, "ratelimit-remaining"), _number(headers, "ratelimit-reset")),
        (_part(headers, _LEFT), _part(headers, _BACK)),
    ):
        if left is not None and left <= 0 and back is not None:
            return _seconds_until(back, now)
    return None


def _seconds_until(reset: float, now: float) -> float | None:
    if reset >= _EPOCH_MS:
        reset /= 1000.0
    seconds = reset - now if reset >= _EPOCH else reset
    return min(seconds, LONGEST_PAUSE_S) if seconds > 0 else None


def _part(headers: Mapping[str, str], pattern: re.Pattern[str]) -> float | None:
    found = pattern.search(_text(headers, "ratelimit"))
    return float(found[1]) if found is not None else None


def _number(headers: Mapping[str, str], name: str) -> float | None:
    text = _text(headers, name)
    return float(text) if _NUMBER.fullmatch(text) else None


def _text(headers: Mapping[str, str], name: str) -> str:
    return headers.get(name, "")[:_LONGEST_HEADER].strip()


@dataclass(frozen=True, slots=True)
class AdaptiveThrottle:
    """How far a host's rate goes down when it is overwhelmed, and how it comes back."""

    enabled: bool = True
    decrease: float = 0.5
    increase: float = 0.1
    floor: float = 0.1

    def lowered(self, scale: float, *, far: bool = True) -> float:
        """By the whole step, or by half of it."""
        return max(self.floor, scale * (self.decrease if far else (1 + self.decrease) / 2))

    def raised(self, scale: float) -> float:
        return min(1.0, scale + self.increase)


class LatencyWatch:
    """The answers of one host, as this process sees them. `factor` says how much faster than configured it is asked:
    what takes ten seconds at the pace of the world outside takes half of one in a sandbox that runs twenty times as
    fast."""

    def __init__(self, factor: float = 1.0) -> None:
        self._good_time_s = _GOOD_TIME_S / factor
        self._latencies: deque[float] = deque(maxlen=_SAMPLES)
        self._best_s: float | None = None
        self._good = 0
        self._counted_from: float | None = None
        self._answers = 0
        self._refused_at = -math.inf
        self._refusals: deque[int] = deque(maxlen=_OFTEN)  # the numbers of the answers that were refusals

    def observe(self, status: int, elapsed_s: float, now: float) -> int:
        """-2: ask far more slowly; -1: ask more slowly; 1: a step faster may be tried; 0: as before.

        Whoever refuses once is left alone for as long as it says, and that is all: some services refuse one request in
        a hundred however slowly they are asked. Refusals that come soon again say that we ask too often.
        """
        self._answers += 1
        if status in _OVERWHELMED:
            self._start_over(now)
            return self._refused(now)
        if status >= 400:
            return 0
        if self._is_slower(elapsed_s):
            self._start_over(now)
            return -2
        if self._counted_from is None:
            self._counted_from = now
        self._good += 1
        if self._good < _GOOD_RUN and now - self._counted_from < self._good_time_s:
            return 0
        self._start_over(now)
        return 1

    def _refused(self, now: float) -> int:
        if now - self._refused_at < ONE_REFUSAL_S:
            return 0
        self._refused_at = now
        self._refusals.append(self._answers)
        lately = sum(self._answers - number < _SAMPLES for number in self._refusals)
        return 1 - lately

    def _start_over(self, now: float) -> None:
        self._good, self._counted_from = 0, now

    def _is_slower(self, elapsed_s: float) -> bool:
        """The middle of the last twenty is far above the best such middle; each twenty are judged once."""
        self._latencies.append(elapsed_s)
        if len(self._latencies) < _SAMPLES:
            return False
        middle_s = statistics.median(self._latencies)
        self._latencies.clear()
        self._best_s = middle_s if self._best_s is None else min(middle_s, self._best_s)
        return middle_s > _SLOW_S and middle_s > _SLOWER * self._best_s
