"""bioRxiv and medRxiv: whose works they take, which server and which version."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contentdownload.scripted import answer, ask, first_words, named, resolve

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.repositories.biorxiv import BiorxivResolver

DOI = "10.1101/2020.01.02.123456"
WORK = named(DOI)
NOTHING = {"messages": [{"status": "no posts found"}], "collection": []}


def post(version: Any = "1", **changes: Any) -> dict[str, Any]:
    return {
        "doi": DOI, "version": version, "title": "Slow rivers and quick deltas", "date": "2020-01-03",
        "license": "cc_by_nc", "type": "new results", "published": "NA", "server": "bioRxiv",
        "jatsxml": f"https://www.biorxiv.org/content/early/2020/01/03/123456.source.v{version}.xml", **changes,
    }  # fmt: skip


def posts(*found: Any) -> Page:
    return answer({"messages": [{"status": "ok"}], "collection": list(found)})


def page_of(url: str, **more: Any) -> WorkArtifact:
    return WorkArtifact("url:x", landing_urls=(url,), **more)


@pytest.mark.parametrize(
    ("work", "asked"),
    [
        (WORK, [f"biorxiv/{DOI}", f"medrxiv/{DOI}"]),
        (named("10.1101/339747"), ["biorxiv/10.1101/339747", "medrxiv/10.1101/339747"]),
        (named("10.1101/2020.01.02.20123456"),
         ["medrxiv/10.1101/2020.01.02.20123456", "biorxiv/10.1101/2020.01.02.20123456"]),
        (named("10.64898/2025.12.01.123456"),
         ["biorxiv/10.64898/2025.12.01.123456", "medrxiv/10.64898/2025.12.01.123456"]),
        (page_of(f"https://www.biorxiv.org/content/{DOI}v2.full.pdf+html"), [f"biorxiv/{DOI}", f"medrxiv/{DOI}"]),
        (page_of(f"https://www.medrxiv.org/content/{DOI}v1"), [f"medrxiv/{DOI}", f"biorxiv/{DOI}"]),
        (page_of("https://www.biorxiv.org/content/early/2018/06/05/339747.full.pdf"),
         ["biorxiv/10.1101/339747", "medrxiv/10.1101/339747"]),
        (named("10.1101/gr.123456.108"), None),
        (named("10.1101/gad.1234567"), None),
        (named("10.1234/339747"), None),
        (page_of("https://www.biorxiv.org/collection/ecology"), None),
    ],
)  # fmt: skip
def test_it_takes_preprints_and_leaves_the_journals_of_the_same_prefix(
    work: WorkArtifact, asked: list[str] | None
) -> None:
    source = BiorxivResolver(settings=ResolverSettings())
    assert source.applies_to(work) == (None if asked else "not_mine")
    if asked is None:
        assert resolve(source, work)[0].notes == ("not_mine",)
    else:
        result, urls = resolve(source, work, answer(NOTHING), answer(NOTHING))
        assert urls == [f"https://api.biorxiv.org/details/{each}/na/json" for each in asked]
        assert result.notes == ("not_in_index",)


def test_the_newest_version_is_proposed_as_pdf_and_as_xml() -> None:
    result, urls = resolve(
        BiorxivResolver(settings=ResolverSettings()), WORK, posts(post("2"), post("10"), post("1"), post("x"), 7)
    )
    assert len(urls) == 1, "the other server is not asked once one has answered"
    pdf, xml = result.plans
    assert pdf.url == f"https://www.biorxiv.org/content/{DOI}v10.full.pdf"
    assert (pdf.version, pdf.license, pdf.host_type) == ("submittedVersion", "cc_by_nc", "repository")
    assert (pdf.evidence, pdf.page_doi, pdf.is_guess) == ("version", DOI, False)
    assert (xml.expected_mime, xml.evidence) == ("application/xml", "jatsxml")
    assert xml.url.endswith(".v10.xml")
    assert result.work is not None
    assert (result.work.title, result.work.publication_year) == ("Slow rivers and quick deltas", 2020)
    assert result.work.is_retracted is None


def test_the_file_lies_on_the_server_that_has_the_preprint() -> None:
    result = ask("biorxiv", WORK, answer(NOTHING), posts(post(server=None, jatsxml=None)))
    assert [plan.url for plan in result.plans] == [f"https://www.medrxiv.org/content/{DOI}v1.full.pdf"]
    [plan] = ask("biorxiv", WORK, posts(post(server="medrxiv", jatsxml="NA"))).plans
    assert plan.url.startswith("https://www.medrxiv.org/")


def test_a_withdrawn_preprint_is_flagged_and_its_last_full_version_proposed() -> None:
    result = ask("biorxiv", WORK, posts(post("1"), post("2"), post("3", type="WITHDRAWN")))
    assert "v2.full.pdf" in result.plans[0].url
    assert result.work is not None
    assert result.work.is_retracted is True
    only = ask("biorxiv", WORK, posts(post("1", type="withdrawn")))
    assert "v1.full.pdf" in only.plans[0].url


def test_a_published_paper_may_be_had_as_its_preprint() -> None:
    work = page_of(f"https://www.biorxiv.org/content/{DOI}v1", doi="10.1234/abc")
    result = ask("biorxiv", work, posts(post(published="10.1234/ABC", type="withdrawn")))
    assert result.plans[0].version == "submittedVersion"
    assert result.work is not None
    assert (result.work.doi, result.work.is_retracted) == ("10.1234/abc", None)
    assert first_words(ask("biorxiv", work, posts(post(published="10.1234/other"))).notes) == ["wrong-article"]
    assert len(ask("biorxiv", work, posts(post())).plans) == 2, "nobody said what became of it"


@pytest.mark.parametrize(
    ("pages", "note"),
    [
        ([answer(b"", 404), answer(b"", 404)], "not_in_index"),
        ([answer(b"", 403)], "refused"),
        ([answer(b"", 400)], "http-status"),
        ([answer(b"nonsense")], "malformed_answer"),
        ([answer([])], "malformed_answer"),
        ([answer({"collection": 7}), answer({})], "not_in_index"),
        ([posts(post(None), post(True)), answer(NOTHING)], "not_in_index"),
        ([posts(post(doi="10.1101/999999"))], "wrong-article"),
    ],
)
def test_every_other_answer_is_a_note(pages: list[Page], note: str) -> None:
    result = ask("biorxiv", WORK, *pages)
    assert (result.plans, first_words(result.notes)) == ((), [note])


def test_a_version_in_the_doi_is_the_version_asked_for() -> None:
    source = BiorxivResolver(settings=ResolverSettings())
    result, asked = resolve(source, named(f"{DOI}v1"), posts(post("1"), post("2")))
    assert asked == [f"https://api.biorxiv.org/details/biorxiv/{DOI}/na/json"]
    pdf, _ = result.plans
    assert (pdf.url, pdf.page_doi) == (f"https://www.biorxiv.org/content/{DOI}v1.full.pdf", DOI)


def test_a_version_that_does_not_exist_is_not_replaced_by_another() -> None:
    result = ask("biorxiv", named(f"{DOI}v3"), posts(post("1"), post("2")))
    assert (result.plans, result.notes) == ((), ("no_open_copy: there is no version 3",))


def test_a_versioned_doi_of_a_withdrawn_preprint_is_known_to_be_withdrawn() -> None:
    result = ask("biorxiv", named(f"{DOI}v1"), posts(post("1"), post("2", type="WITHDRAWN")))
    assert result.work is not None
    assert result.work.is_retracted is True
