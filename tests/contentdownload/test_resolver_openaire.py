"""OpenAIRE: one record for all forms of a paper, most of whose links are pages."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contentdownload.scripted import SETTINGS, answer, ask, named, resolve

from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.links.copy_facts import CopyFacts, facts_at
from DocsToKG.ContentDownload.resolvers.openaire import OpenAireResolver

WORK = named("10.1234/abc")


def instance(*urls: Any, right: Any = "OPEN", house: str = "opendoar____::1", **fields: Any) -> dict[str, Any]:
    access = {"code": "c_abf2", "label": right, "openAccessRoute": None}
    return {"urls": list(urls), "accessRight": access, "hostedBy": {"key": house, "value": "R"}, "type": "Article",
            "license": "CC BY", **fields}  # fmt: skip


def record(*instances: Any, doi: Any = "10.1234/ABC", **fields: Any) -> dict[str, Any]:
    return {
        "mainTitle": "T",
        "publicationDate": "2020-06-01",
        "openAccessColor": None,
        "isGreen": False,
        "pids": [
            {"scheme": "doi", "value": doi},
            {"scheme": "pmid", "value": "99"},
            {"scheme": "pmc", "value": "PMC77"},
        ],
        "instances": list(instances),
        **fields,
    }


def read(*results: Any) -> ResolverResult:
    return ask("openaire", WORK, answer({"header": {"numFound": len(results)}, "results": list(results)}))


def test_it_asks_by_doi() -> None:
    work = named("10.1234/a(1)<b>")
    _, asked = resolve(OpenAireResolver(settings=SETTINGS), work, answer({"results": []}))
    assert asked == ["https://api.openaire.eu/graph/v3/research-products?pid=10.1234/a%281%29%3Cb%3E"]
    assert ask("openaire", named("PMC7")).notes == ("no_doi",)


def test_files_are_plans_and_the_rest_are_pages() -> None:
    result = read(
        record(
            instance("https://doi.org/10.1234/abc", "https://p.example.org/a", house="issn___print::1"),
            instance("https://r.example.org/a.pdf", "https://r.example.org/get?id=08&amp;app=P"),
            instance("https://p.example.org/pdf/1", house="issn___print::1", license="CC BY NC"),
            instance("https://pre.example.org/p.pdf", type="Preprint", house="openaire____::5"),
            openAccessColor="hybrid",
        )
    )
    assert [(plan.url, plan.host_type, plan.version, plan.license) for plan in result.plans] == [
        ("https://pre.example.org/p.pdf", None, "submittedVersion", "CC BY"),
        ("https://r.example.org/a.pdf", "repository", None, "CC BY"),
        ("https://p.example.org/pdf/1", "publisher", None, "CC BY NC"),
    ]
    assert {plan.evidence for plan in result.plans} == {"instance_url"}
    assert result.work is not None
    assert result.work == WorkArtifact(
        WORK.work_id, title="T", publication_year=2020, doi="10.1234/abc", pmid="99", pmcid="PMC77", license="CC BY",
        oa_status="hybrid", landing_urls=("https://p.example.org/a", "https://r.example.org/get?id=08&app=P"),
        metadata=result.work.metadata,
    )  # fmt: skip
    assert facts_at(result.work, "https://p.example.org/a") == CopyFacts(None, "CC BY", "publisher")
    assert facts_at(result.work, "https://pre.example.org/p.pdf") == CopyFacts("submittedVersion", "CC BY", None)


@pytest.mark.parametrize("right", ["CLOSED", "RESTRICTED", "EMBARGO", "Closed Access", "embargo until 2030"])
def test_a_copy_that_is_not_open_is_left_alone(right: str) -> None:
    result = read(record(instance("https://r.example.org/a.pdf", "https://r.example.org/a", right=right)))
    said = "embargo" if right.lower().startswith("embargo") else "no_open_copy"
    assert (result.plans, result.notes) == ((), (said,))
    assert result.work is not None
    assert result.work.landing_urls == ()


@pytest.mark.parametrize("right", ["OPEN", "Open Access", "UNKNOWN", None, 7])
def test_a_copy_that_is_open_or_says_nothing_is_used(right: Any) -> None:
    assert len(read(record(instance("https://r.example.org/a.pdf", right=right))).plans) == 1


def test_the_preprint_is_known_by_its_id_or_its_address() -> None:
    by_address = read(record(instance("http://arxiv.org/abs/2104.12255")))
    by_id = read(record(instance(pids=[{"scheme": "arXiv", "value": "arXiv:2104.12255v1"}])))
    for result in (by_address, by_id):
        assert [plan.url for plan in result.plans] == ["https://export.arxiv.org/pdf/2104.12255"]
        assert result.plans[0].host_type == "repository"
        assert result.work is not None
        assert result.work.arxiv_id == "2104.12255"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"openAccessColor": "gold", "isGreen": True}, "gold"),
        ({"isGreen": True}, "green"),
        ({"isGreen": "true", "openAccessColor": "mauve"}, None),
        ({}, None),
    ],
)
def test_the_colour_is_the_status(fields: dict[str, Any], status: str | None) -> None:
    work = read(record(**fields)).work
    assert work is not None
    assert work.oa_status == status


def test_the_doi_may_stand_with_one_of_the_copies() -> None:
    merged = record(
        instance("https://r.example.org/a.pdf", alternateIdentifiers=[{"scheme": "doi", "value": "10.1234/abc"}]),
        doi="10.1234/preprint",
    )
    other = record(instance("https://r.example.org/other.pdf"), doi="10.1234/other")
    assert [plan.url for plan in read(other, merged).plans] == ["https://r.example.org/a.pdf"]


def test_a_refusal_names_the_pace_to_lower() -> None:
    [note] = ask("openaire", WORK, answer(b"", 403)).notes
    assert note.startswith("refused: OpenAIRE answered 403")
    assert "resolvers.openaire.rate_limit" in note
