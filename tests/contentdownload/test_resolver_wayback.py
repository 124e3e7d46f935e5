"""The Wayback Machine: which addresses it is asked about, and which captures are worth a try."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contentdownload.one_source import alone, answer, ask
from tests.examples import examples
from tests.needs import recorded

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import unique_plans
from DocsToKG.ContentDownload.resolvers.wayback import best_captures, captures_in
from DocsToKG.core.urls import join_url, request_url
from DocsToKG.Sandbox.profile import SandboxServer

HEADER = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
URL = "https://www.gone.example.org/a.pdf"
WORK = WorkArtifact("doi:10.1234/abc", doi="10.1234/abc", pdf_urls=(URL,), license="cc-by")


def row(
    timestamp: str = "20190102030405",
    original: str = URL,
    mimetype: str = "application/pdf",
    status: str = "200",
    digest: str | None = None,
) -> list[str]:
    return ["org,example,gone)/a.pdf", timestamp, original, mimetype, status, digest or f"D{timestamp}", "4000"]


def index(*rows: list[Any]) -> Page:
    return answer([HEADER, *rows])


def replays(result: ResolverResult) -> list[str]:
    return [plan.url.removeprefix("https://web.archive.org/web/") for plan in result.plans]


def asked_about(asked: list[str]) -> list[str]:
    return [dict(parse_qsl(urlsplit(url).query))["url"] for url in asked]


def test_it_asks_the_index_and_proposes_the_raw_replay() -> None:
    """RES-17."""
    result, asked = ask("wayback", WORK, index(row()))
    [question] = asked
    assert question.startswith("https://web.archive.org/cdx/search/cdx?")
    assert parse_qsl(urlsplit(question).query) == [
        ("url", URL),
        ("output", "json"),
        ("filter", "statuscode:200"),
        ("filter", "!mimetype:warc/revisit"),
        ("filter", "!mimetype:text/html"),
        ("limit", "-20"),
    ]
    [plan] = result.plans
    assert plan.url == f"https://web.archive.org/web/20190102030405id_/{URL}"
    # What is known of the work says nothing about this copy.
    assert (plan.evidence, plan.checksum, plan.license, plan.version) == ("wayback", None, None, None)
    assert plan.expected_mime == "application/pdf"


def test_the_exact_address_goes_first_then_the_type_then_the_newest() -> None:
    rows = [
        row("20150101000000", mimetype="unk"),
        row("20230101000000", "http://www.gone.example.org/A.PDF"),
        row("20160101000000"),
        row("20180101000000", "http://www.gone.example.org:80/a.pdf"),
        row("20220101000000", mimetype="application/octet-stream"),
    ]
    picked = best_captures(captures_in(index(*rows).body) or [], URL, at_most=9)
    assert [capture.timestamp[:4] for capture in picked] == ["2018", "2016", "2022", "2015", "2023"]


@pytest.mark.parametrize(
    "kind",
    ["application/pdf", "Application/PDF; charset=x", "application/x-pdf", "application/octet-stream",
     "binary/octet-stream", "application/download", "application/force-download", "unk"],
)  # fmt: skip
def test_what_crawlers_call_a_pdf_is_worth_a_try(kind: str) -> None:
    assert len(ask("wayback", WORK, index(row(mimetype=kind)))[0].plans) == 1


@pytest.mark.parametrize(
    "bad",
    [
        row(mimetype="warc/revisit", status="-"),
        row(mimetype="text/html"),
        row(status="404"),
        row(status="302"),
        row(status="-"),
        row(timestamp="2019"),
        row(timestamp="20190102030405/../../"),
        row(original="ftp://gone.example.org/a.pdf"),
        row(original="javascript:alert(1)"),
        row()[:3],
        [None] * 7,
    ],
)
def test_what_cannot_be_the_file_is_left_alone(bad: list[Any]) -> None:
    result, _ = ask("wayback", WORK, index(bad))
    assert (result.plans, result.notes) == ((), ("no_capture",))


def test_two_captures_of_different_content_are_enough() -> None:
    rows = [row(f"201{n}0101000000", digest="SAME" if n < 5 else None) for n in range(9)]
    result, _ = ask("wayback", WORK, index(*rows))
    assert replays(result) == [f"20180101000000id_/{URL}", f"20170101000000id_/{URL}"]
    once, _ = ask("wayback", WORK, index(*rows[:4]))
    assert replays(once) == [f"20130101000000id_/{URL}"], "the same bytes are tried once"


def test_the_archived_address_keeps_its_query_and_loses_nothing_on_the_way() -> None:
    original = "http://gone.example.org:80/get?id=7&x=a b#page=2"
    result, _ = ask("wayback", WORK, index(row(original=original)))
    assert replays(result) == ["20190102030405id_/http://gone.example.org:80/get?id=7&x=a%20b%23page=2"]
    assert request_url(result.plans[0].url) == result.plans[0].url
    assert unique_plans(result.plans) == result.plans


def test_files_are_asked_about_each_once_and_at_most_three() -> None:
    files = (
        "http://gone.example.org/a.pdf",
        "https://www.gone.example.org/a.pdf",
        *(f"https://gone.example.org/{n}.pdf" for n in range(5)),
    )
    work = WorkArtifact("x", pdf_urls=files, landing_urls=("https://gone.example.org/page",))
    result, asked = ask("wayback", work, *[answer([])] * 3)
    assert asked_about(asked) == [files[0], files[2], files[3]]
    assert result.notes == ("no_capture",)


def test_pages_are_asked_about_only_where_no_file_is_known() -> None:
    pages = WorkArtifact("x", landing_urls=("https://doi.org/10.1234/abc", "https://gone.example.org/view/7"))
    result, asked = ask("wayback", pages, index(row(original="https://gone.example.org/view/7")))
    assert asked_about(asked) == ["https://gone.example.org/view/7"]
    assert len(result.plans) == 1
    both = WorkArtifact("x", pdf_urls=(URL,), landing_urls=pages.landing_urls)
    assert asked_about(ask("wayback", both, answer([]))[1]) == [URL]


@pytest.mark.parametrize(
    "url",
    [
        "https://web.archive.org/web/20190102030405id_/https://gone.example.org/a.pdf",
        "https://export.arxiv.org/pdf/2104.12255",
        "https://pmc-oa-opendata.s3.amazonaws.com/PMC7.1/PMC7.1.pdf",
        "https://europepmc.org/articles/PMC7?pdf=render",
        "https://doi.org/10.1234/abc",
        "https://gone.example.org/a.pdf?X-Amz-Signature=abc",
        "https://gone.example.org/a.pdf?api_key=abc",
        "https://who:pass@gone.example.org/a.pdf?token=x",
        "ftp://gone.example.org/a.pdf",
        "nonsense",
    ],
)
def test_living_archives_and_addresses_with_keys_are_nobodys_business(url: str) -> None:
    """A key or signature in an address is not told to a third party."""
    work = WorkArtifact("x", pdf_urls=(url,))
    assert registry.build(["wayback"])["wayback"].applies_to(work) == "no_known_address"
    assert ask("wayback", work) == (ResolverResult(notes=("no_known_address",)), [])


@pytest.mark.parametrize(
    ("page", "note"),
    [
        (answer(b""), "no_capture"),
        (answer([]), "no_capture"),
        (answer([HEADER]), "no_capture"),
        (answer(b"org.archive.wayback.exception.AdministrativeAccessControlException", 403), "blocked_site"),
        (answer(b"<html>", 403), "refused: the Wayback Machine answered 403; ask again later"),
        (answer(b"", 404), "not_in_index"),
        (answer(b"", 400), "http-status: 400"),
        (answer(b"<html>"), "malformed_answer"),
        (answer({"a": 1}), "malformed_answer"),
        (answer([["urlkey"], ["x"]]), "malformed_answer"),
        (answer([7]), "malformed_answer"),
    ],
)
def test_every_other_answer_is_a_note(page: Page, note: str) -> None:
    result, _ = ask("wayback", WORK, page)
    assert (result.plans, result.notes) == ((), (note,))


def test_a_site_that_is_excluded_does_not_hide_another() -> None:
    work = WorkArtifact("x", pdf_urls=("https://blocked.example.org/a.pdf", URL))
    blocked = answer(b"org.archive.x: Blocked Site Error", 403)
    assert len(ask("wayback", work, blocked, index(row()))[0].plans) == 1
    assert ask("wayback", work, blocked, answer([]))[0].notes == ("blocked_site", "no_capture")


def test_a_capture_in_hand_survives_a_busy_index_and_without_one_it_is_asked_later() -> None:
    work = WorkArtifact("x", pdf_urls=(URL, "https://gone.example.org/b.pdf", "https://gone.example.org/c.pdf"))
    for trouble in (answer(b"", 429), TransientFailure("breaker_open"), CandidateRejected("budget_exhausted")):
        result, asked = ask("wayback", work, index(row()), trouble)
        assert (len(result.plans), len(asked)) == (1, 2)
    with pytest.raises(TransientFailure) as busy:
        ask("wayback", work, answer([]), answer(b"", 429, retry_after="60"))
    assert busy.value.retry_after_s == 60


@pytest.mark.slow
@examples(150)
@given(
    rows=st.lists(st.lists(st.none() | st.integers() | st.text(max_size=16) | st.sampled_from(row()), max_size=8)),
    body=st.binary(max_size=40),
)
def test_no_answer_breaks_it(rows: list[Any], body: bytes) -> None:
    for page in (index(*rows), answer(json.dumps(rows).encode()), answer(body)):
        result, _ = ask("wayback", WORK, page)
        assert result.plans or result.notes


def test_the_recorded_index_is_read_whole_and_its_pages_are_no_papers() -> None:
    """The recorded answers are the text form of the same rows."""
    seen = 0
    for path in sorted(recorded("wayback").glob("cdx-*.json")):
        for exchange in json.loads(path.read_bytes()):
            response = exchange["response"]
            if response["status"] != 200 or "/cdx/" not in exchange["request"]["url"]:
                continue
            lines = [line.split(" ") for line in (response.get("body_text") or "").partition("\n\n")[0].splitlines()]
            captures = captures_in(index(*lines).body)
            assert captures is not None
            # Some rows name addresses that no client could ask for.
            assert len(lines) - 3 <= len(captures) <= len(lines), path.name
            pages = [capture for capture in captures if capture.mimetype == "text/html"]
            assert best_captures(pages, "http://www.nasa.gov/", at_most=5) == []
            seen += len(captures)
    assert seen > 300


def test_the_recorded_answer_for_an_excluded_site_is_told_as_such() -> None:
    [exchange] = json.loads(recorded("wayback", "cdx-blocked-site-403.json").read_bytes())
    response = exchange["response"]
    result, _ = ask("wayback", WORK, answer(response["body_text"].encode(), response["status"]))
    assert result.notes == ("blocked_site",)


def test_recorded_redirects_of_the_archive_lead_where_its_next_answer_came_from() -> None:
    """Absolute, relative and without a scheme: an archived address inside a path keeps its double slash."""
    followed = 0
    for path in sorted(recorded("wayback").glob("replay-*.json")):
        exchanges = json.loads(path.read_bytes())
        for exchange, after in itertools.pairwise(exchanges):
            place = exchange["response"]["headers"].get("location")
            if place is not None:
                url = exchange["request"]["url"]
                assert join_url(url, place) == request_url(after["request"]["url"]), path.name
                followed += 1
    assert followed >= 10


def test_alone_it_obtains_what_vanished_from_its_publisher(
    calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], tmp_path: Path
) -> None:
    """RES-17, on the sandbox: the address of the vanished file is all that is known."""
    world = calm_sandbox.world
    held = [work for work in map(world.work, range(world.count)) if work.copy("wayback")][:4]
    asked = [
        WorkArtifact(f"doi:{work.doi.lower()}", doi=work.doi.lower(), pdf_urls=(work.copies[0].pdf_url,))
        for work in held
    ]
    outcomes = alone("wayback", calm_sandbox, tmp_path, asked, make_config)
    assert len(held) == 4
    assert [outcomes[work.work_id].ok for work in asked] == [True] * 4
