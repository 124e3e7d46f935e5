"""Wait for a better version while sources race.

A preprint server answers faster than an index that leads to the published paper; without this, speed alone would
decide which version is kept. Promises: only a source with a lesser version waits, only for running sources, and never
longer than `patience_s`; so two sources never wait for each other. Patience is counted in polls, not by the clock:
while a machine is suspended, the other sources cannot answer either.
"""

from __future__ import annotations

from DocsToKG.ContentDownload.api.types import DownloadPlan
from DocsToKG.ContentDownload.api.versions import VERSIONS, version_rank
from DocsToKG.core.clock import Clock

# Looks become rarer: thousands of works may stand here at once.
_FIRST_LOOK_S, _LAST_LOOK_S = 0.02, 0.5
_PATIENCE_S = 8.0


class VersionRace:
    """The best version rank that each running source may still give; before it answers, the best of all."""

    def __init__(self, clock: Clock, *, patience_s: float = _PATIENCE_S) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._best: dict[str, int] = {}

    def enter(self, name: str) -> None:
        self._best[name] = 0

    def leave(self, name: str) -> None:
        self._best.pop(name, None)

    async def wait_for_better(self, name: str, plan: DownloadPlan) -> None:
        """Return when no other running source may give a better version than `plan`."""
        rank = version_rank(plan.version) if plan.version in VERSIONS else 0
        self._best[name] = rank
        left_s, pause_s = self._patience_s, _FIRST_LOOK_S
        while self._is_outranked(name, rank) and left_s > 0:
            await self._clock.sleep_until(self._clock.monotonic() + pause_s)
            left_s -= pause_s
            pause_s = min(_LAST_LOOK_S, pause_s * 2)

    def _is_outranked(self, name: str, rank: int) -> bool:
        return any(best < rank for other, best in self._best.items() if other != name)
