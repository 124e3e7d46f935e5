"""How much one work may cost. Time that a work spends parked does not count."""

from __future__ import annotations

import threading
from collections.abc import Callable

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected


class WorkBudget:
    """Seconds of I/O and number of exchanges left for one work, shared by its racing branches."""

    def __init__(self, *, total_s: float, attempts: int, on_begin: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._seconds = total_s
        self._attempts = attempts
        self._on_begin: Callable[[], None] | None = on_begin  # told once, when the first exchange is over

    def take_attempt(self) -> None:
        with self._lock:
            if self._attempts <= 0 or self._seconds <= 0:
                raise CandidateRejected(Reason.BUDGET_EXHAUSTED, "this work has used all it may cost")
            self._attempts -= 1

    def seconds_left(self) -> float:
        with self._lock:
            return max(0.0, self._seconds)

    def spend(self, seconds: float) -> None:
        with self._lock:
            self._seconds -= seconds
            begin, self._on_begin = self._on_begin, None
        if begin is not None:
            begin()
