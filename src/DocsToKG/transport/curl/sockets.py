"""Which of libcurl's sockets are ready, asked once for all of them in a turn of the loop.

The event loop watches one descriptor, that of the poller. A kept connection stays in the poller while nobody uses it,
since libcurl lets go of its socket after each exchange and takes it up again with the next. Promises: no socket is left
in the event loop's own list, where a later one of the same number would be mistaken for it.
"""

from __future__ import annotations

import contextlib
import select
import selectors
from collections.abc import Iterable
from typing import Protocol

import pycurl

READ: int = pycurl.CSELECT_IN
WRITE: int = pycurl.CSELECT_OUT
_ERROR: int = pycurl.CSELECT_ERR
_WANTED: dict[int, int] = {pycurl.POLL_IN: READ, pycurl.POLL_OUT: WRITE, pycurl.POLL_INOUT: READ | WRITE}


class _Poller(Protocol):
    def fileno(self) -> int: ...

    def watch(self, fileno: int, events: int) -> None: ...

    def forget(self, fileno: int) -> None: ...

    def ready(self) -> Iterable[tuple[int, int]]: ...

    def close(self) -> None: ...


class _Epoll:
    """Linux."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.fileno = self._epoll.fileno
        self.close = self._epoll.close

    def watch(self, fileno: int, events: int) -> None:
        mask = (select.EPOLLIN if events & READ else 0) | (select.EPOLLOUT if events & WRITE else 0)
        try:
            self._epoll.modify(fileno, mask)
        except FileNotFoundError:
            self._epoll.register(fileno, mask)

    def forget(self, fileno: int) -> None:
        with contextlib.suppress(OSError):  # it was closed, and thereby forgotten
            self._epoll.unregister(fileno)

    def ready(self) -> Iterable[tuple[int, int]]:
        return [(fileno, _events(mask)) for fileno, mask in self._epoll.poll(0, 256)]


def _events(mask: int) -> int:
    events = READ if mask & select.EPOLLIN else 0
    if mask & select.EPOLLOUT:
        events |= WRITE
    return events | _ERROR if mask & (select.EPOLLERR | select.EPOLLHUP) else events


class _Selector:
    """Elsewhere: kqueue."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.close = self._selector.close

    def fileno(self) -> int:
        return self._selector.fileno()

    def watch(self, fileno: int, events: int) -> None:
        mask = (selectors.EVENT_READ if events & READ else 0) | (selectors.EVENT_WRITE if events & WRITE else 0)
        self.forget(fileno)
        self._selector.register(fileno, mask)

    def forget(self, fileno: int) -> None:
        with contextlib.suppress(KeyError, ValueError, OSError):
            self._selector.unregister(fileno)

    def ready(self) -> Iterable[tuple[int, int]]:
        for key, mask in self._selector.select(0):
            read = READ if mask & selectors.EVENT_READ else 0
            yield key.fd, read | (WRITE if mask & selectors.EVENT_WRITE else 0)


class Sockets:
    """What libcurl wants to know of, in its own words for events."""

    def __init__(self) -> None:
        self._poller: _Poller = _Epoll() if hasattr(select, "epoll") else _Selector()
        self._watched: dict[int, int] = {}  # what the poller was told; zero events are never told
        self._idle: set[int] = set()

    def fileno(self) -> int:
        return self._poller.fileno()

    def want(self, what: int, fileno: int) -> None:
        """libcurl's SOCKETFUNCTION."""
        events = _WANTED.get(what, 0)
        if not events:
            self._idle.add(fileno)
            return
        self._idle.discard(fileno)
        if self._watched.get(fileno) != events:
            self._watched[fileno] = events
            self._poller.watch(fileno, events)

    def opened(self, fileno: int) -> None:
        """A new socket: whatever was known under its number is gone."""
        if self._watched.pop(fileno, 0):
            self._poller.forget(fileno)
        self._idle.discard(fileno)

    def ready(self) -> list[tuple[int, int]]:
        """Those on which something has happened that libcurl waits for."""
        found = []
        for fileno, events in self._poller.ready():
            if fileno in self._idle:
                self._idle.discard(fileno)
                self._watched.pop(fileno, None)
                self._poller.forget(fileno)
            else:
                found.append((fileno, events))
        return found

    def close(self) -> None:
        self._poller.close()
