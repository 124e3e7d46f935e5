"""What a fault run has counted, one line of JSON each, for whoever gathers them (`python -m tests.chaos`)."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

WHERE = "CHAOS_SCORES"
BAD = ("lost", "doubled", "stuck", "impolite", "wrong")
_LOOK_S = 0.02


def note(
    suite: str, *, jobs: int, faults: Mapping[str, int], recovery_s: Sequence[float] = (), **counts: int
) -> dict[str, Any]:
    """`counts` are those of BAD; what is not named cannot happen in the suite. Called before anything is asserted, so
    that a loss is counted, and is not only a turn that failed."""
    judged = dict.fromkeys(BAD, 0) | counts
    line = {"suite": suite, "jobs": jobs, "faults": dict(faults), "recovery_s": list(recovery_s), **judged}
    if os.environ.get(WHERE):
        with Path(os.environ[WHERE]).open("a") as file:
            file.write(json.dumps(line) + "\n")
    return line


def bad_of(line: Mapping[str, Any]) -> dict[str, int]:
    return {name: line[name] for name in BAD if line[name]}


def met_in_the_web(counters: Mapping[str, Any]) -> dict[str, int]:
    """The faults that the sandbox has shown."""
    return {f"web: {fault}": count for fault, count in counters["by_fault"].items()}


class Recovery:
    """How long it takes, after each fault, until more is done than at that moment; after the last of several that come
    before that. `done` may fail while a server is away; nothing is done then."""

    def __init__(self, done: Callable[[], int]) -> None:
        self._done = done
        self._open: tuple[float, int] | None = None
        self._guard, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.seconds: list[float] = []

    def __enter__(self) -> Recovery:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def mark(self) -> None:
        """A fault has come, or is over."""
        if (count := self._now()) is not None:
            self._close(count)
            with self._guard:
                self._open = (time.monotonic(), count)

    def _watch(self) -> None:
        is_over = False
        while not is_over:
            is_over = self._over.wait(_LOOK_S)  # what came last is looked at once more
            if self._open and (count := self._now()) is not None:
                self._close(count)

    def _close(self, count: int) -> None:
        now = time.monotonic()
        with self._guard:
            if self._open is not None and count > self._open[1]:
                self.seconds.append(round(now - self._open[0], 2))
                self._open = None

    def _now(self) -> int | None:
        try:
            return self._done()
        except Exception:
            return None
