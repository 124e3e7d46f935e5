"""Call something off from another thread.

A token is handed to the work; whoever holds a resource that can block (a socket) registers a
callback that unblocks it. Cancelling runs the callbacks once, in any thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class Cancelled(Exception):
    """The work was called off: a rival won, the job was cancelled, or the run is stopping."""


class CancelToken:
    """Cancelled once, for good. A child is cancelled with its parent, not the other way round."""

    def __init__(self, parent: CancelToken | None = None) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next_key = 0
        self._leave_parent: Callable[[], None] = lambda: None
        if parent is not None:
            self._leave_parent = parent.on_cancel(self.cancel)

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()

    def raise_if_cancelled(self) -> None:
        if self._cancelled:
            raise Cancelled

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Run `callback` on cancel (at once if that has happened). Returns a function that takes it back."""
        with self._lock:
            if not self._cancelled:
                key = self._next_key
                self._next_key += 1
                self._callbacks[key] = callback
                return lambda: self._forget(key)
        callback()
        return lambda: None

    @contextlib.contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """`callback` unblocks whatever the body is waiting for."""
        forget = self.on_cancel(callback)
        try:
            yield
        finally:
            forget()

    def close(self) -> None:
        """The work is over: leave the parent, so that a long-lived parent keeps no dead children."""
        self._leave_parent()

    def _forget(self, key: int) -> None:
        with self._lock:
            self._callbacks.pop(key, None)
