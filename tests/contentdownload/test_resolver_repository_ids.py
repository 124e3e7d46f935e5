"""Names that indexes give copies, and the pages of the deposits they stand for."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contentdownload.scripted import answer, ask
from tests.examples import examples

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.ids.repositories import (
    dspace_item_in,
    hal_id_in,
    page_of_copy,
    pages_of_location,
)
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import known_file
from DocsToKG.ContentDownload.resolvers.openalex import work_of_record
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.core.urls import request_url


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("pmh:oai:HAL:hal-01929506v1", "https://hal.science/hal-01929506v1"),
        ("oai:HAL:tel-00012345", "https://hal.science/tel-00012345"),
        ("oai:zenodo.org:1724672", "https://zenodo.org/records/1724672"),
        ("oai:osti.gov:1981738", "https://www.osti.gov/biblio/1981738"),
        ("oai:figshare.com:article/15170319", "https://figshare.com/articles/_/15170319"),
        ("oai:osf.io:ab3cd", "https://osf.io/ab3cd"),
        ("pmh:oai:mdpi.com:/2673-1991/3/1/14/", "https://www.mdpi.com/2673-1991/3/1/14"),
        (
            "oai:scielo:S0104-79302001000200017",
            "http://www.scielo.br/scielo.php?script=sci_arttext&pid=S0104-79302001000200017",
        ),
        ("oai:revues.org:insitu/42672", "https://journals.openedition.org/insitu/42672"),
        ("oai:books.openedition.org:press/1409", "https://books.openedition.org/press/1409"),
        ("oai:persee:article/cehm_0396_1", "https://www.persee.fr/doc/cehm_0396_1"),
        ("oai:biodiversitylibrary.org:part/183348", "https://www.biodiversitylibrary.org/part/183348"),
        ("oai:escholarship.org/ark:/13030/qt4qw9c50p", "https://escholarship.org/uc/item/4qw9c50p"),
        ("oai:escholarship.org:ark:/13030/qt454015hk", "https://escholarship.org/uc/item/454015hk"),
        ("pmh:ark:/13030/qt454015hk", "https://escholarship.org/uc/item/454015hk"),
        ("oai:DiVA.org:uu-489595", "http://urn.kb.se/resolve?urn=urn:nbn:se:uu:diva-489595"),
        ("oai:RePEc:plo:pone00:0155389", "https://econpapers.repec.org/RePEc:plo:pone00:0155389"),
        ("RePEc:nbr:nberwo:1234", "https://econpapers.repec.org/RePEc:nbr:nberwo:1234"),
        ("oai:x-repository.worktribe.com:893357", "https://x-repository.worktribe.com/output/893357"),
        ("oai:eprints.keele.ac.uk:473", "https://eprints.keele.ac.uk/id/eprint/473/"),
        ("oai:eprints.ucl.ac.uk.OAI2:1368578", "https://eprints.ucl.ac.uk/id/eprint/1368578/"),
        ("oai:calhoun.nps.edu:10945/34539", "https://calhoun.nps.edu/handle/10945/34539"),
        ("oai:lsmu.lt:20.500.12512/18516", "https://lsmu.lt/handle/20.500.12512/18516"),
        ("hdl:10234/19373", "https://hdl.handle.net/10234/19373"),
        ("info:hdl/10234/19373", "https://hdl.handle.net/10234/19373"),
        ("https://doi.org/10.2139/ssrn.1501153", "https://papers.ssrn.com/sol3/papers.cfm?abstract_id=1501153"),
        ("doi:10.31234/osf.io/ab3cd_v2", "https://osf.io/ab3cd_v2"),
        ("doi:10.21203/rs.3.rs-131847/v1", "https://www.researchsquare.com/article/rs-131847/v1"),
        ("doi:10.20944/preprints202001.0001.v1", "https://www.preprints.org/manuscript/202001.0001/v1"),
        ("https://doi.org/10.1101/2020.01.02.123456", "https://www.biorxiv.org/content/10.1101/2020.01.02.123456"),
        ("doi:10.64898/2026.01.02.123456v2", "https://www.biorxiv.org/content/10.64898/2026.01.02.123456"),
        ("doi:10.1101/2020.10.21.20216705", "https://www.medrxiv.org/content/10.1101/2020.10.21.20216705"),
        ("doi:10.6084/m9.figshare.123456.v2", "https://figshare.com/articles/_/123456"),
        ("doi:10.2172/1236676", "https://www.osti.gov/biblio/1236676"),
        ("doi:10.18653/v1/2020.acl-main.1", "https://aclanthology.org/2020.acl-main.1"),
        # Not the page of a deposit, or not known where.
        ("oai:pubmedcentral.nih.gov:1565670", None),
        ("oai:arXiv.org:1007.3293", None),
        ("oai:europepmc.org:3214052", None),
        ("oai:generic.eprints.org:473", None),
        ("oai:dnet:repositoriun::952e9d45", None),
        ("doi:10.1234/abc", None),
        ("pmid:22237005", None),
        ("oai:zenodo.org:not-a-number", None),
        ("", None),
    ],
)
def test_a_name_stands_for_the_page_of_its_deposit(name: str, page: str | None) -> None:
    assert page_of_copy(name) == page


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("oai:HAL:hal-01929506v1", "https://hal.science/hal-01929506v1/document"),
        ("doi:10.2139/ssrn.7", "https://papers.ssrn.com/sol3/Delivery.cfm/7.pdf?abstractid=7&mirid=1"),
        ("oai:escholarship.org:ark:/13030/qt454015hk", "https://escholarship.org/content/qt454015hk/qt454015hk.pdf"),
        ("oai:biodiversitylibrary.org:part/183348", "https://www.biodiversitylibrary.org/partpdf/183348"),
        ("oai:mdpi.com:/2673-1991/3/1/14/", "https://www.mdpi.com/2673-1991/3/1/14/pdf"),
        ("doi:10.18653/v1/2020.acl-main.1", "https://aclanthology.org/2020.acl-main.1.pdf"),
    ],
)
def test_the_page_of_an_open_archive_tells_its_file(name: str, file: str) -> None:
    found = known_file(page_of_copy(name) or "")
    assert found is not None
    assert found.url == file


def test_an_id_speaks_only_where_the_location_names_no_page_of_its_own() -> None:
    """Software is passed on with its OAI namespace: records of one repository then look like those of another."""
    zenodo = "pmh:oai:zenodo.org:192796"
    assert pages_of_location("https://www.openaccessrepository.it/record/192796", [zenodo]) == (
        "https://www.openaccessrepository.it/record/192796",
    )
    doi = "https://doi.org/10.1234/abc"
    assert pages_of_location(doi, [zenodo]) == ("https://zenodo.org/records/192796", doi)
    assert pages_of_location(None, [zenodo]) == ("https://zenodo.org/records/192796",)
    assert pages_of_location("javascript:x", []) == ()


def test_the_first_hal_id_and_the_first_dspace_item_are_found() -> None:
    names = [
        "pmh:oai:calhoun.nps.edu:10945/34539",
        "doi:10.1/hal:x",
        "https://hal.science/x",
        "pmh:oai:HAL:hal-01929506v1",
    ]
    assert hal_id_in(names) == "hal-01929506v1"
    assert dspace_item_in(names) == "calhoun.nps.edu/handle/10945/34539"
    assert hal_id_in(["pmh:oai:zenodo.org:1"]) is None
    assert dspace_item_in(["hdl:10945/34539", "pmh:oai:zenodo.org:1"]) is None


def record(status: str, *locations: dict[str, object]) -> dict[str, object]:
    return {
        "id": "https://openalex.org/W1", "doi": "https://doi.org/10.1234/abc",
        "open_access": {"oa_status": status}, "locations": list(locations),
    }  # fmt: skip


def test_ids_of_open_locations_become_pages_and_closed_works_get_none() -> None:
    zenodo = {"id": "pmh:oai:zenodo.org:7", "is_oa": True, "landing_page_url": "https://doi.org/10.1234/abc"}
    hal = {"id": "pmh:oai:HAL:hal-01929506v1", "is_oa": False, "landing_page_url": "https://hal.science/hal-01929506"}
    work = work_of_record(Record(record("green", zenodo, hal)))
    assert work is not None
    assert work.landing_urls == ("https://zenodo.org/records/7", "https://doi.org/10.1234/abc")
    assert work.metadata["hal_id"] == "hal-01929506v1"
    closed = work_of_record(Record(record("closed", {**zenodo, "is_oa": False}, hal)))
    assert closed is not None
    assert closed.landing_urls == ()
    assert "hal_id" not in closed.metadata


def test_unpaywall_names_the_same_pages() -> None:
    location = {"pmh_id": "oai:HAL:hal-01929506v1", "url_for_landing_page": None, "url": "https://doi.org/10.1234/abc"}
    told = {"doi": "10.1234/abc", "oa_locations": [location, {"pmh_id": "oai:calhoun.nps.edu:10945/1"}]}
    result = ask("unpaywall", WorkArtifact("doi:10.1234/abc", doi="10.1234/abc"), answer(told))
    assert result.work is not None
    assert result.work.landing_urls == (
        "https://hal.science/hal-01929506v1",
        "https://doi.org/10.1234/abc",
        "https://calhoun.nps.edu/handle/10945/1",
    )
    assert result.work.metadata["dspace_item"] == "calhoun.nps.edu/handle/10945/1"


@examples(200)
@given(st.text(alphabet="oai:hdlRePEc0123456789./-_ ab?#%\x00é", max_size=80))
def test_any_name_gives_an_address_that_can_be_asked_for_or_none(text: str) -> None:
    for name in (text, f"oai:{text}", f"oai:a.example.org:{text}", f"hdl:1/{text}"):
        page = page_of_copy(name)
        assert page is None or request_url(page) == page


def test_no_name_makes_the_patterns_slow() -> None:
    started = time.thread_time()
    for name in (
        "oai:" + "a." * 1000 + ":1",
        "oai:hal:" + "a-" * 1000,
        "hdl:" + "1." * 1000,
        "oai:eprints." + "a." * 900,
    ):
        for _ in range(20):
            page_of_copy(name)
    assert time.thread_time() - started < 4


def test_unpaywall_says_why_there_is_no_copy() -> None:
    work = WorkArtifact("doi:10.1234/abc", doi="10.1234/abc")
    told = {"doi": "10.1234/abc", "oa_status": "closed", "oa_locations": []}
    assert ask("unpaywall", work, answer(told)).notes == ("closed",)
    later = [{"oa_date": "2028-01-01"}, {"oa_date": "2027-05-01"}, {"oa_date": 7}]
    assert ask("unpaywall", work, answer({**told, "oa_locations_embargoed": later})).notes == (
        "embargo: until 2027-05-01",
    )
    assert ask("unpaywall", work, answer({**told, "oa_status": None})).notes == ("no_open_copy",)
