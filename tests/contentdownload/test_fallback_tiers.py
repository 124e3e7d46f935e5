"""Tiers: order, races, budgets, and that one bad source costs one source."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.contentdownload.search_bench import WORK, Source, bench

from DocsToKG.ContentDownload.api.steps import Gate, Steps, Wait
from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, DiskFull, TransientFailure
from DocsToKG.ContentDownload.fallback.budget import SourceShare, WorkBudget
from DocsToKG.ContentDownload.fallback.meter import WaitMeter, metered
from DocsToKG.ContentDownload.fallback.trail import Trail
from DocsToKG.ContentDownload.pipeline import HeldFile, WorkLimits
from DocsToKG.core.clock import ManualClock


def test_tiers_are_asked_in_order_and_the_search_stops_at_the_first_success() -> None:
    """RES-02, RES-04, RES-28."""
    a, b, c = Source("a"), Source("b", ("https://b.org/1",)), Source("c", ("https://c.org/1",))
    outcome = bench(a, b, c, good="https://b.org/1 https://c.org/1").run()
    assert outcome.ok
    assert (outcome.meta["resolver"], outcome.meta["tier"]) == ("b", "t-b")
    assert outcome.meta["fallback_chain"] == ["a", "b"]
    assert not c.asked


def test_every_candidate_of_a_source_is_tried_before_the_next() -> None:
    a = Source("a", ("https://a.org/1", "https://a.org/2"))
    run = bench(a, good="https://a.org/2")
    assert run.run().ok
    assert run.downloads.tried == ["https://a.org/1", "https://a.org/2"]


def test_one_copy_is_not_tried_twice_under_two_spellings() -> None:
    a = Source("a", ("https://A.org/x?b=1&a=2",))
    b = Source("b", ("http://a.org/x?a=2&b=1&utm_source=q", "https://b.org/y"))
    run = bench(a, b, good="https://b.org/y")
    assert run.run().ok
    assert run.downloads.tried == ["https://A.org/x?b=1&a=2", "https://b.org/y"]


def test_the_loser_of_a_race_is_cut() -> None:
    """RES-03, RES-04."""
    slow, quick = Source("slow", ("https://s.org/1",)), Source("quick", ("https://q.org/1",), delay_s=0.02)
    good, stall = "https://s.org/1 https://q.org/1", {"https://s.org/1": 30.0}
    run = bench(slow, quick, good=good, parallel=2, one_tier=True, slow=stall)
    began = time.monotonic()
    assert run.run().meta["resolver"] == "quick"
    assert time.monotonic() - began < 5
    assert run.downloads.cut == ["https://s.org/1"]


def test_exhausted_tiers_name_each_reason() -> None:
    """RES-23, RES-25."""
    run = bench(Source("a", ("https://a.org/1",)), Source("b"), Source("c", why_not="no_doi"))
    outcome = run.run()
    assert (outcome.classification, outcome.reason) == ("error", "all_tiers_exhausted")
    assert outcome.meta["candidates"][0]["reason"] == "http-status"
    assert [(told.source, told.outcome) for told in run.told] == [
        ("a", "nonretryable"),
        ("b", "no_pdf"),
        ("c", "skipped"),
    ]
    assert not outcome.meta["retryable"]


def test_a_transient_failure_makes_the_work_retryable_at_the_time_named() -> None:
    """RES-27."""
    busy = TransientFailure(Reason.RETRY_AFTER, retry_after_s=90.0)
    outcome = bench(Source("a", error=busy), Source("b", ("https://b.org/1",))).run()
    assert outcome.meta["retryable"]
    assert outcome.meta["retry_after_s"] == 90.0


def test_only_robots_in_the_way_is_a_skip() -> None:
    """ROB-04."""
    denied = CandidateRejected(Reason.ROBOTS, url="https://a.org/1")
    outcome = bench(Source("a", ("https://a.org/1",)), errors={"https://a.org/1": denied}).run()
    assert (outcome.classification, outcome.reason) == ("skip", "robots")


def test_a_source_that_trips_costs_only_itself() -> None:
    outcome = bench(Source("a", error=KeyError("x")), Source("b", ("https://b.org/1",)), good="https://b.org/1").run()
    assert outcome.ok


def test_a_full_disk_stops_the_run() -> None:
    run = bench(Source("a", ("https://a.org/1",)), errors={"https://a.org/1": DiskFull("no room")})
    with pytest.raises(DiskFull):
        run.run()


def test_what_one_source_learns_the_next_one_knows() -> None:
    a, b = Source("a", learns=WorkArtifact("doi:10.1/x", title="T", arxiv_id="2101.00001")), Source("b")
    bench(a, b).run()
    assert (b.asked[0].title, b.asked[0].arxiv_id, b.asked[0].doi) == ("T", "2101.00001", "10.1/x")


def test_a_file_that_is_there_is_not_fetched() -> None:
    """CACHE-20, D17."""
    a = Source("a", ("https://a.org/1",))
    run = bench(a, good="https://a.org/1")
    run.already = lambda work: HeldFile("ab" * 32, 3)
    outcome = run.run()
    assert (outcome.classification, outcome.reason) == ("skip", "already-present")
    assert not a.asked


def test_only_one_branch_may_store() -> None:
    trail = Trail(WORK, ManualClock())
    assert [trail.claim() for _ in range(3)] == [True, False, False]


def test_a_budget_ends() -> None:
    """RES-26: attempts, then time."""
    budget = WorkBudget(total_s=10, attempts=2)
    budget.take_attempt()
    budget.take_attempt("landing")
    with pytest.raises(CandidateRejected, match="budget_exhausted: the 2 requests for one work are used"):
        budget.take_attempt()
    late = WorkBudget(total_s=1, attempts=2)
    late.spend(1.5)
    assert late.seconds_left() == 0
    with pytest.raises(CandidateRejected, match="budget_exhausted: the 1 s for one work are used"):
        late.take_attempt("metadata")


def test_look_ups_cost_time_but_no_attempt() -> None:
    """RES-26: twenty sources must not use up what is meant for the copies."""
    budget = WorkBudget(total_s=10, attempts=1)
    for _ in range(50):
        budget.take_attempt("metadata")
        budget.spend(0.1)
    budget.take_attempt("artifact")
    assert budget.seconds_left() == pytest.approx(5.0)


def test_the_share_of_a_source_ends_before_the_whole_and_counts_in_it() -> None:
    """RES-26."""
    whole = WorkBudget(total_s=30, attempts=5)
    share = SourceShare(whole, seconds=10)
    share.take_attempt("metadata")
    share.spend(8)
    assert (share.seconds_left(), whole.seconds_left()) == (2, 22)
    share.spend(4)
    assert (share.seconds_left(), whole.seconds_left()) == (0, 18)
    with pytest.raises(TransientFailure, match="budget_exhausted: the 10 s for one source are used"):
        share.take_attempt("metadata")
    whole.take_attempt("artifact")
    whole.spend(18)
    assert SourceShare(whole, seconds=10).seconds_left() == 0


def test_a_work_that_used_its_attempts_ends_with_that_reason_and_asks_nobody_else() -> None:
    """RES-26."""
    a, b = Source("a", tuple(f"https://a.org/{n}" for n in range(9))), Source("b", ("https://b.org/1",))
    run = bench(a, b, good="https://b.org/1")
    run.limits = WorkLimits(total_s=60, attempts=3)
    outcome = run.run()
    assert (outcome.classification, outcome.reason) == ("error", "budget_exhausted")
    assert len(run.downloads.tried) == 3
    assert not b.asked
    assert [(told.source, told.outcome, told.reason) for told in run.told] == [
        ("a", "nonretryable", "budget_exhausted"),
        ("b", "skipped", "budget_exhausted"),
    ]
    assert not outcome.meta["retryable"]
    assert outcome.meta["explanation"].startswith("The search was cut short: the 3 requests for one work are used.")


def test_a_work_that_used_its_time_ends_with_that_reason() -> None:
    """RES-26."""
    slow = Source("a", ("https://a.org/1",), costs=(("metadata", 70.0),))
    run = bench(slow, Source("b", ("https://b.org/1",)), good="https://a.org/1 https://b.org/1")
    run.limits = WorkLimits(total_s=60, attempts=20)
    outcome = run.run()
    assert outcome.reason == outcome.meta["cause"] == "budget_exhausted"
    assert run.downloads.tried == []


def test_a_source_that_used_its_share_is_passed_over_and_the_work_may_come_back() -> None:
    """RES-26, RES-27: slow today is not gone for ever."""
    slow = Source("a", ("https://a.org/1",), costs=(("metadata", 8.0), ("metadata", 8.0), ("metadata", 8.0)))
    run = bench(slow, Source("b", ("https://b.org/1",)), good="https://b.org/1")
    run.more = {"source_s": {"a": 10.0}}
    assert run.run().meta["resolver"] == "b"
    assert (run.told[0].source, run.told[0].outcome, run.told[0].reason) == ("a", "timeout", "budget_exhausted")
    missed = bench(slow, Source("b"))
    missed.more = run.more
    outcome = missed.run()
    assert (outcome.reason, outcome.meta["retryable"]) == ("all_tiers_exhausted", True)


def test_a_source_whose_breaker_is_open_is_passed_over_and_the_work_comes_back_when_it_may() -> None:
    """RES-27."""
    shut = TransientFailure(Reason.BREAKER_OPEN, "open for 40 s", url="https://api.a.org/1", retry_after_s=40.0)
    run = bench(Source("a", error=shut), Source("b", ("https://b.org/1",)))
    outcome = run.run()
    assert [(told.outcome, told.reason, told.stage) for told in run.told] == [
        ("retryable", "breaker_open", "resolve"),
        ("nonretryable", "http-status", "fetch"),
    ]
    assert (outcome.meta["retryable"], outcome.meta["retry_after_s"]) == (True, 40.0)


def test_time_counts_as_waiting_only_while_every_branch_waits() -> None:
    """SLO-01: the wait for our own limits is told apart."""
    clock = ManualClock()
    meter = WaitMeter(clock)

    def branch() -> Iterator[object]:
        yield Gate("https://a.org/", "t", "artifact")
        yield Wait(0.0, "the server")

    one, two = metered(branch(), meter), metered(branch(), meter)
    next(one)
    clock.advance(1)  # the only branch begun waits
    next(two)
    clock.advance(2)  # both wait
    one.send(None)
    clock.advance(4)  # one is with the server
    assert meter.waited_s == 3.0
    one.close()
    two.close()


def test_metered_steps_pass_values_and_exceptions_through() -> None:
    def steps() -> Steps[str]:
        got = yield Gate("https://a.org/", "t", "artifact")
        try:
            yield Wait(0.0, "x")
        except LookupError:
            return f"{got} caught"
        return "no"

    wrapped = metered(steps(), WaitMeter(ManualClock()))
    next(wrapped)
    wrapped.send("permit")
    with pytest.raises(StopIteration) as stop:
        wrapped.throw(LookupError())
    assert stop.value.value == "permit caught"
