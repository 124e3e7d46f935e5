"""What the sources of repositories share: small fields, pages of repositories, and whose DOI it is."""

from __future__ import annotations

import pytest
from tests.contentdownload.scripted import answer

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.ContentDownload.resolvers.repositories.deposits import about_another, named_page
from DocsToKG.ContentDownload.resolvers.repositories.osti import OstiResolver
from DocsToKG.ContentDownload.resolvers.repositories.zenodo import PAGE


def test_links_that_lead_nowhere_name_no_page() -> None:
    urls = ("https://[", "x" * 5000, "ftp://zenodo.org/records/1", "", "https://zenodo.org/records/9")
    found = named_page(WorkArtifact("x", landing_urls=urls), PAGE)
    assert found is not None
    assert found["id"] == "9"


def test_small_fields_are_read_or_left() -> None:
    values = Record({"a": 7, "b": "8", "c": True, "d": -1, "e": 1 << 60, "f": "x", "g": ["t", 7, " "], "h": None})
    assert [values.number(name) for name in "abcdf"] == ["7", "8", None, None, None]
    assert [values.size(name) for name in "abcde"] == [7, None, None, None, None]
    assert [values.texts(name) for name in "fgah"] == [["x"], ["t"], [], []]
    assert Record({"x": "MD5:" + "A" * 32}).digest("md5", "x") == "md5:" + "a" * 32
    assert [Record({"x": value}).digest("md5", "x") for value in ("a" * 31, "sha1:" + "a" * 32, None, 7)] == [None] * 4


def test_a_bare_list_of_records_is_read_as_one_record_is() -> None:
    parse = OstiResolver(settings=ResolverSettings()).parse
    for body in ([{"a": 1}, 7], {"a": 1}):
        record = parse(answer(body))
        assert record is not None
        assert record.objects("records") == [Record({"a": 1})]
    assert [parse(answer(body)) for body in (b"7", b"{", b"")] == [None] * 3


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
