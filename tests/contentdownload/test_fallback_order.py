"""The order of candidates: versions, guesses, forms, filters, archives last; the same every time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contentdownload.search_bench import WORK, Bench, Downloads, Source, bench

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.config.rules import Tier
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.fallback.candidates import ranked

VERSIONS = ("publishedVersion", "acceptedVersion", "submittedVersion")
XML, HTML = "application/xml", "text/html"


def plan(url: str, **kwargs: object) -> DownloadPlan:
    return DownloadPlan(url, "a", **kwargs)  # type: ignore[arg-type]


def test_a_source_s_copies_go_published_accepted_submitted() -> None:
    """Those of unknown version keep the place that the source gave them."""
    versions = [None, "submittedVersion", "publishedVersion", "acceptedVersion", "publishedVersion", None]
    run = bench(Source("a", plans=tuple(plan(f"https://a.org/{n}", version=v) for n, v in enumerate(versions))))
    run.run()
    assert [url[-1] for url in run.downloads.tried] == ["0", "2", "4", "3", "1", "5"]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from([None, *VERSIONS, "odd"]), st.booleans())))
def test_no_order_loses_a_copy_and_ordering_twice_changes_nothing(kinds: list[tuple[str | None, bool]]) -> None:
    plans = [plan(f"https://a.org/{n}", version=v, is_guess=g) for n, (v, g) in enumerate(kinds)]
    ordered = ranked(plans)
    assert sorted(one.url for one in ordered) == sorted(one.url for one in plans)
    assert ranked(ordered) == ordered
    assert [one.is_guess for one in ordered] == sorted(one.is_guess for one in ordered)
    for guessed in (False, True):
        ranks = [VERSIONS.index(one.version) for one in ordered if one.is_guess is guessed and one.version in VERSIONS]
        assert ranks == sorted(ranks)


def test_guesses_go_after_the_evidence_of_their_source_and_are_told_apart() -> None:
    guess = plan("https://a.org/guess", is_guess=True, version="publishedVersion", evidence="prefix_rule")
    run = bench(
        Source("a", plans=(guess, plan("https://a.org/said", evidence="url_for_pdf"))), good="https://a.org/guess"
    )
    outcome = run.run()
    assert run.downloads.tried == ["https://a.org/said", "https://a.org/guess"]
    assert (outcome.meta["is_guess"], outcome.meta["evidence"]) == (True, "prefix_rule")
    [missed] = outcome.meta["candidates"]
    assert (missed["is_guess"], missed["evidence"]) == (False, "url_for_pdf")


def test_every_open_copy_is_tried_before_giving_up() -> None:
    first, second = tuple(f"https://a.org/{n}" for n in range(4)), tuple(f"https://b.org/{n}" for n in range(4))
    run = bench(Source("a", first), Source("b", second))
    assert run.run().reason == "all_tiers_exhausted"
    assert run.downloads.tried == [*first, *second]


def test_other_forms_wait_until_all_tiers_are_exhausted() -> None:
    a = Source(
        "a", plans=(plan("https://a.org/x.html", expected_mime=HTML), plan("https://a.org/x.xml", expected_mime=XML))
    )
    b = Source("b", ("https://b.org/x.pdf",))
    run = bench(a, b, good="https://a.org/x.html")
    run.more = {"formats": ("pdf", "xml", "html")}
    outcome = run.run()
    assert run.downloads.tried == ["https://b.org/x.pdf", "https://a.org/x.xml", "https://a.org/x.html"]
    assert (outcome.meta["tier"], outcome.meta["resolver"]) == ("alternatives", "a")
    assert [(told.tier, told.source, told.outcome) for told in run.told] == [
        ("t-a", "a", "no_pdf"),
        ("t-b", "b", "nonretryable"),
        ("alternatives", "a", "nonretryable"),
        ("alternatives", "a", "success"),
    ]


def test_the_first_form_is_the_one_the_tiers_look_for() -> None:
    a = Source("a", ("https://a.org/x.pdf",), plans=(plan("https://a.org/x.xml", expected_mime=XML),))
    run = bench(a, good="https://a.org/x.pdf https://a.org/x.xml")
    run.more = {"formats": ("xml", "pdf")}
    assert run.run().meta["tier"] == "t-a"
    assert run.downloads.tried == ["https://a.org/x.xml"]


def test_a_form_nobody_asked_for_is_not_tried_and_the_reader_is_told() -> None:
    run = bench(Source("a", plans=(plan("https://a.org/x.xml", expected_mime=XML),)), good="https://a.org/x.xml")
    outcome = run.run()
    assert run.downloads.tried == []
    assert outcome.meta["explanation"] == "Only full text in other forms is known: ask for xml with --formats."


def test_a_plan_shows_the_order_in_which_copies_would_be_tried() -> None:
    guess, other = plan("https://a.org/g", is_guess=True), plan("https://a.org/x.xml", expected_mime=XML)
    run = bench(
        Source("a", ("https://a.org/1",), plans=(guess, other)), Source("b", ("http://a.org/1", "https://b.org/1"))
    )
    run.more = {"formats": ("pdf", "xml")}
    assert [(tier, found.url) for tier, found in run.plan()] == [
        ("t-a", "https://a.org/1"),
        ("t-a", "https://a.org/g"),
        ("t-b", "https://b.org/1"),
        ("alternatives", "https://a.org/x.xml"),
    ]
    assert run.downloads.tried == []


def test_an_unwanted_candidate_is_not_fetched() -> None:
    run = bench(Source("a", ("https://a.org/1", "https://a.org/2")), good="https://a.org/1 https://a.org/2")
    run.more = {"allow": lambda plan, work: "licence unknown" if plan.url.endswith("1") else None}
    assert run.run().meta["candidates"][0]["reason"] == "filtered"
    assert run.downloads.tried == ["https://a.org/2"]
    run.more = {"allow": lambda plan, work: "licence unknown"}
    outcome = run.run()
    assert (outcome.classification, outcome.reason) == ("skip", "filtered")
    assert "left out by your filters" in outcome.meta["explanation"]


def test_an_unwanted_work_is_skipped_before_anyone_is_asked() -> None:
    a = Source("a", ("https://a.org/1",))
    run = bench(a, good="https://a.org/1")
    run.refuse = lambda work: "published in 1999, wanted 2015-2020"
    outcome = run.run()
    assert (outcome.classification, outcome.reason, outcome.meta["cause"]) == ("skip", "filtered", "filtered")
    assert outcome.meta["explanation"] == "Left out by your filters: published in 1999, wanted 2015-2020."
    assert not a.asked


def test_an_archive_is_told_the_addresses_that_failed_evidence_first() -> None:
    urls = ["gone", "robots", "private", "busy", "wrong", "signed?token=abc"]
    guess = plan("https://a.org/guess", is_guess=True)
    a = Source("a", tuple(f"https://a.org/{name}" for name in urls), plans=(guess,))
    errors: dict[str, Exception] = {
        "https://a.org/robots": CandidateRejected(Reason.ROBOTS),
        "https://a.org/private": CandidateRejected(Reason.SECURITY_POLICY),
        "https://a.org/busy": TransientFailure(Reason.HTTP_STATUS, http_status=503),
        "https://a.org/wrong": CandidateRejected(Reason.WRONG_ARTICLE),
    }
    b, wayback = Source("b", ("https://b.org/gone",)), Source("wayback", ("https://web.archive.org/1",))
    run = bench(a, b, wayback, errors=errors, good="https://web.archive.org/1")
    assert run.run(WorkArtifact("doi:10.1/x", doi="10.1/x", pdf_urls=("https://given.org/1",))).ok
    assert b.asked[0].pdf_urls == ("https://given.org/1",)
    assert wayback.asked[0].pdf_urls == (
        "https://given.org/1",
        "https://a.org/gone",
        "https://a.org/busy",
        "https://b.org/gone",
        "https://a.org/guess",
    )


def test_the_source_of_the_identifier_goes_first_and_stands_first_in_the_chain() -> None:
    a, arxiv = Source("a", ("https://a.org/1",)), Source("arxiv", ("https://export.arxiv.org/pdf/1",))
    run = bench(a, arxiv, one_tier=True, parallel=2, good="https://a.org/1")
    outcome = run.run(WorkArtifact("arxiv:2101.00001", arxiv_id="2101.00001", doi="10.1/x"))
    assert outcome.meta["fallback_chain"] == ["arxiv", "a"]


@pytest.mark.parametrize("parallel", [1, 3])
def test_the_same_answers_give_the_same_sequence_and_the_same_plan(parallel: int) -> None:
    """RES-29: however the threads of a race happen to run."""

    def once() -> tuple[object, ...]:
        sources = [Source(name, tuple(f"https://{name}.org/{n}" for n in range(3))) for name in "abc"]
        last = Source("d", ("https://a.org/0", "https://d.org/1", "https://d.org/2"))
        tiers = [Tier("first", parallel, ("a", "b", "c")), Tier("second", 1, ("d",))]
        outcome = Bench([*sources, last], tiers, Downloads(frozenset({"https://d.org/1"}))).run(WORK)
        tried = [(one["source"], one["url"], one["reason"]) for one in outcome.meta["candidates"]]
        return tuple(outcome.meta["fallback_chain"]), outcome.meta["url"], outcome.meta["resolver"], tuple(tried)

    seen = {once() for _ in range(25)}
    [(chain, url, resolver, tried)] = seen
    assert (chain, url, resolver) == (("a", "b", "c", "d"), "https://d.org/1", "d")
    assert len(tried) == 9, "each copy once, also the one that two sources named"
