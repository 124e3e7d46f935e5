"""Queries to OpenAlex: what is asked for, a page at a time, and what a refusal says (CLI-08)."""

from __future__ import annotations

import contextlib
import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contentdownload.scripted import ScriptedClient, answer, drive
from tests.examples import examples

from DocsToKG.ContentDownload.api.ports import Call, Page
from DocsToKG.ContentDownload.errors import InputError, TransientFailure
from DocsToKG.ContentDownload.resolvers.openalex_query import DeadCursor, WorksQuery, page_of_works, read_query
from DocsToKG.ContentDownload.runner.query_pages import QueryPages

CALL = Call("query:openalex")
NOTHING = {"results": [], "meta": {"count": 0}}


def record(number: int) -> dict[str, Any]:
    return {
        "id": f"https://openalex.org/W{number}",
        "doi": f"https://doi.org/10.1/{number}",
        "title": f"Paper {number}",
    }


@pytest.mark.parametrize(
    ("text", "search", "condition"),
    [
        ("publication_year:2024,is_oa:true", None, "publication_year:2024,is_oa:true"),
        (" publication_year:2024 ,  is_oa:true ", None, "publication_year:2024,is_oa:true"),
        ("primary_topic.id:T11995", None, "primary_topic.id:T11995"),
        ("doi:10.1/a|10.1/b", None, "doi:10.1/a|10.1/b"),
        ("title.search:graph neural", None, "title.search:graph neural"),
        ("summary_stats.2yr_mean_citedness:>3", None, "summary_stats.2yr_mean_citedness:>3"),
        ("graph  neural networks", "graph neural networks", None),
        ("Deep learning: a review", "Deep learning: a review", None),
        ("cats, dogs", "cats, dogs", None),
        ("https://openalex.org/works?page=1&filter=is_oa:true", None, "is_oa:true"),
        ("https://api.openalex.org/works?search=cats%20and&filter=is_oa:true", "cats and", "is_oa:true"),
    ],
)
def test_a_query_is_a_filter_a_search_or_an_address_of_both(
    text: str, search: str | None, condition: str | None
) -> None:
    assert read_query(text) == WorksQuery(search, condition)


@pytest.mark.parametrize(
    ("text", "since", "condition"),
    [
        ("is_oa:true", "2024", "is_oa:true,from_publication_date:2024-01-01"),
        ("cats", "2024-05-31", "from_publication_date:2024-05-31"),
    ],
)
def test_since_is_one_more_condition(text: str, since: str, condition: str) -> None:
    assert read_query(text, since=since).filter == condition


@pytest.mark.parametrize("since", ["20", "yesterday", "2024-13-01", "2024-02-30", ""])
def test_a_day_that_is_none_is_refused_with_an_example(since: str) -> None:
    with pytest.raises(InputError, match="--since 2024-05-31"):
        read_query("cats", since=since)


@pytest.mark.parametrize("text", ["  ", "x" * 4001, "https://openalex.org/works?page=2"])
def test_a_query_that_asks_nothing_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_query(text)


def test_one_question_has_one_key_and_another_has_another() -> None:
    keys = {read_query(text).key for text in ("is_oa:true,type:article", "is_oa:true , type:article")}
    assert len(keys) == 1
    assert len({read_query("cats").key, read_query("cats", since="2024").key, read_query("dogs").key}) == 3


def test_a_page_is_asked_for_by_cursor_with_few_fields() -> None:
    client = ScriptedClient(answer(NOTHING))
    page = drive(page_of_works(read_query("a b", since="2020"), None, client, CALL, per_page=25))
    asked = client.asked[0]
    assert "/works?search=a%20b&filter=from_publication_date:2020-01-01&per_page=25&cursor=*&select=" in asked
    assert (page.works, page.next_cursor, page.total) == ((), None, 0)


