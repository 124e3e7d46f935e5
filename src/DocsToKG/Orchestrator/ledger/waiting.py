"""Waiting for work without asking all the time.

In this process a commit wakes the waiter at once, and a signal between machines does so for the others. What another
process commits shows in a number of the database that is cheap to read, or is found out by asking now and then; only
when that number moved is the ledger asked when there may be work.
"""

from __future__ import annotations

from collections.abc import Callable

from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime
from DocsToKG.Orchestrator.ledger.policy_leasing import Governor
from DocsToKG.Orchestrator.ledger.reads import Readable
from DocsToKG.Orchestrator.notifications.base import Signal

_GLANCE_S = 0.25  # `unless` is looked at as often


class Waiting:
    """Who waits, and for what moment. Safe to share between threads."""

    def __init__(
        self, database: Readable, *, ledger_time: LedgerTime, signal: Signal, poll_s: float, governor: Governor
    ) -> None:
        self._database = database
        self._time = ledger_time
        self._signal = signal
        self._poll_s = poll_s
        self._governor = governor

    def for_work(self, timeout_s: float, unless: Callable[[], bool], job_type: str | None = None) -> bool:
        """True once a lease may find something; False when time is over, or `unless` is found true."""
        left, seen, moment = timeout_s, (-1, -1), 0.0
        while not unless():
            now = (self._signal.mark(), self._database.version(self._poll_s))
            if now != seen:
                seen, moment = now, self._next_moment(job_type)
            soonest = (moment - self._time.now_ms()) / 1000
            if soonest <= 0:
                return True
            if left <= 0:
                return False
            step = min(left, self._poll_s, soonest, _GLANCE_S)
            self._signal.wait(step, since=now[0])
            left -= step
        return False

    def next_eligible_at(self, job_type: str | None = None) -> float | None:
        """When the next queued job may be leased, by this process's clock; None when there is none."""
        due, waiting, _, _, clock_ms = self._database.next_moments(job_type)
        here = self._time.now_ms(0, clock_ms)
        if due:
            return self._time.local_s(here)
        return None if waiting is None else self._time.local_s(waiting)

    def _next_moment(self, job_type: str | None) -> float:
        """When a lease may find something, in milliseconds of ledger time: a job due, a delay or a lease over."""
        due, waiting, lease_until, paused, clock_ms = self._database.next_moments(job_type)
        self._time.now_ms(0, clock_ms)
        if paused:
            return float("inf")
        # What is due may be held back by rules: the last lease has found out until when, or when to look again.
        held = self._governor.held_until if due else None
        return min((at for at in (held, waiting, lease_until) if at is not None), default=float("inf"))
