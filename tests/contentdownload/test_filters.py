"""Filters: which works and copies are left out before a file is asked for, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.ContentDownload.api.types import DownloadPlan, WorkArtifact
from DocsToKG.ContentDownload.cli.options import PaperOptions
from DocsToKG.ContentDownload.config.filters import Filters, FiltersConfig, year_range
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.errors import ConfigError


def filters(**settings: Any) -> Filters:
    return Filters.of(FiltersConfig.model_validate(settings))


def work(**known: Any) -> WorkArtifact:
    return WorkArtifact("doi:10.1/x", **known)


def plan(**known: Any) -> DownloadPlan:
    return DownloadPlan("https://a.org/x.pdf", "unpaywall", **known)


@pytest.mark.parametrize(
    ("wanted", "said", "why"),
    [
        ("cc-by,cc0", "cc-by", None),
        ("cc-by,cc0", "CC BY 4.0", None),
        ("cc-by,cc0", "https://creativecommons.org/licenses/by/3.0/", None),
        ("CC-BY", "cc-by", None),
        ("cc0", "http://creativecommons.org/publicdomain/zero/1.0/", None),
        ("cc-by,cc0", "cc-by-nc", "licence cc-by-nc is not cc-by or cc0"),
        ("cc-by", "CC BY-NC-ND 4.0", "licence cc-by-nc-nd is not cc-by"),
        ("cc-by-nc", "cc-by", "licence cc-by is not cc-by-nc"),
        ("cc-by-4.0", "CC BY 4.0", None),
        ("cc-by-4.0", "CC BY 3.0", "licence cc-by is not cc-by-4.0"),
        ("cc-by", "publisher-specific-oa", "licence publisher-specific-oa is not cc-by"),
        ("publisher-specific-oa", "Publisher-Specific-OA", None),
        ("cc-by", "x" * 500, "licence of another kind is not cc-by"),
        ("cc-by", "\x1b[31m", "licence of another kind is not cc-by"),
        ("cc-by", None, "licence unknown"),
        ("cc-by", "  ", "licence unknown"),
    ],
)
def test_a_copy_under_another_licence_is_left_out(wanted: str, said: str | None, why: str | None) -> None:
    assert filters(license=wanted).refuses_plan(plan(license=said), work()) == why


@pytest.mark.parametrize("version", [None, "publishedVersion", "submittedVersion"])
def test_a_copy_that_names_no_licence_has_none(version: str | None) -> None:
    """The licence that the work is said to have is that of another copy."""
    wanted = filters(license="cc-by")
    assert wanted.refuses_plan(plan(version=version), work(license="cc-by")) == "licence unknown"
    assert wanted.refuses_plan(plan(license="cc-by-nc"), work(license="cc-by")) == "licence cc-by-nc is not cc-by"


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ((), None),
        (("cc-by",), None),
        (("cc-by-nc", "cc-by"), None),
        (("cc-by-nc",), "licence cc-by-nc is not cc-by"),
    ],
)
def test_a_work_is_refused_by_the_licences_told_of_its_copies_when_none_is_wanted(
    told: tuple[str, ...], why: str | None
) -> None:
    assert filters(license="cc-by").refuses_told(told) == why
    assert filters(version="published").refuses_told(told) is None


@pytest.mark.parametrize(
    ("wanted", "version", "why"),
    [
        ("published,accepted", "acceptedVersion", None),
        ("publishedVersion", "publishedVersion", None),
        ("published,accepted", "submittedVersion", "version submitted is not published or accepted"),
        ("published", None, "version unknown"),
        ("published", "odd", "version unknown"),
    ],
)
def test_a_copy_of_another_version_is_left_out(wanted: str, version: str | None, why: str | None) -> None:
    assert filters(version=wanted).refuses_plan(plan(version=version), work()) == why


@pytest.mark.parametrize(
    ("settings", "known", "why"),
    [
        ({"year": "2015-2020"}, {"publication_year": 2015}, None),
        ({"year": "2015-2020"}, {"publication_year": 2021}, "year 2021 is not in 2015-2020"),
        ({"year": "2015-"}, {"publication_year": 2014}, "year 2014 is not in 2015-"),
        ({"year": "-2020"}, {"publication_year": 2021}, "year 2021 is not in -2020"),
        ({"year": 2018}, {"publication_year": 2017}, "year 2017 is not in 2018"),
        ({"oa_status": "gold,diamond"}, {"oa_status": "Gold"}, None),
        ({"oa_status": "gold"}, {"oa_status": "closed"}, "open-access status closed is not gold"),
        ({"retracted": "exclude"}, {"is_retracted": True}, "retracted"),
        ({"retracted": "exclude"}, {"is_retracted": None}, None),
        ({"retracted": "only"}, {"is_retracted": False}, "not retracted"),
        ({"retracted": "only"}, {"is_retracted": True}, None),
        ({}, {"is_retracted": True, "publication_year": 1, "oa_status": "closed"}, None),
    ],
)
def test_a_work_is_judged_on_what_is_known_of_it(
    settings: dict[str, Any], known: dict[str, Any], why: str | None
) -> None:
    assert filters(**settings).refuses_work(work(**known)) == why
    assert filters(**settings).refuses_plan(plan(), work(**known)) == why


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"year": "2015-"}, "year unknown"),
        ({"oa_status": "gold"}, "open-access status unknown"),
        ({"retracted": "only"}, "whether it is retracted is unknown"),
    ],
)
def test_what_nobody_said_speaks_against_the_copy_and_not_yet_against_the_work(
    settings: dict[str, Any], why: str
) -> None:
    wanted = filters(**settings)
    assert wanted.refuses_work(work()) is None
    assert wanted.lacks(work())
    assert wanted.refuses_plan(plan(), work()) == why
    assert filters(**settings, unknown="keep").refuses_plan(plan(), work()) is None


def test_unknown_licences_and_versions_may_be_kept() -> None:
    wanted = filters(license="cc-by", version="published", unknown="keep")
    assert wanted.refuses_plan(plan(), work()) is None
    assert wanted.refuses_plan(plan(license="cc-by-nc"), work()) == "licence cc-by-nc is not cc-by"


def test_asking_is_worth_it_only_for_a_fact_that_a_filter_needs() -> None:
    assert not Filters().lacks(work())
    assert not filters(license="cc-by", version="published").lacks(work(license="cc-by-nc"))
    assert filters(license="cc-by").lacks(work())
    assert filters(retracted="exclude").lacks(work())
    assert not filters(retracted="exclude").lacks(work(is_retracted=False))


@given(st.text(max_size=30), st.text(max_size=30), st.integers() | st.none(), st.text(max_size=20))
def test_without_settings_nothing_is_left_out(licence: str, version: str, year: int | None, status: str) -> None:
    everything = filters()
    known = work(publication_year=year, oa_status=status, license=licence)
    assert everything.refuses_plan(plan(license=licence, version=version), known) is None


@pytest.mark.parametrize("text", ["2015-2014", "15", "2015-20", "20152016", "", "-", "x", "2015--2016"])
def test_years_that_are_no_range_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"years|begins"):
        FiltersConfig(year=text)


def test_years_read_as_people_write_them() -> None:
    assert [year_range(text) for text in ("2018", "2015-2020", "2015 - 2020", "2015-", "-2020", "2015\u20132020")] == [
        (2018, 2018),
        (2015, 2020),
        (2015, 2020),
        (2015, None),
        (None, 2020),
        (2015, 2020),
    ]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"license": "cc-bz"}, "cc-by-nc-nd"),
        ({"oa_status": "golden"}, "bronze"),
        ({"version": "final"}, "accepted"),
        ({"year": "soon"}, "2015-2020"),
        ({"retracted": "no"}, "exclude"),
        ({"licence": "cc-by"}, "filters.license"),
    ],
)
def test_a_wrong_setting_names_itself_and_what_would_be_right(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match="filters") as caught:
        load_config(None, {"filters": settings}, environ={})
    assert said in str(caught.value)


def test_the_environment_sets_filters_too() -> None:
    config = load_config(None, environ={"DOCSTOKG_CONTENT_FILTERS__LICENSE": "cc-by, cc0"})
    assert config.filters.license == ("cc-by", "cc0")


@pytest.mark.parametrize("name", ["banana", "cc-bi", "open"])
def test_a_licence_that_nobody_knows_is_refused_with_those_that_exist(name: str) -> None:
    with pytest.raises(ValueError, match="not a licence known here; there are cc0, cc-by"):
        FiltersConfig(license=(name,))


@pytest.mark.parametrize("name", ["cc-by", "CC BY 4.0", "mit", "public-domain", "publisher-specific-oa"])
def test_licences_of_the_indexes_are_known(name: str) -> None:
    assert FiltersConfig(license=(name,)).license == (name,)


@pytest.mark.parametrize("empty", ["", ",", " , "])
def test_an_empty_filter_is_no_filter_turned_off(empty: str) -> None:
    """A shell variable that is not set must not fetch everything."""
    with pytest.raises(typer.BadParameter, match="--license is empty"):
        PaperOptions(license=empty).filters()
