"""One token and one sentence for the person who wants to know why a paper is missing."""

from __future__ import annotations

import pytest

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.fallback.failure_reason import FailureReason, failure_reason
from DocsToKG.ContentDownload.fallback.search_state import SearchState
from DocsToKG.core.clock import ManualClock

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


@pytest.fixture
def state() -> SearchState:
    state = SearchState(WorkArtifact("doi:10.1/a", doi="10.1/a"), ManualClock())
    for name in ("unpaywall", "openalex", "landing"):
        state.record_source(name, state.next_position())
    return state


def miss(state: SearchState, url: str, reason: str, status: int | None = None, source: str = "unpaywall") -> None:
    state.record_failure(source, CandidateRejected(reason, url=url, http_status=status), DownloadPlan(url, source))


def test_one_wall_before_all_copies(state: SearchState) -> None:
    miss(state, "https://www.x.org/a.pdf?token=secret", Reason.CHALLENGE, 403)
    assert failure_reason(state, now=NOW) == FailureReason(
        "challenge", "The only copy is behind a bot check at www.x.org."
    )
    miss(state, "https://www.x.org/b.pdf", Reason.CHALLENGE, 403)
    assert failure_reason(state, now=NOW).sentence == "The only copies are behind a bot check at www.x.org (2 tried)."


def test_robots_is_named_as_the_rule_of_its_host(state: SearchState) -> None:
    miss(state, "https://www.x.org/a.pdf", Reason.ROBOTS)
    assert failure_reason(state, now=NOW) == FailureReason("robots", "robots.txt of www.x.org forbids the file.")


def test_several_reasons_are_counted_the_most_frequent_first(state: SearchState) -> None:
    miss(state, "https://y.org/1", Reason.HTTP_STATUS, 404)
    for host in ("a.org", "b.org", "c.org"):
        miss(state, f"https://{host}/1", Reason.LOGIN_WALL)
    miss(state, "https://z.org/1", Reason.TRUNCATED)
    miss(state, "https://z.org/2", Reason.WRONG_ARTICLE)
    assert failure_reason(state, now=NOW) == FailureReason(
        "login-wall",
        "No copy could be had (6 tried): 3 behind a login at a.org, b.org and 1 more, 1 gone (404) from y.org, "
        "1 cut off at z.org and 1 more.",
    )


def test_nobody_knows_an_open_copy(state: SearchState) -> None:
    state.add_note("unpaywall", Reason.NO_OPEN_COPY)
    state.add_note("openalex", "not_in_index")
    assert failure_reason(state, now=NOW) == FailureReason("no_open_copy", "No open copy is known to 3 sources.")


def test_sources_that_could_not_be_asked_are_not_counted_as_knowing_nothing(state: SearchState) -> None:
    state.add_note("unpaywall", Reason.NO_OPEN_COPY)
    state.add_note("openalex", "refused: 401, check resolvers.openalex.api_key")
    state.record_failure("landing", CandidateRejected(Reason.SECURITY_POLICY, url="https://x.org/"))
    sentence = "No open copy is known to 1 source; landing could not be asked; openalex refused to answer."
    assert failure_reason(state, now=NOW) == FailureReason("no_open_copy", sentence)


def test_an_identifier_that_no_index_knows(state: SearchState) -> None:
    state.add_note("unpaywall", "not_in_index")
    state.add_note("openalex", Reason.UNKNOWN_IDENTIFIER)
    assert failure_reason(state, now=NOW) == FailureReason(
        "unknown-identifier", "None of 3 sources knows this identifier."
    )


def test_a_wall_before_the_pages_that_name_the_file(state: SearchState) -> None:
    state.add_note("unpaywall", Reason.NO_OPEN_COPY)
    state.add_note("landing", "challenge: www.x.org")
    found = failure_reason(state, now=NOW)
    assert (found.cause, found.sentence) == (
        "challenge",
        "No file was found: the pages that should name it are behind a bot check.",
    )


