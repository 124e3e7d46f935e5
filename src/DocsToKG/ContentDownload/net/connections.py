"""No more connections in use at once than this process may have.

One more gate behind those of host and source. Who gets through them and finds no connection free gives its place back
and comes again; it holds nothing while it waits. Knows a number, no hosts. Promises: a connection is given back once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from DocsToKG.ContentDownload.api.ports import AttemptSink, Call
from DocsToKG.ContentDownload.api.steps import Gate, Permit, Steps, Wait
from DocsToKG.ContentDownload.net.limits import HostPermit
from DocsToKG.ContentDownload.net.permits import admission
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock

_LOOK_AGAIN_S = 0.02
_LONGEST_LOOK_S = 0.1


class Connections:
    """The connections of one process; `most` None means any number."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._used = 0

    def take(self) -> bool:
        with self._lock:
            if self.is_full:
                return False
            self._used += 1
            return True

    @property
    def is_full(self) -> bool:
        return self._most is not None and self._used >= self._most

    def give_back(self) -> None:
        with self._lock:
            self._used -= 1

    @property
    def used(self) -> int:
        return self._used


class ConnectionPermit:
    """A permit that holds a connection too."""

    def __init__(self, permit: Permit, give_back: Callable[[], None]) -> None:
        self._permit = permit
        self._give_back: Callable[[], None] | None = give_back

    def goes_out(self) -> float:
        """Right before the first byte: how long it must still wait."""
        return self._permit.goes_out() if isinstance(self._permit, HostPermit) else 0.0

    def cut_with(self, cancel: CancelToken) -> CancelToken:
        """What the exchange is called off by: `cancel`, and the end of our right to its slots."""
        return self._permit.cut_with(cancel) if isinstance(self._permit, HostPermit) else cancel

    def is_sent(self) -> None:
        """The request is on the wire."""
        if isinstance(self._permit, HostPermit):
            self._permit.is_sent()

    def refund(self) -> None:
        self._permit.refund()

    def release(self) -> None:
        give_back, self._give_back = self._give_back, None
        self._permit.release()
        if give_back is not None:
            give_back()


def connection(
    gate: Gate, clock: Clock, call: Call, *, attempts: AttemptSink, connections: Connections
) -> Steps[ConnectionPermit]:
    """The right to send a request now, on a connection of our own."""
    pause_s = _LOOK_AGAIN_S
    while True:
        # The gates are asked only when there is something to ask for: they may be shared by many processes.
        if not connections.is_full:
            permit = yield from admission(gate, clock, call, attempts=attempts)
            if connections.take():
                return ConnectionPermit(permit, connections.give_back)
            permit.refund()
            permit.release()
        call.cancel.raise_if_cancelled()
        yield Wait(clock.monotonic() + pause_s, "a free connection")
        pause_s = min(_LONGEST_LOOK_S, pause_s * 2)
