"""A work that is tried again: only what may be answered differently is asked again, and nothing is lost (RES-22)."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.contentdownload.search_bench import WORK, Bench, Downloads, Source, bench

from DocsToKG.ContentDownload.api.types import (
    DownloadOutcome,
    DownloadPlan,
    OutcomeClass,
    Reason,
    ResolverResult,
    WorkArtifact,
)
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.fallback.resume_cache import ResumeCache, SearchSnapshot
from DocsToKG.ContentDownload.pipeline import WorkLimits
from DocsToKG.core.clock import ManualClock

BUSY = TransientFailure(Reason.HTTP_STATUS, "status 429", url="https://api.s2.org/x", http_status=429)


def twice(run: Bench, change: object = lambda: None, work: WorkArtifact = WORK) -> list[DownloadOutcome]:
    """Both outcomes; `change` is called between the tries."""
    with closing(run.run_again(2, work)) as tries:
        first = next(tries)
        change()  # type: ignore[operator]
        return [first, next(tries)]


def test_only_the_source_that_was_busy_is_asked_again() -> None:
    index, pages, s2 = Source("index", ("https://a.org/1",)), Source("pages", notes=("paywall: x",)), Source("s2")
    s2.error = BUSY
    run = bench(index, pages, s2)
    first, second = twice(run)
    assert [len(source.asked) for source in (index, pages, s2)] == [1, 1, 2]
    assert run.downloads.tried == ["https://a.org/1"]
    assert [first.meta["retryable"], second.meta["retryable"]] == [True, True]
    for name in ("candidates", "fallback_chain", "cause", "explanation"):
        assert second.meta[name] == first.meta[name]


def test_the_last_try_tells_everything_that_was_found_in_all_of_them() -> None:
    index, barred, s2 = Source("index", ("https://a.org/1",)), Source("barred"), Source("s2", error=BUSY)
    barred.error = CandidateRejected(Reason.ROBOTS, "robots.txt disallows it", url="https://b.org/page")
    run = bench(index, barred, s2)
    _, last = twice(run, lambda: setattr(s2, "error", None))
    assert [(row["source"], row["reason"]) for row in last.meta["candidates"]] == [
        ("index", "http-status"),
        ("barred", "robots"),
    ]
    assert last.meta["fallback_chain"] == ["index", "barred", "s2"]
    assert last.meta["explanation"] == "The only copy is gone (404) from a.org."
    assert (last.meta["retryable"], len(barred.asked)) == (False, 1)
    assert [told.outcome for told in run.told if told.reason == "answered_before"] == ["skipped", "skipped"]


def test_a_copy_that_failed_for_now_is_fetched_again_and_one_that_is_gone_is_not() -> None:
    gone, away = "https://a.org/gone", "https://a.org/away"
    index = Source("index", (gone, away))
    run = bench(index, errors={away: TransientFailure(Reason.HTTP_STATUS, url=away, http_status=503)})
    run.downloads.good = frozenset({away})
    _, second = twice(run, run.downloads.errors.clear)
    assert second.ok
    assert run.downloads.tried == [gone, away, away]
    assert [row["url"] for row in second.meta["candidates"]] == [gone]


def test_what_the_busy_source_tells_at_last_is_asked_about() -> None:
    """The page that only the second try knows of is visited, though pages had been asked before."""
    s2, pages = Source("s2", error=BUSY), Reader("pages")
    run = bench(s2, pages, good="https://b.org/page.pdf")

    def answers() -> None:
        s2.error, s2.learns = None, WorkArtifact("", landing_urls=("https://b.org/page",))

    first, second = twice(run, answers)
    assert (first.ok, second.ok, len(pages.asked)) == (False, True, 2)


def test_what_was_learnt_is_known_at_the_next_try() -> None:
    index = Source("index", learns=WorkArtifact("", title="On cache", pmcid="PMC1"))
    s2 = Source("s2", error=BUSY)
    _, second = twice(bench(index, s2))
    assert (second.meta["title"], s2.asked[1].pmcid) == ("On cache", "PMC1")


def test_who_was_asked_which_paper_is_meant_is_not_asked_again() -> None:
    finder = Source("finder", learns=WorkArtifact("", doi="10.1/x", title="T"))
    s2 = Source("s2", error=BUSY)
    run = bench(finder, s2)
    run.tiers, run.more = run.tiers[1:], {"identify": ["finder"]}
    first, second = twice(run, work=WorkArtifact("pmid:7", pmid="7"))
    assert (len(finder.asked), second.meta["doi"]) == (1, "10.1/x")
    assert second.meta["fallback_chain"] == first.meta["fallback_chain"] == ["finder", "s2"]


def test_the_paper_in_another_form_is_still_tried_when_its_source_is_not_asked_again() -> None:
    xml = DownloadPlan("https://a.org/x.xml", "index", expected_mime="application/xml")
    index, s2 = Source("index", plans=(xml,)), Source("s2", error=BUSY)
    run = bench(index, s2, errors={xml.url: TransientFailure(Reason.TIMEOUT, url=xml.url)}, good=xml.url)
    run.more = {"formats": ("pdf", "xml")}
    _, second = twice(run, run.downloads.errors.clear)
    assert (second.ok, run.downloads.tried) == (True, [xml.url, xml.url])


def test_copies_that_the_budget_did_not_reach_are_reached_by_the_next_try() -> None:
    urls = tuple(f"https://a.org/{number}" for number in range(5))
    run = bench(Source("s2", error=BUSY), Source("index", urls), good=urls[4])
    run.limits = WorkLimits(attempts=3)
    first, second = twice(run)
    assert (first.meta["cause"], second.ok) == (Reason.BUDGET_EXHAUSTED, True)
    assert run.downloads.tried == list(urls)


def test_copies_that_the_time_did_not_reach_are_reached_by_the_next_try() -> None:
    run = bench(Source("s2", error=BUSY), Source("index", ("https://a.org/1", "https://a.org/2")))
    run.downloads = Slow(frozenset({"https://a.org/2"}))
    first, second = twice(run)
    assert (first.meta["cause"], second.ok) == (Reason.BUDGET_EXHAUSTED, True)
    assert run.downloads.tried == ["https://a.org/1", "https://a.org/2"]


def test_forms_that_nobody_asked_for_are_still_named_when_their_source_is_not_asked_again() -> None:
    xml = DownloadPlan("https://a.org/x.xml", "index", expected_mime="application/xml")
    index, s2 = Source("index", plans=(xml,)), Source("s2", error=BUSY)
    _, second = twice(bench(index, s2), lambda: setattr(s2, "error", None))
    assert len(index.asked) == 1
    assert "ask for xml with --formats" in second.meta["explanation"]


def test_a_source_that_stumbled_is_asked_again() -> None:
    """Whatever it had said before: nobody knows how far it had come."""
    index = Source("index", ("https://a.org/1",))
    run = bench(index, errors={"https://a.org/1": OSError("this machine")}, good="https://a.org/1")
    _, second = twice(run, run.downloads.errors.clear)
    assert (second.ok, len(index.asked)) == (True, 2)


@pytest.mark.parametrize("good", ["", "https://a.org/1"])
def test_a_work_that_has_ended_is_forgotten(good: str) -> None:
    """Whoever asks for it again, after it was obtained or found not to be had, gets a whole new search."""
    index = Source("index", ("https://a.org/1",))
    run = bench(index, good=good)
    first, second = twice(run)
    assert (first.classification == OutcomeClass.SUCCESS) == second.ok == bool(good)
    assert (len(index.asked), len(run.downloads.tried)) == (2, 2)


@pytest.mark.parametrize("found", [True, False])
def test_a_work_that_ended_at_its_second_try_is_forgotten(found: bool) -> None:
    index, s2 = Source("index", ("https://a.org/1",)), Source("s2", error=BUSY)
    run = bench(index, s2, good="https://b.org/2" if found else "")
    with closing(run.run_again(3)) as tries:
        next(tries)
        s2.error, s2.urls = None, ("https://b.org/2",)
        assert next(tries).ok == found
        assert len(index.asked) == 1
        next(tries)
    assert len(index.asked) == 2


def test_a_try_that_only_waited_says_so_whatever_was_tried_before() -> None:
    index, s2 = Source("index", ("https://a.org/1",)), Source("s2", error=BUSY)
    closed = TransientFailure(Reason.BREAKER_OPEN, "open for 2 s", retry_after_s=2.0)
    first, second = twice(bench(index, s2), lambda: setattr(s2, "error", closed))
    assert (first.meta["only_waited"], second.meta["only_waited"]) == (False, True)


def test_the_memory_is_bounded_in_number_and_time() -> None:
    clock = ManualClock()
    cache = ResumeCache(clock, most=2, keep_s=60.0)
    snapshot = SearchSnapshot(WORK, frozenset(), {}, (), frozenset(), {}, ())
    for name in ("a", "b", "a", "c"):
        cache.put(name, snapshot)
    assert [cache.get(name) is snapshot for name in ("a", "b", "c")] == [True, False, True]
    clock.advance(61.0)
    assert cache.get("a") is None
    cache.put("c", snapshot)
    cache.forget("c")
    assert cache.get("c") is None


class Slow(Downloads):
    """One answer takes all the time that a work has."""

    async def __call__(self, plan, work, client, call, claim):  # type: ignore[no-untyped-def]
        try:
            return await super().__call__(plan, work, client, call, claim)
        finally:
            call.budget.spend(1000.0)


class Reader(Source):
    """Finds a file on each page that the work knows."""

    async def resolve(self, work, client, call):  # type: ignore[no-untyped-def]
        self.asked.append(work)
        return ResolverResult(tuple(DownloadPlan(f"{url}.pdf", self.name) for url in work.landing_urls))
