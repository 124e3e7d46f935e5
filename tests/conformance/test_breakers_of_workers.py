"""The breakers that workers keep of hosts and sources, on every ledger: listed, written down and forced by the API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Verb
from DocsToKG.ContentDownload.net.limits.breakers import Breakers
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.orchestrator.reporting import LedgerReports, Reporter
from DocsToKG.ContentDownload.telemetry.host_tally import HostTally
from DocsToKG.core.breaker import BreakerSettings, BreakerState
from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.control.breakers import BreakerService
from DocsToKG.Orchestrator.control.incidents import IncidentService
from DocsToKG.Orchestrator.control.workers.hosts import FORGET_S, BreakerReport, HostReport, SourceHostService
from DocsToKG.Orchestrator.errors import LedgerBusy

Open = Callable[..., Any]
HOST, SOURCE = "host:pdf.example.org", "resolver:unpaywall"
SETTINGS = BreakerSettings(min_samples=2, open_s=30.0, test_count=1)


def word(state: str, for_s: float | None = None, host: str = "pdf.example.org") -> HostReport:
    return HostReport("unpaywall", host, requests=1, breaker=state, breaker_for_s=for_s)


def steps(ledger: Any, key: str) -> list[tuple[str, str]]:
    return [(each.old_state, each.new_state) for each in reversed(BreakerService(ledger).transitions("default", key))]


def test_a_breaker_of_a_worker_is_listed_with_every_change(ledger: Any, clock: ManualClock) -> None:
    """BRK-12."""
    hosts, breakers = SourceHostService(ledger), BreakerService(ledger)
    hosts.report("default", "w", [word("closed"), word("closed", host="")])
    assert breakers.list("default") == []  # one that never opened is nothing to look at
    hosts.report("default", "w", [word("open", 30.0), word("open", 60.0, host="")])
    assert [(each.key, each.state) for each in breakers.list("default", "open")] == [(HOST, "open"), (SOURCE, "open")]
    assert breakers.get("default", HOST).open_until == pytest.approx(clock.now() + 30)
    assert not breakers.check("default", HOST).allowed
    clock.advance(31)
    assert breakers.get("default", HOST).state == "half-open"
    hosts.report("default", "w", [word("closed")])
    assert steps(ledger, HOST) == [("closed", "open"), ("open", "half-open"), ("half-open", "closed")]
    assert steps(ledger, SOURCE) == [("closed", "open")]
    assert [each.actor for each in breakers.transitions("default", HOST)] == ["w"] * 3
    assert breakers.list("other") == []
    assert list(IncidentService(ledger).list("default").incidents) == []
    assert ledger.verify_history()


def test_the_time_that_one_worker_names_stands_against_another_that_knows_nothing(
    ledger: Any, clock: ManualClock
) -> None:
    hosts, breakers = SourceHostService(ledger), BreakerService(ledger)
    hosts.report("default", "a", [word("open", 60.0)])
    hosts.report("default", "b", [word("closed")])
    hosts.report("default", "b", [word("open", 5.0)])
    assert breakers.get("default", HOST).open_until == pytest.approx(clock.now() + 60)
    assert steps(ledger, HOST) == [("closed", "open")]


def test_forced_states_are_the_operators_whatever_workers_say(ledger: Any) -> None:
    hosts, breakers = SourceHostService(ledger), BreakerService(ledger)
    breakers.force_open("default", HOST, actor="ann", reason="they asked")
    orders = hosts.report("default", "w", [word("closed")])
    assert list(orders.forced_open) == [HOST]
    breakers.unforce("default", HOST, actor="ann")
    hosts.report("default", "w", [word("open", None)])  # it has not heard yet
    assert breakers.get("default", HOST).state == "half-open"


def test_what_a_run_finds_failing_is_seen_and_forced_by_the_api(ledger: Any, clock: ManualClock) -> None:
    tally, service = HostTally(), BreakerService(ledger)
    breakers = Breakers(clock=clock, settings=SETTINGS, sink=tally)
    limits = HostLimits(clock=clock, default_host=HostLimit(1))
    reporter = Reporter(LedgerReports(ledger), "w", tally=tally, limits=limits, breakers=breakers, doing=dict)
    reporter.report()
    for _ in range(2):
        breakers.enter("https://pdf.example.org/a", "unpaywall").answered(503)
        url, sent = "https://pdf.example.org/a", AttemptStatus.HTTP_GET
        tally.attempt(Attempt(clock.now(), "unpaywall", url, Verb.GET, sent, 503, host="pdf.example.org"))
    reporter.report()
    assert {each.key: each.state for each in service.list("default")} == {HOST: "open", SOURCE: "open"}
    service.force_close("default", HOST, actor="ann", reason="they are back")
    reporter.report()
    assert breakers.get(HOST).state is BreakerState.CLOSED
    assert breakers.get(SOURCE).state is BreakerState.OPEN


def test_what_opens_and_closes_between_two_words_is_written_down(ledger: Any, clock: ManualClock) -> None:
    """BRK-12: every change is a row, with the moment at which it was."""
    tally = HostTally(monotonic=clock.monotonic)
    breakers = Breakers(clock=clock, settings=replace(SETTINGS, open_s=0.25), sink=tally)
    limits = HostLimits(clock=clock, default_host=HostLimit(1))
    desk = Away(LedgerReports(ledger))
    reporter = Reporter(desk, "w", tally=tally, limits=limits, breakers=breakers, doing=dict)
    reporter.report()
    began = clock.now()
    for _ in range(2):
        breakers.enter("https://pdf.example.org/a").answered(503)
    clock.advance(0.5)
    breakers.enter("https://pdf.example.org/a").answered(200)
    clock.advance(0.5)
    desk.is_away = True
    reporter.report()
    clock.advance(1.0)
    desk.is_away = False
    reporter.report()
    assert breakers.get(HOST).state is BreakerState.CLOSED
    assert steps(ledger, HOST) == [("closed", "open"), ("open", "half-open"), ("half-open", "closed")]
    found = list(reversed(BreakerService(ledger).transitions("default", HOST)))
    assert [round(each.at - began, 3) for each in found] == [0.0, 0.5, 0.5]
    assert "2 of 2 failed" in found[0].why
    assert "1 tests passed" in found[2].why
    reporter.report()
    assert len(steps(ledger, HOST)) == 3  # each is told once
    assert ledger.verify_history()


class Away:
    """A desk that does not answer for a while."""

    def __init__(self, desk: LedgerReports) -> None:
        self._desk, self.is_away = desk, False

    def report(self, *said: Any) -> Any:
        if self.is_away:
            raise LedgerBusy("away")
        return self._desk.report(*said)


def test_a_step_of_one_worker_does_not_close_what_another_holds_open(ledger: Any, clock: ManualClock) -> None:
    hosts, breakers = SourceHostService(ledger), BreakerService(ledger)
    hosts.report("default", "a", [word("open", 60.0)])
    quick = [
        BreakerReport(HOST, "open", 1.5, 0.5),
        BreakerReport(HOST, "half-open", 1.0),
        BreakerReport(HOST, "closed", 0.9),
    ]
    hosts.report("default", "b", [], quick)
    assert breakers.get("default", HOST).open_until == pytest.approx(clock.now() + 60)
    assert steps(ledger, HOST) == [("closed", "open")]


def test_a_breaker_of_a_host_that_nobody_asks_is_forgotten(ledger: Any, clock: ManualClock) -> None:
    hosts, breakers = SourceHostService(ledger), BreakerService(ledger)
    hosts.report("default", "w", [word("open", 1.0), word("open", 1.0, host="other.example")])
    breakers.force_open("default", "host:other.example", actor="ann", reason="for good")
    clock.advance(FORGET_S + 60)
    hosts.forget_old()
    assert [each.key for each in breakers.list("default")] == ["host:other.example"]
