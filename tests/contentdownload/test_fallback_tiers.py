"""Tiers: order, races, budgets, and that one bad source costs one source."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contentdownload.search_bench import WORK, Bench, Source, bench

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import (
    DownloadStreamResult,
    Reason,
    ResolverResult,
    Role,
    StoredCopy,
    WorkArtifact,
)
from DocsToKG.ContentDownload.api.waits import WorkWaits
from DocsToKG.ContentDownload.errors import CandidateRejected, DiskFull, TransientFailure
from DocsToKG.ContentDownload.fallback.budget import SourceShare, WorkBudget
from DocsToKG.ContentDownload.fallback.search_state import SearchState
from DocsToKG.ContentDownload.pipeline import HeldFile, JobContext, WorkLimits
from DocsToKG.core.cancel import Cancelled
from DocsToKG.core.clock import ManualClock, SystemClock


def test_tiers_are_asked_in_order_and_the_search_stops_at_the_first_success() -> None:
    """TEST-11, RES-02, RES-04, RES-28."""
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
    assert time.monotonic() - began < 25
    assert run.downloads.cut == ["https://s.org/1"]


def test_exhausted_tiers_name_each_reason() -> None:
    """TEST-11, RES-23, RES-25."""
    passed = Source("c", why_not="missing_key"), Source("d", why_not="not_mine")
    run = bench(Source("a", ("https://a.org/1",)), Source("b"), *passed)
    outcome = run.run()
    assert (outcome.classification, outcome.reason) == ("error", "all_tiers_exhausted")
    assert outcome.meta["candidates"][0]["reason"] == "http-status"
    assert [(told.source, told.outcome) for told in run.told] == [
        ("a", "nonretryable"),
        ("b", "no_pdf"),
        ("c", "skipped"),
    ], "who could have been asked, had it a key, is named; whose business the work is not leaves no line"
    assert outcome.meta["fallback_chain"] == ["a", "b"]
    assert not outcome.meta["retryable"]


class Broken(Source):
    def applies_to(self, work: WorkArtifact) -> str | None:
        raise ZeroDivisionError


def test_one_that_trips_where_it_is_asked_which_paper_is_meant_costs_itself() -> None:
    run = bench(Broken("finder"), Source("b", ("https://b.org/1",)), good="https://b.org/1")
    run.tiers, run.more = run.tiers[1:], {"identify": ["finder"]}
    assert run.run(WorkArtifact("pmid:7", pmid="7")).meta["resolver"] == "b"
    assert [(told.source, told.tier, told.reason) for told in run.told] == [
        ("finder", "identify", "worker_exception"),
        ("b", "t-b", "ok"),
    ]


def test_one_that_trips_over_a_look_hides_nothing_of_the_others() -> None:
    run = bench(Broken("a"), Source("b", ("https://b.org/1",)))
    assert [plan.url for _, plan in run.plan()] == ["https://b.org/1"]


def test_a_source_that_trips_over_the_work_before_it_is_asked_costs_itself() -> None:
    run = bench(Broken("a"), Source("b", ("https://b.org/1",)), good="https://b.org/1")
    assert run.run().meta["resolver"] == "b"
    assert [(told.source, told.outcome, told.reason) for told in run.told] == [
        ("a", "error", "worker_exception"),
        ("b", "success", "ok"),
    ]


def test_a_source_that_can_be_asked_alone_needs_no_race() -> None:
    """A race costs a task for each branch; the way of one source is the work's own."""
    tasks: set[object] = set()

    class Watched(Source):
        async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
            tasks.add(asyncio.current_task())
            return await super().resolve(work, client, call)

    async def search() -> None:
        call = Call(WORK.work_id, budget=WorkBudget(total_s=10.0, attempts=5))
        assert await run.fallback().search(SearchState(WORK, SystemClock()), call) is not None
        assert tasks == {asyncio.current_task()}

    others = [Source(f"o{n}", why_not="not_mine") for n in range(3)]
    run = bench(Watched("a", ("https://a.org/1",)), *others, good="https://a.org/1", one_tier=True, parallel=3)
    asyncio.run(search())
    assert run.told[-1].outcome == "success"


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


