"""DSpace repositories: whose works are theirs, the three questions, and which bitstream is the paper."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contentdownload.scripted import answer, ask, first_words, named, resolve

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.ids.identifier import BadIdentifier
from DocsToKG.ContentDownload.resolvers.repositories.dspace import DspaceResolver

UUID, FILE = "1911e8a4-6939-490c-b58b-a5d70f8d91fb", "https://repo.example.edu/server/api/core/bitstreams/b-1/content"
WORK = WorkArtifact(
    "doi:10.1234/abc", doi="10.1234/abc", metadata={"dspace_item": "repo.example.edu/handle/10945/34539"}
)
BY_HANDLE = WorkArtifact("doi:10.1234/abc", doi="10.1234/abc", landing_urls=("http://hdl.handle.net/10945/34539",))
JSON = {"content_type": "application/json"}


def item(**changes: Any) -> dict[str, Any]:
    metadata = {
        "dc.title": [{"value": "Slow rivers and quick deltas"}],
        "dc.identifier.doi": [{"value": "https://doi.org/10.1234/ABC"}],
        "dc.type.version": [{"value": "Accepted Version"}],
        "dc.rights.uri": [{"value": "https://creativecommons.org/licenses/by/4.0/"}],
    }
    return {"uuid": UUID, "handle": "10945/34539", "metadata": metadata, **changes}


def bitstream(name: str = "rivers.pdf", href: str = FILE, **changes: Any) -> dict[str, Any]:
    return {
        "name": name, "sizeBytes": 1234, "checkSum": {"checkSumAlgorithm": "MD5", "value": "0" * 32},
        "_links": {"content": {"href": href}},
        "_embedded": {"format": {"mimetype": "application/pdf"}}, **changes,
    }  # fmt: skip


def bundles(*bitstreams: dict[str, Any], name: str = "ORIGINAL") -> dict[str, Any]:
    held = {"_embedded": {"bitstreams": list(bitstreams)}}
    return {"_embedded": {"bundles": [{"name": name, "_embedded": {"bitstreams": held}}]}}


@pytest.mark.parametrize(
    ("page", "is_mine"),
    [
        ("https://repo.example.edu/handle/10945/34539", True),
        ("https://repo.example.edu/xmlui/handle/1842/123?show=full", True),
        ("https://hdl.handle.net/10945/34539", True),
        ("https://repo.example.edu/handle/10945", False),
        ("https://repo.example.edu/items/" + UUID, False),
        ("https://repo.example.edu/a/handle/x", False),
        ("https://doi.org/10.1234/abc", False),
    ],
)
def test_it_takes_works_with_the_page_of_an_item_or_a_handle(page: str, is_mine: bool) -> None:
    source = registry.build(["dspace"])["dspace"]
    assert source.applies_to(WorkArtifact("x", landing_urls=(page,))) == (None if is_mine else "not_mine")
    assert source.applies_to(named("10.1234/abc")) == "not_mine"


def test_an_item_gives_the_files_of_its_bundle_for_originals() -> None:
    source = registry.build(["dspace"])["dspace"]
    result, asked = resolve(source, WORK, answer(item()), answer(bundles(bitstream())))
    assert asked == [
        "https://repo.example.edu/server/api/pid/find?id=10945%2F34539",
        f"https://repo.example.edu/server/api/core/items/{UUID}/bundles?embed=bitstreams/format&size=20",
    ]
    [plan] = result.plans
    assert (plan.url, plan.evidence, plan.host_type, plan.version) == (
        FILE,
        "bitstream",
        "repository",
        "acceptedVersion",
    )
    assert (plan.checksum, plan.size_bytes, plan.page_doi) == ("md5:" + "0" * 32, 1234, "10.1234/abc")
    assert plan.license == "https://creativecommons.org/licenses/by/4.0/"


def test_a_handle_alone_is_looked_up_for_its_host() -> None:
    registered = {"responseCode": 1, "values": [{"type": "URL", "data": {"value": "http://repo.example.edu/x/1"}}]}
    source = registry.build(["dspace"])["dspace"]
    result, asked = resolve(source, BY_HANDLE, answer(registered), answer(item()), answer(bundles(bitstream())))
    assert asked[0] == "https://hdl.handle.net/api/handles/10945/34539?type=URL"
    assert [plan.url for plan in result.plans] == [FILE]
    for nothing in (answer({"values": []}), answer(b"<html>", 404), answer({"values": [{"data": {"value": "x"}}]})):
        assert resolve(source, BY_HANDLE, nothing)[0].notes == ("not_in_index",)


@pytest.mark.parametrize(
    ("listed", "notes"),
    [
        (bundles(), ["no_oa_pdf"]),
        (bundles(bitstream(), name="LICENSE"), ["no_oa_pdf"]),
        (bundles(bitstream("supplement.pdf")), ["no_oa_pdf"]),
        (bundles(bitstream(href="javascript:x")), ["no_oa_pdf"]),
        ({"_embedded": []}, ["no_oa_pdf"]),
        ([], ["no_oa_pdf"]),
    ],
)
def test_what_is_no_file_of_the_paper_is_no_plan(listed: Any, notes: list[str]) -> None:
    result = ask("dspace", WORK, answer(item()), answer(listed))
    assert (result.plans, first_words(result.notes)) == ((), notes)


def test_an_item_about_another_paper_is_told_apart() -> None:
    other = item(metadata={"dc.title": [{"value": "Of bees"}], "dc.identifier.doi": [{"value": "10.1234/other"}]})
    assert first_words(ask("dspace", WORK, answer(other)).notes) == ["wrong-article"]
    assert first_words(ask("dspace", WORK, answer(item(handle="10945/1"))).notes) == ["wrong-article"]


def test_a_host_that_runs_something_else_is_asked_once() -> None:
    source = DspaceResolver(settings=registry.ResolverSettings())
    page = answer(b"<html>", 404, content_type="text/html")
    assert first_words(resolve(source, WORK, page)[0].notes) == ["not_in_index"]
    assert resolve(source, WORK)[1] == [], "no second question"
    other = DspaceResolver(settings=registry.ResolverSettings())
    unknown = answer({"status": 404}, 404, content_type="application/json")
    assert len(resolve(other, WORK, unknown)[1]) == 1
    assert len(resolve(other, WORK, unknown)[1]) == 1, "a handle it does not know says nothing about the host"


def test_no_identifier_is_a_work_of_dspace_by_itself() -> None:
    with pytest.raises(BadIdentifier):
        named("hdl:10945/34539")
