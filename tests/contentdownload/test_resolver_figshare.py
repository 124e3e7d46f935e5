"""figshare: whose works it takes, and what it makes of every kind of article."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contentdownload.scripted import answer, ask, first_words, named, resolve

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.repositories.figshare import FigshareResolver

WORK = named("10.6084/m9.figshare.77")
MD5 = "0" * 31 + "a"


def deposited(name: str, **more: Any) -> dict[str, Any]:
    return {
        "id": 5, "name": name, "size": 1234, "is_link_only": False, "computed_md5": MD5, "mimetype": "application/pdf",
        "download_url": "https://ndownloader.figshare.com/files/5", **more,
    }  # fmt: skip


def article(*files: Any, **changes: Any) -> dict[str, Any]:
    return {
        "id": 77, "doi": "10.6084/m9.figshare.77.v2", "version": 2, "title": "Slow rivers", "files": list(files),
        "published_date": "2021-03-04T00:00:00Z", "defined_type_name": "journal contribution",
        "license": {"value": 1, "name": "CC BY 4.0", "url": "https://creativecommons.org/licenses/by/4.0/"}, **changes,
    }  # fmt: skip


def page_of(url: str) -> WorkArtifact:
    return WorkArtifact("url:x", landing_urls=(url,))


@pytest.mark.parametrize(
    ("work", "asked"),
    [
        (WORK, "77"),
        (named("10.6084/M9.figshare.77.v3"), "77/versions/3"),
        (page_of("https://figshare.com/articles/journal_contribution/Slow_rivers/12"), "12"),
        (page_of("https://figshare.com/articles/Slow_rivers/12/3"), "12/versions/3"),
        (page_of("https://auckland.figshare.com/articles/thesis/2020_in_rivers/12"), "12"),
        (page_of("https://figshare.com/articles/12"), "12"),
        (page_of("https://figshare.com/collections/Slow_rivers/12"), None),
        (page_of("https://notfigshare.com/articles/x/12"), None),
        (page_of("https://figshare.com.example.org/articles/x/12"), None),
        (named("10.6084/m9.figshare.c.12"), None),
        (named("10.1234/abc"), None),
    ],
)
def test_it_takes_works_that_name_an_article_and_no_others(work: WorkArtifact, asked: str | None) -> None:
    source = FigshareResolver(settings=ResolverSettings())
    assert source.applies_to(work) == (None if asked else "not_mine")
    if asked is None:
        assert resolve(source, work)[0].notes == ("not_mine",)
    else:
        _, urls = resolve(source, work, answer(b"", 404))
        assert urls == [f"https://api.figshare.com/v2/articles/{asked}"]


def test_an_article_gives_its_paper_with_size_and_checksum() -> None:
    result = ask("figshare", WORK, answer(article(deposited("data.csv", mimetype="text/csv"), deposited("paper.pdf"))))
    [plan] = result.plans
    assert plan.url == "https://ndownloader.figshare.com/files/5"
    assert (plan.checksum, plan.size_bytes) == (f"md5:{MD5}", 1234)
    assert (plan.license, plan.host_type) == ("https://creativecommons.org/licenses/by/4.0/", "repository")
    assert (plan.version, plan.evidence, plan.page_doi) == (None, "record_file", "10.6084/m9.figshare.77.v2")
    assert result.work is not None
    assert (result.work.title, result.work.publication_year) == ("Slow rivers", 2021)


def test_a_preprint_is_called_submitted() -> None:
    [plan] = ask("figshare", WORK, answer(article(deposited("paper.pdf"), defined_type_name="Preprint"))).plans
    assert plan.version == "submittedVersion"


def test_the_number_of_a_file_gives_its_address_and_the_uploader_its_digest() -> None:
    file = deposited("paper.pdf", download_url=None, computed_md5=None, supplied_md5=MD5.upper())
    [plan] = ask("figshare", WORK, answer(article(file))).plans
    assert (plan.url, plan.checksum) == ("https://ndownloader.figshare.com/files/5", f"md5:{MD5}")


PORTAL = ("https://auckland.figshare.com/articles/thesis/x/77",)


@pytest.mark.parametrize(
    ("work", "changes", "is_it"),
    [
        (WORK, {}, True),
        (WORK, {"doi": "10.17608/k6.auckland.77"}, True),
        (WORK, {"id": 78}, False),
        (named("10.6084/m9.figshare.77.v1"), {}, False),
        (named("10.6084/m9.figshare.77.v2"), {}, True),
        (WorkArtifact("x", doi="10.17608/k6.77", landing_urls=PORTAL), {"doi": "10.17608/k6.77.v2"}, True),
        (WorkArtifact("x", doi="10.1234/abc", landing_urls=PORTAL), {}, True),
        (WorkArtifact("x", doi="10.1234/abc", landing_urls=PORTAL, title="Deep oceans explored anew"),
         {"title": "Shallow lakes of northern plains"}, False),
    ],
)  # fmt: skip
def test_an_article_about_another_paper_is_told_apart(work: WorkArtifact, changes: dict[str, Any], is_it: bool) -> None:
    """Versions are kept apart."""
    result = ask("figshare", work, answer(article(deposited("paper.pdf"), **changes)))
    assert (len(result.plans), first_words(result.notes)) == ((1, []) if is_it else (0, ["wrong-article"]))


def test_an_embargo_that_leaves_files_visible_does_not_hide_them() -> None:
    assert len(ask("figshare", WORK, answer(article(deposited("paper.pdf"), is_embargoed=True))).plans) == 1
