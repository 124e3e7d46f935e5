"""Call something off from another thread.

A token is handed to the work; whoever holds a resource that can block (a socket) registers a
callback that unblocks it. Cancelling runs the callbacks once, in any thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from types import TracebackType

_numbers = itertools.count()


class Cancelled(Exception):
    """The work was called off: a rival won, the job was cancelled, or the run is stopping."""


def _nothing(*_: object) -> None:
    """There is nothing to take back."""


class CancelToken:
    """Cancelled once, for good. A child is cancelled with its parent, not the other way round.

    There is one for every piece of work and most are never used, so it has no lock: each callback lies in a dict
    under a number of its own, and whoever takes it out there is the one to run it.
    """

    __slots__ = ("__weakref__", "_callbacks", "_leave_parent", "cancelled")

    def __init__(self, parent: CancelToken | None = None) -> None:
        self.cancelled = False
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._leave_parent: Callable[[], object] = _nothing if parent is None else parent.on_cancel(self.cancel)

    def cancel(self) -> None:
        self.cancelled = True
        while self._callbacks:
            for number in list(self._callbacks):
                self._callbacks.pop(number, _nothing)()

    def raise_if_cancelled(self) -> None:
        if self.cancelled:
            raise Cancelled

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], object]:
        """Run `callback` on cancel (at once if that has happened). Returns a function that takes it back."""
        number = next(_numbers)
        self._callbacks[number] = callback
        # Looked at only now: who cancels meanwhile has either found it there, or is seen here.
        if self.cancelled:
            self._callbacks.pop(number, _nothing)()
        return partial(self._callbacks.pop, number, None)

    def calling(self, callback: Callable[[], None]) -> Calling:
        """`callback` unblocks whatever the body is waiting for."""
        return Calling(self, callback)

    def close(self) -> None:
        """The work is over: leave the parent, so that a long-lived parent keeps no dead children."""
        self._leave_parent()


class Calling:
    """While it is entered, cancelling calls back."""

    __slots__ = ("_callback", "_forget", "_token")

    def __init__(self, token: CancelToken, callback: Callable[[], None]) -> None:
        self._token = token
        self._callback = callback
        self._forget: Callable[[], object] = _nothing

    def __enter__(self) -> None:
        self._forget = self._token.on_cancel(self._callback)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._forget()