@pytest.mark.parametrize(("starts_empty", "is_first", "asks"), [(True, True, 0), (True, False, 1), (False, True, 1)])
def test_what_nobody_can_have_stored_is_not_looked_for(starts_empty: bool, is_first: bool, asks: int) -> None:
    """A file without an end on the ledger is from an earlier lease of the job, or was there before the run."""
    asked: list[str] = []
    run = bench(Source("a", ("https://a.org/1",)), good="https://a.org/1")
    run.already = lambda work: asked.append(work.work_id)
    run.about_store = {"starts_empty": starts_empty}
    pipeline = run.pipeline()
    assert pipeline.process(WORK, JobContext(is_first=is_first)).ok
    pipeline.close()
    assert len(asked) == asks


def test_only_one_branch_may_store() -> None:
    state = SearchState(WORK, ManualClock())
    assert [state.claim() for _ in range(3)] == [True, False, False]


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
    with pytest.raises(TransientFailure, match="timeout: the 10 s for one source are used"):
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


def test_a_work_whose_last_copy_was_cut_by_its_own_budget_says_so_and_may_come_back() -> None:
    """RES-26: the host was sending; it was our time that ran out."""
    error = TransientFailure(Reason.TIMEOUT, "DeadlineExceeded", url="https://a.org/1")
    run = bench(Source("a", costs=(("metadata", 1.0),), urls=("https://a.org/1",)))
    run.limits = WorkLimits(total_s=60, attempts=20)

    async def download(plan, work, client, call, claim):  # type: ignore[no-untyped-def]
        call.budget.take_attempt("artifact")
        await asyncio.sleep(0)
        call.budget.spend(59.5)
        raise error

    run.downloads = download
    outcome = run.run()
    assert outcome.reason == outcome.meta["cause"] == "budget_exhausted"
    assert outcome.meta["retryable"]
    assert "Until then: 1 too slow at a.org" in outcome.meta["explanation"]


def test_a_copy_that_was_slow_within_the_budget_is_no_overrun() -> None:
    error = TransientFailure(Reason.TIMEOUT, "ReadTimeout", url="https://a.org/1")
    outcome = bench(Source("a", ("https://a.org/1",)), errors={"https://a.org/1": error}).run()
    assert (outcome.reason, outcome.meta["cause"]) == ("all_tiers_exhausted", "timeout")


ROBOTS = CandidateRejected(Reason.ROBOTS, "robots.txt disallows it", url="https://pub.org/a")


@pytest.mark.parametrize("landing", [Source("landing", error=ROBOTS), Source("landing", notes=("robots: pub.org",))])
def test_robots_at_the_page_that_would_name_the_file_is_a_skip(landing: Source) -> None:
    """ROB-03, ROB-04: and no placeholder is left in what the user reads."""
    outcome = bench(Source("index", notes=("not_in_index",)), landing).run()
    assert (outcome.classification, outcome.reason) == ("skip", "robots")
    assert outcome.meta["explanation"] == (
        "No file was found: the pages that should name it are forbidden by robots.txt."
    )


def test_robots_at_a_page_does_not_hide_that_a_copy_is_gone_or_a_page_walled() -> None:
    """ROB-04: something else was possible, and failed."""
    gone = bench(Source("landing", error=ROBOTS), Source("b", ("https://b.org/1",))).run()
    assert (gone.classification, gone.meta["cause"]) == ("error", "gone")
    walled = bench(Source("landing", error=ROBOTS), Source("b", notes=("challenge: b.org",))).run()
    assert (walled.classification, walled.meta["cause"]) == ("error", "challenge")
    later = bench(Source("landing", error=ROBOTS), Source("b", error=TransientFailure(Reason.TIMEOUT))).run()
    assert (later.classification, later.meta["retryable"]) == ("error", True)


def test_one_copy_forbidden_by_robots_and_another_by_the_user_is_a_skip() -> None:
    """ROB-04."""
    errors = {
        "https://a.org/1": CandidateRejected(Reason.ROBOTS, url="https://a.org/1"),
        "https://b.org/1": CandidateRejected(Reason.FILTERED, "licence unknown", url="https://b.org/1"),
    }
    outcome = bench(Source("a", ("https://a.org/1",)), Source("b", ("https://b.org/1",)), errors=errors).run()
    assert (outcome.classification, outcome.reason) == ("skip", "robots")


