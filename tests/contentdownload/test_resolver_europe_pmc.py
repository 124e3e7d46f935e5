"""Europe PMC: what it is asked, which of its links become plans, and what it teaches about a work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.contentdownload.one_source import alone, answer, ask
from tests.needs import recorded

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi
from DocsToKG.Sandbox.profile import SandboxServer

REST = "https://www.ebi.ac.uk/europepmc/webservices/rest"
RENDER = "https://europepmc.org/articles/PMC7?pdf=render"
OTHER_RENDER = "https://europepmc.org/backend/ptpmcrender.fcgi?accid=PMC7&blobtype=pdf"
WORK = WorkArtifact("doi:10.1234/abc", doi="10.1234/abc", pmcid="PMC7")


def link(url: str, style: str = "pdf", code: str = "OA", site: str = "Europe_PMC") -> dict[str, str]:
    return {"availabilityCode": code, "documentStyle": style, "site": site, "url": url}


def record(*links: dict[str, str], **changes: Any) -> dict[str, Any]:
    found = {
        "id": "31",
        "source": "MED",
        "pmid": "31",
        "pmcid": "PMC7",
        "doi": "10.1234/ABC",
        "title": "A title.",
        "pubYear": "2019",
        "isOpenAccess": "Y",
        "inEPMC": "Y",
        "hasPDF": "Y",
        "license": "cc by",
        "authMan": "N",
        "pubTypeList": {"pubType": ["Journal Article"]},
        "fullTextIdList": {"fullTextId": ["PMC7"]},
        "fullTextUrlList": {"fullTextUrl": list(links)},
    }
    return {name: value for name, value in (found | changes).items() if value is not None}


def results(*records: Any) -> Page:
    return answer({"hitCount": len(records), "resultList": {"result": list(records)}})


def queries(asked: list[str]) -> list[str]:
    return [parse_qs(urlsplit(url).query)["query"][0] for url in asked]


def urls(result: ResolverResult) -> list[str]:
    return [plan.url for plan in result.plans]


def test_it_asks_by_doi_and_proposes_both_renders_and_then_the_xml() -> None:
    """RES-16."""
    links = (link("https://doi.org/10.1234/abc", "doi", "S", "DOI"), link(RENDER))
    result, asked = ask("europe_pmc", WORK, results(record(*links)))
    [url] = asked
    assert url.startswith(f"{REST}/search?")
    assert parse_qs(urlsplit(url).query) == {
        "query": ['DOI:"10.1234/abc"'],
        "resultType": ["core"],
        "format": ["json"],
        "pageSize": ["5"],
    }
    assert urls(result) == [RENDER, OTHER_RENDER, f"{REST}/PMC7/fullTextXML"]
    assert [plan.expected_mime for plan in result.plans] == ["application/pdf", "application/pdf", "application/xml"]
    assert {(plan.version, plan.license, plan.host_type) for plan in result.plans} == {
        ("publishedVersion", "cc by", "repository")
    }
    assert [plan.evidence for plan in result.plans] == ["full_text_url", "has_pdf", "full_text_xml"]
    assert result.work == WorkArtifact(
        "doi:10.1234/abc",
        title="A title.",
        publication_year=2019,
        doi="10.1234/abc",
        pmid="31",
        pmcid="PMC7",
        license="cc by",
    )


@pytest.mark.parametrize(
    ("work", "asked"),
    [
        (WORK, ['DOI:"10.1234/abc"', "PMCID:PMC7"]),
        (WorkArtifact("x", doi='10.1234/a"b\\c'), ['DOI:"10.1234/a\\"b\\\\c"']),
        (WorkArtifact("x", pmcid="7", pmid="31"), ["PMCID:PMC7", "EXT_ID:31 AND SRC:MED"]),
        (WorkArtifact("x", doi="10.1234/abc", pmcid="PMC7", pmid="31"), ['DOI:"10.1234/abc"', "PMCID:PMC7"]),
        (WorkArtifact("x", pmid="31"), ["EXT_ID:31 AND SRC:MED"]),
    ],
)
def test_an_identifier_it_does_not_know_gives_way_to_the_next(work: WorkArtifact, asked: list[str]) -> None:
    """Two questions at most."""
    result, urls_asked = ask("europe_pmc", work, *[results()] * len(asked))
    assert queries(urls_asked) == asked
    assert result.notes == ("not_in_index",)


def test_a_record_without_doi_is_known_by_its_other_ids() -> None:
    result, asked = ask("europe_pmc", WORK, results(), results(record(link(RENDER), doi=None)))
    assert len(asked) == 2
    assert urls(result)[0] == RENDER
    by_pmid = WorkArtifact("x", pmid="31")
    assert urls(ask("europe_pmc", by_pmid, results(record(link(RENDER), doi=None)))[0])[0] == RENDER


def test_nothing_is_asked_without_an_identifier_it_knows() -> None:
    source = registry.build(["europe_pmc"])["europe_pmc"]
    assert source.applies_to(WorkArtifact("x", arxiv_id="2104.12255", pmcid="nonsense")) == "no_doi"
    assert ask("europe_pmc", WorkArtifact("x"))[0].notes == ("no_doi",)


def test_only_open_pdf_links_count_and_its_own_go_first() -> None:
    links = (
        link("https://journal.example.org/a.pdf", site="Unpaywall", code="F"),
        link("https://journal.example.org/closed.pdf", code="S", site="Publisher"),
        link("https://journal.example.org/page", "html", "OA", "Unpaywall"),
        link("https://journal.example.org/paid", "html", "S", "Publisher"),
        link("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC7/pdf/a.pdf", site="PubMedCentral"),
        link("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC7/", "html", "OA", "PubMedCentral"),
        link("https://europepmc.org/articles/PMC7", "html"),
        link(RENDER),
        link("javascript:x"),
    )
    result, _ = ask("europe_pmc", WORK, results(record(*links)))
    assert urls(result)[:3] == [RENDER, OTHER_RENDER, "https://journal.example.org/a.pdf"]
    assert len(result.plans) == 4
    assert (result.plans[2].version, result.plans[2].host_type) == (None, None)
    assert result.work is not None
    assert result.work.landing_urls == ("https://journal.example.org/page",)


def test_an_article_it_holds_is_rendered_even_when_no_link_says_so() -> None:
    assert urls(ask("europe_pmc", WORK, results(record()))[0]) == [RENDER, OTHER_RENDER, f"{REST}/PMC7/fullTextXML"]
    closed = record(isOpenAccess="N")
    result, _ = ask("europe_pmc", WORK, results(closed))
    assert (result.plans, result.notes) == ((), ("no_open_copy",))
    free_to_read = record(link(RENDER, code="F"), isOpenAccess="N")
    assert urls(ask("europe_pmc", WORK, results(free_to_read))[0]) == [RENDER, OTHER_RENDER]


def test_xml_alone_is_proposed_with_a_word_about_the_missing_pdf() -> None:
    result, _ = ask("europe_pmc", WORK, results(record(hasPDF="N")))
    assert [plan.expected_mime for plan in result.plans] == ["application/xml"]
    assert result.notes == ("no_oa_pdf",)


def test_preprints_and_manuscripts_are_marked_as_such() -> None:
    preprint = record(
        link("https://www.biorxiv.org/content/1.full.pdf", site="bioRxiv"),
        source="PPR", pmid=None, pmcid=None, fullTextIdList={"fullTextId": ["PPR9"]},
    )  # fmt: skip
    result, _ = ask("europe_pmc", WorkArtifact("x", doi="10.1234/abc"), results(preprint))
    assert urls(result) == ["https://www.biorxiv.org/content/1.full.pdf", f"{REST}/PPR9/fullTextXML"]
    assert {(plan.version, plan.host_type) for plan in result.plans} == {("submittedVersion", "repository")}
    manuscript, _ = ask("europe_pmc", WORK, results(record(link(RENDER), authMan="Y")))
    assert {plan.version for plan in manuscript.plans} == {"acceptedVersion"}


def test_a_retraction_is_learned_and_its_absence_is_not_a_statement() -> None:
    retracted = record(pubTypeList={"pubType": ["Journal Article", "Retracted Publication"]})
    for found, said in ((retracted, True), (record(), None)):
        result, _ = ask("europe_pmc", WORK, results(found))
        assert result.work is not None
        assert result.work.is_retracted is said


def test_a_record_about_another_paper_gives_nothing() -> None:
    result, asked = ask("europe_pmc", WORK, results(record(link(RENDER), doi="10.1234/other")))
    assert (result.plans, result.notes) == ((), ("wrong-article: the answer is about 10.1234/other",))
    assert len(asked) == 1
    mixed, _ = ask("europe_pmc", WORK, results(record(doi="10.1234/other", pmcid="PMC8"), record(link(RENDER))))
    assert urls(mixed)[0] == RENDER
    assert not any("PMC8" in url for url in urls(mixed))


def test_another_address_of_the_service_can_be_set() -> None:
    own = ResolverSettings(base_url="https://mirror.example.org/rest/")
    result, asked = ask("europe_pmc", WORK, results(record()), settings=own)
    assert asked[0].startswith("https://mirror.example.org/rest/search?")
    assert urls(result)[-1] == "https://mirror.example.org/rest/PMC7/fullTextXML"


def test_every_recorded_record_gives_its_render_and_its_xml() -> None:
    held = json.loads(recorded("europepmc", "records.json").read_bytes())["records"]
    for found in held:
        doi = normalize_doi(found["doi"])
        result, _ = ask("europe_pmc", WorkArtifact("x", doi=doi), results(found))
        pmcid = found["pmcid"]
        assert urls(result)[0] == f"https://europepmc.org/articles/{pmcid}?pdf=render"
        assert urls(result)[-1] == f"{REST}/{pmcid}/fullTextXML"
        assert len(result.plans) == 3
        assert result.work is not None
        assert (result.work.pmcid, result.work.pmid, result.work.license) == (pmcid, found["pmid"], "cc by")
    assert len(held) == 10


def test_alone_it_obtains_every_article_it_renders(
    calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], tmp_path: Path
) -> None:
    """RES-16, on the sandbox; a work it does not know is a miss with a reason."""
    world = calm_sandbox.world
    works = [world.work(index) for index in range(world.count)]
    held = [work for work in works if work.copy("europepmc")][:4]
    unknown = next(work for work in works if work.pmid is None and work.in_crossref)
    outcomes = alone("europe_pmc", calm_sandbox, tmp_path, [w.doi for w in [*held, unknown]], make_config)
    assert len(held) == 4
    assert {work.doi: outcomes[f"doi:{work.doi.lower()}"].ok for work in held} == {work.doi: True for work in held}
    assert not outcomes[f"doi:{unknown.doi.lower()}"].ok
