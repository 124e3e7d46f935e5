"""What every source makes of the answers of its service: whole, changed, refused, broken and hostile ones.

The answers are in `source_answers.yaml`. What a source does beyond that has a file of its own.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.contentdownload.scripted import CONTACT, SETTINGS, answer, first_words, like, named, resolve
from tests.examples import examples

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings

GIVEN: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "source_answers.yaml").read_text(encoding="utf-8")
)
CHANGED = [(name, number) for name, source in GIVEN.items() for number in range(len(source["notes"]))]
# Who is asked by the work's DOI whoever registered it; the others take works of their own archive.
BY_DOI = set(GIVEN) - {"zenodo", "figshare", "biorxiv", "datacite"}
NEED_KEYS = {"core": "missing_key", "openalex": "missing_key", "unpaywall": "missing_email"}


def work_of(name: str) -> WorkArtifact:
    told = GIVEN[name]
    pages = tuple(told.get("pages", ()))
    return WorkArtifact(told["work"], landing_urls=pages) if pages else named(told["work"])


def ask(name: str, page: Page, settings: ResolverSettings = SETTINGS) -> ResolverResult:
    """The service may be asked more than once, and says the same each time."""
    source = registry.build([name], settings={name: settings})[name]
    return resolve(source, work_of(name), page, page, page)[0]


def changed(whole: Any, changes: dict[str, Any]) -> Any:
    """A copy of an answer in which the parts that are named by path are otherwise."""
    body = copy.deepcopy(whole)
    for path, value in changes.items():
        part = body
        *way, last = [int(step) if step.isdigit() else step for step in str(path).split(".")]
        for step in way:
            part = part[step]
        part[last] = value
    return body


@pytest.mark.parametrize("name", GIVEN)
def test_a_whole_answer_gives_its_files(name: str) -> None:
    result = ask(name, answer(GIVEN[name]["answer"]))
    assert [plan.url for plan in result.plans] == GIVEN[name]["gives"]
    assert {plan.resolver_name for plan in result.plans} == {name}
    assert all(plan.evidence for plan in result.plans)
    assert result.work is not None


@pytest.mark.parametrize(("name", "number"), CHANGED)
def test_an_answer_without_a_file_says_why(name: str, number: int) -> None:
    case = GIVEN[name]["notes"][number]
    body = case["body"] if "body" in case else changed(GIVEN[name]["answer"], case["set"])
    result = ask(name, answer(body, case.get("status", 200)))
    assert (result.plans, first_words(result.notes)[:1]) == ((), [case["says"]])


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize(
    ("page", "note"),
    [
        (answer(b"<html>Resource not found.", 404), "not_in_index"),
        (answer({"message": "Forbidden"}, 403), "refused"),
        (answer(b"", 401), "refused"),
        (answer(b"", 400), "http-status"),
        (answer(b"{broken"), "malformed_answer"),
        (answer(b'"text"'), "malformed_answer"),
        (answer(b"[" * 200_000), "malformed_answer"),
        (answer(b'{"a":"' + b"x" * 9_000_000 + b'"}'), "malformed_answer"),
    ],
)
def test_what_is_no_answer_is_a_note(name: str, page: Page, note: str) -> None:
    result = ask(name, page)
    assert (result.plans, first_words(result.notes), result.work) == ((), [note], None)
    if note == "refused":
        assert f"resolvers.{name}." in result.notes[0], "what the user should look at"


@pytest.mark.parametrize("name", GIVEN)
def test_an_answer_of_another_shape_is_a_note(name: str) -> None:
    body = {"a": 7} if GIVEN[name].get("is_list") else [1]
    result = ask(name, answer(body))
    assert result.plans == ()
    assert result.notes


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_later_and_no_address_of_ours_is_told(name: str, status: int) -> None:
    with pytest.raises(TransientFailure) as caught:
        ask(name, answer(b"", status, retry_after="7"))
    assert (caught.value.http_status, caught.value.retry_after_s) == (status, 7.0)
    assert CONTACT not in f"{caught.value} {caught.value.url}"


@pytest.mark.parametrize("name", GIVEN)
def test_no_key_and_no_secret_is_in_a_plan_or_note(name: str) -> None:
    page = answer(GIVEN[name]["answer"])
    assert "sesame" not in repr(ask(name, page))
    without = ask(name, page, ResolverSettings())
    assert first_words(without.notes)[:1] == ([NEED_KEYS[name]] if name in NEED_KEYS else [])


@pytest.mark.parametrize("name", GIVEN)
def test_another_address_of_the_service_is_used(name: str) -> None:
    own = ResolverSettings(base_url="https://mirror.example.org/api/", email=CONTACT, api_key="sesame")
    _, urls = resolve(registry.build([name], settings={name: own})[name], work_of(name), answer(b"", 400))
    assert urls[0].startswith("https://mirror.example.org/api/")


@pytest.mark.parametrize("name", GIVEN)
def test_a_paper_of_a_journal_is_asked_about_where_its_doi_is_enough(name: str) -> None:
    work = WorkArtifact("doi:10.1016/j.abc", doi="10.1016/j.abc", landing_urls=("https://www.example.org/article/7",))
    source = registry.build([name], settings={name: SETTINGS})[name]
    assert source.applies_to(work) == (None if name in BY_DOI else "not_mine")


@pytest.mark.slow
@pytest.mark.parametrize("name", GIVEN)
@examples(100, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_answer_is_an_accident(name: str, data: st.DataObject) -> None:
    """Any JSON with any status gives plans, a note or one of the two known errors."""
    body = json.dumps(data.draw(like(GIVEN[name]["answer"]))).encode()
    status = data.draw(st.sampled_from([200, 200, 200, 200, 204, 302, 400, 401, 404, 410, 429, 500]))
    try:
        result = ask(name, answer(body, status))
    except (TransientFailure, CandidateRejected):
        return
    assert result.plans or result.notes
    assert all(plan.url.startswith(("http://", "https://")) for plan in result.plans)