def note_and_judge(state: SearchState, *said: str) -> tuple[str, str]:
    for number, note in enumerate(said):
        state.add_note(f"source{number}", note)
    found = failure_reason(state, now=NOW)
    return found.cause, found.sentence


@pytest.mark.parametrize(
    ("said", "cause", "sentence"),
    [
        (["closed", "not_in_index"], "closed", "The paper is closed: no open copy is known to 3 sources."),
        (["no_open_copy", "gone: Zenodo has deleted the record"], "gone",
         "The copy that was known has been removed from its archive."),
        (["closed", "embargo: until 2027-05-01", "gone"], "embargo", "A copy is under embargo until 2027-05-01."),
        (["embargo: until 2028-01-01", "embargo: until 2027-05-01"], "embargo",
         "A copy is under embargo until 2027-05-01."),
        (["embargo"], "embargo", "A copy is under embargo."),
        (["embargo: until https://x.org/?token=s3cret"], "embargo", "A copy is under embargo."),
        (["not_in_index", "not_in_index"], "unknown-identifier", "None of 3 sources knows this identifier."),
        (["closed", "challenge: x.org"], "closed", "The paper is closed, as an index says. "
         "No file was found: the pages that should name it are behind a bot check."),
        (["no_open_copy"], "no_open_copy", "No open copy is known to 3 sources."),
    ],
)  # fmt: skip
def test_closed_gone_under_embargo_and_unknown_are_different_reasons(
    state: SearchState, said: list[str], cause: str, sentence: str
) -> None:
    assert note_and_judge(state, *said) == (cause, sentence)


@pytest.mark.parametrize(
    ("status", "cause", "sentence"),
    [
        (404, "gone", "The only copy is gone (404) from x.org."),
        (410, "gone", "The only copy is gone (410) from x.org."),
        (403, "open-but-blocked", "The only copy is refused (403) by x.org."),
        (401, "open-but-blocked", "The only copy is refused (401) by x.org."),
        (451, "open-but-blocked", "The only copy is refused (451) by x.org."),
        (400, "http-status", "The only copy is answered with status 400 by x.org."),
    ],
)
def test_a_copy_that_is_gone_is_not_one_that_is_refused(
    state: SearchState, status: int, cause: str, sentence: str
) -> None:
    miss(state, "https://x.org/1", Reason.HTTP_STATUS, status)
    assert failure_reason(state, now=NOW) == FailureReason(cause, sentence)


def test_a_guess_that_is_refused_does_not_show_an_open_copy(state: SearchState) -> None:
    plan = DownloadPlan("https://x.org/1", "doi_redirect", is_guess=True)
    state.record_failure("doi_redirect", CandidateRejected(Reason.HTTP_STATUS, url=plan.url, http_status=403), plan)
    assert failure_reason(state, now=NOW).cause == "http-status"


@pytest.mark.parametrize(
    ("status", "said", "reason", "cause"),
    [
        ("gold", "no_oa_pdf", Reason.CHALLENGE, "open-but-blocked"),
        ("green", "closed", Reason.LOGIN_WALL, "open-but-blocked"),
        ("closed", "closed", Reason.CHALLENGE, "closed"),
        (None, "closed", Reason.PAYWALL, "closed"),
        (None, "no_open_copy", Reason.CHALLENGE, "challenge"),
        ("gold", "no_oa_pdf", Reason.PAYWALL, "paywall"),
        ("gold", "no_oa_pdf", Reason.WRONG_ARTICLE, "wrong-article"),
        ("closed", "closed", Reason.WRONG_ARTICLE, "wrong-article"),
    ],
)
def test_a_wall_is_named_by_what_an_index_says_of_access(
    state: SearchState, status: str | None, said: str, reason: Reason, cause: str
) -> None:
    state.learn(WorkArtifact("doi:10.1/a", oa_status=status))
    state.add_note("unpaywall", said)
    miss(state, "https://x.org/1", reason)
    found = failure_reason(state, now=NOW)
    assert found.cause == cause
    assert "x.org" in found.sentence