@pytest.mark.parametrize(("revalidated", "reason"), [(False, "already-present"), (True, "not-modified")])
def test_the_cache_giving_the_file_on_record_is_a_skip(revalidated: bool, reason: str) -> None:
    """CACHE-20, CACHE-21: another has obtained the work since it was looked up; nothing new was written."""
    copy = cached_copy(revalidated=revalidated, duplicate=True)
    held = [None, HeldFile(copy.sha256, copy.size_bytes)]
    outcome = cached_run(copy, already=lambda work: held.pop(0)).run()
    assert (outcome.classification, outcome.reason, outcome.path) == ("skip", reason, None)
    assert outcome.meta["sha256"] == copy.sha256


def test_a_body_from_the_cache_that_is_not_on_record_is_a_success() -> None:
    """CACHE-20, CACHE-21: and so is one that had to be written again."""
    copy = cached_copy(revalidated=True, duplicate=True)
    assert cached_run(copy, already=lambda work: None).run().ok
    other = [None, HeldFile("cd" * 32, 3)]
    assert cached_run(copy, already=lambda work: other.pop(0)).run().ok
    written = cached_copy(revalidated=True, duplicate=False)
    held = [None, HeldFile(written.sha256, 3)]
    assert cached_run(written, already=lambda work: held.pop(0)).run().ok


def cached_copy(*, revalidated: bool, duplicate: bool) -> StoredCopy:
    stream = DownloadStreamResult(
        Path("t"), 3, 200, "application/pdf", "ab", "cd", "https://a.org/1", from_cache=True, revalidated=revalidated
    )
    return StoredCopy("f.pdf", "ab" * 32, 3, "application/pdf", stream, duplicate=duplicate)


def cached_run(copy: StoredCopy, *, already: Callable[[WorkArtifact], HeldFile | None]) -> Bench:
    async def download(plan, work, client, call, claim):  # type: ignore[no-untyped-def]
        await asyncio.sleep(0)
        return copy

    run = bench(Source("a", ("https://a.org/1",)))
    run.downloads, run.already = download, already
    return run


def test_a_pipeline_that_is_closed_does_not_come_back() -> None:
    pipeline = bench(Source("a")).pipeline()
    pipeline.close()
    with pytest.raises(Cancelled):
        pipeline.process(WORK)


def test_a_source_that_used_its_share_is_passed_over_and_the_work_may_come_back() -> None:
    """RES-26, RES-27: slow today is not gone for ever."""
    slow = Source("a", ("https://a.org/1",), costs=(("metadata", 8.0), ("metadata", 8.0), ("metadata", 8.0)))
    run = bench(slow, Source("b", ("https://b.org/1",)), good="https://b.org/1")
    run.more = {"source_s": {"a": 10.0}}
    assert run.run().meta["resolver"] == "b"
    assert (run.told[0].source, run.told[0].outcome, run.told[0].reason) == ("a", "timeout", "timeout")
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
    waits = WorkWaits(clock)
    with waits.branch():
        with waits.at_gate():
            clock.advance(1)  # the only branch begun waits
            with waits.branch():
                with waits.at_gate():
                    clock.advance(2)  # both wait
                clock.advance(8)  # the second is with its server
        clock.advance(4)  # and so is the first
    assert waits.waited_s == 3.0


def test_a_moment_that_is_too_short_for_an_answer_is_not_begun() -> None:
    """A request with a millisecond left is sent for nothing, and would look like a server that does not answer."""
    whole = WorkBudget(total_s=120, attempts=5)
    share = SourceShare(whole, seconds=10)
    share.spend(9.999)
    with pytest.raises(TransientFailure) as late:
        share.take_attempt(Role.METADATA)
    assert late.value.reason == Reason.TIMEOUT
    whole.spend(109.9)
    with pytest.raises(CandidateRejected) as over:
        whole.take_attempt(Role.ARTIFACT)
    assert over.value.reason == Reason.BUDGET_EXHAUSTED
    WorkBudget(total_s=0.1, attempts=1).take_attempt(Role.ARTIFACT)  # little in all is what the user wants
