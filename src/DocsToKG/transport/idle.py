"""Connections waiting to be used again.

Knows how many may wait, for how long and for whom, and how many are in use meanwhile. Thread-safe, with no thread of
its own: what has expired is closed when somebody next comes by. Promises: what is handed out was quiet a moment ago.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

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

    def take(self, key: Hashable) -> tuple[Wire | None, Place]:
        """A connection that is still good, or None, and a place for the one that is now used more; where that makes too
        many, the longest idle one is closed."""
        with self._lock:
            dropped = self._drop_old()
            wire = self._pop(key)
            self._in_use += 1
            if wire is None:
                dropped += self._drop_old()
        for old in dropped:
            old.close()
        while wire is not None and wire.is_stale():
            wire.close()
            with self._lock:
                wire = self._pop(key)
        return wire, Place(self, key)

    def close(self) -> None:
        """Close what waits, and whatever is put from now on."""
        with self._lock:
            self._closed = True
            dropped = list(self._by_age)
            self._by_age.clear()
            self._by_host.clear()
        for old in dropped:
            old.close()

    def __len__(self) -> int:
        with self._lock:
            return len(self._by_age)

    def _pop(self, key: Hashable) -> Wire | None:
        waiting = self._by_host.get(key)
        return self._forget(waiting[-1]) if waiting else None

    def _drop_old(self) -> list[Wire]:
        """The longest idle go: when they have expired, and while too many wait or are open."""
        dropped: list[Wire] = []
        if not self._by_age:
            return dropped
        born_before = self._clock.monotonic() - self._expiry_s
        room = self._max_total if self._max_open is None else min(self._max_total, self._max_open - self._in_use)
        for wire, (_, since) in self._by_age.items():
            if since > born_before and len(self._by_age) - len(dropped) <= room:
                break
            dropped.append(wire)
        for wire in dropped:
            self._forget(wire)
        return dropped

    def _vacate(self) -> None:
        with self._lock:
            self._in_use -= 1

    def _put(self, key: Hashable, wire: Wire) -> None:
        """As `_vacate`, and the connection waits for the next who wants it."""
        with self._lock:
            self._in_use -= 1
            if self._closed:
                dropped = [wire]
            else:
                self._by_age[wire] = (key, self._clock.monotonic())
                waiting = self._by_host.setdefault(key, [])
                waiting.append(wire)
                surplus = [self._forget(waiting[0])] if len(waiting) > self._max_per_host else []
                dropped = surplus + self._drop_old()
        for old in dropped:
            old.close()

    def _forget(self, wire: Wire) -> Wire:
        key, _ = self._by_age.pop(wire)
        waiting = self._by_host[key]
        waiting.remove(wire)
        if not waiting:
            del self._by_host[key]
        return wire


class Place:
    """One connection in use, until `keep` or `give_back`; what comes after that does nothing."""

    __slots__ = ("_idle", "_key")

    def __init__(self, idle: IdleWires, key: Hashable) -> None:
        self._idle: IdleWires | None = idle
        self._key = key

    def keep(self, wire: Wire) -> None:
        """Its exchange is over; it may serve another."""
        idle, self._idle = self._idle, None
        if idle is not None:
            idle._put(self._key, wire)

    def give_back(self) -> None:
        idle, self._idle = self._idle, None
        if idle is not None:
            idle._vacate()
