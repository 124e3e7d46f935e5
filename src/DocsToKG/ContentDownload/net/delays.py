"""How long a request stood before its gate because of a rule of time, told apart by rule.

Waiting for a free slot is not counted: that is our own crowd, not somebody's limit. Knows no clock; it is told.
"""

from __future__ import annotations

from dataclasses import field

from DocsToKG.ContentDownload.api.gates import Gate
from DocsToKG.core.values import lean_dataclass

# The rules: a pause the host asked for, the spacing of requests to a host, the rate of a source.
HOLD, INTERVAL, RATE = "hold", "interval", "rate"


class Delays:
    """What one request was held up by, from its first asking to its grant."""

    __slots__ = ("_since", "_until", "rule", "seconds")

    def __init__(self) -> None:
        self.rule: tuple[str, str] | None = None  # what it was sent away for and has not come back from
        self.seconds: dict[tuple[str, str], float] = {}  # by key (`host:...` or `resolver:...`) and rule
        self._since = 0.0
        self._until = 0.0

    def refused(self, key: str, rule: str, *, since: float, until: float) -> None:
        """Sent away at `since`, with the advice to come back at `until`."""
        self.rule, self._since, self._until = (key, rule), since, until

    def asked_again(self, now: float) -> None:
        """Back before the gate. Coming later than advised is not the rule's doing."""
        if self.rule is not None:
            self.add(*self.rule, min(now, self._until) - self._since)
            self.rule = None

    def add(self, key: str, rule: str, seconds: float) -> None:
        self.seconds[key, rule] = self.seconds.get((key, rule), 0.0) + seconds


@lean_dataclass(frozen=True, slots=True)
class TimedGate(Gate):
    """A gate that remembers what it made its request wait for."""

    delays: Delays = field(default_factory=Delays, compare=False, repr=False)
