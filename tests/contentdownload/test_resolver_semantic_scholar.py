"""Semantic Scholar: papers by four kinds of identifier, and the one link it offers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.contentdownload.scripted import SETTINGS, answer, ask, first_words, named, resolve
from tests.needs import recorded

from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.semantic_scholar import SemanticScholarResolver

WORK = named("10.1234/abc")
NAME = "semantic_scholar"


def read(url: str | None = None, *, work: WorkArtifact = WORK, **fields: Any) -> ResolverResult:
    offered = None if url is None else {"url": url, "status": "GREEN", "license": "CCBY", "disclaimer": "Notice"}
    return ask(NAME, work, answer({"paperId": "x", "openAccessPdf": offered, **fields}))


@pytest.mark.parametrize(
    ("work", "paper"),
    [
        (named("10.1234/a(1)<b>"), "DOI:10.1234/a%281%29%3Cb%3E"),
        (named("arXiv:2104.12255v3"), "ARXIV:2104.12255"),
        (named("hep-th/9901001"), "ARXIV:hep-th/9901001"),
        (named("pmid:7"), "PMID:7"),
        (named("PMC77"), "PMCID:77"),
    ],
)
def test_it_asks_by_the_strongest_identifier(work: WorkArtifact, paper: str) -> None:
    source = SemanticScholarResolver(settings=SETTINGS)
    assert source.applies_to(work) is None
    _, asked = resolve(source, work, answer(b"", 404))
    fields = "externalIds,openAccessPdf,isOpenAccess,title,year,authors"
    assert asked == [f"https://api.semanticscholar.org/graph/v1/paper/{paper}?fields={fields}"]


def test_a_bare_address_is_not_asked_for() -> None:
    work = named("https://example.org/a")
    assert SemanticScholarResolver(settings=SETTINGS).applies_to(work) == "no_doi"
    assert ask(NAME, work).notes == ("no_doi",)


@pytest.mark.parametrize(
    ("url", "plans", "pages"),
    [
        ("https://r.example.org/a.pdf", ["https://r.example.org/a.pdf"], ()),
        ("http://arxiv.org/abs/2104.12255", ["https://export.arxiv.org/pdf/2104.12255"], ()),
        ("https://r.example.org/objects/uuid:5/files/m0", ["https://r.example.org/objects/uuid:5/files/m0"],
         ("https://r.example.org/objects/uuid:5/files/m0",)),
        ("https://r.example.org/paper.html", [], ("https://r.example.org/paper.html",)),
        ("https://doi.org/10.1234/ABC", [], ()),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/77", [], ()),
        ("", [], ()),
        ("javascript:x", [], ()),
    ],
)  # fmt: skip
def test_a_link_is_tried_unless_it_is_plainly_a_page(url: str, plans: list[str], pages: tuple[str, ...]) -> None:
    result = read(url)
    assert [plan.url for plan in result.plans] == plans
    assert result.work is not None
    assert result.work.landing_urls == pages
    assert result.notes == (() if plans else ("no_oa_pdf",))


def test_a_plan_says_what_the_service_says_about_the_copy() -> None:
    [plan] = read("https://r.example.org/a.pdf").plans
    assert (plan.resolver_name, plan.evidence, plan.license) == (NAME, "openAccessPdf", "CCBY")
    assert (plan.host_type, plan.version) == ("repository", None)
    [preprint] = read("https://arxiv.org/pdf/2104.12255").plans
    assert (preprint.host_type, preprint.version) == ("repository", "submittedVersion")


def test_other_names_are_learnt_and_the_preprint_is_a_plan_of_its_own() -> None:
    ids = {"DOI": "10.1234/ABC", "ArXiv": "2104.12255", "PubMed": "99", "PubMedCentral": 77, "CorpusId": 5}
    result = read("https://r.example.org/a.pdf", externalIds=ids, title="T", year=2019)
    assert result.work == WorkArtifact(
        WORK.work_id, title="T", publication_year=2019, doi="10.1234/abc", arxiv_id="2104.12255", pmid="99",
        pmcid="PMC77", license="CCBY", oa_status="green",
    )  # fmt: skip
    assert [(plan.url, plan.evidence) for plan in result.plans] == [
        ("https://r.example.org/a.pdf", "openAccessPdf"),
        ("https://export.arxiv.org/pdf/2104.12255", "externalIds"),
    ]


def test_the_doi_of_a_preprint_is_its_arxiv_id() -> None:
    result = read(None, work=named("2104.12255"), externalIds={"DOI": "10.48550/arXiv.2104.12255"})
    assert result.work is not None
    assert (result.work.doi, result.work.arxiv_id) == (None, "2104.12255")


@pytest.mark.parametrize(
    ("work", "ids", "note"),
    [
        (WORK, {"DOI": "10.1234/other"}, "wrong-article"),
        (named("2104.12255"), {"ArXiv": "2104.12256"}, "wrong-article"),
        (named("pmid:7"), {"PubMed": "8"}, "wrong-article"),
        (WORK, {}, "no_open_copy"),
        (WORK, None, "no_open_copy"),
        (WORK, {"DOI": 7, "PubMed": True}, "no_open_copy"),
    ],
)
def test_an_answer_without_a_copy_is_a_note(work: WorkArtifact, ids: Any, note: str) -> None:
    result = read(None, work=work, externalIds=ids)
    assert (result.plans, first_words(result.notes)) == ((), [note])


def test_closed_says_nothing_when_a_link_stands_beside_it() -> None:
    offered = {"url": "http://arxiv.org/pdf/2301.10035", "status": "CLOSED"}
    result = ask(NAME, WORK, answer({"openAccessPdf": offered}))
    assert result.work is not None
    assert (len(result.plans), result.work.oa_status) == (1, None)


def test_recorded_papers_give_their_pdf() -> None:
    [exchange] = json.loads(recorded("semanticscholar", "batch-with-nulls-all-fields.json").read_text())
    papers = [paper for paper in json.loads(exchange["response"]["body_text"]) if paper]
    for paper in papers:
        result = ask(NAME, named(paper["externalIds"]["DOI"]), answer(paper))
        assert bool(result.plans) == bool(paper["openAccessPdf"])
        assert result.work is not None
        assert result.work.publication_year == paper["year"]
    assert len(papers) == 3


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("paper-and-author-404", "not_in_index"),
        ("paper-bad-field-400", "http-status"),
        ("batch-forbidden-403", "refused"),
        ("batch-authors", "malformed_answer"),
        ("paper-by-doi", "no_open_copy"),
    ],
)
def test_recorded_answers_without_a_copy_are_notes(name: str, note: str) -> None:
    response = json.loads(recorded("semanticscholar", f"{name}.json").read_text())[0]["response"]
    result = ask(NAME, WORK, answer(response["body_text"].encode(), response["status"]))
    assert (result.plans, first_words(result.notes)) == ((), [note])
