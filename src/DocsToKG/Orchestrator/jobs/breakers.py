"""The rules of circuit breakers that are stored in the ledger.

The rules of `core.breaker` as arithmetic over a row: every result is a function of the row, the settings and the
moment, so that any number of instances share one breaker by locking its row. Knows no table and no clock; times are
milliseconds. A test has a name (the job that makes it), and only its own result counts for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from DocsToKG.core.breaker import JOB_TYPE_SETTINGS, BreakerSettings, BreakerState, CheckResult

_BUCKETS = 12
_LONGEST_RETRY_AFTER_S = 86_400.0
_MOST_DOUBLINGS = 30
JOB_TYPE = "jobtype:"

__all__ = ["JOB_TYPE", "BreakerSettings", "BreakerState", "Change", "CheckResult", "StoredBreaker", "default_settings"]


def default_settings(key: str) -> BreakerSettings:
    return JOB_TYPE_SETTINGS if key.startswith(JOB_TYPE) else BreakerSettings()


class Change(NamedTuple):
    """One change of state. `reset_s` is how long it will be open, where that is known."""

    old: BreakerState
    new: BreakerState
    why: str
    reset_s: float | None


@dataclass(slots=True)
class StoredBreaker:
    """One breaker as it is stored. `changes` gathers what became of it."""

    settings: BreakerSettings
    state: BreakerState = BreakerState.CLOSED
    forced: bool = False
    open_until: int | None = None
    reopenings: int = 0
    asked_until: int = 0
    rate: float = 0.0
    passed: int = 0
    tests: dict[str, int] = field(default_factory=dict)
    window: dict[int, tuple[int, int]] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    @classmethod
    def read(
        cls, settings: BreakerSettings, state: str, forced: bool, open_until: int | None, kept: str | Mapping[str, Any]
    ) -> StoredBreaker:
        """From the columns of its row; a text that cannot be read counts as no memory."""
        try:
            known = json.loads(kept) if isinstance(kept, str) else kept
            return cls(
                settings, BreakerState(state), forced, open_until,
                reopenings=min(max(0, int(known.get("reopenings", 0))), _MOST_DOUBLINGS),
                asked_until=int(known.get("asked_until", 0)),
                rate=float(known.get("rate", 0.0)),
                passed=int(known.get("passed", 0)),
                tests={str(name): int(at) for name, at in known.get("tests", {}).items()},
                window={int(number): (int(n), int(bad)) for number, (n, bad) in known.get("window", {}).items()},
            )  # fmt: skip
        except (AttributeError, TypeError, ValueError):
            return cls(settings, BreakerState(state), forced, open_until)

    def kept(self) -> str:
        """What `read` needs beside the columns."""
        parts = {
            "reopenings": self.reopenings, "asked_until": self.asked_until, "rate": self.rate, "passed": self.passed,
            "tests": self.tests, "window": {str(number): counts for number, counts in self.window.items()},
        }  # fmt: skip
        return json.dumps(parts, sort_keys=True, separators=(",", ":"))

    def tick(self, now: int) -> None:
        """Let time have its effect: an open breaker is tested when its time is over."""
        if self.state is BreakerState.OPEN and not self.forced and now >= (self.open_until or 0):
            self._become(BreakerState.HALF_OPEN, "the open time is over")
        silent_since = now - int(self.settings.test_timeout_s * 1000)
        if any(began <= silent_since for began in self.tests.values()):
            self.tests = {name: began for name, began in self.tests.items() if began > silent_since}

    def places(self, now: int) -> int | None:
        """How many may pass now; None means any number."""
        self.tick(now)
        if self.state is BreakerState.CLOSED:
            return None
        if self.state is BreakerState.OPEN:
            return 0
        return max(0, self.settings.test_count - self.passed - len(self.tests))

    def take(self, names: Sequence[str], now: int) -> None:
        """These pass; in the half-open state each is a test."""
        if self.state is BreakerState.HALF_OPEN:
            for name in names:
                self.tests[name] = now

    def look(self, now: int) -> CheckResult:
        places = self.places(now)
        wait_s = 0.0 if places is None or places > 0 else self._wait_s(now)
        tested = self.reopenings > 0 and not self.forced
        return CheckResult(wait_s == 0.0, self.state, self.failure_rate(now), wait_s, tested=tested)

    def next_at(self, now: int) -> int | None:
        """When it is worth asking again; None when nobody can say."""
        wait_s = self._wait_s(now)
        return None if wait_s is None else now + int(wait_s * 1000)

    def failure_rate(self, now: int) -> float:
        if self.state is not BreakerState.CLOSED and not self.forced:
            return self.rate
        total, failed = self._totals(now)
        return failed / total if total else 0.0

    def judge(
        self, now: int, *, passed: int = 0, failed: int = 0, names: Mapping[str, bool] | None = None,
        retry_after_s: float | None = None, why: str | None = None,
    ) -> None:  # fmt: skip
        """Count answers. In the half-open state only those of tests count: by name, or without names the oldest.

        `why` they failed, where it is told, is in the words of the change that they make."""
        self.tick(now)
        if retry_after_s is not None:
            self._note_retry_after(now, retry_after_s)
        if self.state is BreakerState.CLOSED:
            self._sample(now, passed + failed, failed)
            self._open_if_failing(now, why)
        elif self.state is BreakerState.HALF_OPEN:
            for name, good in list(names.items()) if names is not None else self._oldest(passed, failed):
                self._end_test(now, name, good, why)

    def told(self, now: int, state: BreakerState, for_s: float | None, why: str) -> None:
        """A worker says how its own breaker stands. A time that another has named is kept until it is over."""
        self.tick(now)
        if self.forced or state is self.state is not BreakerState.OPEN:
            return
        if state is BreakerState.OPEN:
            if for_s is None:  # held open by somebody's word there, which says nothing about the host
                return
            until = now + int(min(max(0.0, for_s), _LONGEST_RETRY_AFTER_S) * 1000)
            self.open_until = max(until, self.open_until or 0)
            if self.state is not BreakerState.OPEN:
                self._become(BreakerState.OPEN, why, (self.open_until - now) / 1000)
        elif self.state is not BreakerState.OPEN:
            self._become(state, why)

    def give_back(self, names: Sequence[str]) -> None:
        """These tests said nothing: others may take their places."""
        for name in names:
            self.tests.pop(name, None)

    def force(self, state: BreakerState, why: str) -> None:
        """Hold a state until it is changed."""
        words = "forced open" if state is BreakerState.OPEN else "forced closed"
        if self.forced and self.state is state:
            return
        self.forced, self.open_until = True, None
        self._become(state, f"{words}: {why}")

    def unforce(self, why: str) -> None:
        """Go by the answers again: what was open is tested first, what was closed starts without a memory."""
        if self.forced:
            self.forced = False
            self._forget()
            state = BreakerState.HALF_OPEN if self.state is BreakerState.OPEN else BreakerState.CLOSED
            self._become(state, f"no longer forced: {why}")

    def close(self, why: str) -> None:
        """Closed by an operator's word, and open to new answers."""
        self.forced = False
        self._forget()
        if self.state is not BreakerState.CLOSED:
            self._become(BreakerState.CLOSED, why)

    def _oldest(self, passed: int, failed: int) -> list[tuple[str, bool]]:
        names = sorted(self.tests, key=lambda name: (self.tests[name], name))
        verdicts = [False] * failed + [True] * passed
        return list(zip(names, verdicts, strict=False))

    def _end_test(self, now: int, name: str, good: bool, why: str | None) -> None:
        if self.state is not BreakerState.HALF_OPEN or self.tests.pop(name, None) is None:
            return
        if not good:
            self.reopenings = min(self.reopenings + 1, _MOST_DOUBLINGS)
            self._open(now, _because("a test failed", why))
            return
        self.passed += 1
        if self.passed >= self.settings.test_count:
            count = self.passed
            self._forget()
            self._become(BreakerState.CLOSED, f"{count} tests passed")

    def _wait_s(self, now: int) -> float | None:
        if self.state is BreakerState.OPEN:
            return None if self.forced else max(0, (self.open_until or 0) - now) / 1000
        oldest = min(self.tests.values(), default=now)
        # Most tests end long before they are given up.
        return min(self.settings.open_s, max(0.001, oldest / 1000 + self.settings.test_timeout_s - now / 1000))

    def _note_retry_after(self, now: int, retry_after_s: float) -> None:
        asked = now + int(min(max(0.0, retry_after_s), _LONGEST_RETRY_AFTER_S) * 1000)
        self.asked_until = max(self.asked_until, asked)
        if self.state is BreakerState.OPEN and not self.forced:
            self.open_until = max(self.open_until or 0, self.asked_until)

    @property
    def _width(self) -> float:
        return self.settings.window_s * 1000 / _BUCKETS

    def _sample(self, now: int, total: int, failed: int) -> None:
        number = int(now // self._width)
        before = self.window.get(number, (0, 0))
        self.window[number] = (before[0] + total, before[1] + failed)
        self.window = {n: counts for n, counts in self.window.items() if n > number - _BUCKETS}

    def _totals(self, now: int) -> tuple[int, int]:
        oldest = int(now // self._width) - _BUCKETS + 1
        live = [counts for number, counts in self.window.items() if number >= oldest]
        return sum(total for total, _ in live), sum(failed for _, failed in live)

    def _open_if_failing(self, now: int, why: str | None) -> None:
        total, failed = self._totals(now)
        if self.forced or not failed or total < self.settings.min_samples:
            return
        if failed / total >= self.settings.threshold:
            self.rate = failed / total
            self._open(now, _because(f"{failed} of {total} failed", why))

    def _open(self, now: int, why: str) -> None:
        doubled_s = self.settings.open_s * 2.0 ** min(self.reopenings, _MOST_DOUBLINGS)
        until = now + int(min(self.settings.longest_open_s, doubled_s) * 1000)
        self.open_until = max(until, self.asked_until)
        self._become(BreakerState.OPEN, why, (self.open_until - now) / 1000)

    def _forget(self) -> None:
        self.window, self.reopenings, self.asked_until, self.passed, self.tests = {}, 0, 0, 0, {}

    def _become(self, new: BreakerState, why: str, reset_s: float | None = None) -> None:
        self.changes.append(Change(self.state, new, why, reset_s))
        self.state, self.passed, self.tests = new, 0, {}
        if new is not BreakerState.OPEN:
            self.open_until = None


def _because(words: str, why: str | None) -> str:
    return words if why is None else f"{words}: {why}"
