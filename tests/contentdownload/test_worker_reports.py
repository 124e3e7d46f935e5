"""What a worker says of hosts arrives, also what its desk could not take at first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Verb
from DocsToKG.ContentDownload.net.limits.breakers import Breakers
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.orchestrator.reporting import Reporter
from DocsToKG.ContentDownload.telemetry.host_tally import HostTally
from DocsToKG.core.breaker import BreakerSettings
from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.control.workers.hosts import MOST_ROWS, BreakerReport, HostReport, Orders
from DocsToKG.Orchestrator.errors import LedgerBusy


class WorkerReports:
    """Keeps what it is told, unless it is away."""

    def __init__(self) -> None:
        self.is_away = False
        self.words: list[HostReport] = []

    def report(
        self, worker_id: str, about: Mapping[str, Any], words: Sequence[HostReport], steps: Sequence[BreakerReport] = ()
    ) -> Orders:
        if self.is_away:
            raise LedgerBusy("away")
        assert len(words) <= MOST_ROWS
        self.words += words
        return Orders()


@pytest.fixture
def tally(clock: ManualClock) -> HostTally:
    return HostTally(monotonic=clock.monotonic)


@pytest.fixture
def breakers(clock: ManualClock, tally: HostTally) -> Breakers:
    return Breakers(clock=clock, settings=BreakerSettings(), sink=tally)


@pytest.fixture
def reports() -> WorkerReports:
    return WorkerReports()


@pytest.fixture
def reporter(reports: WorkerReports, clock: ManualClock, tally: HostTally, breakers: Breakers) -> Reporter:
    limits = HostLimits(clock=clock, default_host=HostLimit(1))
    return Reporter(reports, "w", tally=tally, limits=limits, breakers=breakers, doing=dict)


def ask(tally: HostTally, host: str) -> None:
    tally.attempt(Attempt(0.0, "landing", f"https://{host}/", Verb.GET, AttemptStatus.HTTP_GET, 200, host=host))


def test_more_hosts_than_a_report_may_have_are_told_with_the_next(
    reporter: Reporter, reports: WorkerReports, tally: HostTally
) -> None:
    reports.is_away = True
    for number in range(3):
        for host in range(300):
            ask(tally, f"h{number}-{host}.example.org")
        reporter.report()
    reports.is_away = False
    reporter.report()
    reporter.report()
    assert sum(word.requests for word in reports.words) == 900


def test_how_a_host_stands_is_told_again_where_the_word_did_not_arrive(
    reporter: Reporter, reports: WorkerReports, tally: HostTally, breakers: Breakers
) -> None:
    ask(tally, "h.example.org")
    reporter.report()
    breakers.get("host:h.example.org").force_open("out of order")
    reports.is_away = True
    reporter.report()
    reports.is_away = False
    reports.words.clear()
    reporter.report()
    assert [(word.host, word.breaker, word.requests) for word in reports.words] == [("h.example.org", "open", 0)]


def test_of_too_many_changes_the_latest_are_kept(tally: HostTally) -> None:
    for number in range(200):
        tally.breaker_transition(f"host:early-{number}", "closed", "open")
    taken = tally.take_changes()
    for number in range(200):
        tally.breaker_transition(f"host:late-{number}", "closed", "open")
    tally.put_back(taken)
    assert [change.key for change in tally.take_changes()] == [f"host:late-{number}" for number in range(200)]
