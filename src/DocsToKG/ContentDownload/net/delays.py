"""How long a request stood before its gate because of a rule of time, told apart by rule.

Waiting for a free slot is not counted: that is our own crowd, not somebody's limit. Knows no clock; it is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from DocsToKG.ContentDownload.api.steps import Gate

# The rules: a pause the host asked for, the spacing of requests to a host, the rate of a source.
HOLD, INTERVAL, RATE = "hold", "interval", "rate"


class Delays:
    """What one request was held up by, from its first asking to its grant."""

    __slots__ = ("_rule", "_seconds", "_since", "_until")

    def __init__(self) -> None:
        self._rule: tuple[str, str] | None = None
        self._since = 0.0
        self._until = 0.0
        self._seconds: dict[tuple[str, str], float] = {}

    def __iter__(self) -> Iterator[tuple[str, str, float]]:
        """Key (`host:...` or `resolver:...`), rule and seconds."""
        return ((key, rule, seconds) for (key, rule), seconds in self._seconds.items())

    def refused(self, key: str, rule: str, *, since: float, until: float) -> None:
        """Sent away at `since`, with the advice to come back at `until`."""
        self._rule, self._since, self._until = (key, rule), since, until

    def asked_again(self, now: float) -> None:
        """Back before the gate. Coming later than advised is not the rule's doing."""
        if self._rule is not None:
            self.add(*self._rule, min(now, self._until) - self._since)
            self._rule = None

    def add(self, key: str, rule: str, seconds: float) -> None:
        self._seconds[key, rule] = self._seconds.get((key, rule), 0.0) + seconds


@dataclass(frozen=True, slots=True)
class TimedGate(Gate):
    """A gate that remembers what it made its request wait for."""

    delays: Delays = field(default_factory=Delays, compare=False, repr=False)
