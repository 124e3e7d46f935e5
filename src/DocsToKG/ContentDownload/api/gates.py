"""The right to one exchange with a host: what is asked for it, what may be answered, and who waits for it.

Values and protocols only. `net.limits.host_limits` grants permits, `net.limits.queues` lets tasks wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Protocol

from DocsToKG.core.values import lean_dataclass

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.api.ports import Call


@lean_dataclass(frozen=True, slots=True)
class Gate:
    """One exchange with `url`'s host, for a source, in a role."""

    url: str
    resolver: str
    role: str


class Permit(Protocol):
    """The right to one exchange. Held from sending the request to the last byte."""

    def release(self) -> None:
        """Free the slots. Safe to call twice."""

    def refund(self) -> None:
        """Give the rate tokens back: the cache answered and nothing was sent."""


@lean_dataclass(frozen=True, slots=True)
class NotYet:
    """Not now. Ask again at monotonic time `at`, or, when that is None, once `key` has a free slot.

    `kind` is what for: `slot` for a free slot, else the rule of time (`rate`, `interval`, `hold`, ...).
    """

    key: str
    at: float | None
    why: str
    kind: str = "slot"


class GateShut(Exception):
    """No permit for so long that the work had better come back: at monotonic time `at`."""

    def __init__(self, at: float, why: str) -> None:
        super().__init__(why)
        self.at = at
        self.why = why


class Gatekeeper(Protocol):
    """Grants permits: the answer is a permit, or when to ask again."""

    @property
    def executor(self) -> Executor | None:
        """Where `ask` is to be called from an event loop, since it may wait for a server; None: it never waits."""

    def ask(self, gate: Gate) -> Permit | NotYet: ...

    def on_free(self, callback: Callable[[str], None]) -> None:
        """`callback(key)` is called, from any thread, whenever a slot of `key` is freed or its next time moved."""


class Gates(Protocol):
    """Where tasks wait for permits."""

    async def permit(self, gate: Gate, call: Call) -> Permit:
        """Returns with the permit. Raises `GateShut` when it would take too long."""
        ...
