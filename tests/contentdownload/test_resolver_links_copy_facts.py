"""What an index says of a copy stays with that copy, whoever finds the file, and passes to no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contentdownload.scripted import answer, ask, drive, named
from tests.examples import examples

from DocsToKG.ContentDownload.api.ports import Call, Page, Resolver
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.links.copy_facts import (
    CopyFacts,
    copies_metadata,
    facts_at,
    is_refused,
    refusals_metadata,
    with_facts,
)

WORK = named("10.1234/abc")
EPRINT = "https://eprints.example.edu/77"
ACCEPTED = CopyFacts("acceptedVersion", None, "repository")
HTML = {"content-type": "text/html"}
HEADER = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]


class Web:
    """Pages by address."""

    def __init__(self, pages: dict[str, Page | Exception]) -> None:
        self.pages = pages

    async def fetch(self, url, role, call, *, headers=None):  # type: ignore[no-untyped-def]
        found = self.pages[url]
        if isinstance(found, Exception):
            raise found
        return found


def visit(source: str, work: WorkArtifact, pages: dict[str, Page | Exception]) -> ResolverResult:
    built: Resolver = registry.build([source], settings={source: ResolverSettings()})[source]
    result: ResolverResult = drive(built.resolve(work, Web(pages), Call(work_id=work.work_id)))  # type: ignore[arg-type]
    return result


def article(url: str, pdf: str) -> Page:
    tags = '<meta name="citation_doi" content="10.1234/abc"><meta name="citation_title" content="T">'
    body = f'<html><head>{tags}<meta name="citation_pdf_url" content="{pdf}"></head></html>'
    return Page(url, 200, HTML, body.encode(), ())


def unpaywall(*locations: dict[str, Any], **fields: Any) -> ResolverResult:
    return ask("unpaywall", WORK, answer({"doi": "10.1234/abc", "oa_locations": list(locations), **fields}))


def taught(result: ResolverResult, work: WorkArtifact = WORK) -> WorkArtifact:
    assert result.work is not None
    return work.learn(result.work)


def said(*plans: DownloadPlan) -> list[tuple[str | None, str | None, str | None]]:
    return [(plan.version, plan.license, plan.host_type) for plan in plans]


def test_a_file_found_on_a_page_has_the_version_and_licence_of_the_copy_that_named_the_page() -> None:
    named_page = {"url_for_landing_page": EPRINT, "version": "acceptedVersion", "host_type": "repository"}
    for location in (named_page, {**named_page, "license": "cc-by"}):
        work = taught(unpaywall(location))
        result = visit("landing", work, {EPRINT: article(EPRINT, "/77/1/a.pdf")})
        assert said(*result.plans) == [("acceptedVersion", location.get("license"), "repository")]


def test_the_licence_of_one_copy_does_not_pass_to_another() -> None:
    gold = {"url_for_pdf": "https://p.example.org/a.pdf", "version": "publishedVersion", "license": "cc-by"}
    green = {"url_for_landing_page": EPRINT, "version": "acceptedVersion", "license": None, "host_type": "repository"}
    work = taught(unpaywall(gold, green))
    assert work.license == "cc-by"
    result = visit("landing", work, {EPRINT: article(EPRINT, "/77/1/a.pdf")})
    assert said(*result.plans) == [("acceptedVersion", None, "repository")]
    assert [
        plan.license for plan in visit("landing", replace(WORK, license="cc-by", pdf_urls=(EPRINT,)), {}).plans
    ] == [None]


@pytest.mark.parametrize(
    "spelling", ["https://doi.org/10.1234/ABC", "http://dx.doi.org/10.1234/abc", "https://p.example.org/x"]
)
def test_the_page_a_doi_leads_to_is_the_copy_that_an_index_names_by_doi_or_by_page(spelling: str) -> None:
    place = {"url": spelling, "version": "publishedVersion", "license": "cc-by", "host_type": "publisher"}
    work = taught(unpaywall(place))
    page = article("https://p.example.org/x", "/x.pdf")
    result = visit("doi_redirect", work, {"https://doi.org/10.1234/abc": page})
    assert said(*result.plans) == [("publishedVersion", "cc-by", "publisher")]
    untold = visit("doi_redirect", WORK, {"https://doi.org/10.1234/abc": page})
    assert said(*untold.plans) == [(None, None, "publisher")]


def test_an_archived_copy_is_the_copy_that_vanished() -> None:
    gone = "https://eprints.example.edu/77/1/a.pdf"
    work = taught(unpaywall({"url_for_landing_page": EPRINT, "version": "acceptedVersion"}))
    work = taught(visit("landing", work, {EPRINT: article(EPRINT, gone)}), work)
    rows = [HEADER, ["k", "20190102030405", gone, "application/pdf", "200", "D", "9"]]
    result = ask("wayback", replace(work, pdf_urls=(gone,), license="cc-by"), answer(rows))
    assert said(*result.plans) == [("acceptedVersion", None, None)]


def test_openalex_tells_of_pages_and_files() -> None:
    place = {"is_oa": True, "landing_page_url": EPRINT, "version": "acceptedVersion", "license": None,
             "source": {"type": "repository"}}  # fmt: skip
    record = {"id": "https://openalex.org/W1", "doi": "https://doi.org/10.1234/abc", "locations": [place]}
    work = taught(ask("openalex", WORK, answer(record)))
    assert facts_at(work, EPRINT) == ACCEPTED


@pytest.mark.parametrize("field", ["best_oa_location", "first_oa_location"])
def test_a_location_that_unpaywall_names_nowhere_else_counts(field: str) -> None:
    place = {"url_for_pdf": "https://p.example.org/a.pdf", "version": "publishedVersion"}
    alone = ask("unpaywall", WORK, answer({"doi": "10.1234/abc", "oa_locations": None, field: place}))
    assert [plan.url for plan in alone.plans] == ["https://p.example.org/a.pdf"]
    assert len(unpaywall(place, **{field: {**place, "is_best": True}}).plans) == 1


@pytest.mark.parametrize(("url", "is_file"), [("https://p.example.org/a.pdf", True), (EPRINT, False)])
def test_the_address_by_which_openalex_calls_a_work_open_is_a_copy(url: str, is_file: bool) -> None:
    access = {"is_oa": True, "oa_status": "green", "oa_url": url}
    record = {"id": "https://openalex.org/W1", "doi": "https://doi.org/10.1234/abc", "best_oa_location": None,
              "locations": [], "open_access": access}  # fmt: skip
    result = ask("openalex", WORK, answer(record))
    assert [plan.url for plan in result.plans] == ([url] if is_file else [])
    assert said(*result.plans) == ([(None, None, None)] if is_file else [])
    assert url in taught(result).landing_urls


@pytest.mark.parametrize("source", ["unpaywall", "openalex", "crossref"])
def test_one_index_proposes_no_more_copies_than_leave_the_others_a_turn(source: str) -> None:
    urls = [f"https://bad{number}.example.org/x.pdf" for number in range(100)]
    record = {
        "doi": "10.1234/abc",
        "oa_locations": [{"url_for_pdf": url} for url in urls],
        "locations": [{"is_oa": True, "pdf_url": url} for url in urls],
        "message": {"DOI": "10.1234/abc", "link": [{"URL": url, "content-type": "application/pdf"} for url in urls]},
    }
    result = ask(source, WORK, answer(record))
    assert len(result.plans) == 8
    assert result.work is not None
    assert len(result.work.pdf_urls) <= 8


@pytest.mark.parametrize(
    "refusal", [CandidateRejected(Reason.ROBOTS, url=EPRINT), Page(EPRINT, 451, HTML, b"<html></html>", ())]
)
def test_what_its_owner_refused_is_not_looked_up_in_an_archive(refusal: Page | Exception) -> None:
    other = "https://gone.example.org/77"
    work = replace(WORK, landing_urls=(EPRINT, other))
    work = taught(visit("landing", work, {EPRINT: refusal, other: Page(other, 404, HTML, b"", ())}), work)
    assert is_refused(work, EPRINT)
    assert not is_refused(work, other)
    wayback = registry.build(["wayback"], settings={})["wayback"]
    assert wayback.applies_to(work) is None
    assert wayback.applies_to(replace(work, landing_urls=(EPRINT,))) == "no_known_address"
    assert wayback.applies_to(replace(work, pdf_urls=(EPRINT,))) == "no_known_address"


def test_the_first_word_holds_and_a_gap_alone_is_filled() -> None:
    told = copies_metadata(
        "x", [(EPRINT, ACCEPTED), (EPRINT + "#top", CopyFacts("submittedVersion")), (None, ACCEPTED)]
    )
    work = WorkArtifact("x", metadata=told)
    assert facts_at(work, "http://eprints.example.edu/77") == ACCEPTED
    assert facts_at(work, "https://eprints.example.edu/78", EPRINT) == ACCEPTED
    plan = DownloadPlan(EPRINT, "x", version="publishedVersion", license="cc0")
    assert said(with_facts(plan, ACCEPTED)) == [("publishedVersion", "cc0", "repository")]


def test_two_sources_that_speak_of_other_copies_are_both_heard() -> None:
    first = WorkArtifact("x", metadata=copies_metadata("a", [(EPRINT, ACCEPTED)]))
    second = WorkArtifact("x", metadata=copies_metadata("b", [(EPRINT + "/2", CopyFacts("submittedVersion"))]))
    work = first.learn(second)
    assert [facts_at(work, EPRINT).version, facts_at(work, EPRINT + "/2").version] == [
        "acceptedVersion",
        "submittedVersion",
    ]


def test_an_address_with_a_key_in_it_is_not_kept() -> None:
    secret = "https://a.example.org/x?token=sesame"
    assert copies_metadata("x", [(secret, ACCEPTED)]) == {}
    assert refusals_metadata("x", [secret]) == {}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=6,
)


@pytest.mark.slow
@examples(100)
@given(told=json_values, address=st.sampled_from([EPRINT, "https://[", "javascript:x", "", "https://doi.org/"]))
def test_metadata_of_any_shape_are_read(told: Any, address: str) -> None:
    work = WorkArtifact(
        "x", metadata={"copies:x": told, "refused:x": told, "copies:": {"eprints.example.edu/77": told}}
    )
    facts = facts_at(work, address)
    assert all(value is None or isinstance(value, str) for value in (facts.version, facts.license, facts.host_type))
    assert isinstance(is_refused(work, address), bool)
