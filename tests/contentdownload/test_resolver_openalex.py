"""OpenAlex: the copies of its record in order, the files its pages stand for, and the copy it keeps itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.contentdownload.scripted import SETTINGS, answer, ask, first_words, named, resolve
from tests.needs import recorded

from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.net.policy import HostCredentials
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.idconv import IdConverter
from DocsToKG.ContentDownload.resolvers.openalex import OpenAlexResolver, work_of_record
from DocsToKG.ContentDownload.resolvers.record import Record

WORK = named("10.1234/abc")
KEYLESS = ResolverSettings()
CACHED = "https://content.openalex.org/works/W12.pdf"


def place(pdf: str | None = None, page: str | None = None, version: str | None = None, **more: Any) -> dict[str, Any]:
    return {"is_oa": True, "pdf_url": pdf, "landing_page_url": page, "version": version, **more}


def record(*places: dict[str, Any], **fields: Any) -> dict[str, Any]:
    best = places[0] if places else None
    return {"id": "https://openalex.org/W12", "doi": "https://doi.org/10.1234/ABC", "best_oa_location": best,
            "locations": list(places), **fields}  # fmt: skip


def read(*places: dict[str, Any], settings: ResolverSettings = KEYLESS, **fields: Any) -> ResolverResult:
    return ask("openalex", WORK, answer(record(*places, **fields)), settings=settings)


def test_the_published_version_goes_before_the_accepted_and_the_submitted_one() -> None:
    result = read(
        place("https://r.example.org/s.pdf", version="submittedVersion"),
        place("https://r.example.org/unknown.pdf"),
        place("https://p.example.org/p.pdf", version="publishedVersion", license="cc-by"),
        place("https://r.example.org/a.pdf", version="acceptedVersion", source={"type": "repository"}),
    )
    assert [plan.url.rpartition("/")[2] for plan in result.plans] == ["p.pdf", "a.pdf", "s.pdf", "unknown.pdf"]
    assert [plan.host_type for plan in result.plans][:2] == ["publisher", "repository"]


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("https://eprints.example.org/1/main.pdf", "https://eprints.example.org/1/main.pdf"),
        ("https://arxiv.org/abs/2104.12255", "https://export.arxiv.org/pdf/2104.12255"),
        ("https://osf.io/nkj46", "https://osf.io/nkj46/download"),
        ("https://doi.org/10.1234/abc", None),
        ("https://r.example.org/handle/1/2", None),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/77", None),
    ],
)
def test_a_page_whose_address_tells_its_file_is_a_plan(page: str, file: str | None) -> None:
    result = read(place(page=page))
    assert [(plan.url, plan.evidence) for plan in result.plans] == ([(file, "landing_page_url")] if file else [])
    assert result.notes == (() if file else ("no_oa_pdf",))


def test_the_cached_copy_is_the_last_plan_of_who_has_a_key() -> None:
    """Content costs a cent per file, so it comes after every free copy."""
    result = read(place("https://r.example.org/a.pdf"), has_content={"pdf": True}, settings=SETTINGS)
    assert [(plan.url, plan.evidence) for plan in result.plans] == [
        ("https://r.example.org/a.pdf", "pdf_url"),
        (CACHED, "has_content"),
    ]
    assert result.notes == ()


@pytest.mark.parametrize(
    ("settings", "has_content", "is_open", "notes"),
    [
        (SETTINGS, {"pdf": False, "grobid_xml": True}, True, ["no_oa_pdf"]),
        (SETTINGS, None, True, ["no_oa_pdf"]),
        (SETTINGS, {"pdf": "true"}, True, ["no_oa_pdf"]),
        (SETTINGS, {"pdf": True}, False, ["no_open_copy"]),
        (KEYLESS, {"pdf": True}, True, ["no_oa_pdf", "missing_key"]),
        (ResolverSettings(api_key=" "), {"pdf": True}, True, ["no_oa_pdf", "missing_key"]),
    ],
)
def test_a_cached_copy_needs_a_key_an_open_work_and_the_copy(
    settings: ResolverSettings, has_content: Any, is_open: bool, notes: list[str]
) -> None:
    places = [place(page="https://doi.org/10.1234/abc")] if is_open else []
    result = read(*places, has_content=has_content, settings=settings)
    assert (result.plans, first_words(result.notes)) == ((), notes)


def test_the_key_is_shown_to_the_hosts_of_openalex_and_stands_in_no_address() -> None:
    body = record(place(page="https://x.example.org"), has_content={"pdf": True})
    result, asked = resolve(OpenAlexResolver(settings=SETTINGS), WORK, answer(body))
    assert "sesame" not in repr((result, asked))
    assert "has_content" in asked[0]
    held = HostCredentials(headers={"Authorization": "Bearer sesame"})
    assert registry.credentials({"openalex": SETTINGS}) == {
        "api.openalex.org": held,
        "content.openalex.org": held,
    }


@pytest.mark.parametrize(("said", "known"), [(True, True), (False, False), (None, None), ("yes", None)])
def test_a_retraction_is_told_as_the_record_tells_it(said: Any, known: bool | None) -> None:
    work = read(is_retracted=said).work
    assert work is not None
    assert work.is_retracted is known


@pytest.mark.slow
def test_recorded_works_gain_files_from_their_pages_and_from_the_cache() -> None:
    """Of 240 open works 157 have a PDF link; none of the 60 closed ones is proposed."""
    found = {"works": 0, "linked": 0, "with_key": 0}
    for path in sorted(recorded("openalex").glob("works-*.json")):
        is_closed = path.name == "works-closed.json"
        for entry in json.loads(path.read_text())["records"]:
            work = work_of_record(Record(entry["work"]))
            assert work is not None
            free = ask("openalex", work, answer(entry["work"]), settings=KEYLESS).plans
            paid = ask("openalex", work, answer(entry["work"]), settings=SETTINGS).plans
            assert [plan.evidence for plan in paid[len(free) :]] in ([], ["has_content"])
            assert not (is_closed and paid)
            found["works"] += not is_closed
            found["linked"] += bool(free)
            found["with_key"] += bool(paid)
    assert found["works"] == 240
    assert found["linked"] >= 148
    assert found["with_key"] >= found["linked"]


def test_an_answer_about_another_pmid_teaches_nothing() -> None:
    """Never keep a file that is not the paper: a wrong record would name a wrong DOI, and that its file."""
    said = {"id": "https://openalex.org/W9", "doi": "https://doi.org/10.1/other", "ids": {"pmid": "999"}}
    result, _ = resolve(
        OpenAlexResolver(settings=ResolverSettings()), WorkArtifact("pmid:123", pmid="123"), answer(said)
    )
    assert result.work is None
    assert first_words(result.notes) == ["wrong-article"]


def test_a_paper_is_looked_up_once_under_all_its_names() -> None:
    """First which paper is meant, then its copies: one request."""
    source = OpenAlexResolver(settings=ResolverSettings())
    said = {"id": "https://openalex.org/W9", "doi": "https://doi.org/10.1/x", "ids": {"pmid": "123"}}
    work = WorkArtifact("pmid:123", pmid="123")
    first, asked = resolve(source, work, answer(said))
    assert len(asked) == 1
    assert first.work is not None
    again, asked = resolve(source, work.learn(first.work))
    assert (again, asked) == (first, [])


def test_the_converter_must_answer_about_the_id_it_was_asked_for() -> None:
    said = {"records": [{"pmcid": "PMC999", "pmid": "9", "doi": "10.1/other"}]}
    work = WorkArtifact("pmcid:PMC1234567", pmcid="PMC1234567")
    result, _ = resolve(IdConverter(settings=ResolverSettings()), work, answer(said))
    assert result.work is None
    assert first_words(result.notes) == ["wrong-article"]
