"""How long one work waited, and for what.

Time to a paper is reported without the wait for our own limits, since that wait is ours and not the web's. A work
counts as waiting while every one of its branches waits for a permit. Knows a clock; is used on one event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from DocsToKG.core.clock import Clock

# Told for each wait for a slot: `resolver` or `host`, its name, and the seconds.
OnSlotWait = Callable[[str, str, float], None]


class WorkWaits:
    """The waits of one work. `shut_host` is the last host whose permit would have taken too long."""

    __slots__ = ("_asleep", "_branches", "_clock", "_gated", "_since", "on_slot_wait", "shut_host", "waited_s")

    def __init__(self, clock: Clock, on_slot_wait: OnSlotWait | None = None) -> None:
        self.on_slot_wait = on_slot_wait
        self.shut_host: str | None = None
        self.waited_s = 0.0
        self._clock = clock
        self._branches = 0
        self._gated = 0
        self._asleep = 0
        self._since: float | None = None

    @property
    def is_parked(self) -> bool:
        """Every branch waits for a permit, or for another try."""
        return bool(self._branches) and self._gated + self._asleep >= self._branches

    async def sleep(self, seconds: float) -> None:
        """A branch waits before it tries again."""
        with self.asleep():
            await self._clock.sleep_until(self._clock.monotonic() + seconds)

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """A branch waits for a moment, or for what another work is at."""
        self._asleep += 1
        try:
            yield
        finally:
            self._asleep -= 1

    @contextmanager
    def branch(self) -> Iterator[None]:
        """One of the ways in which the work is looked for."""
        self._change(branches=1)
        try:
            yield
        finally:
            self._change(branches=-1)

    @contextmanager
    def at_gate(self) -> Iterator[None]:
        """A branch waits for a permit."""
        self._change(gated=1)
        try:
            yield
        finally:
            self._change(gated=-1)

    def _change(self, *, branches: int = 0, gated: int = 0) -> None:
        now = self._clock.monotonic()
        if self._since is not None:
            self.waited_s += now - self._since
        self._branches += branches
        self._gated += gated
        self._since = now if self._branches and self._gated == self._branches else None
