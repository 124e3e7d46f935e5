"""Connections on which an answer is awaited, all of them in one place.

Knows descriptors, the machine's time and whom to tell; knows nothing of what is sent. Whoever has nothing better to do
looks here, or sleeps here until something comes. Promises: each wait is told of once, with whether something came; a
wake-up that is sent while nobody sleeps is not lost. Where the system has no epoll nothing can be awaited here.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Who = TypeVar("Who")

IS_KNOWN = hasattr(select, "epoll")

_LONGEST_SLEEP_S = 0.1  # while something is awaited whose time may end
_MOST_AT_ONCE = 64


class Arrivals(Generic[Who]):
    """`tell(who, came)` is called by whoever looks, without any lock."""

    def __init__(self, tell: Callable[[Who, bool], None]) -> None:
        self._tell = tell
        self._awaited: dict[int, tuple[Who, float]] = {}
        self._lock = threading.Lock()
        # Descriptors that the system has been told of, perhaps closed since; with the number of the connection, as long
        # as whatever the system told of it was told to somebody who waited.
        self._watched: dict[int, int] = {}
        self._next_look = math.inf  # for those whose time is over
        self._epoll: Any = None
        self._bell = -1

    def open(self) -> None:
        if IS_KNOWN:
            self._epoll = select.epoll()
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._epoll.register(self._bell, select.EPOLLIN)

    def close(self) -> None:
        if self._epoll is not None:
            self._epoll.close()
            os.close(self._bell)
            self._epoll = None

    @property
    def is_open(self) -> bool:
        return self._epoll is not None

    def __len__(self) -> int:
        return len(self._awaited)

    def wait(self, fileno: int, until: float, who: Who, number: int = 0) -> None:
        """Tell `who` when something has come, or at the machine's time `until`. Of a connection that has a `number` of
        its own, who waits has read all that had come when it was last told."""
        with self._lock:
            self._awaited[fileno] = (who, until)
            if until < self._next_look:
                self._next_look = until
            if not number or self._watched.get(fileno) != number:
                self._watch(fileno, number)

    def _watch(self, fileno: int, number: int) -> None:
        # The system tells of whatever comes, once, and of what is there when it is asked to watch. A closed connection
        # it forgets by itself.
        events = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
        is_known = fileno in self._watched
        self._watched[fileno] = number
        if is_known:
            with contextlib.suppress(FileNotFoundError):
                self._epoll.modify(fileno, events)
                return
        self._epoll.register(fileno, events)

    def look(self, sleep_s: float | None = 0.0) -> None:
        """Tell those for whom something has come; sleeps until then, until woken, and at most `sleep_s`."""
        nap_s = self._nap_s(sleep_s) if sleep_s != 0 else 0.0
        for fileno, _ in self._epoll.poll(nap_s, _MOST_AT_ONCE):
            if fileno == self._bell:
                # It rings for one who sleeps: whoever only comes by must not silence it.
                if sleep_s != 0:
                    with contextlib.suppress(BlockingIOError):
                        os.eventfd_read(self._bell)
                continue
            with self._lock:
                found = self._awaited.pop(fileno, None)
                if found is None:  # the system tells once: whoever waits for it next asks again
                    self._watched[fileno] = 0
            if found is not None:
                self._tell(found[0], True)
        if time.monotonic() >= self._next_look:
            self._end_overdue()

    def wake(self) -> None:
        """Whoever sleeps in `look` comes back at once."""
        os.eventfd_write(self._bell, 1)

    def _nap_s(self, sleep_s: float | None) -> float | None:
        if not self._awaited:
            return sleep_s
        left_s = max(0.0, min(_LONGEST_SLEEP_S, self._next_look - time.monotonic()))
        return left_s if sleep_s is None else min(sleep_s, left_s)

    def _end_overdue(self) -> None:
        now = time.monotonic()
        with self._lock:
            over = [fileno for fileno, (_, until) in self._awaited.items() if until <= now]
            late = [self._awaited.pop(fileno)[0] for fileno in over]
            self._next_look = min((until for _, until in self._awaited.values()), default=math.inf)
        for who in late:
            self._tell(who, False)
