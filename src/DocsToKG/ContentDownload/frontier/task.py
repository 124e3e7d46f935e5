"""One generator of steps on its way, and the race it may belong to. Values only; the frontier moves them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from DocsToKG.ContentDownload.api.steps import Gate, Race, Steps
from DocsToKG.core.cancel import CancelToken


@dataclass(frozen=True, slots=True)
class Ended:
    """How a task ended: a value, or the exception that left it; `shut_host` is the last host that was shut for long."""

    value: Any = None
    error: BaseException | None = None
    shut_host: str | None = None

    def unwrap(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(frozen=True, slots=True)
class Crowded:
    """A work far back in a long queue: whom to call off, the host it waits for, and for how long about."""

    cancel: CancelToken
    host: str
    wait_s: float
    why: str


class Task:
    """A generator, what it waits for, and whom to tell when it is over."""

    def __init__(
        self, steps: Steps[Any], cancel: CancelToken, on_done: Callable[[Ended], None], race: RaceState | None = None
    ) -> None:
        self.steps = steps
        self.cancel = cancel
        self.on_done = on_done
        self.race = race
        self.started = False
        self.ended = False
        self.gate: Gate | None = None  # the gate it stands before, while parked on a key
        self.parked_on: str | None = None  # the key, "time", "race", "wire" or "others"; None while ready or running
        self.value: Any = None  # what the next send brings
        self.error: BaseException | None = None  # what the next throw brings
        self.is_prepared = False  # parked before a gate that is asked for it once a place is free
        self.has_place = False  # among the works that may be at work at once
        self.shut_host: str | None = None
        self.forget_cancel: Callable[[], None] = lambda: None
        self.row: Row | None = None  # the race it runs by itself, one branch after another

    @property
    def root(self) -> Task:
        """The submitted work this task is a branch of; itself when it is none."""
        task = self
        while task.race is not None:
            task = task.race.parent
        return task


class Row:
    """A race whose branches run one after another: its parent's thread and place serve them all."""

    def __init__(self, asker: Steps[Any], race: Race, outer: Row | None) -> None:
        self.asker = asker  # the steps that wait for the winner
        self.waiting = deque(race.branches)
        self.token: CancelToken | None = None
        self.outer = outer


class RaceState:
    """The branches of one race: which run, which wait their turn, and whether it is decided."""

    def __init__(self, parent: Task, race: Race) -> None:
        self.parent = parent
        self.parallel = max(1, race.parallel)
        self.waiting = deque(race.branches)
        self.running: list[Task] = []
        self.decided = False
        self.called_off = False  # a branch was cancelled, so that "nobody won" would not be the whole truth
