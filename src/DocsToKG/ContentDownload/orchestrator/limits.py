"""How many at once, per resolver and per host.

Counts places per key and lets callers wait for one. Does not know rates or what a key stands for.
Promises: never more holders of a key than its limit, and a changed limit holds for live keys too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from DocsToKG.core.urls import host_key

__all__ = ["KeyedLimiter", "host_key"]


class KeyedLimiter:
    """Places per key: `per_key` where a key is named, `default_limit` otherwise; always at least one."""

    def __init__(self, default_limit: int, per_key: Mapping[str, int] | None = None) -> None:
        self._default = max(1, default_limit)
        self._limits = {key: max(1, limit) for key, limit in (per_key or {}).items()}
        self._taken: dict[str, int] = {}
        self._freed = threading.Condition()

    def acquire(self, key: str, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take a place, waiting for one if need be; False when none came free in time, or at once if not blocking."""
        with self._freed:
            if not self._freed.wait_for(lambda: self._has_place(key), timeout=timeout if blocking else 0.0):
                return False
            self._taken[key] = self._taken.get(key, 0) + 1
            return True

    def release(self, key: str) -> None:
        """Free a place that was taken."""
        with self._freed:
            taken = self._taken.get(key, 0)
            if taken == 0:
                raise ValueError(f"no place of {key!r} is taken")
            if taken == 1:
                del self._taken[key]
            else:
                self._taken[key] = taken - 1
            self._freed.notify_all()

    @contextmanager
    def holding(self, key: str) -> Iterator[None]:
        """A place for the length of the body."""
        self.acquire(key)
        try:
            yield
        finally:
            self.release(key)

    def set_limit(self, key: str, limit: int) -> None:
        """Change a key's limit. Those who hold a place keep it, also when they are now too many."""
        with self._freed:
            self._limits[key] = max(1, limit)
            self._freed.notify_all()

    def limit(self, key: str) -> int:
        with self._freed:
            return self._limits.get(key, self._default)

    def in_use(self, key: str) -> int:
        with self._freed:
            return self._taken.get(key, 0)

    def _has_place(self, key: str) -> bool:
        return self._taken.get(key, 0) < self._limits.get(key, self._default)
