"""Find impolite requests: too fast, too many, too many at once, or forbidden by robots.txt.

Knows limits, robots rules and times it is told. Does no I/O and reads no clock.
A tenth of a second is tolerated, because a network and two schedulers lie between a client's decision and the arrival.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from DocsToKG.Sandbox.limits import HostLimit, Limits, robots_for
from DocsToKG.Sandbox.messages import Request
from DocsToKG.Sandbox.publishers import PRIVATE_NAME

WINDOW_S = 10.0
SLACK_S = 0.1
# Requests already on their way when a Retry-After is sent are no fault of the client.
IN_FLIGHT_S = 0.3
MAX_KEPT = 1_000
_PRIVATE_HOSTS = ("localhost", PRIVATE_NAME)
_PRIVATE_STARTS = ("10.", "127.", "169.254.", "192.168.", "[")


@dataclass(slots=True)
class HostRecord:
    """The requests to one host, or to a part of it with a limit of its own."""

    limit: HostLimit
    active: int = 0
    max_concurrent: int = 0
    min_gap_s: float | None = None
    last_start: float | None = None
    starts: deque[float] = field(default_factory=deque)
    held_from: float = 0.0
    held_until: float = 0.0
    drawn_out_s: float = 0.0  # how much longer than the interval whole answers held the only slot

    def as_dict(self) -> dict[str, Any]:
        limit = self.limit
        return {
            "max_concurrent": self.max_concurrent,
            "min_gap_s": None if self.min_gap_s is None else round(self.min_gap_s, 4),
            "drawn_out_s": round(self.drawn_out_s, 3),
            "limit": {
                "rate_per_s": limit.rate_per_s,
                "burst": limit.burst,
                "concurrent": limit.concurrent,
                "interval_s": limit.interval_s,
            },
        }


class Politeness:
    """Judges each request as it begins and keeps what it found."""

    def __init__(self, *, limits: Limits) -> None:
        self.limits = limits
        self.reset()

    def reset(self) -> None:
        active = {limit_key: record.active for limit_key, record in getattr(self, "hosts", {}).items() if record.active}
        self.hosts: dict[str, HostRecord] = {}
        self.counts: Counter[str] = Counter()
        self.found: list[dict[str, Any]] = []
        # Requests still being answered will end after the reset, and must find their place.
        for limit_key, number in active.items():
            self._record(limit_key).active = number

    def begin(self, request: Request, now: float, *, settle: Callable[[str], None]) -> str:
        """Judge a request and count it in. `settle` ends exchanges of a key whose client has left unnoticed."""
        limit_key = self.limits.key_of(request.host, request.path)
        record = self._record(limit_key)
        self._judge_identity(request, now)
        if request.path != "/robots.txt":
            self._judge_robots(request, now)
            self._judge_pace(record, request, now)
        if record.active >= record.limit.concurrent:
            settle(limit_key)
        record.active += 1
        record.max_concurrent = max(record.max_concurrent, record.active)
        if record.active > record.limit.concurrent:
            self._note("concurrency", request, now, f"{record.active} at once, {record.limit.concurrent} allowed")
        return limit_key

    def end(self, limit_key: str, *, took_s: float = 0.0) -> None:
        """An answer is over; `took_s` when it left whole, so that nobody could have had it sooner."""
        record = self._record(limit_key)
        record.active = max(0, record.active - 1)
        if record.limit.concurrent == 1:
            record.drawn_out_s += max(0.0, took_s - record.limit.interval_s)

    def hold(self, limit_key: str, now: float, seconds: float) -> None:
        """The host asked for quiet."""
        record = self._record(limit_key)
        record.held_from = now
        record.held_until = max(record.held_until, now + seconds)

    def report(self) -> dict[str, Any]:
        return {"total": self.counts.total(), "by_kind": dict(self.counts), "violations": list(self.found)}

    def _record(self, limit_key: str) -> HostRecord:
        if limit_key not in self.hosts:
            self.hosts[limit_key] = HostRecord(self.limits.of(limit_key))
        return self.hosts[limit_key]

    def _judge_identity(self, request: Request, now: float) -> None:
        if "mailto:" not in request.headers.get("user-agent", ""):
            self._note("unidentified", request, now, "the User-Agent has no mailto:")
        if request.host in _PRIVATE_HOSTS or request.host.startswith(_PRIVATE_STARTS):
            self._note("private-address", request, now, "a client must not follow a link to a private address")

    def _judge_robots(self, request: Request, now: float) -> None:
        rules = robots_for(request.host, self.limits.rate_factor)
        if not rules.permits(request.path):
            self._note(
                "robots", request, now, "robots.txt forbids it" if rules.status == 200 else "robots.txt cannot be read"
            )

    def _judge_pace(self, record: HostRecord, request: Request, now: float) -> None:
        limit = record.limit
        if record.last_start is not None:
            gap = abs(now - record.last_start)  # one that was read late may be told of after one that came later
            record.min_gap_s = gap if record.min_gap_s is None else min(gap, record.min_gap_s)
            if gap < limit.interval_s - SLACK_S:
                self._note("interval", request, now, f"{gap:.3f} s after the last, {limit.interval_s:.3f} s asked")
        if record.held_from + IN_FLIGHT_S < now < record.held_until - SLACK_S:
            early = f"{record.held_until - now:.3f} s too early"
            self._note("retry-after", request, now, early, told_at_s=round(record.held_from, 4))
        record.last_start = now if record.last_start is None else max(now, record.last_start)
        record.starts.append(now)
        while record.starts[0] < now - WINDOW_S:
            record.starts.popleft()
        allowed = limit.rate_per_s * (WINDOW_S + SLACK_S) + limit.burst
        if len(record.starts) > allowed:
            self._note("rate", request, now, f"{len(record.starts)} in {WINDOW_S:g} s, {allowed:.0f} allowed")

    def _note(self, kind: str, request: Request, now: float, detail: str, **more: float) -> None:
        self.counts[kind] += 1
        if len(self.found) < MAX_KEPT:
            what = {"kind": kind, "host": request.host, "method": request.method, "path": request.path[:300]}
            self.found.append({**what, "at_s": round(now, 4), "detail": detail, **more})
