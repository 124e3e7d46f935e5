"""Zenodo: whose works it takes, and what it makes of every kind of record."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contentdownload.scripted import answer, ask, first_words, named, resolve

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.repositories.zenodo import ZenodoResolver

WORK = named("10.5281/zenodo.77")
MD5 = "0" * 31 + "a"


def deposited(key: str, **more: Any) -> dict[str, Any]:
    link = f"https://zenodo.org/api/records/77/files/{key}/content"
    return {"key": key, "size": 1234, "checksum": f"md5:{MD5}", "links": {"self": link}, **more}


def record(*files: Any, **changes: Any) -> dict[str, Any]:
    metadata = {
        "title": "Slow rivers", "publication_date": "2021-03-04", "access_right": "open",
        "license": {"id": "cc-by-4.0"}, "resource_type": {"type": "publication", "subtype": "preprint"},
        **changes.pop("metadata", {}),
    }  # fmt: skip
    base = {"id": 77, "conceptrecid": "76", "doi": "10.5281/zenodo.77", "conceptdoi": "10.5281/zenodo.76"}
    return {**base, "metadata": metadata, "files": list(files), **changes}


@pytest.mark.parametrize(
    ("work", "asked"),
    [
        (WORK, "77"),
        (WorkArtifact("url:x", landing_urls=("https://zenodo.org/records/12",)), "12"),
        (WorkArtifact("url:x", landing_urls=("http://www.zenodo.org/record/12/?x=1#files",)), "12"),
        (WorkArtifact("url:x", pdf_urls=("https://zenodo.org/records/12/files/a.pdf?download=1",)), "12"),
        (WorkArtifact("doi:10.1/x", doi="10.1/x", landing_urls=("https://zenodo.org/doi/10.5281/zenodo.12",)), "12"),
        (WorkArtifact("url:x", landing_urls=("https://zenodo.org.example.org/records/12",)), None),
        (WorkArtifact("url:x", landing_urls=("https://zenodo.org/communities/12",)), None),
        (named("10.1234/abc"), None),
        (named("10.5281/other.77"), None),
    ],
)
def test_it_takes_works_that_name_a_record_and_no_others(work: WorkArtifact, asked: str | None) -> None:
    source = ZenodoResolver(settings=ResolverSettings())
    assert source.applies_to(work) == (None if asked else "not_mine")
    if asked is None:
        assert resolve(source, work)[0].notes == ("not_mine",)
    else:
        _, urls = resolve(source, work, answer(b"", 404))
        assert urls == [f"https://zenodo.org/api/records/{asked}"]


def test_a_record_gives_its_paper_with_size_and_checksum() -> None:
    """RES-09, DL-11: the published digest travels with the plan."""
    result = ask(
        "zenodo", WORK, answer(record(deposited("supplement.pdf"), deposited("paper.pdf"), deposited("x.zip")))
    )
    [plan] = result.plans
    assert plan.url == "https://zenodo.org/api/records/77/files/paper.pdf/content"
    assert (plan.checksum, plan.size_bytes) == (f"md5:{MD5}", 1234)
    assert (plan.version, plan.license, plan.host_type) == ("submittedVersion", "cc-by-4.0", "repository")
    assert (plan.evidence, plan.page_doi, plan.is_guess) == ("record_file", "10.5281/zenodo.77", False)
    assert result.work is not None
    assert (result.work.title, result.work.publication_year) == ("Slow rivers", 2021)


def test_a_file_without_an_address_is_asked_for_at_the_usual_place() -> None:
    result = ask("zenodo", WORK, answer(record(deposited("my paper#1.pdf", links=None, checksum="md5:beef"))))
    [plan] = result.plans
    assert plan.url == "https://zenodo.org/api/records/77/files/my%20paper%231.pdf/content"
    assert plan.checksum is None, "half a digest proves nothing"


def test_a_doi_for_all_versions_leads_to_the_newest() -> None:
    result = ask("zenodo", named("10.5281/zenodo.76"), answer(record(deposited("paper.pdf"))))
    assert len(result.plans) == 1


def test_a_link_to_one_file_of_a_record_is_a_choice_already_made() -> None:
    work = WorkArtifact("url:x", pdf_urls=("https://zenodo.org/records/77/files/annex%20b.pdf?download=1",))
    [plan] = ask("zenodo", work, answer(record(deposited("paper.pdf"), deposited("annex b.pdf")))).plans
    assert "annex" in plan.url
    elsewhere = WorkArtifact("doi:x", doi=WORK.doi, pdf_urls=("https://zenodo.org/records/5/files/annex%20b.pdf",))
    [plan] = ask("zenodo", elsewhere, answer(record(deposited("paper.pdf"), deposited("annex b.pdf")))).plans
    assert "paper" in plan.url


def test_a_page_teaches_the_doi_of_the_work() -> None:
    work = WorkArtifact("url:https://zenodo.org/records/77", landing_urls=("https://zenodo.org/records/77",))
    result = ask("zenodo", work, answer(record(deposited("paper.pdf"))))
    assert result.work is not None
    assert result.work.doi == "10.5281/zenodo.77"


PAGE = ("https://zenodo.org/records/77",)
PUBLISHED = WorkArtifact("doi:10.1234/abc", doi="10.1234/abc", landing_urls=PAGE)
TITLED = WorkArtifact("doi:10.1234/abc", doi="10.1234/abc", title="Deep oceans explored anew", landing_urls=PAGE)
SAME = {"related_identifiers": [{"relation": "isIdenticalTo", "identifier": "https://doi.org/10.1234/ABC"}]}
OTHER = {"title": "Shallow lakes of northern plains"}


@pytest.mark.parametrize(
    ("work", "changes", "is_it"),
    [
        (WORK, {"doi": "10.9999/external"}, True),
        (WORK, {"id": 99, "conceptrecid": "98"}, False),
        (PUBLISHED, {}, True),
        (PUBLISHED, {"doi": "10.1234/abc"}, True),
        (PUBLISHED, {"doi": "10.1234/other"}, False),
        (TITLED, {"metadata": OTHER}, False),
        (TITLED, {"metadata": {**OTHER, **SAME}}, True),
        (WorkArtifact("x", doi="10.5281/zenodo.5x", landing_urls=PAGE), {}, False),
    ],
)
def test_a_record_about_another_paper_is_told_apart(work: WorkArtifact, changes: dict[str, Any], is_it: bool) -> None:
    result = ask("zenodo", work, answer(record(deposited("paper.pdf"), **changes)))
    assert (len(result.plans), first_words(result.notes)) == ((1, []) if is_it else (0, ["wrong-article"]))


@pytest.mark.parametrize(
    "files",
    [
        [{"key": "rivers.pdf", "size": 9, "checksum": f"md5:{MD5}"}],
        {"enabled": True, "entries": {"rivers.pdf": {"key": "rivers.pdf", "size": 9, "checksum": f"md5:{MD5}"}}},
        {"enabled": True, "entries": [{"key": "rivers.pdf", "size": 9, "checksum": f"md5:{MD5}"}]},
    ],
)
def test_other_repositories_on_the_same_software_answer_alike(files: Any) -> None:
    work = WorkArtifact("x", landing_urls=("https://www.openaccessrepository.it/record/192796",))
    told = {"id": 192796, "metadata": {"title": "Slow rivers"}, "access": {"files": "public"}, "files": files}
    result, asked = resolve(ZenodoResolver(settings=ResolverSettings()), work, answer(told))
    base = "https://www.openaccessrepository.it/api/records/192796"
    assert asked == [base]
    assert [(plan.url, plan.checksum) for plan in result.plans] == [(f"{base}/files/rivers.pdf/content", f"md5:{MD5}")]


def test_a_record_whose_files_are_under_embargo_says_until_when() -> None:
    work = WorkArtifact("x", landing_urls=("https://data.caltech.edu/records/ab12c-3de45",))
    access = {"files": "restricted", "embargo": {"active": True, "until": "2027-05-01"}}
    [note] = ask("zenodo", work, answer({"id": "ab12c-3de45", "access": access, "files": []})).notes
    assert note == "embargo: until 2027-05-01"
