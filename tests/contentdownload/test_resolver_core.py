"""CORE: copies in repositories for holders of a key, whose links may be files or pages."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contentdownload.scripted import SETTINGS, answer, ask, first_words, named, resolve

from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.net.policy import HostCredentials
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.core import CoreResolver

WORK = named("10.1234/abc")


def record(**fields: Any) -> dict[str, Any]:
    return {"id": 58, "doi": "10.1234/ABC", "title": "T", "yearPublished": 2019, "downloadUrl": None, **fields}


def read(*records: Any) -> ResolverResult:
    return ask("core", WORK, answer({"totalHits": len(records), "limit": 5, "results": list(records)}))


def test_it_searches_by_doi_as_a_phrase() -> None:
    source = CoreResolver(settings=SETTINGS)
    _, asked = resolve(source, named("10.1234/a(1)"), answer({"results": []}))
    assert asked == ["https://api.core.ac.uk/v3/search/works/?q=doi%3A%2210.1234%2Fa%281%29%22&limit=5"]
    _, asked = resolve(source, WorkArtifact("x", doi='10.1234/a"b\\c'), answer({"results": []}))
    assert "q=doi%3A%2210.1234%2Fa%5C%22b%5C%5Cc%22&" in asked[0]


@pytest.mark.parametrize(
    ("settings", "work", "why_not"),
    [
        (SETTINGS, WORK, None),
        (ResolverSettings(), WORK, "missing_key"),
        (ResolverSettings(api_key="  "), WORK, "missing_key"),
        (SETTINGS, named("PMC7"), "no_doi"),
    ],
)
def test_without_a_key_it_is_skipped_aloud(settings: ResolverSettings, work: WorkArtifact, why_not: str | None) -> None:
    assert CoreResolver(settings=settings).applies_to(work) == why_not
    if why_not is not None:
        assert ask("core", work, settings=settings).notes == (why_not,)


def test_the_key_goes_to_the_api_alone() -> None:
    held = registry.credentials({"core": SETTINGS})
    assert held == {"api.core.ac.uk": HostCredentials(headers={"Authorization": "Bearer sesame"})}


@pytest.mark.parametrize(
    ("url", "plans", "pages"),
    [
        ("https://core.ac.uk/download/82.pdf", ["https://core.ac.uk/download/82.pdf"], ()),
        ("http://arxiv.org/abs/1904.10788", ["https://export.arxiv.org/pdf/1904.10788"], ()),
        ("https://r.example.org/handle/1/2", [], ("https://r.example.org/handle/1/2",)),
        ("https://r.example.org/item/7", ["https://r.example.org/item/7"], ("https://r.example.org/item/7",)),
        ("https://api.core.ac.uk/v3/outputs/58/download", [], ()),
        ("https://doi.org/10.1234/abc", [], ()),
        ("", [], ()),
    ],
)
def test_a_download_url_is_sorted_and_not_trusted(url: str, plans: list[str], pages: tuple[str, ...]) -> None:
    result = read(record(downloadUrl=url))
    assert [plan.url for plan in result.plans] == plans
    assert result.work is not None
    assert result.work.landing_urls == pages
    assert result.notes == (() if plans else ("no_oa_pdf",))


def test_every_link_is_used_once_files_before_unclear_ones() -> None:
    result = read(
        record(
            downloadUrl="https://r.example.org/item/7",
            sourceFulltextUrls=["https://r.example.org/b.pdf", 7, "https://r.example.org/a.pdf"],
            links=[
                {"type": "download", "url": "https://r.example.org/a.pdf"},
                {"type": "display", "url": "https://core.ac.uk/works/58"},
                {"type": "reader", "url": "https://core.ac.uk/reader/58"},
            ],
            arxivId="1904.10788",
            license="cc-by",
            pubmedId="99",
        )
    )
    assert [plan.url for plan in result.plans] == [
        "https://r.example.org/a.pdf",
        "https://r.example.org/b.pdf",
        "https://r.example.org/item/7",
        "https://export.arxiv.org/pdf/1904.10788",
    ]
    assert {(plan.host_type, plan.resolver_name) for plan in result.plans} == {("repository", "core")}
    assert [plan.license for plan in result.plans] == ["cc-by", "cc-by", "cc-by", None]
    assert [plan.evidence for plan in result.plans][2:] == ["downloadUrl", "arxivId"]
    assert result.work == WorkArtifact(
        WORK.work_id, title="T", publication_year=2019, doi="10.1234/abc", arxiv_id="1904.10788", pmid="99",
        landing_urls=("https://r.example.org/item/7",), license="cc-by",
    )  # fmt: skip


def test_a_link_to_pmc_is_worth_its_id() -> None:
    result = read(record(downloadUrl="https://www.ncbi.nlm.nih.gov/pmc/articles/77/pdf"))
    assert result.work is not None
    assert (result.plans, result.work.pmcid) == ((), "PMC77")


def test_only_records_with_the_doi_count() -> None:
    other = record(doi="10.1234/other", downloadUrl="https://r.example.org/other.pdf")
    silent = record(doi=None, downloadUrl="https://r.example.org/silent.pdf")
    ours = record(downloadUrl="https://r.example.org/ours.pdf")
    assert [plan.url for plan in read(other, silent, ours).plans] == ["https://r.example.org/ours.pdf"]
    assert first_words(read(other, silent).notes) == ["wrong-article"]
    assert read().notes == ("not_in_index",)
    assert read(None, 7).notes == ("not_in_index",)


def test_the_preprint_comes_after_copies_of_unknown_version() -> None:
    copy = "https://core.ac.uk/download/1.pdf"
    result = read(record(downloadUrl="http://arxiv.org/abs/2104.12255", links=[{"type": "download", "url": copy}]))
    assert [plan.url for plan in result.plans] == [copy, "https://export.arxiv.org/pdf/2104.12255"]


@pytest.mark.parametrize("scheme", ["http", "https", "HTTP"])
def test_links_into_its_own_api_are_left_out_whatever_their_spelling(scheme: str) -> None:
    result = read(record(downloadUrl=f"{scheme}://API.core.ac.uk/v3/outputs/1/download"))
    assert (result.plans, result.notes) == ((), ("no_oa_pdf",))


def test_each_copy_has_the_licence_of_its_own_record() -> None:
    one, other = "https://core.ac.uk/download/1.pdf", "https://core.ac.uk/download/2.pdf"
    result = read(record(downloadUrl=one, license="cc-by"), record(downloadUrl=other))
    assert [(plan.url, plan.license) for plan in result.plans] == [(one, "cc-by"), (other, None)]
