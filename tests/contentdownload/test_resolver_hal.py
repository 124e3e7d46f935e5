"""HAL: whose works it takes, and what it makes of every kind of deposit."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.contentdownload.scripted import answer, ask, first_words, named, resolve

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.repositories.hal import HalResolver

PAGE = "https://hal.science/hal-01234567v2"
WORK = WorkArtifact("url:x", landing_urls=(PAGE,))
FILE = "https://hal.science/hal-01234567/document"


def found(**changes: Any) -> dict[str, Any]:
    deposit = {
        "halId_s": "hal-01234567", "uri_s": "https://hal.science/hal-01234567", "fileMain_s": FILE,
        "submitType_s": "file", "docType_s": "ART", "licence_s": "http://creativecommons.org/licenses/by/",
        "doiId_s": "10.1234/ABC", "title_s": ["Slow rivers and quick deltas"], "producedDateY_i": 2021,
        "arxivId_s": "2104.12255", "pubmedId_s": "99", "openAccess_bool": True, **changes,
    }  # fmt: skip
    return {"response": {"numFound": 1, "docs": [{k: v for k, v in deposit.items() if v is not None}]}}


@pytest.mark.parametrize(
    ("url", "hal_id"),
    [
        (PAGE, "hal-01234567"),
        ("https://hal.science/hal-01234567/document", "hal-01234567"),
        ("https://inria.hal.science/inria-00123456/file/a.pdf", "inria-00123456"),
        ("https://hal.archives-ouvertes.fr/hal-01234567", "hal-01234567"),
        ("https://tel.archives-ouvertes.fr/tel-00123456v1", "tel-00123456"),
        ("https://hal.inrae.fr/hal-01234567", "hal-01234567"),
        ("https://dumas.ccsd.cnrs.fr/dumas-01234567", "dumas-01234567"),
        ("https://hal.science/INRIA/hal-01234567", "hal-01234567"),
        ("https://hal.science/search/index?q=x", None),
        ("https://hal.science.example.org/hal-01234567", None),
        ("https://example.org/hal-01234567", None),
    ],
)
def test_it_takes_works_with_a_page_of_hal_and_no_others(url: str, hal_id: str | None) -> None:
    source = HalResolver(settings=ResolverSettings())
    work = WorkArtifact("url:x", landing_urls=(url,))
    assert source.applies_to(work) == (None if hal_id else "not_mine")
    if hal_id is None:
        assert resolve(source, work)[0].notes == ("not_mine",)
    else:
        _, [asked] = resolve(source, work, answer(found()))
        assert asked.startswith("https://api.archives-ouvertes.fr/search/?")
        assert parse_qs(urlsplit(asked).query)["q"] == [f'halId_s:"{hal_id}"']


def by_doi(*deposits: dict[str, Any]) -> Page:
    docs = [doc for each in deposits for doc in each["response"]["docs"]]
    return answer({"response": {"numFound": len(docs), "docs": docs}})


def test_a_doi_is_looked_up_where_no_page_is_known() -> None:
    source = HalResolver(settings=ResolverSettings())
    result, [asked] = resolve(source, named("10.1234/abc"), by_doi(found()))
    assert parse_qs(urlsplit(asked).query)["q"] == ['doiId_s:"10.1234/abc"']
    assert [plan.url for plan in result.plans] == [FILE]
    _, [asked] = resolve(source, WorkArtifact("x", doi='10.1234/a"b\\c'), by_doi())
    assert parse_qs(urlsplit(asked).query)["q"] == [r'doiId_s:"10.1234/a\"b\\c"']


def test_of_several_deposits_of_a_doi_the_one_with_a_file_is_taken() -> None:
    notice = found(halId_s="hal-00000001", fileMain_s=None, submitType_s="notice")
    assert [plan.url for plan in ask("hal", named("10.1234/abc"), by_doi(notice, found())).plans] == [FILE]


@pytest.mark.parametrize("doi", ["10.1234/other", None])
def test_a_deposit_without_the_doi_asked_for_is_another_paper(doi: str | None) -> None:
    result = ask("hal", named("10.1234/abc"), by_doi(found(doiId_s=doi)))
    assert (result.plans, result.work, first_words(result.notes)) == ((), None, ["wrong-article"])


def test_look_ups_by_doi_can_be_switched_off_and_a_given_id_is_asked_for_still() -> None:
    source = HalResolver(settings=ResolverSettings(options={"by_doi": False}))
    assert source.applies_to(named("10.1234/abc")) == "not_mine"
    assert source.applies_to(WorkArtifact("x", doi="10.1234/abc", metadata={"hal_id": "HAL-01234567v1"})) is None
    assert source.applies_to(WorkArtifact("x", metadata={"hal_id": 'hal-01234567" OR *'})) == "not_mine"
    assert source.applies_to(WorkArtifact("x", metadata={"hal_id": 7})) == "not_mine"


def test_a_deposit_gives_its_main_file_and_every_id() -> None:
    result = ask("hal", WORK, answer(found()))
    [plan] = result.plans
    assert (plan.url, plan.evidence, plan.host_type) == (FILE, "fileMain_s", "repository")
    assert (plan.license, plan.version) == ("http://creativecommons.org/licenses/by/", None)
    assert plan.page_doi == "10.1234/abc"
    work = result.work
    assert work is not None
    assert (work.title, work.publication_year) == ("Slow rivers and quick deltas", 2021)
    assert (work.doi, work.arxiv_id, work.pmid) == ("10.1234/abc", "2104.12255", "99")
    assert work.landing_urls == ("https://hal.science/hal-01234567",)


@pytest.mark.parametrize(
    ("kind", "version"),
    [("UNDEFINED", "submittedVersion"), ("THESE", "publishedVersion"), (["REPORT"], "publishedVersion"), (7, None)],
)
def test_the_kind_of_document_tells_the_version(kind: Any, version: str | None) -> None:
    assert ask("hal", WORK, answer(found(docType_s=kind))).plans[0].version == version


def test_fields_may_be_lists_and_other_files_stand_in_for_a_missing_main_file() -> None:
    files = ["https://hal.science/hal-01234567/file/annex.pdf", "https://hal.science/hal-01234567/file/a.pdf"]
    [plan] = ask("hal", WORK, answer(found(fileMain_s=None, files_s=files, licence_s=["cc-by"]))).plans
    assert (plan.url, plan.evidence, plan.license) == (files[1], "files_s", "cc-by")
    [plan] = ask("hal", WORK, answer(found(fileMain_s=[FILE], files_s=files))).plans
    assert plan.url == FILE, "one copy is not tried under two names"


def test_a_deposit_of_another_paper_is_told_apart() -> None:
    other = WorkArtifact("x", doi="10.1234/other", landing_urls=(PAGE,))
    assert first_words(ask("hal", other, answer(found())).notes) == ["wrong-article"]
    preprint = WorkArtifact("x", doi="10.1101/123456", title="Slow rivers, quick deltas", landing_urls=(PAGE,))
    assert len(ask("hal", preprint, answer(found())).plans) == 1
