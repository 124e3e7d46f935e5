"""Real article pages: the right links, the right paper, and nothing that only looks like the paper."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.needs import recorded

from DocsToKG.ContentDownload.resolvers.landing.page import LandingFacts, PageKind, extract
from DocsToKG.core.urls import index_url

PAGES = (
    "dlib_05vanhyning.html",
    "elife_article.html",
    "first_monday_ojs3_fulltext.html",
    "first_monday_ojs3_landingpage.html",
    "genders_g58_fairlie.html",
    "nature_article.html",
    "peerj_oa_article.html",
    "plos_one_article.html",
    "plos_one_article_no_icon_href.html",
)


def truths() -> dict[str, Any]:
    pages: dict[str, Any] = json.loads(recorded("landing", "truth.json").read_text())["pages"]
    return pages


def read(name: str) -> tuple[LandingFacts, dict[str, Any]]:
    truth = truths()[name]
    page = recorded("landing", name).read_bytes()
    return extract(truth["page_url"], page, {"content-type": "text/html"}), truth


def addresses(facts: LandingFacts, mime: str) -> list[str]:
    return [link.url for link in (*facts.pdf_links, *facts.other_forms) if link.mime == mime]


def test_every_recorded_page_is_looked_at() -> None:
    assert sorted(truths()) == sorted(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_recorded_page_gives_its_pdf_and_no_other_link(name: str) -> None:
    """RES-15."""
    facts, truth = read(name)
    assert addresses(facts, "application/pdf") == ([truth["pdf_url"]] if truth["pdf_url"] else [])
    assert facts.kind in (PageKind.ARTICLE, PageKind.OTHER)


@pytest.mark.parametrize("name", PAGES)
def test_a_recorded_page_gives_the_other_forms_it_has(name: str) -> None:
    facts, truth = read(name)
    for mime, key in (("application/xml", "xml_url"), ("text/html", "html_url")):
        assert addresses(facts, mime) == ([truth[key]] if truth[key] else []), key


@pytest.mark.parametrize("name", PAGES)
def test_nothing_that_only_looks_like_the_paper_is_proposed(name: str) -> None:
    facts, truth = read(name)
    proposed = {index_url(link.url) for link in (*facts.pdf_links, *facts.other_forms)}
    if facts.guess is not None:
        proposed.add(index_url(facts.guess.url))
    assert not proposed & {index_url(url) for url in truth["not_the_paper"]}


@pytest.mark.parametrize("name", PAGES)
def test_a_recorded_page_is_about_the_paper_it_says(name: str) -> None:
    facts, truth = read(name)
    assert facts.doi in (None, (truth["doi"] or "").lower())


def test_most_recorded_pages_say_their_doi() -> None:
    said = [name for name in PAGES if read(name)[0].doi]
    assert len(said) >= 6
