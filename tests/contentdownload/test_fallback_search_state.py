"""What the memory of a search says about a work that got nothing."""

from __future__ import annotations

import pytest

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.fallback.search_state import SearchState
from DocsToKG.ContentDownload.resolvers.links.copy_facts import is_refused
from DocsToKG.core.clock import ManualClock


@pytest.fixture
def state() -> SearchState:
    return SearchState(WorkArtifact("doi:10.1/a", doi="10.1/a"), ManualClock())


def test_a_work_that_our_own_gates_sent_away_has_only_waited(state: SearchState) -> None:
    state.record_failure("landing", TransientFailure(Reason.BREAKER_OPEN, "open for 2 s", retry_after_s=2.0))
    state.record_failure("unpaywall", TransientFailure(Reason.RETRY_AFTER, "a hold", retry_after_s=60.0))
    assert state.only_waited
    assert (state.transient, state.retry_after_s) == (True, 2.0)


def test_a_host_that_was_tested_and_is_still_down_counts_as_tried(state: SearchState) -> None:
    """FAIL-06: a work of a host that never comes back must end one day."""
    state.record_failure(
        "unpaywall", TransientFailure(Reason.BREAKER_OPEN, "open for 4 s", retry_after_s=4.0, tested=True)
    )
    assert not state.only_waited
    assert state.transient


def test_an_answer_counts_as_tried_whatever_the_others_said(state: SearchState) -> None:
    state.record_failure("landing", TransientFailure(Reason.BREAKER_OPEN, "open for 2 s", retry_after_s=2.0))
    state.record_failure("unpaywall", CandidateRejected(Reason.HTTP_STATUS, "status 404", http_status=404))
    assert not state.only_waited


def test_without_a_candidate_there_was_no_wait(state: SearchState) -> None:
    assert not state.only_waited


@pytest.mark.parametrize(
    "problem",
    [
        CandidateRejected(Reason.HTTP_STATUS, "status 451", url="https://cdn.a.org/final", http_status=451),
        CandidateRejected(Reason.ROBOTS, "robots.txt disallows it", url="https://cdn.a.org/final"),
    ],
)
def test_what_its_owner_refused_is_not_looked_up_in_archives(state: SearchState, problem: CandidateRejected) -> None:
    """Neither the address that was asked nor the one it led to, though a source has named it as well."""
    state.learn(WorkArtifact("", pdf_urls=("https://a.org/1",)))
    state.record_failure("unpaywall", problem, DownloadPlan("https://a.org/1", "unpaywall"))
    state.record_failure("unpaywall", CandidateRejected(Reason.HTTP_STATUS, http_status=404), plan("https://b.org/2"))
    state.offer_failed_addresses()
    assert state.work.pdf_urls == ("https://a.org/1", "https://b.org/2")
    refused = [is_refused(state.work, f"https://{place}") for place in ("a.org/1", "cdn.a.org/final", "b.org/2")]
    assert refused == [True, True, False]


def test_a_robots_txt_that_could_not_be_read_is_no_refusal(state: SearchState) -> None:
    state.record_failure(
        "unpaywall", TransientFailure(Reason.ROBOTS, "robots.txt: unreachable"), plan("https://a.org/1")
    )
    state.offer_failed_addresses()
    assert not is_refused(state.work, "https://a.org/1")
    assert state.work.pdf_urls == ()


@pytest.mark.parametrize(
    "problem",
    [
        CandidateRejected(Reason.ROBOTS),
        CandidateRejected(Reason.TLS_ERROR),
        TransientFailure(Reason.CONN_ERROR),
        TransientFailure(Reason.TIMEOUT),
        TransientFailure(Reason.BREAKER_OPEN),
    ],
    ids=lambda problem: problem.reason,
)
def test_a_copy_whose_host_is_in_the_way_may_be_had_from_another(
    state: SearchState, problem: CandidateRejected | TransientFailure
) -> None:
    first, second = plan("https://export.arxiv.org/pdf/2101.00001"), plan("https://arxiv.org/pdf/2101.00001")
    assert state.is_new(first)
    assert not state.is_new(second)
    state.record_failure("arxiv", problem, first)
    assert not state.is_new(plan("http://export.arxiv.org/pdf/2101.00001"))
    assert state.is_new(second)


def test_a_copy_that_one_host_has_answered_for_is_not_asked_for_at_another(state: SearchState) -> None:
    first = plan("https://export.arxiv.org/pdf/2101.00001")
    assert state.is_new(first)
    state.record_failure("arxiv", CandidateRejected(Reason.HTTP_STATUS, http_status=404), first)
    assert not state.is_new(plan("https://arxiv.org/pdf/2101.00001"))


def plan(url: str) -> DownloadPlan:
    return DownloadPlan(url, "arxiv")
