"""Wake-ups between the threads of one process: a condition variable and a counter."""

from __future__ import annotations

import threading


class LocalSignal:
    """Every waiter hears every notice."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._notices = 0

    def notify(self, lane: str) -> None:
        with self._changed:
            self._notices += 1
            self._changed.notify_all()

    def mark(self) -> int:
        with self._changed:
            return self._notices

    def wait(self, timeout_s: float, *, since: int | None = None) -> bool:
        with self._changed:
            start = self._notices if since is None else since
            return self._changed.wait_for(lambda: self._notices != start, timeout=max(0.0, timeout_s))

    def close(self) -> None:
        self.notify("")
