"""What every service of the sandbox shares: the world, the limits, the time, and how often each thing was tried."""

from __future__ import annotations

from collections import Counter
from email.utils import formatdate
from typing import Protocol

from DocsToKG.core.clock import Clock
from DocsToKG.Sandbox.draw import fraction
from DocsToKG.Sandbox.exchange import Reply, Request, html_reply
from DocsToKG.Sandbox.faults import STATUS_FAULTS, bad_tries, fault_of_index
from DocsToKG.Sandbox.limits import Limits
from DocsToKG.Sandbox.works import Work
from DocsToKG.Sandbox.world import World


class Service(Protocol):
    """Answers for some hosts."""

    @property
    def name(self) -> str: ...

    @property
    def hosts(self) -> tuple[str, ...]: ...

    def answer(self, request: Request) -> Reply: ...


class Web:
    """The stage services play on. `slow_s` and `stall_s` are how long a slow and a stalled body last."""

    def __init__(self, *, world: World, limits: Limits, clock: Clock, slow_s: float, stall_s: float) -> None:
        self.world = world
        self.limits = limits
        self.clock = clock
        self.slow_s = slow_s
        self.stall_s = stall_s
        self.tries: Counter[tuple[int, str]] = Counter()
        self.met: Counter[str] = Counter()

    def reset(self) -> None:
        self.tries.clear()
        self.met.clear()

    def spoiled(self, work: Work, kind: str, fault: str) -> bool:
        """Count one try, and say whether the fault still spoils it."""
        self.tries[work.index, kind] += 1
        return self.tries[work.index, kind] <= bad_tries(fault, self.world.seed, work.index, kind)

    def meet(self, fault: str) -> None:
        """A fault was shown to a client."""
        self.met[fault] += 1

    def index_trouble(self, work: Work, service: str) -> Reply | None:
        """A busy or broken answer of an index service, or None when it works."""
        fault = fault_of_index(self.world.faults, self.world.seed, work.index, service)
        return self.status_trouble(work, f"index:{service}", fault) if fault else None

    def status_trouble(self, work: Work, kind: str, fault: str) -> Reply | None:
        """429 with Retry-After in either spelling, or 500/503, for as many tries as the fault lasts."""
        if fault not in STATUS_FAULTS or not self.spoiled(work, kind, fault):
            return None
        self.meet(fault)
        chance = fraction(self.world.seed, work.index, kind, "status")
        if fault == "server_error":
            return html_reply("Server error", "Something went wrong.", 500 if chance < 0.5 else 503)
        reply = html_reply("Too many requests", "Slow down.", 429)
        reply.headers["Retry-After"] = self._retry_after(chance)
        return reply

    def _retry_after(self, chance: float) -> str:
        seconds = 1 if chance % 0.5 < 0.25 else 2
        # A date has whole seconds: round up, so that it is never in the past when it arrives.
        return str(seconds) if chance < 0.5 else formatdate(int(self.clock.now()) + 1 + seconds, usegmt=True)
