"""PubMed Central: versions, metadata and files of the open bucket, and the works it is asked about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contentdownload.one_source import alone, answer, ask
from tests.examples import examples

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.ids.identifier import parse_identifier, to_work
from DocsToKG.ContentDownload.resolvers.pmc import Article, versions_in
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.Sandbox.profile import SandboxServer

BUCKET = "https://pmc-oa-opendata.s3.amazonaws.com"
MD5 = "0123456789abcdef0123456789ABCDEF"
WORK = WorkArtifact("doi:10.1234/abc", doi="10.1234/abc", pmcid="PMC7")


def listing(*versions: int, pmcid: str = "PMC7") -> Page:
    prefixes = "".join(f"<CommonPrefixes><Prefix>{pmcid}.{v}/</Prefix></CommonPrefixes>" for v in versions)
    text = f'<?xml version="1.0"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{prefixes}'
    return answer(f"{text}<Prefix>{pmcid}.</Prefix></ListBucketResult>".encode())


def metadata(version: int = 1, **changes: Any) -> dict[str, Any]:
    place = f"s3://pmc-oa-opendata/PMC7.{version}/PMC7.{version}"
    return {
        "pmcid": "PMC7",
        "version": version,
        "pmid": 31,
        "doi": "10.1234/ABC",
        "title": "A <i>title</i>",
        "citation": "The 1500 Journal. 2019 Apr 22; 14(4):e2020",
        "license_code": "CC BY",
        "is_manuscript": False,
        "is_retracted": False,
        "pdf_url": f"{place}.pdf?md5={MD5}",
        "xml_url": f"{place}.xml?md5={MD5}",
    } | changes


def plans_of(result: ResolverResult) -> list[str]:
    return [plan.url.removeprefix(BUCKET + "/") for plan in result.plans]


def test_it_lists_reads_and_proposes_the_pdf_then_the_xml_with_their_checksums() -> None:
    """RES-12."""
    result, asked = ask("pmc", WORK, listing(1), answer(metadata()))
    assert asked == [f"{BUCKET}/?list-type=2&prefix=PMC7.&delimiter=/", f"{BUCKET}/metadata/PMC7.1.json"]
    assert plans_of(result) == ["PMC7.1/PMC7.1.pdf", "PMC7.1/PMC7.1.xml"]
    pdf, xml = result.plans
    assert (pdf.checksum, xml.checksum) == (f"md5:{MD5.lower()}",) * 2
    assert (pdf.expected_mime, xml.expected_mime) == ("application/pdf", "application/xml")
    assert (pdf.version, pdf.license, pdf.host_type) == ("publishedVersion", "CC BY", "repository")
    assert (pdf.evidence, xml.evidence) == ("pdf_url", "xml_url")
    assert result.work == WorkArtifact(
        "doi:10.1234/abc",
        title="A title",
        publication_year=2019,
        doi="10.1234/abc",
        pmid="31",
        pmcid="PMC7",
        license="CC BY",
        is_retracted=False,
    )


@pytest.mark.parametrize(
    "work",
    [
        WorkArtifact("x", pmcid="7"),
        WorkArtifact("x", pmcid="pmc7.2"),
        to_work(parse_identifier("pmcid:7")),
        WorkArtifact("x", landing_urls=("https://www.ncbi.nlm.nih.gov/pmc/articles/7",)),
        WorkArtifact("x", landing_urls=("https://pmc.ncbi.nlm.nih.gov/articles/PMC7/",)),
        WorkArtifact("x", pdf_urls=("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC7/pdf/main.pdf",)),
        WorkArtifact("x", pdf_urls=("https://europepmc.org/articles/PMC7?pdf=render",)),
    ],
)
def test_every_spelling_of_a_pmcid_and_every_page_of_it_leads_to_the_bucket(work: WorkArtifact) -> None:
    """RES-12, RES-13."""
    result, asked = ask("pmc", work, listing(1), answer(metadata()))
    assert asked[0] == f"{BUCKET}/?list-type=2&prefix=PMC7.&delimiter=/"
    assert result.plans
    assert result.work is not None
    assert result.work.pmcid == "PMC7"


def test_a_work_without_a_sign_of_pmc_costs_no_request() -> None:
    source = registry.build(["pmc"])["pmc"]
    assert source.applies_to(WorkArtifact("x", doi="10.1234/abc", pmid="31")) == "no_pmcid"
    assert source.applies_to(WorkArtifact("x", landing_urls=("https://a.example.org/pmc/articles/7",))) == "no_pmcid"
    result, asked = ask("pmc", WorkArtifact("x", doi="10.1234/abc"))
    assert (result.notes, asked) == (("no_pmcid",), [])


CONVERTED = WorkArtifact(
    "x", doi="10.1234/abc", landing_urls=("https://www.ncbi.nlm.nih.gov/pmc/articles/mid/NIHMS1/",)
)


def test_a_page_at_pmc_that_names_no_pmcid_is_worth_one_look_up() -> None:
    record = {"pmcid": "PMC7", "doi": "10.1234/abc", "requested-id": "10.1234/abc"}
    own = ResolverSettings(email="who@uni.example.edu")
    result, asked = ask(
        "pmc", CONVERTED, answer({"records": [record]}), listing(1), answer(metadata()), settings=own
    )  # fmt: skip
    assert asked[0].startswith("https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/?ids=10.1234%2Fabc&")
    assert "email=who%40uni.example.edu" in asked[0]
    assert plans_of(result)[0] == "PMC7.1/PMC7.1.pdf"


@pytest.mark.parametrize(
    "record",
    [
        {"status": "error", "errmsg": "Identifier not found in PMC"},
        {"pmcid": "PMC7", "doi": "10.1234/other"},
        {"doi": "10.1234/abc"},
    ],
)
def test_a_look_up_that_names_no_article_ends_it(record: dict[str, Any]) -> None:
    result, asked = ask("pmc", CONVERTED, answer({"records": [record]}))
    assert (result.plans, result.notes, len(asked)) == ((), ("not_in_index",), 1)


def test_the_newest_version_is_enough_when_it_is_the_publishers_and_stands() -> None:
    result, asked = ask("pmc", WORK, listing(1, 10, 9), answer(metadata(10)))
    assert asked[1:] == [f"{BUCKET}/metadata/PMC7.10.json"]
    assert plans_of(result) == ["PMC7.10/PMC7.10.pdf", "PMC7.10/PMC7.10.xml"]


def test_a_published_version_goes_before_a_newer_manuscript() -> None:
    result, _ = ask("pmc", WORK, listing(1, 2), answer(metadata(2, is_manuscript=True)), answer(metadata(1)))
    assert [(plan.url[-10:], plan.version) for plan in result.plans] == [
        ("PMC7.1.pdf", "publishedVersion"),
        ("PMC7.2.pdf", "acceptedVersion"),
        ("PMC7.1.xml", "publishedVersion"),
        ("PMC7.2.xml", "acceptedVersion"),
    ]


def test_a_version_that_stands_goes_before_a_retracted_one_and_the_retraction_is_known() -> None:
    result, _ = ask("pmc", WORK, listing(1, 2), answer(metadata(2, is_retracted=True)), answer(metadata(1)))
    assert plans_of(result)[:2] == ["PMC7.1/PMC7.1.pdf", "PMC7.2/PMC7.2.pdf"]
    assert result.work is not None
    assert result.work.is_retracted is True


def test_each_version_may_have_a_doi_of_its_own_and_only_that_asked_for_counts() -> None:
    result, _ = ask("pmc", WORK, listing(1, 2), answer(metadata(2, doi="10.1234/abc.2")), answer(metadata(1)))
    assert plans_of(result) == ["PMC7.1/PMC7.1.pdf", "PMC7.1/PMC7.1.xml"]


def test_at_most_three_versions_are_read() -> None:
    other = [answer(metadata(version, doi="10.1234/other")) for version in (9, 8, 7)]
    result, asked = ask("pmc", WORK, listing(*range(1, 10)), *other)
    assert len(asked) == 4
    assert result.plans == ()
    assert result.notes[0] == "wrong-article: PMC7.9 is 10.1234/other"


def test_a_version_whose_metadata_is_missing_gives_way_to_the_older_one() -> None:
    for status in (403, 404):
        result, _ = ask("pmc", WORK, listing(1, 2), answer(b"<Error/>", status), answer(metadata(1)))
        assert plans_of(result)[0] == "PMC7.1/PMC7.1.pdf"


def test_a_manuscript_in_hand_survives_trouble_with_the_next_version() -> None:
    for trouble in (answer(b"", 503), TransientFailure("timeout"), CandidateRejected("too-large")):
        result, _ = ask("pmc", WORK, listing(1, 2), answer(metadata(2, is_manuscript=True)), trouble)
        assert plans_of(result) == ["PMC7.2/PMC7.2.pdf", "PMC7.2/PMC7.2.xml"]


def test_an_article_without_pdf_is_proposed_as_xml() -> None:
    result, _ = ask("pmc", WORK, listing(1), answer(metadata(pdf_url=None)))
    assert [plan.expected_mime for plan in result.plans] == ["application/xml"]


@pytest.mark.parametrize(
    ("pages", "note"),
    [
        ([listing()], "not_in_index"),
        ([listing(1, pmcid="PMC77")], "not_in_index"),
        ([answer(b"<Error><Code>AccessDenied</Code></Error>", 403)], "not_in_index"),
        ([answer(b"", 404)], "not_in_index"),
        ([answer(b"", 400)], "http-status: 400"),
        ([answer(b"<html>sign in")], "malformed_answer"),
        ([listing(1), answer(b"{broken")], "malformed_answer"),
        ([listing(1), answer([1])], "malformed_answer"),
        ([listing(1), answer(b"", 404)], "not_in_index"),
        ([listing(1), answer(b"", 418)], "http-status: 418"),
        ([listing(1), answer(metadata(pmcid="PMC8"))], "wrong-article: the answer is about PMC8"),
        ([listing(1), answer({})], "no_oa_pdf"),
        ([listing(1), answer(metadata(pdf_url="s3://other/PMC7.1/a.pdf", xml_url=7))], "no_oa_pdf"),
    ],
)
def test_every_other_answer_is_a_note(pages: list[Page], note: str) -> None:
    result, _ = ask("pmc", WORK, *pages)
    assert (result.plans, result.notes) == ((), (note,))


def test_a_busy_bucket_is_asked_again_later() -> None:
    for pages in ([answer(b"", 503)], [listing(1), answer(b"SlowDown", 429, retry_after="7")]):
        with pytest.raises(TransientFailure) as busy:
            ask("pmc", WORK, *pages)
    assert busy.value.retry_after_s == 7


@pytest.mark.parametrize(
    "address",
    [
        "s3://pmc-oa-opendata/PMC8.1/PMC8.1.pdf",
        "s3://pmc-oa-opendata/PMC7.1/../PMC8.1/PMC8.1.pdf",
        "https://evil.example.org/PMC7.1/PMC7.1.pdf",
        "PMC7.1/PMC7.1.pdf",
        "s3://pmc-oa-opendata/PMC7.1/a b.pdf",
        "s3://pmc-oa-opendata/PMC7.1/a.pdf?md5=beef",
    ],
)
def test_a_file_outside_the_versions_own_folder_is_none(address: str) -> None:
    assert Article(Record({"pdf_url": address}), "PMC7.1/").pdf is None


def test_odd_names_of_files_are_escaped_and_a_digest_may_be_missing() -> None:
    file = Article(Record({"pdf_url": "s3://pmc-oa-opendata/PMC7.1/a+b.pdf"}), "PMC7.1/").pdf
    assert file is not None
    assert (file.path, file.checksum) == ("PMC7.1/a%2Bb.pdf", None)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(metadata())), inner, max_size=6),
    max_leaves=12,
)


@pytest.mark.slow
@examples(150)
@given(value=JSON_VALUES, listed=st.binary(max_size=200))
def test_no_answer_breaks_it(value: Any, listed: bytes) -> None:
    """Whatever the bucket says is a plan or a note."""
    result, _ = ask("pmc", WORK, listing(1), answer(json.dumps(value).encode()))
    assert result.plans or result.notes
    assert versions_in(b"ListBucketResult" + listed, "PMC7") is not None


@pytest.mark.slow
def test_alone_it_obtains_every_article_that_pmc_has(
    calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], tmp_path: Path
) -> None:
    """RES-12, against the sandbox's truth."""
    world = calm_sandbox.world
    held = [work for work in map(world.work, range(world.count)) if work.pmcid is not None][:6]
    outcomes = alone("pmc", calm_sandbox, tmp_path, [f"pmcid:{work.pmcid}" for work in held], make_config)
    assert len(held) == 6
    for work in held:
        outcome = outcomes[f"pmcid:{work.pmcid}"]
        assert outcome.ok, outcome
        body = (tmp_path / (outcome.path or "")).read_bytes()
        digests = {hashlib.sha256(file).hexdigest() for file in world.acceptable_files(work).values()}
        assert hashlib.sha256(body).hexdigest() in digests
