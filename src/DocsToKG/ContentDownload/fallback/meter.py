"""How long did a work do nothing but wait for our own limits?

Time to a paper is reported without it, since the wait is ours and not the web's. A work counts as waiting
while every one of its branches stands before a gate.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

from DocsToKG.ContentDownload.api.steps import Gate, Steps
from DocsToKG.core.clock import Clock

T = TypeVar("T")


class WaitMeter:
    """Adds up the spans in which all branches of one work wait at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._branches = 0
        self._gated = 0
        self._since: float | None = None
        self.waited_s = 0.0

    def change(self, *, branches: int = 0, gated: int = 0) -> None:
        """A branch begins or ends, or arrives at or leaves a gate."""
        with self._lock:
            now = self._clock.monotonic()
            if self._since is not None:
                self.waited_s += now - self._since
            self._branches += branches
            self._gated += gated
            self._since = now if self._branches and self._gated == self._branches else None


async def metered(steps: Steps[T], meter: WaitMeter) -> T:
    """The same steps, with their waits at gates told to the meter."""
    answer: Any = None
    error: BaseException | None = None
    meter.change(branches=1)
    try:
        while True:
            try:
                step = steps.throw(error) if error is not None else steps.send(answer)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]  # typed by the generator itself
            answer, error = None, None
            at_gate = isinstance(step, Gate)
            if at_gate:
                meter.change(gated=1)
            try:
                answer = await step
            except GeneratorExit:
                raise
            except BaseException as thrown:
                error = thrown
            finally:
                if at_gate:
                    meter.change(gated=-1)
    finally:
        steps.close()
        meter.change(branches=-1)
