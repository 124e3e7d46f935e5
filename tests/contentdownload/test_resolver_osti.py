"""OSTI: whose works it takes, and what it makes of every kind of record."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contentdownload.scripted import answer, ask, first_words, named, resolve

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.repositories.osti import OstiResolver

WORK = named("10.2172/77")
PURL = "https://www.osti.gov/servlets/purl/77"


def record(**changes: Any) -> list[dict[str, Any]]:
    links = [{"rel": "citation", "href": "https://www.osti.gov/biblio/77"}, {"rel": "fulltext", "href": PURL}]
    return [{
        "osti_id": "77", "doi": "https://doi.org/10.2172/77", "title": "Slow rivers and quick deltas",
        "product_type": "Technical Report", "publication_date": "2019-05-01T04:00:00Z", "links": links, **changes,
    }]  # fmt: skip


@pytest.mark.parametrize(
    ("work", "asked"),
    [
        (WORK, "?doi=10.2172%2F77&rows=1"),
        (WorkArtifact("url:x", landing_urls=("https://www.osti.gov/biblio/12-slow-rivers",)), "/12"),
        (WorkArtifact("url:x", landing_urls=("https://www.osti.gov/pages/biblio/12",)), "/12"),
        (WorkArtifact("url:x", pdf_urls=("https://www.osti.gov/servlets/purl/12.pdf",)), "/12"),
        (WorkArtifact("x", doi="10.1234/abc", landing_urls=("http://www.osti.gov/servlets/purl/12",)), "/12"),
        (WorkArtifact("url:x", landing_urls=("https://www.osti.gov/search/12",)), None),
        (WorkArtifact("url:x", landing_urls=("https://example.org/osti.gov/biblio/12",)), None),
        (named("10.1234/abc"), "?doi=10.1234%2Fabc&rows=1"),
        (named("PMC77"), None),
    ],
)
def test_it_takes_works_that_name_a_record_or_have_a_doi(work: WorkArtifact, asked: str | None) -> None:
    source = OstiResolver(settings=ResolverSettings())
    assert source.applies_to(work) == (None if asked else "not_mine")
    if asked is None:
        assert resolve(source, work)[0].notes == ("not_mine",)
    else:
        _, urls = resolve(source, work, answer([]))
        assert urls == [f"https://www.osti.gov/api/v1/records{asked}"]


def test_a_record_gives_its_full_text_and_page() -> None:
    result = ask("osti", WORK, answer(record()))
    [plan] = result.plans
    assert (plan.url, plan.evidence, plan.host_type) == (PURL, "fulltext", "repository")
    assert (plan.version, plan.page_doi) == ("publishedVersion", "10.2172/77")
    assert result.work is not None
    assert (result.work.title, result.work.publication_year) == ("Slow rivers and quick deltas", 2019)
    assert result.work.landing_urls == ("https://www.osti.gov/biblio/77",)


@pytest.mark.parametrize(
    ("changes", "version"),
    [
        ({"article_type": "Accepted Manuscript"}, "acceptedVersion"),
        ({"journal_type": "AM"}, "acceptedVersion"),
        ({"article_type": "Published Article"}, "publishedVersion"),
        ({"article_type": None}, None),
    ],
)
def test_an_article_says_its_version(changes: dict[str, Any], version: str | None) -> None:
    assert ask("osti", WORK, answer(record(product_type="Journal Article", **changes))).plans[0].version == version


def test_a_page_is_about_its_own_number_and_paper() -> None:
    page = ("https://www.osti.gov/biblio/77",)
    assert len(ask("osti", WorkArtifact("url:x", landing_urls=page), answer(record()[0])).plans) == 1
    assert first_words(ask("osti", WorkArtifact("url:x", landing_urls=page), answer(record(osti_id=78))).notes) == [
        "wrong-article"
    ]
    article = WorkArtifact("x", doi="10.1234/abc", landing_urls=page)
    assert len(ask("osti", article, answer(record(doi="10.1234/ABC"))).plans) == 1
    assert first_words(ask("osti", article, answer(record(doi="10.1234/other"))).notes) == ["wrong-article"]


@pytest.mark.parametrize("doi", ["10.1234/other", None])
def test_a_record_without_the_doi_asked_for_is_another_paper(doi: str | None) -> None:
    work = named("10.1234/abc")
    found = [{"osti_id": 9, "doi": doi, "links": [{"rel": "fulltext", "href": "https://www.osti.gov/servlets/purl/9"}]}]
    result = ask("osti", work, answer(found))
    assert (result.plans, result.work, first_words(result.notes)) == ((), None, ["wrong-article"])
    ours = ask("osti", work, answer([found[0] | {"doi": "https://doi.org/10.1234/ABC"}]))
    assert [plan.url for plan in ours.plans] == ["https://www.osti.gov/servlets/purl/9"]


def test_look_ups_of_others_dois_can_be_switched_off() -> None:
    source = OstiResolver(settings=ResolverSettings(options={"by_doi": False}))
    assert source.applies_to(named("10.1234/abc")) == "not_mine"
    assert source.applies_to(WORK) is None
