"""DataCite: whose DOIs it takes, the fixed addresses of OSF, and what it makes of every kind of record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.contentdownload.scripted import CONTACT, SETTINGS, answer, ask, first_words, named, resolve
from tests.needs import recorded

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi
from DocsToKG.ContentDownload.resolvers.repositories.datacite import DataciteResolver

WORK = named("10.3929/ethz-b-000123")


def record(**changes: Any) -> dict[str, Any]:
    attributes = {
        "doi": "10.3929/ETHZ-b-000123", "url": "https://r.example.org/item/1", "contentUrl": None, "state": "findable",
        "types": {"resourceTypeGeneral": "JournalArticle"}, "formats": [], "publicationYear": 2020,
        "titles": [{"title": "Langsame Flüsse", "titleType": "TranslatedTitle"}, {"title": "Slow rivers"}],
        "rightsList": [{"rights": "Open Access", "rightsUri": "info:eu-repo/semantics/openAccess"},
                       {"rights": "CC", "rightsUri": "https://creativecommons.org/licenses/by/4.0/legalcode",
                        "rightsIdentifier": "cc-by-4.0"}],
        "relatedIdentifiers": [], **changes,
    }  # fmt: skip
    return {"data": {"id": "x", "type": "dois", "attributes": attributes}}


def test_it_asks_by_doi_and_says_who_asks() -> None:
    source = DataciteResolver(settings=SETTINGS)
    _, urls = resolve(source, named("10.3929/a(1)#b"), answer(b"", 404))
    assert urls == [f"https://api.datacite.org/dois/10.3929/a%281%29%23b?mailto={CONTACT}"]
    _, urls = resolve(DataciteResolver(settings=ResolverSettings()), WORK, answer(b"", 404))
    assert urls == ["https://api.datacite.org/dois/10.3929/ethz-b-000123"]


@pytest.mark.parametrize(
    "work",
    [
        named("10.1016/j.abc.2020"),
        named("10.31234/other"),
        named("PMC7"),
        named("https://osf.io/abcde"),
        WorkArtifact("x", landing_urls=("https://osf.io/preprints/",)),
    ],
)
def test_other_registrars_dois_cost_nothing(work: WorkArtifact) -> None:
    source = DataciteResolver(settings=SETTINGS)
    assert source.applies_to(work) == "not_mine"
    assert resolve(source, work)[0].notes == ("not_mine",)


@pytest.mark.parametrize(
    ("work", "osf_id"),
    [
        (named("10.31234/OSF.IO/abcde"), "abcde"),
        (named("10.31219/osf.io/ab3de_v2"), "ab3de_v2"),
        (named("10.35542/osf.io/abcde"), "abcde"),
        (WorkArtifact("x", landing_urls=("https://osf.io/preprints/psyarxiv/abcde/",)), "abcde"),
        (WorkArtifact("x", doi="10.1016/j.abc", landing_urls=("https://psyarxiv.com/abcde",)), "abcde"),
    ],
)
def test_the_file_of_a_preprint_on_osf_is_a_guess_without_a_question(work: WorkArtifact, osf_id: str) -> None:
    result, urls = resolve(DataciteResolver(settings=SETTINGS), work)
    assert urls == []
    [plan] = result.plans
    assert (plan.url, plan.is_guess, plan.version) == (f"https://osf.io/{osf_id}/download", True, "submittedVersion")
    assert result.work is not None
    assert result.work.landing_urls == (f"https://osf.io/{osf_id}",)


def test_a_page_goes_to_the_landing_source_with_all_that_is_known() -> None:
    related = [
        {"relationType": "IsVersionOf", "relatedIdentifier": "arXiv:2104.12255", "relatedIdentifierType": "arXiv"},
        {
            "relationType": "IsIdenticalTo",
            "relatedIdentifier": "https://r.example.org/2",
            "relatedIdentifierType": "URL",
        },
        {"relationType": "References", "relatedIdentifier": "https://r.example.org/3", "relatedIdentifierType": "URL"},
        {"relationType": "IsVersionOf", "relatedIdentifier": 7},
    ]
    result = ask("datacite", WORK, answer(record(relatedIdentifiers=related)))
    assert (result.plans, result.notes) == ((), ("no_oa_pdf",))
    work = result.work
    assert work is not None
    assert (work.title, work.publication_year, work.license) == ("Slow rivers", 2020, "cc-by-4.0")
    assert work.arxiv_id == "2104.12255"
    assert work.landing_urls == ("https://r.example.org/item/1", "https://r.example.org/2")


@pytest.mark.parametrize(
    ("changes", "plans"),
    [
        ({"contentUrl": "https://r.example.org/a.pdf"}, [("https://r.example.org/a.pdf", "contentUrl")]),
        ({"contentUrl": ["https://r.example.org/a.zip", "https://r.example.org/b.PDF?x=1"]},
         [("https://r.example.org/b.PDF?x=1", "contentUrl")]),
        ({"contentUrl": ["https://r.example.org/7"], "formats": ["application/pdf"]},
         [("https://r.example.org/7", "contentUrl")]),
        ({"contentUrl": ["https://r.example.org/7"], "formats": ["text/html"]}, []),
        ({"url": "http://r.example.org/a.pdf"}, [("http://r.example.org/a.pdf", "url")]),
        ({"url": "https://hal.science/hal-01234567"}, [("https://hal.science/hal-01234567/document", "page_rule")]),
        ({"url": "https://osf.io/abcde/"}, [("https://osf.io/abcde/download", "page_rule")]),
        ({"url": "https://arxiv.org/abs/2104.12255"}, []),
        ({"url": "javascript:x", "contentUrl": 7}, []),
    ],
)  # fmt: skip
def test_files_that_the_record_names_are_proposed(changes: dict[str, Any], plans: list[tuple[str, str]]) -> None:
    result = ask("datacite", WORK, answer(record(**changes)))
    assert [(plan.url, plan.evidence) for plan in result.plans] == plans
    for plan in result.plans:
        assert (plan.version, plan.license, plan.host_type) == ("publishedVersion", "cc-by-4.0", "repository")
        assert plan.is_guess == (plan.evidence == "page_rule")
        assert plan.page_doi == WORK.doi


@pytest.mark.parametrize(
    ("rights", "license_"),
    [
        ([], None),
        ([{"rights": "Public Domain Mark 1.0"}], "Public Domain Mark 1.0"),
        ([{"rights": "CC", "rightsUri": "https://creativecommons.org/licenses/by/4.0"}],
         "https://creativecommons.org/licenses/by/4.0"),
        ([{"rights": "Open Access", "rightsUri": "info:eu-repo/semantics/openAccess"}], None),
        ("CC BY", None),
    ],
)  # fmt: skip
def test_a_licence_is_an_id_or_an_address_or_a_name(rights: Any, license_: str | None) -> None:
    learned = ask("datacite", WORK, answer(record(rightsList=rights))).work
    assert learned is not None
    assert learned.license == license_


def test_what_is_no_paper_has_no_page_worth_a_visit() -> None:
    learned = ask("datacite", WORK, answer(record(types={"resourceTypeGeneral": "Image"}))).work
    assert learned is not None
    assert (learned.landing_urls, learned.title) == ((), "Slow rivers")


def test_recorded_records_give_papers_their_files_and_pages_and_leave_the_rest() -> None:
    """The reading alone, whatever the list of prefixes says of these DOIs."""
    source = DataciteResolver(settings=SETTINGS)
    seen = {"papers": 0, "others": 0, "files": 0}
    for found in json.loads(recorded("datacite", "records.json").read_text())["records"]:
        attributes = found["attributes"]
        work = WorkArtifact("doi:x", doi=normalize_doi(attributes["doi"]))
        result = source.read_page(work, attributes["doi"], answer({"data": found}))
        kind = attributes["types"].get("resourceTypeGeneral")
        is_paper = kind in ("Text", "Other", None)
        assert result.work is not None, attributes["doi"]
        assert result.work.title is not None
        assert bool(result.plans or result.work.landing_urls) == is_paper, attributes["doi"]
        assert (first_words(result.notes) == ["not_a_paper"]) == (not is_paper)
        assert bool(result.plans) == (is_paper and attributes["url"].endswith(".pdf"))
        seen["papers" if is_paper else "others"] += 1
        seen["files"] += bool(result.plans)
    assert seen == {"papers": 16, "others": 14, "files": 2}