def test_no_source_at_all() -> None:
    state = SearchState(WorkArtifact("mine:1"), ManualClock())
    assert failure_reason(state, now=NOW).sentence == "No enabled source can look this identifier up."


def test_what_may_pass_is_called_temporary_and_says_when(state: SearchState) -> None:
    busy = TransientFailure(Reason.RETRY_AFTER, url="https://x.org/a", http_status=503, retry_after_s=3600.0)
    state.record_failure("unpaywall", busy, DownloadPlan("https://x.org/a", "unpaywall"))
    assert failure_reason(state, now=NOW) == FailureReason(
        "retry-after", "Temporary: x.org answered 503; it may be had from 2027-01-15T09:00Z on."
    )
    miss(state, "https://y.org/1", Reason.PAYWALL)
    assert failure_reason(state, now=NOW).sentence.endswith(" Other copies: 1 behind a paywall at y.org.")


def test_an_index_that_is_away_does_not_hide_what_stands_before_the_known_copies(state: SearchState) -> None:
    miss(state, "https://x.org/1", Reason.PAYWALL)
    state.record_failure("openalex", TransientFailure(Reason.HTTP_STATUS, url="https://api.y.org/1", http_status=502))
    sentence = "The only copy is behind a paywall at x.org. openalex could not be asked: more may be known later."
    assert failure_reason(state, now=NOW) == FailureReason("paywall", sentence)


def test_a_copy_that_is_busy_is_named_before_an_index_that_is(state: SearchState) -> None:
    state.record_failure("unpaywall", TransientFailure(Reason.TIMEOUT, url="https://api.y.org/1"))
    busy = TransientFailure(Reason.HTTP_STATUS, url="https://x.org/a", http_status=503)
    state.record_failure("openalex", busy, DownloadPlan("https://x.org/a", "openalex"))
    sentence = "Temporary: x.org answered 503; api.y.org did not answer in time; it may be had later."
    assert failure_reason(state, now=NOW).sentence == sentence


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (Reason.TIMEOUT, "api.x.org did not answer in time"),
        (Reason.CONN_ERROR, "api.x.org could not be reached"),
        (Reason.BREAKER_OPEN, "api.x.org has failed too often and is left alone for a while"),
        (Reason.DOWNLOAD_ERROR, "api.x.org failed (download-error)"),
    ],
)
def test_trouble_without_an_answer_is_in_plain_words(state: SearchState, reason: Reason, said: str) -> None:
    state.record_failure("openalex", TransientFailure(reason, url="https://api.x.org/works"))
    assert failure_reason(state, now=NOW) == FailureReason(reason, f"Temporary: {said}; it may be had later.")


def test_a_time_beyond_all_calendars_does_no_harm(state: SearchState) -> None:
    state.record_failure("openalex", TransientFailure(Reason.RETRY_AFTER, url="https://x.org/", retry_after_s=1e300))
    assert "from 2037-" in failure_reason(state, now=NOW).sentence


def test_an_unforeseen_fault_is_named_by_its_token(state: SearchState) -> None:
    state.record_error("openalex", KeyError("https://x.org/?token=secret"))
    assert failure_reason(state, now=NOW) == FailureReason(
        "worker_exception", "Temporary: openalex failed (worker_exception); it may be had later."
    )


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_sentence_without_an_address(state: SearchState, reason: Reason) -> None:
    miss(state, "https://u:p@www.x.org/secret/path.pdf?key=k", reason, 403)
    sentence = failure_reason(state, now=NOW).sentence
    assert sentence.endswith(".")
    assert not [piece for piece in ("secret", "key=", "u:p", "{", "://") if piece in sentence]
