"""How many at once, per resolver and per host, for callers that may block.

The slots are those of `net.limits.state`, by which the program limits its sources and hosts; here a thread waits for
one. Does not know rates or what a key stands for. Promises: never more holders of a key than its limit, and a changed
limit holds for live keys too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from DocsToKG.ContentDownload.net.limits.state import KeyLimit, LimitState
from DocsToKG.core.urls import host_key

__all__ = ["KeyedLimiter", "host_key"]


class KeyedLimiter:
    """Slots per key: `per_key` where a key is named, `default_limit` otherwise; always at least one."""

    def __init__(self, default_limit: int, per_key: Mapping[str, int] | None = None) -> None:
        self._default = default_limit
        self._limits = dict(per_key or {})
        self._key_limits: dict[str, KeyLimit] = {}  # those that somebody holds a slot of
        self._freed = threading.Condition()

    def acquire(self, key: str, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take a slot, waiting for one if need be; False when none came free in time, or at once if not blocking."""
        with self._freed:
            if not self._freed.wait_for(lambda: _is_free(self._key_limit(key)), timeout=timeout if blocking else 0.0):
                return False
            key_limit = self._key_limits[key] = self._key_limit(key)
            key_limit.busy += 1
            return True

    def release(self, key: str) -> None:
        """Free a slot that was taken."""
        with self._freed:
            key_limit = self._key_limits.get(key)
            if key_limit is None:
                raise ValueError(f"no slot of {key!r} is taken")
            key_limit.busy -= 1
            if not key_limit.busy:
                del self._key_limits[key]
            self._freed.notify_all()

    @contextmanager
    def holding(self, key: str) -> Iterator[None]:
        """A slot for the length of the body."""
        self.acquire(key)
        try:
            yield
        finally:
            self.release(key)

    def set_limit(self, key: str, limit: int) -> None:
        """Change a key's limit. Those who hold a slot keep it, also when they are now too many."""
        with self._freed:
            self._limits[key] = limit
            if key in self._key_limits:
                self._key_limits[key].slots = max(1, limit)
            self._freed.notify_all()

    def limit(self, key: str) -> int:
        with self._freed:
            return self._key_limit(key).slots

    def in_use(self, key: str) -> int:
        with self._freed:
            return self._key_limit(key).busy

    def _key_limit(self, key: str) -> KeyLimit:
        found = self._key_limits.get(key)
        if found is not None:
            return found
        slots = self._limits.get(key, self._default)
        return KeyLimit(key, slots=slots, rates={}, burst=1.0, factor=1.0, kind="slot")


def _is_free(key_limit: KeyLimit) -> bool:
    """No other process takes part, so what is shared of a lane is empty."""
    return key_limit.is_free(LimitState(), "", 0.0, lambda owner: False)
