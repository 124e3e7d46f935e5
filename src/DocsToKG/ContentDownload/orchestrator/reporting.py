"""A worker tells the ledger who it is and what it knows of the hosts it asks, and hears what operators want.

Knows where the ledger takes reports, and the counters of the run. Promises: a report every few seconds while something
changes, and a last one; a ledger that does not answer costs the run nothing; a pause of a source and a forced breaker
reach the requests of this process within a few seconds, and end with the worker.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Protocol

from DocsToKG.ContentDownload.net.limits.breakers import Breakers, BreakerStatus
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimits, HostStatus
from DocsToKG.ContentDownload.telemetry.host_tally import BreakerChange, HostCounts, HostTally, Place
from DocsToKG.Orchestrator.control.workers.hosts import (
    MOST_ROWS,
    BreakerReport,
    HostReport,
    Orders,
    SourceHostService,
)
from DocsToKG.Orchestrator.control.workers.registry import WorkerService
from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, DEFAULT_TENANT

log = logging.getLogger(__name__)
EVERY_S = 2.0
_PAUSED_S = 4 * EVERY_S  # how long a pause holds without being said again
_WATCHED = 200  # hosts whose standing is told again while it changes by itself
_NOTHING = object()  # what was told of a host whose word did not arrive


class WorkerReports(Protocol):
    """Where a worker reports."""

    def report(
        self, worker_id: str, about: Mapping[str, Any], words: Sequence[HostReport], steps: Sequence[BreakerReport] = ()
    ) -> Orders: ...


class LedgerReports:
    """Reports to a ledger that this process has open."""

    def __init__(self, ledger: Any) -> None:
        self._workers = WorkerService(ledger)
        self._hosts = SourceHostService(ledger)

    def report(
        self, worker_id: str, about: Mapping[str, Any], words: Sequence[HostReport], steps: Sequence[BreakerReport] = ()
    ) -> Orders:
        self._workers.seen(DEFAULT_TENANT, worker_id, **about)
        return self._hosts.report(DEFAULT_TENANT, worker_id, words, steps)


def reports_of(ledger: Any) -> WorkerReports:
    """Where the workers of this ledger report: a ledger behind a service sends reports over HTTP."""
    found: WorkerReports | None = getattr(ledger, "reports", None) if hasattr(type(ledger), "reports") else None
    return found or LedgerReports(ledger)


class Reporter:
    """Reports for one worker while the block is open."""

    def __init__(
        self,
        reports: WorkerReports,
        worker_id: str,
        *,
        tally: HostTally,
        limits: HostLimits,
        breakers: Breakers | None,
        doing: Callable[[], Mapping[str, Any]],
        node: str | None = None,
        every_s: float = EVERY_S,
    ) -> None:
        self._reports = reports
        self._worker_id = worker_id
        self._tally = tally
        self._limits = limits
        self._breakers = breakers
        self._doing = doing
        self._node = node
        self._every_s = every_s
        self._told: dict[Place, object] = {}
        self._owed: dict[Place, HostCounts] = {}
        self._forced: dict[str, str] = {}
        self._paused: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._report_all, name="reports", daemon=True)

    def __enter__(self) -> Reporter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self.report()

    def _report_all(self) -> None:
        self.report()
        while not self._over.wait(self._every_s):
            self.report()

    def report(self) -> None:
        """Report once. What could not be sent goes out with the next report."""
        words, counted = self._words()
        changes = self._tally.take_changes()
        try:
            orders = self._reports.report(self._worker_id, self._about(), words, self._steps(changes))
        except LedgerError as error:
            log.debug("the ledger takes no report now: %s", error)
            self._owed = counted
            self._told.update(dict.fromkeys(((word.source, word.host) for word in words), _NOTHING))
            self._tally.put_back(changes)
            return
        self._obey(orders)

    def _steps(self, changes: Sequence[BreakerChange]) -> list[BreakerReport]:
        """Each change of a breaker by itself: what opens and closes between two words would not show otherwise."""
        now = self._tally.monotonic()
        return [
            BreakerReport(each.key, each.state, ago_s=max(0.0, now - each.at), for_s=each.for_s, why=each.why)
            for each in changes
        ]

    def _about(self) -> dict[str, Any]:
        info = {"pid": os.getpid(), **self._doing()}
        return {"node": self._node, "kind": DEFAULT_JOB_TYPE, "version": _version(), "info": info}

    def _words(self) -> tuple[list[HostReport], dict[Place, HostCounts]]:
        counted = _summed(self._owed, self._tally.take())
        self._owed = dict(list(counted.items())[MOST_ROWS:])  # a report has an end; the rest comes with the next
        # Hosts that were told of stay in sight for a while: a pause that ends by itself is news too.
        places = [*counted, *(place for place in self._told if place not in counted)][:MOST_ROWS]
        shut = {} if self._breakers is None else {each.key: each for each in self._breakers.statuses()}
        statuses = self._limits.statuses({host for _, host in places if host})
        words = []
        for place in places:
            source, host = place
            breaker = shut.get(f"host:{host}" if host else f"resolver:{source}")
            standing = statuses.get(host)
            news = (standing and standing.lasting, breaker and (breaker.state, breaker.forced))
            if place in counted or self._told.get(place) != news:
                words.append(_word(place, counted.get(place) or HostCounts(), standing, breaker))
            self._told[place] = news
        for place in list(self._told)[: max(0, len(self._told) - _WATCHED)]:
            del self._told[place]
        return words, counted

    def _obey(self, orders: Orders) -> None:
        for name in self._paused - set(orders.paused):
            self._limits.resume_source(name)
        for name, why in orders.paused.items():
            self._limits.pause_source(name, _PAUSED_S, f"paused: {why}")
        self._paused = set(orders.paused)
        if self._breakers is None:
            return
        wanted = dict.fromkeys(map(_local_key, orders.forced_closed), "closed")
        wanted |= dict.fromkeys(map(_local_key, orders.forced_open), "open")
        for key in set(self._forced) - set(wanted):
            self._breakers.get(key).unforce("the operator let it go")
        for key, state in wanted.items():
            if self._forced.get(key) != state:
                breaker = self._breakers.get(key)
                (breaker.force_open if state == "open" else breaker.force_closed)("by an operator")
        self._forced = wanted


def _local_key(key: str) -> str:
    """A service is known here as the source of that name."""
    return key.replace("service:", "resolver:", 1) if key.startswith("service:") else key


def _summed(owed: Mapping[Place, HostCounts], new: Mapping[Place, HostCounts]) -> dict[Place, HostCounts]:
    total = dict(new)
    for place, before in owed.items():
        now = total.setdefault(place, HostCounts())
        for name in ("requests", "answered", "refused", "failed", "works", "bytes"):
            setattr(now, name, getattr(now, name) + getattr(before, name))
        now.last_status = now.last_status if now.last_status is not None else before.last_status
    return total


def _word(place: Place, counts: HostCounts, standing: HostStatus | None, breaker: BreakerStatus | None) -> HostReport:
    return HostReport(
        source=place[0],
        host=place[1],
        requests=counts.requests,
        answered=counts.answered,
        refused=counts.refused,
        failed=counts.failed,
        works=counts.works,
        bytes=counts.bytes,
        last_status=counts.last_status,
        next_allowed_in_s=None if standing is None else standing.wait_s,
        held_by=None if standing is None else standing.why,
        breaker=None if breaker is None else breaker.state.value,
        breaker_for_s=None if breaker is None else breaker.retry_in_s,
        limits={} if standing is None else standing.limits,
    )


def _version() -> str | None:
    try:
        return version("docstokg")
    except PackageNotFoundError:
        return None
