"""What every service of the sandbox shares: the world, the limits, the clock, and the number of tries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from email.utils import formatdate
from typing import ClassVar

from DocsToKG.core.clock import Clock
from DocsToKG.Sandbox.faults import STATUS_FAULTS, failing_tries, fault_of_index
from DocsToKG.Sandbox.limits import Limits
from DocsToKG.Sandbox.messages import Request, Response, html_response
from DocsToKG.Sandbox.seeded_random import fraction
from DocsToKG.Sandbox.works import Work
from DocsToKG.Sandbox.world import World


class Context:
    """What the services of one world know. `slow_s` and `stall_s` are how long a slow and a stalled body last."""

    def __init__(self, *, world: World, limits: Limits, clock: Clock, slow_s: float, stall_s: float) -> None:
        self.world = world
        self.limits = limits
        self.clock = clock
        self.slow_s = slow_s
        self.stall_s = stall_s
        self.tries: Counter[tuple[int, str]] = Counter()
        self.faults_shown: Counter[str] = Counter()

    def reset(self) -> None:
        self.tries.clear()
        self.faults_shown.clear()

    def still_fails(self, work: Work, kind: str, fault: str) -> bool:
        """Count one try, and say whether the fault still spoils it."""
        self.tries[work.index, kind] += 1
        return self.tries[work.index, kind] <= failing_tries(fault, self.world.seed, work.index, kind)

    def count_fault(self, fault: str) -> None:
        """A fault was shown to a client."""
        self.faults_shown[fault] += 1

    def index_fault(self, work: Work, service: str) -> Response | None:
        """A busy or broken answer of an index service, or None when it works."""
        fault = fault_of_index(self.world.faults, self.world.seed, work.index, service)
        return self.status_fault(work, f"index:{service}", fault) if fault else None

    def status_fault(self, work: Work, kind: str, fault: str) -> Response | None:
        """429 with Retry-After in either spelling, or 500/503, for as many tries as the fault lasts."""
        if fault not in STATUS_FAULTS or not self.still_fails(work, kind, fault):
            return None
        self.count_fault(fault)
        chance = fraction(self.world.seed, work.index, kind, "status")
        if fault == "server_error":
            return html_response("Server error", "Something went wrong.", 500 if chance < 0.5 else 503)
        response = html_response("Too many requests", "Slow down.", 429)
        response.headers["Retry-After"] = self._retry_after(chance)
        return response

    def _retry_after(self, chance: float) -> str:
        seconds = 1 if chance % 0.5 < 0.25 else 2
        # A date has whole seconds: round up, so that it is never in the past when it arrives.
        return str(seconds) if chance < 0.5 else formatdate(int(self.clock.now()) + 1 + seconds, usegmt=True)


class Service(ABC):
    """Answers for some hosts."""

    name: ClassVar[str]
    hosts: ClassVar[tuple[str, ...]]

    def __init__(self, context: Context) -> None:
        self._context = context

    @abstractmethod
    def answer(self, request: Request) -> Response: ...
