"""How long a work stood before its gates for want of a free place, told apart by resolver and host.

Stands between the frontier and the gatekeeper and listens; it grants nothing and refuses nothing. Waits for a rate, an
interval or a pause are not counted here: the client tells those itself. Knows no spans and no metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from DocsToKG.ContentDownload.api.steps import Gate, Gatekeeper, NotYet, Permit, Race, Step, Steps
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key

T = TypeVar("T")

# Told for each wait: `resolver` or `host`, the key without its prefix, and the seconds.
OnWait = Callable[[str, str, float], None]

SHORTEST_TOLD_S = 0.001
_MOST_HOSTS = 20_000


class SlotWaits:
    """A gatekeeper that notes what the one behind it answers to the gates that are watched."""

    def __init__(self, behind: Gatekeeper, clock: Clock) -> None:
        self._behind = behind
        self._clock = clock
        self._stands: dict[int, _Stand] = {}
        self._last: dict[str, tuple[str, str] | None] = {}  # what the last refusal at a host's queue was for

    @property
    def watching(self) -> int:
        """How many works stand before their gates."""
        return len(self._stands)

    def ask(self, gate: Gate) -> Permit | NotYet:
        now = self._clock.monotonic()
        answer = self._behind.ask(gate)
        lack = _lack(answer)
        if isinstance(answer, NotYet):
            if len(self._last) >= _MOST_HOSTS:
                self._last.clear()
            self._last[answer.key] = lack
        stand = self._stands.get(id(gate))
        if stand is not None:
            stand.asked(now, lack)
        return answer

    def on_free(self, callback: Callable[[str], None]) -> None:
        self._behind.on_free(callback)

    async def watched(self, steps: Steps[T], on_wait: OnWait) -> T:
        """The same steps; `on_wait` is told of each wait for a place, in the thread that goes on with the work."""
        answer: Any = None
        error: BaseException | None = None
        try:
            while True:
                try:
                    step = steps.send(answer) if error is None else steps.throw(error)
                except StopIteration as end:
                    value: T = end.value
                    return value
                answer = error = None
                step = self._own(step, on_wait)
                with self._standing(step, on_wait):
                    try:
                        answer = await step
                    except GeneratorExit:
                        raise
                    except BaseException as raised:
                        error = raised
        finally:
            steps.close()

    def _own(self, step: Step, on_wait: OnWait) -> Step:
        """A gate is known by its identity, so each one is made this work's own; branches are watched like the work."""
        if isinstance(step, Gate):
            return replace(step)
        if isinstance(step, Race):
            return replace(step, branches=[self._branch(branch, on_wait) for branch in step.branches])
        return step

    def _branch(
        self, branch: Callable[[CancelToken], Steps[Any]], on_wait: OnWait
    ) -> Callable[[CancelToken], Steps[Any]]:
        return lambda token: self.watched(branch(token), on_wait)

    @contextmanager
    def _standing(self, step: Step, on_wait: OnWait) -> Iterator[None]:
        if not isinstance(step, Gate):
            yield
            return
        queue = f"host:{host_key(step.url)}"
        stand = self._stands[id(step)] = _Stand(self._clock.monotonic(), lambda: self._last.get(queue))
        try:
            yield
        finally:
            del self._stands[id(step)]
            stand.asked(self._clock.monotonic(), None)
            for (kind, key), seconds in stand.lacked.items():
                if seconds >= SHORTEST_TOLD_S:
                    on_wait(kind, key, seconds)


class _Stand:
    """One gate from the moment a work comes to it until it goes on."""

    __slots__ = ("_first_lack", "_known", "_lack", "_since", "lacked")

    def __init__(self, since: float, first_lack: Callable[[], tuple[str, str] | None]) -> None:
        self._since = since
        self._first_lack = first_lack
        self._lack: tuple[str, str] | None = None
        self._known = False
        self.lacked: dict[tuple[str, str], float] = {}

    def asked(self, now: float, lack: tuple[str, str] | None) -> None:
        """Somebody asked on its behalf and heard that `lack` is missing; until now it lacked what was said before.

        A work that comes to a queue is not asked for before its turn: it waits for what those before it wait for.
        """
        before = self._lack if self._known else self._first_lack()
        if before is not None:
            self.lacked[before] = self.lacked.get(before, 0.0) + now - self._since
        self._since, self._lack, self._known = now, lack, True


def _lack(answer: Permit | NotYet) -> tuple[str, str] | None:
    """The kind and the key of the place that is missing; None for a grant and for a rule of time."""
    if not isinstance(answer, NotYet) or answer.kind != "slot":
        return None
    prefix, _, name = answer.key.partition(":")
    return ("resolver" if prefix == "resolver" else "host"), name