def test_a_page_holds_its_works_and_the_way_to_the_next() -> None:
    records = [record(1), {"id": 7}, None, record(2)]
    body = {"results": records, "meta": {"count": 250, "next_cursor": "c1"}}
    page = drive(page_of_works(read_query("cats"), "c0", ScriptedClient(answer(body)), CALL))
    assert [work.work_id for work in page.works] == ["doi:10.1/1", "doi:10.1/2"]
    assert (page.next_cursor, page.total) == ("c1", 250)


@pytest.mark.parametrize("meta", [{"next_cursor": "c0"}, {"next_cursor": None}, {}, {"next_cursor": 7}, "nonsense"])
def test_a_cursor_that_leads_nowhere_is_the_end(meta: Any) -> None:
    body = {"results": [record(1)], "meta": meta}
    page = drive(page_of_works(read_query("cats"), "c0", ScriptedClient(answer(body)), CALL))
    assert page.next_cursor is None


def test_a_page_without_results_is_the_last_whatever_its_cursor() -> None:
    body = {"results": [], "meta": {"next_cursor": "c9"}}
    assert drive(page_of_works(read_query("cats"), None, ScriptedClient(answer(body)), CALL)).next_cursor is None


@pytest.mark.parametrize(
    ("page", "error", "said"),
    [
        (answer({"message": "bad filter xyz"}, 400), InputError, "bad filter xyz"),
        (answer(b"", 404), InputError, "status 404"),
        (answer(b"", 401), InputError, "resolvers.openalex.api_key"),
        (answer(b"", 403), InputError, "resolvers.openalex.api_key"),
        (answer(b"nonsense"), TransientFailure, "without results"),
        (answer({"results": {}}), TransientFailure, "without results"),
        (answer(b"", 429), TransientFailure, "429"),
        (answer(b"", 503), TransientFailure, "503"),
    ],
)
def test_a_refusal_says_what_to_change_and_a_bad_answer_may_pass(page: Page, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        page_of_works(read_query("is_oa:true"), None, ScriptedClient(page), CALL).send(None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["results", "meta", "id", "doi", "ids", "next_cursor", "count"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@pytest.mark.slow
@examples(150)
@given(json_values)
def test_whatever_the_service_answers_is_a_page_or_a_known_error(body: Any) -> None:
    client = ScriptedClient(answer(json.dumps(body).encode()))
    with contextlib.suppress(TransientFailure):
        page = drive(page_of_works(read_query("cats"), None, client, CALL))
        assert all(work.work_id for work in page.works)


def test_a_cursor_that_the_service_has_forgotten_begins_the_list_anew(caplog: pytest.LogCaptureFixture) -> None:
    client = ScriptedClient(
        answer({"message": "cursor is not valid"}, 400), answer({"results": [record(1)], "meta": {"next_cursor": "n"}})
    )

    class Driver:
        def drive(self, steps: Any, cancel: Any) -> Any:
            with pytest.raises((StopIteration, DeadCursor)) as done:
                steps.send(None)
            if isinstance(done.value, DeadCursor):
                raise done.value
            return done.value.value

    pages = QueryPages(pipeline=cast(Any, Driver()), client=cast(Any, client), base_url="https://o.org", has_key=False)
    page = pages.page(read_query("is_oa:true"), "stale")
    assert ([work.doi for work in page.works], page.next_cursor) == (["10.1/1"], "n")
    assert ["cursor=stale" in client.asked[0], "cursor=*" in client.asked[1]] == [True, True]
    assert "begun anew" in caplog.text


def test_a_first_page_that_is_refused_is_no_matter_of_the_cursor() -> None:
    for cursor, is_dead in ((None, False), ("abc", True)):
        with pytest.raises(InputError) as caught:
            drive_raising(page_of_works(read_query("is_oa:true"), cursor, ScriptedClient(answer({}, 400)), CALL))
        assert isinstance(caught.value, DeadCursor) is is_dead


def drive_raising(steps: Any) -> None:
    steps.send(None)
