"""Links that differ in a session token are one, and of the versions of a paper the newest comes first."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.ContentDownload.api.types import DownloadPlan
from DocsToKG.ContentDownload.resolvers.base import unique_plans
from DocsToKG.ContentDownload.resolvers.landing.page import extract
from DocsToKG.ContentDownload.resolvers.links.deduplicate import link_key, newest_first, without_session

FILE = "https://a.example.org/x/paper.pdf"


@pytest.mark.parametrize(
    "url",
    [
        FILE,
        f"{FILE};jsessionid=0A1B2C3D.node7",
        f"{FILE};JSESSIONID=0A1B?utm_source=x",
        f"{FILE}?PHPSESSID=9f8e7d",
        f"{FILE}?CFID=1&CFTOKEN=2",
        f"{FILE}?ASPSESSIONIDABCD=XY",
        f"{FILE}?X-Amz-Signature=ab&X-Amz-Date=20260427T193130Z&X-Amz-Expires=299",
        f"{FILE}?Expires=1&Signature=2&Key-Pair-Id=3",
        f"{FILE}?token=eyJhbGciOi",
        "https://a.example.org/(S(lit3py55t21z5v55vlm25s55))/x/paper.pdf",
    ],
)
def test_a_session_token_makes_no_other_link(url: str) -> None:
    assert link_key(url) == FILE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.org/download?token=abc", "https://a.org/download?token=def"),
        ("https://a.org/get?sid=1", "https://a.org/get?sid=2"),
        ("https://a.org/x.pdf?version=1", "https://a.org/x.pdf?version=2"),
        ("https://a.org/x.pdf?id=1", "https://a.org/x.pdf?id=2"),
        ("https://a.org/10.1002/(sici)1;2-2.pdf", "https://a.org/10.1002/(sici)1;2-3.pdf"),
    ],
)
def test_what_may_name_another_file_is_another_link(one: str, other: str) -> None:
    assert link_key(one) != link_key(other)


def test_the_address_that_is_asked_for_keeps_its_token() -> None:
    plans = unique_plans(DownloadPlan(url, "test") for url in (f"{FILE}?token=a", f"{FILE}?token=b", "nowhere"))
    assert [plan.url for plan in plans] == [f"{FILE}?token=a"]


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        ([f"https://b.org/10.1101/2020.01.01.12{version}.full.pdf" for version in ("v1", "v3", "v2")], [1, 2, 0]),
        (["https://arxiv.org/pdf/2101.00001v2", "https://arxiv.org/pdf/2101.00001v11"], [1, 0]),
        (["https://r.com/article/rs-12/v1.pdf", "https://r.com/article/rs-13/v2.pdf"], [0, 1]),
        (["https://p.org/1/v1/download", FILE, "https://p.org/1/v2/download"], [2, 1, 0]),
        (["https://m.org/1/pdf?version=1", "https://m.org/1/pdf?version=7"], [1, 0]),
        (["https://osf.io/ab3cd_v1/download", "https://osf.io/ab3cd_v2/download"], [1, 0]),
        (["https://a.org/vol12/x.pdf", "https://a.org/vol13/x.pdf"], [0, 1]),
        (["https://a.org/v12/p1/x.pdf", "https://b.org/v13/p1/x.pdf"], [0, 1]),
    ],
)
def test_the_newest_version_comes_first_and_all_else_keeps_its_place(given: list[str], ordered: list[int]) -> None:
    assert newest_first(given, str) == [given[place] for place in ordered]
    assert [plan.url for plan in unique_plans(DownloadPlan(url, "test") for url in given)] == newest_first(given, str)


def test_a_page_gives_one_link_for_its_sessions() -> None:
    tag = '<meta name="citation_pdf_url" content="/x/paper.pdf{}">'
    page = f"<html><head>{tag.format(';jsessionid=A1')}{tag.format(';jsessionid=B2')}</head><body>x</body></html>"
    links = extract("https://a.example.org/x/1", page.encode(), {"content-type": "text/html"}).pdf_links
    assert [link.url for link in links] == [f"{FILE};jsessionid=A1"]


@examples(200)
@given(st.text(alphabet="https:/a.v1;?&=()SsidX-\x00é", max_size=80))
def test_any_text_has_a_form_without_session_that_has_none(text: str) -> None:
    once = without_session(text)
    assert without_session(once) == once or ";" in once or "(" in once
    newest_first([text, once, text + "v2"], str)


def test_no_link_makes_the_patterns_slow() -> None:
    began = time.thread_time()
    for url in (
        FILE + ";sid=a" * 600,
        FILE + "?" + "&token=a" * 500,
        "https://a.org/" + "v1/" * 1200,
        "https://a.org/" + "(S(" * 1200,
    ):
        for _ in range(20):
            link_key(url)
            newest_first([url, url + "v2"], str)
    assert time.thread_time() - began < 4
