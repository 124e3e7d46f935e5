"""What the sources of repositories have in common: whatever comes, they give notes, and they share no trouble."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.contentdownload.scripted import SETTINGS, answer, like, named, resolve
from tests.examples import examples

from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.deposits import (
    about_another,
    digest_of,
    named_page,
    number_of,
    read_records,
    size_of,
    texts_of,
)
from DocsToKG.ContentDownload.resolvers.zenodo import PAGE

FILE = {"key": "a.pdf", "name": "a.pdf", "size": 5, "checksum": "md5:" + "a" * 32, "links": {"self": "https://z.example"},
        "id": 5, "computed_md5": "a" * 32, "download_url": "https://z.example/5", "mimetype": "application/pdf",
        "sha256": "a" * 64, "urls": [{"rel": "webarchive", "url": "https://web.archive.org/web/2016/http://z.example/a"}],
        "rel": "fulltext", "href": "https://z.example/5"}  # fmt: skip
RELATED = {"relationType": "IsVersionOf", "relatedIdentifier": "2104.12255", "relatedIdentifierType": "arXiv",
           "relation": "isIdenticalTo", "identifier": "10.1/x"}  # fmt: skip
EXAMPLES: dict[str, tuple[WorkArtifact, Any]] = {
    "zenodo": (named("10.5281/zenodo.7"), {
        "id": 7, "conceptrecid": "6", "doi": "10.5281/zenodo.7", "files": [FILE],
        "metadata": {"title": "A title", "access_right": "open", "license": {"id": "cc"}, "publication_date": "2020",
                     "related_identifiers": [RELATED], "resource_type": {"type": "publication", "subtype": "x"}}}),
    "figshare": (named("10.6084/m9.figshare.7.v1"), {
        "id": 7, "version": 1, "doi": "10.6084/m9.figshare.7.v1", "files": [FILE], "license": {"url": "u", "name": "n"},
        "title": "A title", "defined_type_name": "preprint", "is_embargoed": True, "published_date": "2020-01-01"}),
    "hal": (WorkArtifact("x", landing_urls=("https://hal.science/hal-01234567",)), {
        "response": {"docs": [{"halId_s": "hal-01234567", "fileMain_s": "https://hal.science/x", "title_s": ["A title"],
                               "files_s": ["https://hal.science/a.pdf"], "submitType_s": "file", "docType_s": "ART",
                               "doiId_s": "10.1/x", "producedDateY_i": 2020, "arxivId_s": "2104.12255",
                               "pubmedId_s": "7", "pubmedcentralId_s": "PMC7", "uri_s": "https://hal.science/x"}]}}),
    "osti": (named("10.2172/7"), [
        {"osti_id": "7", "doi": "10.2172/7", "links": [FILE], "product_type": "Report", "title": "A title",
         "article_type": "Accepted", "publication_date": "2020"}]),
    "biorxiv": (named("10.1101/123456"), {
        "collection": [{"doi": "10.1101/123456", "version": "1", "server": "biorxiv", "jatsxml": "https://x.example",
                        "type": "new", "published": "10.1/x", "title": "A title", "date": "2020", "license": "cc"}]}),
    "fatcat": (named("10.1/x"), {
        "ext_ids": {"doi": "10.1/x", "arxiv": "2104.12255v1", "pmid": "7", "pmcid": "PMC7"}, "files": [FILE],
        "title": "A title", "release_stage": "published", "withdrawn_status": "retracted", "release_year": 2020}),
    "datacite": (named("10.3929/x"), {
        "data": {"attributes": {"doi": "10.3929/x", "url": "https://osf.io/abcde", "contentUrl": ["https://x.example/a"],
                                "types": {"resourceTypeGeneral": "Text"}, "formats": ["application/pdf"],
                                "titles": [{"title": "A title"}], "relatedIdentifiers": [RELATED],
                                "rightsList": [{"rights": "x", "rightsUri": "y"}], "publicationYear": 2020}}}),
}  # fmt: skip


def outcome(name: str, body: Any, status: int = 200) -> ResolverResult | None:
    work, _ = EXAMPLES[name]
    source = registry.build([name], settings={name: SETTINGS})[name]
    page = answer(body, status)
    try:
        return resolve(source, work, page, page)[0]
    except (TransientFailure, CandidateRejected):
        return None


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_each_source_is_a_good_answer(name: str) -> None:
    """Otherwise the next test would try rubbish alone."""
    result = outcome(name, EXAMPLES[name][1])
    assert result is not None
    assert result.plans
    assert {plan.resolver_name for plan in result.plans} == {name}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
@examples(40, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_answer_is_an_accident(name: str, data: st.DataObject) -> None:
    """Any JSON with any status gives plans, a note or one of the two known errors."""
    body = data.draw(like(EXAMPLES[name][1]))
    status = data.draw(st.sampled_from([200, 200, 200, 200, 204, 302, 400, 401, 404, 410, 429, 500]))
    result = outcome(name, body, status)
    if result is not None:
        assert result.plans or result.notes
        assert all(plan.url.startswith(("http://", "https://")) for plan in result.plans)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_paper_of_a_journal_costs_nothing_but_the_look_ups_by_doi(name: str) -> None:
    source = registry.build([name], settings={name: SETTINGS})[name]
    work = WorkArtifact("doi:10.1016/j.abc", doi="10.1016/j.abc", landing_urls=("https://www.example.org/article/7",))
    assert source.applies_to(work) == (None if name in ("fatcat", "hal", "osti") else "not_mine")


@pytest.mark.parametrize("name", EXAMPLES)
def test_another_address_of_the_service_is_used(name: str) -> None:
    own = type(SETTINGS)(base_url="https://mirror.example.org/api/")
    source = registry.build([name], settings={name: own})[name]
    _, urls = resolve(source, EXAMPLES[name][0], answer(b"", 400))
    assert urls[0].startswith("https://mirror.example.org/api/")


def test_links_that_lead_nowhere_name_no_page() -> None:
    urls = ("https://[", "x" * 5000, "ftp://zenodo.org/records/1", "", "https://zenodo.org/records/9")
    found = named_page(WorkArtifact("x", landing_urls=urls), PAGE)
    assert found is not None
    assert found["id"] == "9"


def test_small_fields_are_read_or_left() -> None:
    values = {"a": 7, "b": "8", "c": True, "d": -1, "e": 1 << 60, "f": "x", "g": ["t", 7, " "], "h": None}
    assert [number_of(values, name) for name in "abcdf"] == ["7", "8", None, None, None]
    assert [size_of(values, name) for name in "abcde"] == [7, None, None, None, None]
    assert [texts_of(values, name) for name in "fgah"] == [["x"], ["t"], [], []]
    assert digest_of("md5", "MD5:" + "A" * 32) == "md5:" + "a" * 32
    assert [digest_of("md5", value) for value in ("a" * 31, "sha1:" + "a" * 32, None, 7)] == [None] * 4
    assert read_records(answer([{"a": 1}, 7])) == [{"a": 1}]
    assert [read_records(answer(body)) for body in (b"7", b"{", b"")] == [None] * 3


LONG = "Slow rivers and quick deltas of Asia"


@pytest.mark.parametrize(
    ("doi", "title", "dois", "said", "is_another"),
    [
        (None, None, ["10.1/x"], None, False),
        ("10.1/x", None, [None, "junk"], None, False),
        ("10.1/x", None, ["10.9/y", "doi:10.1/X"], None, False),
        ("10.1/x", None, ["10.9/y"], None, False),
        ("10.1/x", None, ["10.2/y"], None, True),
        ("10.1/x", LONG, ["10.2/y"], "slow rivers & quick deltas", False),
        ("10.1/x", LONG, ["10.9/y"], "A treatise about mountain glaciers", True),
        ("10.1/x", LONG, ["10.9/y"], "Erratum", False),
        ("10.9/x", LONG, ["10.9/y"], LONG, True),
        ("10.9/x.v1", None, ["10.9/x"], None, False),
        ("10.9/x.v1", None, ["10.9/x.v2"], None, True),
    ],
)
def test_two_dois_are_two_papers_unless_one_is_the_repositorys(
    doi: str | None, title: str | None, dois: list[str | None], said: str | None, is_another: bool
) -> None:
    note = about_another(WorkArtifact("x", doi=doi, title=title), dois=dois, title=said, own=("10.9/",))
    assert (note is not None) == is_another
    assert note is None or note.startswith("wrong-article: ")
