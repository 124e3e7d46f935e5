"""Connections waiting to be used again.

Knows how many may wait, for how long and for whom, and how many are in use meanwhile. Thread-safe, with no thread of
its own: what has expired is closed when somebody next comes by. Promises: what is handed out was quiet a moment ago.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from DocsToKG.core.clock import Clock
from DocsToKG.transport.wire import Wire


class IdleWires:
    """The newest waits on top, since it is the least likely to have been closed by its server."""

    def __init__(
        self, *, clock: Clock, max_per_host: int, max_total: int, expiry_s: float, max_open: int | None = None
    ) -> None:
        self._clock = clock
        self._max_per_host = max_per_host
        self._max_total = max_total
        self._expiry_s = expiry_s
        self._max_open = max_open
        self._in_use = 0
        self._lock = threading.Lock()
        self._by_age: OrderedDict[Wire, tuple[Hashable, float]] = OrderedDict()
        self._by_host: dict[Hashable, list[Wire]] = {}
        self._closed = False

    def take(self, key: Hashable) -> Wire | None:
        """A connection that is still good, or None."""
        while True:
            with self._lock:
                dropped = self._drop_expired()
                wire = self._pop(key)
            _close_all(dropped)
            if wire is None or not wire.is_stale():
                return wire
            wire.close()

    def occupy(self) -> Place:
        """One more connection is in use; where that makes too many, the longest idle one is closed."""
        with self._lock:
            self._in_use += 1
            dropped = self._drop_beyond_open()
        _close_all(dropped)
        return Place(self._vacate)

    def put(self, key: Hashable, wire: Wire) -> None:
        with self._lock:
            if self._closed:
                dropped = [wire]
            else:
                self._by_age[wire] = (key, self._clock.monotonic())
                self._by_host.setdefault(key, []).append(wire)
                dropped = self._drop_expired() + self._drop_surplus(key)
        _close_all(dropped)

    def close(self) -> None:
        """Close what waits, and whatever is put from now on."""
        with self._lock:
            self._closed = True
            dropped = list(self._by_age)
            self._by_age.clear()
            self._by_host.clear()
        _close_all(dropped)

    def __len__(self) -> int:
        with self._lock:
            return len(self._by_age)

    def _pop(self, key: Hashable) -> Wire | None:
        waiting = self._by_host.get(key)
        if not waiting:
            return None
        wire = waiting[-1]
        self._forget(wire)
        return wire

    def _drop_expired(self) -> list[Wire]:
        born_before = self._clock.monotonic() - self._expiry_s
        dropped: list[Wire] = []
        while self._by_age:
            wire, (_, since) = next(iter(self._by_age.items()))
            if since > born_before:
                break
            dropped.append(self._forget(wire))
        return dropped

    def _drop_surplus(self, key: Hashable) -> list[Wire]:
        dropped: list[Wire] = []
        while len(self._by_host.get(key, ())) > self._max_per_host:
            dropped.append(self._forget(self._by_host[key][0]))
        while len(self._by_age) > self._max_total:
            dropped.append(self._forget(next(iter(self._by_age))))
        return dropped + self._drop_beyond_open()

    def _drop_beyond_open(self) -> list[Wire]:
        dropped: list[Wire] = []
        while self._max_open is not None and self._by_age and self._in_use + len(self._by_age) > self._max_open:
            dropped.append(self._forget(next(iter(self._by_age))))
        return dropped

    def _vacate(self) -> None:
        with self._lock:
            self._in_use -= 1

    def _forget(self, wire: Wire) -> Wire:
        key, _ = self._by_age.pop(wire)
        waiting = self._by_host[key]
        waiting.remove(wire)
        if not waiting:
            del self._by_host[key]
        return wire


class Place:
    """One connection in use, until `give_back`; safe to call twice."""

    __slots__ = ("_vacate",)

    def __init__(self, vacate: Callable[[], None]) -> None:
        self._vacate: Callable[[], None] | None = vacate

    def give_back(self) -> None:
        vacate, self._vacate = self._vacate, None
        if vacate is not None:
            vacate()


def _close_all(wires: list[Wire]) -> None:
    for wire in wires:
        wire.close()
