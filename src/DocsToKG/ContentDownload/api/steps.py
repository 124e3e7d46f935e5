"""What a coroutine that works on one paper awaits.

Each awaitable says "go on when": a gate opens, a time has come, one of these branches has won, an answer arrives, the
disk is done. Between two of them the coroutine does its I/O in whatever thread drives it; while it waits it holds no
thread. Drivers are in `frontier`: one blocks the caller, one runs thousands on a few threads.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.values import lean_dataclass

T = TypeVar("T")


class Awaitable:
    """Hands itself to the driver, which answers with the value that `await` gives."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield self)


@lean_dataclass(frozen=True, slots=True)
class Gate(Awaitable):
    """Go on when one exchange with `url`'s host may begin. Resumes with a `Permit`, or raises `GateShut`."""

    url: str
    resolver: str
    role: str


@lean_dataclass(frozen=True, slots=True)
class Wait(Awaitable):
    """Go on at monotonic time `until`. Resumes with None."""

    until: float
    why: str


@lean_dataclass(frozen=True, slots=True)
class Race(Awaitable):
    """Run the branches, at most `parallel` at once, in order. The first to return something other than None wins:
    rivals are cancelled, and the race resumes with the winner's value at once. None when no branch won.

    A branch is a function of its own cancel token, so that a loser's transfer can be cut.
    """

    branches: Sequence[Callable[[CancelToken], Steps[Any]]]
    parallel: int
    cancel: CancelToken


@lean_dataclass(frozen=True, slots=True)
class Until(Awaitable):
    """Go on when something else is done, which `start` sets going: it is given what to call then, once, from any
    thread. Resumes with None. What was set going is not called off, so neither is the wait for it.
    """

    start: Callable[[Callable[[], None]], None]
    why: str


@lean_dataclass(frozen=True, slots=True)
class Arrival(Awaitable):
    """Go on when something has come on the connection `fileno`, or at the machine's monotonic time `until`; resumes
    with False in the latter case. The exchange goes on meanwhile, so the work keeps its place. Who reads may still have
    to wait, and waits by itself: a driver that cannot wait for connections lets the work go on at once.

    `number` is this connection's alone, also once it is closed and its descriptor is another's; 0 where it has none.
    """

    fileno: int
    until: float
    number: int = 0


@lean_dataclass(frozen=True, slots=True)
class ExchangeOver(Awaitable):
    """Go on at once: the exchange is over, its permit released, and what follows asks nobody. Another may begin."""


Step: TypeAlias = Gate | Wait | Race | Until | Arrival | ExchangeOver
Steps: TypeAlias = Coroutine[Any, Any, T]


class Permit(Protocol):
    """The right to one exchange. Held from sending the request to the last byte."""

    def release(self) -> None:
        """Free the slots. Safe to call twice."""

    def refund(self) -> None:
        """Give the rate tokens back: the cache answered and nothing was sent."""


@lean_dataclass(frozen=True, slots=True)
class NotYet:
    """The gate is shut. Ask again at monotonic time `at`, or, when that is None, once `key` has a free slot.

    `kind` is what for: `slot` for a free place, else the rule of time (`rate`, `interval`, `hold`, ...).
    """

    key: str
    at: float | None
    why: str
    kind: str = "slot"


class GateShut(Exception):
    """The gate stays shut for too long to stand before it: come back at monotonic time `at`."""

    def __init__(self, at: float, why: str) -> None:
        super().__init__(why)
        self.at = at
        self.why = why


class Gatekeeper(Protocol):
    """Grants exchanges. Never blocks: the answer is a permit, or when to ask again."""

    def ask(self, gate: Gate) -> Permit | NotYet: ...

    def on_free(self, callback: Callable[[str], None]) -> None:
        """`callback(key)` is called whenever a slot of `key` is freed or its next allowed time moved."""
