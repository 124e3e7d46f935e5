"""One generator of steps on its way, and the race it may belong to. Values only; the frontier moves them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from DocsToKG.ContentDownload.api.steps import Gate, Race, Steps
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.values import lean_dataclass


@lean_dataclass(frozen=True, slots=True)
class Ended:
    """How a task ended: a value, or the exception that left it; `shut_host` is the last host that was shut for long."""

    value: Any = None
    error: BaseException | None = None
    shut_host: str | None = None

    def unwrap(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


@lean_dataclass(frozen=True, slots=True)
class Crowded:
    """A work far back in a long queue: whom to call off, the host it waits for, and for how long about."""

    cancel: CancelToken
    host: str
    wait_s: float
    why: str


class Hands(Protocol):
    """Where it is noted whose work the threads are at, so that somebody knows who finds the process dead."""

    def take(self, number: int, /) -> int | None:
        """The place of the note, for `drop`."""

    def drop(self, place: int | None, /) -> None: ...


class NoHands:
    """Notes nothing."""

    def take(self, number: int, /) -> None:
        return None

    def drop(self, place: int | None, /) -> None:
        return None


def _nothing() -> None:
    """It is not watched yet."""


class Task:
    """A generator, what it waits for, and whom to tell when it is over."""

    __slots__ = (
        *("cancel", "ended", "error", "forget_cancel", "gate", "has_place", "is_prepared", "on_done", "parked_on"),
        *("number", "race", "row", "shut_host", "started", "steps", "value"),
    )

    def __init__(
        self,
        steps: Steps[Any],
        cancel: CancelToken,
        on_done: Callable[[Ended], None],
        race: RaceState | None = None,
        number: int = 0,
    ) -> None:
        self.steps = steps
        self.cancel = cancel
        self.on_done = on_done
        self.race = race
        self.number: int = number if race is None else race.parent.number  # of the work, for whoever notes it
        self.started = False
        self.ended = False
        self.gate: Gate | None = None  # the gate it stands before, while parked on a key
        self.parked_on: str | None = None  # the key, "time", "race", "wire" or "others"; None while ready or running
        self.value: Any = None  # what the next send brings
        self.error: BaseException | None = None  # what the next throw brings
        self.is_prepared = False  # parked before a gate that is asked for it once a place is free
        self.has_place = False  # among the works that may be at work at once
        self.shut_host: str | None = None
        self.forget_cancel: Callable[[], object] = _nothing
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

    __slots__ = ("asker", "outer", "token", "waiting")

    def __init__(self, asker: Steps[Any], race: Race, outer: Row | None) -> None:
        self.asker = asker  # the steps that wait for the winner
        self.waiting = deque(race.branches)
        self.token: CancelToken | None = None
        self.outer = outer

    def go_on(self, task: Task, value: Any, error: BaseException | None, *, is_closing: bool) -> None:
        """A branch has ended, or none has begun: the next one begins, or the asker goes on with what came of it."""
        if self.token is not None:
            self.token.close()
        if value is None and error is None and self.waiting:
            if not is_closing:
                self.token = CancelToken(parent=task.cancel)
                task.steps, task.value, task.error = self.waiting.popleft()(self.token), None, None
                return
            error = Cancelled()
        task.steps, task.row = self.asker, self.outer
        task.value, task.error = value, error


class RaceState:
    """The branches of one race: which run, which wait their turn, and whether it is decided."""

    def __init__(self, parent: Task, race: Race) -> None:
        self.parent = parent
        self.parallel = max(1, race.parallel)
        self.waiting = deque(race.branches)
        self.running: list[Task] = []
        self.decided = False
        self.called_off = False  # a branch was cancelled, so that "nobody won" would not be the whole truth

    def start_more(self) -> list[Task]:
        """Branches that begin now, up to the parallelism."""
        started = []
        while self.waiting and len(self.running) < self.parallel and not (self.decided or self.called_off):
            token = CancelToken(parent=self.parent.cancel)
            branch = Task(self.waiting.popleft()(token), token, lambda ended: None, race=self)
            self.running.append(branch)
            started.append(branch)
        return started

    def outcome_of_none(self) -> Ended | None:
        """With no branch left to run, what the parent goes on with; None while the race is on."""
        if self.running or self.decided:
            return None
        unfinished = self.called_off or bool(self.waiting)
        return Ended(error=Cancelled()) if unfinished else Ended(value=None)

    def take_out(self, branch: Task, ended: Ended) -> bool:
        """A branch has ended; True when that decides the race."""
        self.running.remove(branch)
        if _is_verdict(ended):
            return True
        self.called_off |= ended.error is not None and not self.decided
        return False


def _is_verdict(ended: Ended) -> bool:
    """A value wins and a fault stops the race. A branch that was called off says nothing about its rivals."""
    return ended.value is not None or not (ended.error is None or isinstance(ended.error, Cancelled))
