"""Waiting for work without asking all the time.

In this process a commit wakes the waiter at once, and a signal between machines does so for the others. Without one,
or while it is away, the ledger is asked now and then, at moments that differ between processes.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from DocsToKG.Orchestrator.ledger.drivers.postgres.ledger_time import DatabaseTime
from DocsToKG.Orchestrator.ledger.drivers.postgres.reads import Reader
from DocsToKG.Orchestrator.ledger.policy_leasing import Governor
from DocsToKG.Orchestrator.notifications.base import Signal

_GLANCE_S = 0.25  # `unless` is looked at as often


class Waiting:
    """Who waits, and for what moment. Safe to share between threads."""

    def __init__(
        self, *, reader: Reader, ledger_time: DatabaseTime, signal: Signal, poll_s: float, held: Governor | None = None
    ) -> None:
        self._reader = reader
        self._time = ledger_time
        self._signal = signal
        self._poll_s = poll_s
        self._governor = held or Governor()

    def for_work(self, timeout_s: float, unless: Callable[[], bool], job_type: str | None = None) -> bool:
        """True once a lease may find something; False when time is over, or `unless` is found true."""
        left, seen, moment, fresh_s = timeout_s, -1, 0.0, 0.0
        while not unless():
            mark = self._signal.mark()
            if mark != seen or fresh_s <= 0:
                seen, moment, fresh_s = mark, self._next_moment(job_type), self._poll_s * random.uniform(0.75, 1.25)
            soonest = (moment - self._time.now_ms()) / 1000
            if soonest <= 0:
                return True
            if left <= 0:
                return False
            step = min(left, fresh_s, soonest, _GLANCE_S)
            self._signal.wait(step, since=seen)
            left, fresh_s = left - step, fresh_s - step
        return False

    def next_eligible_at(self, job_type: str | None = None) -> float | None:
        """When the next queued job may be leased, by this process's clock; None when there is none."""
        due, waiting, _, _, now = self._reader.next_moments(job_type)
        here = self._time.now_ms(0, now)
        if due:
            return self._time.local_s(here)
        return None if waiting is None else self._time.local_s(waiting)

    def _next_moment(self, job_type: str | None) -> float:
        """When a lease may find something, in milliseconds of ledger time: a job due, a delay or a lease over."""
        due, waiting, lease_until, paused, now = self._reader.next_moments(job_type)
        self._time.now_ms(0, now)
        if paused:
            return float("inf")
        # What is due may be held back by rules: the last lease has found out until when, or when to look again.
        held = self._governor.held_until if due else None
        return min((at for at in (held, waiting, lease_until) if at is not None), default=float("inf"))
