"""What a throttle holds back: a tenant's jobs, those of a type or of a source, wholly or beyond a number.

Pure. `*` stands for every tenant. Times are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

EVERY = "*"


class Lane(NamedTuple):
    """Jobs that stand and fall together: those of one tenant, type and source (`""` where none is known)."""

    tenant: str
    job_type: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Throttle:
    """`max_active` None stops everything it fits. A job type or a source of None fits all."""

    throttle_id: str
    tenant: str
    job_type: str | None = None
    source: str | None = None
    max_active: int | None = None
    expires_at: int | None = None
    reason: str | None = None

    def fits(self, lane: Lane) -> bool:
        return (
            self.tenant in (EVERY, lane.tenant)
            and self.job_type in (None, EVERY, lane.job_type)
            and self.source in (None, lane.source)
        )

    def holds(self, now: int) -> bool:
        """Whether it counts at this moment."""
        return self.expires_at is None or self.expires_at > now

    @property
    def scope(self) -> str:
        """What it holds back, in words."""
        parts = [] if self.tenant == EVERY else [f"tenant {self.tenant}"]
        parts += [f"job type {self.job_type}"] if self.job_type not in (None, EVERY) else []
        parts += [f"source {self.source}"] if self.source is not None else []
        return ", ".join(parts) or "everything"
