"""DOAJ: pages of open journals, whose `content_type` is no promise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.contentdownload.scripted import SETTINGS, answer, ask, first_words, named, resolve
from tests.needs import recorded

from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.doaj import DoajResolver
from DocsToKG.ContentDownload.resolvers.links.copy_facts import CopyFacts, facts_at

WORK = named("10.1234/abc")


def article(*urls: str, doi: Any = "10.1234/ABC", **fields: Any) -> dict[str, Any]:
    return {
        "id": "e58f",
        "bibjson": {
            "identifier": [{"id": "0264-1275", "type": "pissn"}, {"id": doi, "type": "DOI"}],
            "journal": {"title": "J", "license": [{"type": "CC BY", "url": "https://j.example.org/about"}]},
            "link": [{"type": "fulltext", "content_type": "pdf", "url": url} for url in urls],
            "title": "T",
            "year": "2016",
            **fields,
        },
    }


def read(*results: Any) -> ResolverResult:
    return ask("doaj", WORK, answer({"total": len(results), "results": list(results)}))


@pytest.mark.parametrize(
    ("work", "query"),
    [
        (WORK, "doi%3A10.1234/abc"),
        (WorkArtifact("x", doi="10.1016/s0140(05)1:2"), "doi%3A%2210.1016/s0140%2805%291%3A2%22"),
        (WorkArtifact("x", doi='10.1/a"b\\c'), "doi%3A%2210.1/a%5C%22b%5C%5Cc%22"),
    ],
)
def test_the_query_stands_in_the_path_and_its_syntax_in_a_phrase(work: WorkArtifact, query: str) -> None:
    _, asked = resolve(DoajResolver(settings=SETTINGS), work, answer({"results": []}))
    assert asked == [f"https://doaj.org/api/v4/search/articles/{query}?page=1&pageSize=5"]


def test_a_work_without_doi_is_not_asked_for() -> None:
    assert ask("doaj", named("PMC7")).notes == ("no_doi",)


def test_a_page_is_learnt_though_it_is_called_pdf() -> None:
    result = read(article("https://j.example.org/2072-6694/9/8/107"))
    assert (result.plans, result.notes) == ((), ("no_oa_pdf",))
    assert result.work is not None
    assert result.work == WorkArtifact(
        WORK.work_id, title="T", publication_year=2016, doi="10.1234/abc", license="CC BY", oa_status="gold",
        landing_urls=("https://j.example.org/2072-6694/9/8/107",), metadata=result.work.metadata,
    )  # fmt: skip
    page = facts_at(result.work, "http://j.example.org/2072-6694/9/8/107")
    assert page == CopyFacts("publishedVersion", "CC BY", "publisher")


def test_a_file_is_a_plan_under_the_journals_licence() -> None:
    result = read(article("https://j.example.org/article/download/1/2", "https://j.example.org/article/view/1"))
    [plan] = result.plans
    assert (plan.url, plan.evidence) == ("https://j.example.org/article/download/1/2", "fulltext")
    assert (plan.license, plan.version, plan.host_type) == ("CC BY", "publishedVersion", "publisher")
    assert result.work is not None
    assert result.work.landing_urls == ("https://j.example.org/article/view/1",)


def test_a_link_to_pmc_is_worth_its_id() -> None:
    work = read(article("http://europepmc.org/articles/PMC77?pdf=render")).work
    assert work is not None
    assert work.pmcid == "PMC77"


def test_the_article_with_the_doi_is_found_among_others() -> None:
    result = read(
        article("https://x.example.org/other.pdf", doi="10.1234/other"), article("https://x.example.org/a.pdf")
    )
    assert [plan.url for plan in result.plans] == ["https://x.example.org/a.pdf"]


def test_recorded_articles_give_their_page_and_licence() -> None:
    """Types of identifiers come as `doi` and `DOI`; one article has none."""
    found = 0
    for record in json.loads(recorded("doaj", "records.json").read_text())["records"]:
        dois = [each["id"] for each in record["bibjson"]["identifier"] if each["type"].lower() == "doi"]
        if not dois:
            assert first_words(read(record).notes) == ["wrong-article"]
            continue
        result = ask("doaj", named(dois[0]), answer({"total": 1, "results": [record]}))
        assert result.work is not None
        assert len(result.work.landing_urls) == 1
        assert (result.work.license or "").startswith("CC BY")
        found += 1
    assert found == 4
