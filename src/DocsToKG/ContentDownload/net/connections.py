"""No more connections in use at once than this process may have. Knows a number, no hosts."""

from __future__ import annotations

import math
import threading


class Connections:
    """The connections of one process; `most` None means any number."""

    def __init__(self, most: int | None = None) -> None:
        self._most = math.inf if most is None else most
        self._lock = threading.Lock()
        self._used = 0

    def take(self) -> bool:
        with self._lock:
            if self._used >= self._most:
                return False
            self._used += 1
            return True

    @property
    def is_full(self) -> bool:
        return self._used >= self._most

    def give_back(self) -> None:
        with self._lock:
            self._used -= 1

    @property
    def used(self) -> int:
        return self._used
