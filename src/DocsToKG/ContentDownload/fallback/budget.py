"""The budget of one work and of one source: seconds and requests. Time spent parked does not count.

A look-up in an index costs time but no request: many sources would use up the requests meant for the copies.
"""

from __future__ import annotations

from collections.abc import Callable

from DocsToKG.ContentDownload.api.ports import Budget
from DocsToKG.ContentDownload.api.types import Reason, Role
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure

# An exchange that may take less than this ends before any server has answered.
_USEFUL_S = 0.2


def _too_little(left_s: float, of_s: float) -> bool:
    return left_s <= min(_USEFUL_S, of_s / 10)


class WorkBudget:
    """Seconds of I/O and number of exchanges left for one work, shared by branches that race on one event loop."""

    def __init__(self, *, total_s: float, attempts: int, on_begin: Callable[[], None] = lambda: None) -> None:
        self._total_s, self._seconds = total_s, total_s
        self._total_attempts, self._attempts = attempts, attempts
        self._on_begin: Callable[[], None] | None = on_begin  # told once, when the first exchange is over

    def take_attempt(self, role: str = Role.ARTIFACT) -> None:
        counts = role != Role.METADATA
        if _too_little(self._seconds, self._total_s):
            raise CandidateRejected(Reason.BUDGET_EXHAUSTED, f"the {self._total_s:g} s for one work are used")
        if counts and self._attempts <= 0:
            raise CandidateRejected(
                Reason.BUDGET_EXHAUSTED, f"the {self._total_attempts} requests for one work are used"
            )
        self._attempts -= int(counts)

    def seconds_left(self) -> float:
        return max(0.0, self._seconds)

    def spend(self, seconds: float) -> None:
        self._seconds -= seconds
        begin, self._on_begin = self._on_begin, None
        if begin is not None:
            begin()


class SourceShare:
    """The part of a work's budget that one source may use to name copies. One branch uses it.

    A source that exceeds it fails temporarily, and the search goes on with the next one.
    """

    def __init__(self, whole: Budget, *, seconds: float) -> None:
        self._whole = whole
        self._share_s, self._left_s = seconds, seconds

    def take_attempt(self, role: str = Role.ARTIFACT) -> None:
        if _too_little(self._left_s, self._share_s):
            raise TransientFailure(Reason.TIMEOUT, f"the {self._share_s:g} s for one source are used")
        self._whole.take_attempt(role)

    def seconds_left(self) -> float:
        return min(max(0.0, self._left_s), self._whole.seconds_left())

    def spend(self, seconds: float) -> None:
        self._left_s -= seconds
        self._whole.spend(seconds)
