"""Every usual spelling of an identifier gives one name, and everything else a reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.needs import recorded

from DocsToKG.ContentDownload.resolvers.ids.addresses import identifier_in_url
from DocsToKG.ContentDownload.resolvers.ids.identifier import (
    BadIdentifier,
    identifiers_of,
    parse_identifier,
    to_work,
    work_of,
)
from DocsToKG.ContentDownload.resolvers.ids.library_proxies import target_address
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import (
    Identifier,
    normalize_arxiv,
    normalize_doi,
    normalize_openalex,
    normalize_pmcid,
    normalize_pmid,
)

SICI = "10.1002/(SICI)1097-0258(19980815/30)17:15/16<1661::AID-SIM968>3.0.CO;2-2"


@pytest.mark.parametrize(
    "text",
    [
        "10.1234/Abc-1",
        " 10.1234/abc-1 ",
        "doi:10.1234/abc-1",
        "DOI: 10.1234/abc-1",
        "DOI 10.1234/abc-1",
        "doi=10.1234/abc-1",
        "info:doi/10.1234/abc-1",
        "https://doi.org/10.1234/abc-1",
        "http://dx.doi.org/10.1234/ABC-1",
        "https://www.doi.org/10.1234/abc-1",
        "doi.org/10.1234/abc-1",
        "https://doi.org/10.1234%2Fabc-1",
        "10.1234%2Fabc-1",
        "https://doi.org/10.1234/abc-1?utm_source=x#top",
        "https://doi.org/doi:10.1234/abc-1",
        "doi: https://doi.org/10.1234/abc-1",
        "<https://doi.org/10.1234/abc-1>",
        '"10.1234/abc-1",',
        "(10.1234/abc-1).",
        "[doi:10.1234/abc-1]",
        "“10.1234/abc-1”",
        "10.1234/abc-1.",
        "10.1234/abc-1);",
        "https://doi.org/10.1234/abc-1/",
        "\ufeff10.1234/abc-1",
    ],
)
def test_every_spelling_of_a_doi_is_one_work(text: str) -> None:
    """QUE-22: derived the same way for equal input."""
    assert to_work(parse_identifier(text)).work_id == "doi:10.1234/abc-1"


@pytest.mark.parametrize(
    "text", [SICI, f"https://doi.org/{SICI}", SICI.replace("<", "%3C").replace(">", "%3E"), SICI.replace("<", "&lt;")]
)
def test_brackets_and_semicolons_inside_a_doi_are_kept(text: str) -> None:
    assert parse_identifier(text) == Identifier("doi", SICI.lower())


CODED = SICI.replace("<", "%3C").replace(">", "%3E").replace(";", "%3B").replace(":", "%3A")
PROXIED = CODED.replace("(", "%28").replace(")", "%29")


@pytest.mark.parametrize(
    "text",
    [
        f"https://doi.org/{CODED}",
        f"https://doi.org/{CODED.replace('%', '%25')}",
        f"https://doi.org/{CODED.replace('%', '%2525')}",
        f"https://doi.org/{PROXIED.replace('/', '%2F')}",
        f"https://dx.doi.org/{SICI.replace('<', '&lt;').replace('>', '&gt;')}",
        f"https://dx.doi.org/{SICI.replace('<', '&amp;lt;').replace('>', '&amp;gt;')}",
        f"<https://doi.org/{SICI}>",
        f"<{SICI}>",
        f"({SICI}).",
        f"urn:doi:{SICI}",
        f"info:doi/{CODED}",
        f"DOI:https://doi.org/{CODED}",
        f"hdl:{SICI}",
        f"https://hdl.handle.net/{CODED}",
        f"https://doi-org.ezproxy.uni.edu/{CODED}",
        f"https://dx-doi-org.proxy.lib.uni.edu/{CODED}",
        f"http://dx.doi.org.ezproxy.uni.edu/{CODED}",
        f"https://doi.org.libproxy.uni.edu:2048/{CODED}",
        f"doi-org.ezproxy.uni.edu/{CODED}",
        f"https://0-doi-org.lib.uni.edu/{CODED}",
        f"https://0-doi.org.library.uni.ac.uk/{CODED}",
        f"https://ezproxy.uni.edu/login?url=https://doi.org/{CODED}",
        f"https://login.ezproxy.uni.edu/login?qurl=https%3A%2F%2Fdoi.org%2F{CODED.replace('%', '%25')}",
        f"https://ezproxy.uni.edu/login?url=https://doi-org.proxy.uni.edu/{CODED}",
        f"https%3A%2F%2Fdoi.org%2F{CODED.replace('/', '%2F')}",
        f"https%253A%252F%252Fdoi.org%252F{CODED.replace('/', '%252F').replace('%3', '%253')}",
        f"https://libkey.io/{CODED}",
        f"https://oadoi.org/{CODED}",
        f"https://api.crossref.org/works/{PROXIED.replace('/', '%2F')}",
        f"https://api.unpaywall.org/v2/{CODED}?email=a@b.org",
    ],
)
def test_an_old_doi_behind_escapes_and_proxies_is_one_work(text: str) -> None:
    """QUE-22: SICIs hold what addresses and markup take for their own."""
    assert to_work(parse_identifier(text)).work_id == f"doi:{SICI.lower()}"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("https://www-jx--press-org.ezproxy.uni.edu/a/1?b=c", "url:https://www.jx-press.org/a/1?b=c"),
        ("https://www.jx.org.proxy.uni.edu/a/1", "url:https://www.jx.org/a/1"),
        ("https://ezproxy.uni.edu/login?url=https://www.jx.org/a?b=1&c=2", "url:https://www.jx.org/a?b=1&c=2"),
        ("https://arxiv-org.ezproxy.uni.edu/abs/2104.12255", "arxiv:2104.12255"),
        ("https://arxiv-org.ezp-prod1.lib.uni.edu/abs/2104.12255", "arxiv:2104.12255"),
        ("https://ezp-prod1.lib.uni.edu/login?url=https://doi.org/10.1234/x", "doi:10.1234/x"),
        ("https://ezproxy-s1.uni.ac.uk/login?url=https://doi.org/10.1234/x", "doi:10.1234/x"),
        ("https://ezlibproxy1.uni.edu/login?qurl=https%3a%2f%2fdoi.org%2f10.1234%2fx", "doi:10.1234/x"),
        ("https://wwwproxy1.library.uni.edu.au/login?url=https://doi.org/10.1234/x", "doi:10.1234/x"),
        (
            "https://proxying.example.org/login?url=https://doi.org/10.1234/x",
            "url:https://proxying.example.org/login?url=https://doi.org/10.1234/x",
        ),
        ("https://proxy.uni.edu/a/1", "url:https://proxy.uni.edu/a/1"),
        ("https://proxy.uni.edu/login?url=javascript:x", "url:https://proxy.uni.edu/login?url=javascript:x"),
        ("https://a.ez.example.org/1", "url:https://a.ez.example.org/1"),
        (
            "https://www.jx.org/login?url=https://doi.org/10.1234/x",
            "url:https://www.jx.org/login?url=https://doi.org/10.1234/x",
        ),
        ("https://hdl.handle.net/10234/19373", "url:https://hdl.handle.net/10234/19373"),
        ("https://libkey.io/libraries/1", "url:https://libkey.io/libraries/1"),
        ("https://doi-org.example.org/about", None),
    ],
)
def test_what_stands_behind_a_proxy_is_what_was_meant(text: str, meant: str | None) -> None:
    if meant is None:
        with pytest.raises(BadIdentifier):
            parse_identifier(text)
    else:
        assert str(parse_identifier(text)) == meant


@examples(300)
@given(st.text(alphabet="https:/%25?&=url.doi-orgezproxy0[]@ \x00é", max_size=80))
def test_any_address_has_one_meant_and_none_breaks_the_reader(text: str) -> None:
    for address in (text, f"https://a-b.ezproxy.uni.edu/login?url={text}", f"https://{text}.ezproxy.uni.edu/{text}"):
        assert isinstance(target_address(address), str)
    assert target_address("https://x.ezproxy.uni.edu/login?" + "&u=1" * 600).endswith("&u=1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10.1016/S0140-6736(98)07110", "10.1016/s0140-6736(98)07110"),
        ("10.1000/abc#1", "10.1000/abc#1"),
        ("https://doi.org/10.1000/abc%231", "10.1000/abc#1"),
        ("10.1000.10/123456", "10.1000.10/123456"),
        ("10.1026//1616", "10.1026//1616"),
    ],
)
def test_odd_but_real_dois_stay_whole(text: str, value: str) -> None:
    assert parse_identifier(text) == Identifier("doi", value)


@pytest.mark.parametrize(
    ("text", "work_id", "version"),
    [
        ("2104.12255", "arxiv:2104.12255", None),
        ("arXiv:2104.12255v3 [cs.CR]", "arxiv:2104.12255v3", "v3"),
        ("https://arxiv.org/abs/2104.12255v1", "arxiv:2104.12255v1", "v1"),
        ("http://export.arxiv.org/pdf/2104.12255v1.pdf", "arxiv:2104.12255v1", "v1"),
        ("arxiv.org/pdf/2104.12255", "arxiv:2104.12255", None),
        ("https://doi.org/10.48550/arXiv.2104.12255", "arxiv:2104.12255", None),
        ("10.48550/ARXIV.2104.12255v2", "arxiv:2104.12255v2", "v2"),
        ("hep-th/9901001v2", "arxiv:hep-th/9901001v2", "v2"),
        ("math.CA/0611800v1", "arxiv:math/0611800v1", "v1"),
        ("math.CA/0611800", "arxiv:math/0611800", None),
        ("https://arxiv.org/abs/math/0611800", "arxiv:math/0611800", None),
        ("0704.0001", "arxiv:0704.0001", None),
    ],
)
def test_every_spelling_of_a_preprint_is_one_work_and_a_version_that_is_written_is_another(
    text: str, work_id: str, version: str | None
) -> None:
    """RES-11: new and old ids, with and without version. The DOI of a preprint is the preprint."""
    work = to_work(parse_identifier(text))
    assert (work.work_id, work.metadata.get("arxiv_version"), work.doi) == (work_id, version, None)
    assert work.arxiv_id == work_id.removeprefix("arxiv:").removesuffix(version or "")
    assert to_work(parse_identifier(work.work_id)) == work


ZENODO, FIGSHARE = "https://zenodo.org", "https://figshare.com/articles"


@pytest.mark.parametrize(
    ("page", "doi"),
    [
        (f"{ZENODO}/records/1234567", "10.5281/zenodo.1234567"),
        (f"{ZENODO}/record/12/", "10.5281/zenodo.12"),
        (f"{ZENODO}/records/12?preview=1", "10.5281/zenodo.12"),
        (f"{ZENODO}/doi/10.5281/zenodo.77", "10.5281/zenodo.77"),
        (f"{FIGSHARE}/dataset/A_title/123456", "10.6084/m9.figshare.123456"),
        (f"{FIGSHARE}/dataset/A_title/123456/2", "10.6084/m9.figshare.123456.v2"),
        ("https://www.biorxiv.org/content/10.1101/2020.01.01.123456v2", "10.1101/2020.01.01.123456"),
        ("https://www.biorxiv.org/content/10.1101/123456v1.full-text", "10.1101/123456"),
        ("zenodo.org/records/12", "10.5281/zenodo.12"),
        ("https://www.medrxiv.org/content/10.64898/2026.01.01.20012345v1.full.pdf", "10.64898/2026.01.01.20012345"),
    ],
)
def test_a_repository_page_is_the_work_of_its_doi_and_stays_a_page_to_visit(page: str, doi: str) -> None:
    work = work_of(identifiers_of(page))
    assert (work.work_id, work.doi) == (f"doi:{doi}", doi)
    assert work.landing_urls + work.pdf_urls == (page if "://" in page else f"https://{page}",)


@pytest.mark.parametrize(
    "page",
    [
        "https://hal.science/hal-01234567v2",
        "https://osf.io/preprints/psyarxiv/abcde",
        f"{ZENODO}/records/12/files/paper.pdf?download=1",
        f"{ZENODO}/communities/x",
        "https://plos.figshare.com/articles/dataset/A/123456",
        "https://www.biorxiv.org/content/early/2019/01/01/515643",
        "https://example.org/records/1234567",
    ],
)
def test_a_page_whose_address_carries_no_doi_is_a_work_by_its_address(page: str) -> None:
    work = work_of(identifiers_of(page))
    assert work.work_id == f"url:{page}"
    assert work.landing_urls + work.pdf_urls == (page,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PMC123", "pmcid:PMC123"),
        ("pmc123", "pmcid:PMC123"),
        ("PMCID: PMC123", "pmcid:PMC123"),
        ("pmcid:123", "pmcid:PMC123"),
        ("PMC123.2", "pmcid:PMC123"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC123/", "pmcid:PMC123"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/123", "pmcid:PMC123"),
        ("https://pmc.ncbi.nlm.nih.gov/articles/PMC123/pdf/main.pdf", "pmcid:PMC123"),
        ("https://europepmc.org/articles/PMC123?pdf=render", "pmcid:PMC123"),
        ("http://europepmc.org/article/PMC/PMC123", "pmcid:PMC123"),
        ("PMID: 99", "pmid:99"),
        ("pmid:0099", "pmid:99"),
        ("https://pubmed.ncbi.nlm.nih.gov/99/", "pmid:99"),
        ("https://www.ncbi.nlm.nih.gov/pubmed/99", "pmid:99"),
        ("https://europepmc.org/article/MED/99", "pmid:99"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/pmid/99/", "pmid:99"),
        ("W2741809807", "openalex:W2741809807"),
        ("https://openalex.org/W2741809807", "openalex:W2741809807"),
        ("https://api.openalex.org/works/w2741809807", "openalex:W2741809807"),
        ("https://Example.org:443/a?b=1&utm_source=x", "url:https://example.org/a?b=1"),
        ("url:https://example.org/a", "url:https://example.org/a"),
    ],
)
def test_the_other_schemes(text: str, expected: str) -> None:
    """RES-13: PMCIDs with and without prefix; QUE-22: the scheme is part of the name."""
    assert to_work(parse_identifier(text)).work_id == expected


@pytest.mark.parametrize(
    ("text", "why", "hint"),
    [
        ("", "empty", "DOI"),
        ("12345678", "ambiguous", "pmid:12345678"),
        ("10/abc", "shortDOI", "full DOI"),
        ("https://doi.org/abc12", "shortDOI", "full DOI"),
        ("see 10.1234/abc, please", "more than an identifier", "10.1234/abc?"),
        ("Müller 2009, doi:10.1234/abc", "more than an identifier", "10.1234/abc?"),
        ("PMC99999999999", "too many digits", "copy it again"),
        ("10.6002/ect.2020.häyry", "ASCII", "publisher"),
        ("hello", "not an identifier", "https://"),
        ("0808.05394", "not an identifier", "arXiv"),
        ("notes/1234567", "not an identifier", "DOI"),
        ("pmid:abc", "not a PMID", "spelling"),
        ("A5004406664", "not a work", "--query"),
        ("https://openalex.org/A5004406664", "not a work", "--query"),
        ("ftp://example.org/x.pdf", "not an http", "web page"),
        ("10.1234", "prefix", "10.1234/abc"),
        ("978-3-16-148410-0", "ISBN", "DOI"),
        ("9783161484100", "ISBN", "DOI"),
        ("ISBN 3161484100", "ISBN", "DOI"),
        ("hal-01234567v2", "HAL", "https://hal.science/hal-01234567v2"),
        ("hdl:2027/abc", "handle", "https://hdl.handle.net/2027/abc"),
        ("A theory of everything in four parts", "words", "--query"),
        ("https://", "not a usable", "host"),
        ("10.1234/a\x00b", "control", "UTF-8"),
        ("10.1234/" + "a" * 3000, "longer", "one identifier"),
    ],
)
def test_what_is_no_identifier_is_refused_with_a_reason_and_a_way_out(text: str, why: str, hint: str) -> None:
    with pytest.raises(BadIdentifier) as caught:
        parse_identifier(text)
    assert why in caught.value.why
    assert hint in caught.value.hint
    assert len(str(caught.value)) < 600


def test_a_password_in_a_url_is_in_no_message_and_no_name() -> None:
    assert "pw" not in str(to_work(parse_identifier("https://user:pw@example.org/a")))
    with pytest.raises(BadIdentifier) as caught:
        parse_identifier("https://user:sesame@[bad/a")
    assert "sesame" not in str(caught.value)


def test_the_strongest_name_gives_the_work_id_and_the_others_are_kept() -> None:
    names = ["PMC7", "2104.12255v2", "10.1234/abc", "https://example.org/paper", "https://example.org/paper.pdf"]
    work = work_of([parse_identifier(name) for name in names], title="T")
    assert work.work_id == "doi:10.1234/abc"
    assert (work.pmcid, work.arxiv_id, work.title) == ("PMC7", "2104.12255", "T")
    assert work.landing_urls == ("https://example.org/paper",)
    assert work.pdf_urls == ("https://example.org/paper.pdf",)


def test_addresses_of_other_sites_stand_for_no_identifier() -> None:
    for url in ("https://example.org/abs/2104.12255", "https://arxiv.org/list/cs", "https://doi.org/", "not a url"):
        assert identifier_in_url(url) is None


@pytest.mark.parametrize("kind", ["doi", "arxiv", "pmid", "pmcid"])
def test_recorded_cases_agree(kind: str) -> None:
    forms = {"doi": normalize_doi, "arxiv": normalize_arxiv, "pmid": normalize_pmid, "pmcid": normalize_pmcid}
    cases = json.loads((recorded("identifiers") / "normalization.json").read_text())["cases"][kind]
    assert [(case["raw"], forms[kind](case["raw"])) for case in cases] == [
        (case["raw"], case["normalized"]) for case in cases
    ]


@examples(300)
@given(st.text(alphabet="10./%25ab<>()&;amp#:doi \u212a-v", max_size=40).map(lambda tail: "10.1234/" + tail))
def test_a_normal_form_is_its_own_normal_form(text: str) -> None:
    doi = normalize_doi(text)
    if doi is not None:
        assert normalize_doi(doi) == doi
        assert doi.isascii()


@examples(300)
@given(st.text(max_size=60))
def test_any_text_is_named_or_refused_and_names_round_trip(text: str) -> None:
    try:
        work = to_work(parse_identifier(text))
    except BadIdentifier:
        return
    assert to_work(parse_identifier(work.work_id)).work_id == work.work_id


@given(st.sampled_from([normalize_arxiv, normalize_pmid, normalize_pmcid, normalize_openalex]), st.text(max_size=30))
@examples(200)
def test_other_normal_forms_are_stable_and_ascii(normalize, text: str) -> None:  # type: ignore[no-untyped-def]
    value = normalize(text)
    assert value is None or (value.isascii() and normalize(value) == value)


def test_a_key_in_an_address_never_becomes_part_of_an_id() -> None:
    """SEC-04: the id stands in every record; two addresses that differ in the key alone stay two works."""
    one = to_work(parse_identifier("https://a.example.org/paper?id=7&api_key=hunter2"))
    two = to_work(parse_identifier("https://a.example.org/paper?id=7&api_key=other"))
    assert "hunter2" not in one.work_id
    assert one.work_id != two.work_id
    assert "hunter2" in str(one.landing_urls)


@pytest.mark.parametrize("unseen", ["\u200b", "\u200e", "\ufeff", "\u00ad", "\u2060", "\u202a"])
def test_signs_that_nobody_sees_are_no_part_of_an_identifier(unseen: str) -> None:
    """As they come along when a DOI is copied from a web page."""
    for text in (f"10.1234/abc{unseen}", f"{unseen}10.1234/abc", f"https://doi.org/10.1234/{unseen}abc"):
        assert parse_identifier(text).value == "10.1234/abc"
