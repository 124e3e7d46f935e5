"""The protocol of a wake-up channel: after a notice, at least one waiting worker wakes as soon as possible."""

from __future__ import annotations

from typing import Protocol


class Signal(Protocol):
    """A hint, never a grant: whoever wakes asks the ledger what there is."""

    def notify(self, lane: str) -> None:
        """Lane `lane` (a job type) may have work."""

    def mark(self) -> int:
        """A point in time to wait from, so that a notice between asking the ledger and waiting is not lost."""

    def wait(self, timeout_s: float, *, since: int | None = None) -> bool:
        """True once there was a notice after `since` (now, when None); False when the time is over."""

    def close(self) -> None: ...
