"""What a landing page says, by the strength of its evidence, and what it must not be made to say."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address, is_pmc_page, page_file
from DocsToKG.ContentDownload.resolvers.landing.page import LandingFacts, PageKind, doi_of_paper, extract

SITE = "https://journal.example.org"
PAGE = f"{SITE}/articles/view/4711"
TAGS = '<meta name="citation_doi" content="10.1234/abc">'


def facts(body: str, *, url: str = PAGE, status: int = 200, **headers: str) -> LandingFacts:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return extract(url, f"<html><head>{body}</html>".encode(), named, status=status)


def links(body: str, *, url: str = PAGE, **headers: str) -> list[tuple[str, str]]:
    return [(link.url, link.evidence) for link in facts(body, url=url, **headers).pdf_links]


@pytest.mark.parametrize(
    ("body", "expected", "evidence"),
    [
        ('<meta name="citation_pdf_url" content="/a.pdf">',
         SITE + "/a.pdf", "citation_pdf_url"),
        ('<meta NAME="Citation_PDF_URL" content="x?a=1&amp;b=2">',
         SITE + "/articles/view/x?a=1&b=2", "citation_pdf_url"),
        ('<meta property="citation_pdf_url" content="//cdn.example.net/a">',
         "https://cdn.example.net/a", "citation_pdf_url"),
        (f'<meta name="citation_pdf_url" content="{PAGE}"><meta name="citation_pdf_url" content="/b">',
         SITE + "/b", "citation_pdf_url"),
        ('<meta name="bepress_citation_pdf_url" content="/v.cgi?a=1">',
         SITE + "/v.cgi?a=1", "bepress_citation_pdf_url"),
        ('<meta name="eprints.document_url" content="/1/supplement.pdf">'
         '<meta name="eprints.document_url" content="/1/paper.pdf">',
         SITE + "/1/paper.pdf", "eprints.document_url"),
        ('<meta name="DC.Identifier" content="https://opus.example.org/files/1/Thesis.pdf">',
         "https://opus.example.org/files/1/Thesis.pdf", "dc.identifier"),
        ('<link rel="alternate" type="application/pdf" href="/full.pdf">',
         SITE + "/full.pdf", "link_alternate"),
        ('<base href="https://other.example.org/deep/"><meta name="citation_pdf_url" content="a.pdf">',
         "https://other.example.org/deep/a.pdf", "citation_pdf_url"),
        ('<script type="application/ld+json">{"@graph":[{"@type":"ScholarlyArticle","encoding":'
         '{"encodingFormat":"application/pdf","contentUrl":"/ld.pdf"}}]}</script>',
         SITE + "/ld.pdf", "json_ld"),
        ('<embed type="application/pdf" src="/e/1">',
         SITE + "/e/1", "viewer"),
        ('<iframe src="/pdfjs/web/viewer.html?file=%2Ffiles%2F1.pdf"></iframe>',
         SITE + "/files/1.pdf", "viewer"),
        ('<a class="obj_galley_link pdf" href="/ojs/article/view/1/2">PDF</a>',
         SITE + "/ojs/article/download/1/2", "ojs_galley"),
        ('<a href="/download/4711">Download PDF (1.2 MB)</a>',
         SITE + "/download/4711", "anchor"),
        ('<a href="https://cdn.example.net/f/1" title="Full-text PDF"></a>',
         "https://cdn.example.net/f/1", "anchor"),
        ('<a href="/content/4711.pdf">Read</a>',
         SITE + "/content/4711.pdf", "anchor"),
        ('<a href="/bitstream/1/2/thesis.pdf?sequence=1">thesis</a>',
         SITE + "/bitstream/1/2/thesis.pdf?sequence=1", "anchor"),
    ],
)  # fmt: skip
def test_each_kind_of_evidence_gives_its_link(body: str, expected: str, evidence: str) -> None:
    """RES-15: tags, link elements and anchors."""
    assert links(body) == [(expected, evidence)]


def test_headers_name_the_file_and_the_paper() -> None:
    said = '<https://doi.org/10.1234/ABC>; rel="cite-as", </f.pdf>; rel="item"; type="application/pdf", </x>; rel=item'
    found = facts("<title>x</title>", link=said)
    assert [link.url for link in found.pdf_links] == ["https://journal.example.org/f.pdf"]
    assert found.doi == "10.1234/abc"


def test_sciencedirect_and_ieee_keep_the_link_in_their_data() -> None:
    data = {
        "path": "science/article/pii",
        "pii": "S1",
        "pdfExtension": "/pdfft",
        "queryParams": {"md5": "0a", "pid": "1-s2.0.pdf"},
    }
    body = f'<script type="application/json">{json.dumps({"article": {"pdfDownload": {"urlMetadata": data}}})}</script>'
    assert links(body, url="https://www.sciencedirect.com/science/article/pii/S1") == [
        ("https://www.sciencedirect.com/science/article/pii/S1/pdfft?md5=0a&pid=1-s2.0.pdf", "sciencedirect_json")
    ]
    body = '<script>xplGlobal.document.metadata={"pdfPath":"/iel7/1/2/3.pdf","x":1};</script>'
    assert (
        links(body, url="https://ieeexplore.ieee.org/document/3")[0][0] == "https://ieeexplore.ieee.org/iel7/1/2/3.pdf"
    )


@pytest.mark.parametrize(
    "anchor",
    [
        '<a href="/files/supplementary-1.pdf">Supplementary PDF</a>',
        '<a href="/files/4711-figures.pdf">Figures PDF</a>',
        '<a href="/doi/suppl/4711.pdf">PDF</a>',
        '<a href="/issue/cover.pdf">PDF</a>',
        '<a href="/author-guidelines.pdf">Guidelines</a>',
        '<a href="https://elsewhere.example.net/report.pdf">https://elsewhere.example.net/report.pdf</a>',
        '<ol class="references"><li><a href="/other/1.pdf">PDF</a></li></ol>',
        '<div id="related-articles"><p><a href="/other/1.pdf">PDF</a></p></div>',
        '<a href="/cite/download/ris?id=1">RIS</a>',
        '<a href="javascript:void(0)">PDF</a><a href="mailto:a@b.c">PDF</a><a href="#pdf">PDF</a>',
        "".join(f'<a href="/other/{number}.pdf">PDF</a>' for number in range(5)),
    ],
)
def test_links_to_something_else_are_not_taken(anchor: str) -> None:
    assert links(TAGS + anchor) == []


def test_in_a_list_of_papers_only_the_one_with_the_own_name_is_taken() -> None:
    others = "".join(f'<a href="/pdf/{number}.pdf">PDF</a>' for number in range(10))
    assert links(TAGS + others + '<a href="/pdf/10.1234/abc.pdf">PDF</a>') == [
        ("https://journal.example.org/pdf/10.1234/abc.pdf", "anchor")
    ]


def test_anchors_are_not_asked_when_a_tag_speaks() -> None:
    assert len(links('<meta name="citation_pdf_url" content="/a"><a href="/b.pdf">PDF</a>')) == 1


def test_a_page_says_which_paper_it_is_about() -> None:
    found = facts(
        '<meta name="dc.identifier" content="isbn 12"><meta name="prism.doi" content="doi:10.1234/ABC">'
        '<meta name="citation_title" content=" A &amp; &lt;i&gt;b&lt;/i&gt; ">'
        '<meta name="citation_date" content="Apr 22, 2019">'
    )
    assert (found.doi, found.title, found.year) == ("10.1234/abc", "A & b", 2019)


@pytest.mark.parametrize(
    ("asked", "said", "by"),
    [
        ("10.1234/a", ("10.1234/a",), 0),
        ("10.1234/a", ("10.1234/b",), None),
        ("10.1234/a", ("10.5555/set", "10.1234/a"), 1),
        ("10.21203/rs.3.rs-1/v1", ("10.21203/rs.3.rs-1/v2",), 0),
        ("10.12688/f1000research.7.1", ("10.12688/f1000research.7.2",), 0),
        ("10.1016/j.x.2020.01.01", ("10.1016/j.x.2020.01.02",), None),
    ],
)
def test_versions_are_one_paper_and_neighbours_are_not(asked: str, said: tuple[str, ...], by: int | None) -> None:
    assert doi_of_paper(asked, said) == (None if by is None else said[by])


@pytest.mark.parametrize(
    ("body", "kind", "options"),
    [
        ("<title>Just a moment...</title><body>x", PageKind.CHALLENGE, {"status": 403}),
        ("<title>x</title><script>window._cf_chl_opt={}</script>", PageKind.CHALLENGE, {}),
        ("<title>x</title>" + TAGS, PageKind.CHALLENGE, {"cf_mitigated": "challenge"}),
        ('<div class="g-recaptcha"></div>', PageKind.CHALLENGE, {"status": 403}),
        (TAGS + '<meta name="citation_pdf_url" content="/a"><div class="g-recaptcha">', PageKind.ARTICLE, {}),
        ("<body>please accept", PageKind.COOKIE_WALL, {"url": "https://x.example.org/action/cookieAbsent"}),
        ('<body><div id="root"></div><noscript>You need to enable JavaScript</noscript>', PageKind.COOKIE_WALL, {}),
        ("<body>Sign in", PageKind.LOGIN_WALL, {"url": "https://idp.example.org/sso?SAMLRequest=abc"}),
        ('<body><form><input type="password"></form>', PageKind.LOGIN_WALL, {}),
        ("<title>Preparing to download ...</title>", PageKind.INTERSTITIAL, {}),
        (TAGS + "<body><button>Get access</button>", PageKind.PAYWALL, {}),
        ('<meta http-equiv="refresh" content="0; url=/next">', PageKind.ROUTER, {}),
        ("<body><p>An essay.</p>", PageKind.OTHER, {}),
    ],
)
def test_pages_that_are_not_the_paper_are_told_apart(body: str, kind: PageKind, options: dict[str, str]) -> None:
    found = facts(body, **options)  # type: ignore[arg-type]
    assert found.kind == kind
    assert bool(found.pdf_links) == (kind == PageKind.ARTICLE)


@pytest.mark.parametrize(
    ("url", "body", "expected"),
    [
        ("https://linkinghub.elsevier.com/retrieve/pii/S1",
         '<input type="hidden" name="redirectURL" '
         'value="https%3A%2F%2Fwww.sciencedirect.com%2Fscience%2Farticle%2Fpii%2FS1%3Fvia%253Dihub">',
         ("https://www.sciencedirect.com/science/article/pii/S1",)),
        ("https://chooser.crossref.org/?doi=1", '<div class="resource-line"><a href="https://a.example.org/1">A</a></div>'
         '<div class="resource-line"><a href="https://b.example.org/1">B</a></div>'
         '<div class="resource-line"><a href="https://c.example.org/">C</a></div>',
         ("https://a.example.org/1", "https://b.example.org/1")),
        (PAGE, "<meta http-equiv=Refresh content=\"2;URL='/go?a=1'\">", ("https://journal.example.org/go?a=1",)),
        ("https://insights.ovid.com/crossref?an=1", '<script>var journalURL = "https://j.example.org/1";</script>',
         ("https://j.example.org/1",)),
        ("https://doi.org/10.1/x", '<title>Handle Redirect</title><a href="https://a.example.org/1">x</a>',
         ("https://a.example.org/1",)),
        (PAGE, f'<meta http-equiv="refresh" content="0; url={PAGE}">', ()),
        (PAGE, '<meta http-equiv="refresh" content="900; url=/again">', ()),
    ],
)  # fmt: skip
def test_routers_point_on(url: str, body: str, expected: tuple[str, ...]) -> None:
    """API pages between doi.org and the publisher."""
    assert facts(body, url=url).next_urls == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://pubs.example.org/doi/epdf/10.1/x", "https://pubs.example.org/doi/pdf/10.1/x"),
        ("https://pubs.example.org/doi/reader/10.1/x", "https://pubs.example.org/doi/pdf/10.1/x"),
        ("https://onlinelibrary.wiley.com/doi/epdf/10.1/x", "https://onlinelibrary.wiley.com/doi/pdfdirect/10.1/x"),
        ("http://arxiv.org/abs/2104.12255v2", "https://export.arxiv.org/pdf/2104.12255v2"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/123", None),
        ("https://pmc.ncbi.nlm.nih.gov/articles/PMC1/pdf/a.pdf", None),
        ("https://europepmc.org/articles/PMC1?pdf=render", "https://europepmc.org/articles/PMC1?pdf=render"),
        ("not a url", None),
    ],
)
def test_viewers_become_files(url: str, expected: str | None) -> None:
    assert file_address(url) == expected


def test_addresses_that_tell_their_file() -> None:
    assert page_file("https://hal.science/hal-01929506v1") == "https://hal.science/hal-01929506v1/document"
    assert page_file("https://osf.io/ab3cd/") == "https://osf.io/ab3cd/download"
    assert page_file("https://osf.io/search") is None
    assert is_pmc_page("https://www.ncbi.nlm.nih.gov/pmc/articles/1")
    assert not is_pmc_page("https://pubmed.ncbi.nlm.nih.gov/1")


def test_charsets_come_from_header_tag_or_guess() -> None:
    body = '<meta name="citation_title" content="Ménard">'
    for raw, header in (
        (body.encode("latin-1"), "text/html; charset=ISO-8859-1"),
        (b'<meta charset="windows-1252">' + body.encode("cp1252"), "text/html"),
        (body.encode("cp1252"), ""),
        (body.encode(), "text/html; charset=punycode"),
        (("\ufeff" + body).encode("utf-16-le"), ""),
    ):
        assert extract(PAGE, raw, {"content-type": header}).title == "Ménard"


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 60_000,
        b'<a href="/x.pdf">' * 100_000,
        b"<a href='/x'>" + b"- " * 100_000 + b"pdf x</a>",
        b"<p " + b"a=b " * 400_000,
        b'<meta name="citation_pdf_url" content="' + b"a" * 3_000_000,
        b'<script type="application/ld+json">' + b"[" * 100_000 + b"</script>",
        b"x" * 9_000_000,
        b"",
        b"\x00\xff" * 1000,
    ],
)
def test_hostile_pages_cost_little(body: bytes) -> None:
    started = time.thread_time()
    extract(PAGE, body, {"link": "<" * 5000 + ";" * 5000})
    assert time.thread_time() - started < 3


@examples(100)
@given(st.text(alphabet="<>=\"'/ameta hrefpdfcontent\x00&;é", max_size=200))
def test_no_markup_breaks_the_reader(text: str) -> None:
    extract(PAGE, text.encode(), {"content-type": "text/html"})


ARTICLE = TAGS + "<body><p>An abstract.</p>"


def json_ld(**node: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(node)}</script>'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<meta name="citation_xml_url" content="/x.xml">', [("/x.xml", "application/xml")]),
        ('<meta name="fulltext_xml" content="/x.xml">', [("/x.xml", "application/xml")]),
        ('<link rel="alternate" type="text/xml" href="/x.xml">', [("/x.xml", "application/xml")]),
        ('<meta name="citation_fulltext_html_url" content="/h">', [("/h", "text/html")]),
        ('<meta name="citation_fulltext_html_url" content="/articles/view/4711">',
         [("/articles/view/4711", "text/html")]),
        ('<meta name="citation_fulltext_html_url" content="/h"><meta name="citation_xml_url" content="/x">',
         [("/x", "application/xml"), ("/h", "text/html")]),
        (json_ld(encoding={"encodingFormat": "application/xml", "contentUrl": "/x"}), [("/x", "application/xml")]),
        ('<link rel="alternate" type="application/rss+xml" href="/feed">', []),
        ('<link rel="alternate" type="application/xml" title="OAI record" href="/oai?verb=GetRecord">', []),
        ('<link rel="alternate" type="application/unixref+xml" href="/a.unixref">', []),
        ('<meta name="citation_xml_url" content="/articles/view/4711">', []),
    ],
)  # fmt: skip
def test_full_text_in_other_forms_is_found(body: str, expected: list[tuple[str, str]]) -> None:
    found = facts(ARTICLE + body)
    assert [(link.url.removeprefix(SITE), link.mime) for link in found.other_forms] == expected
    assert found.pdf_links == ()


EVIDENCE = (
    '<meta name="citation_pdf_url" content="/1">',
    '<meta name="bepress_citation_pdf_url" content="/2">',
    '<meta name="eprints.document_url" content="/3.pdf">',
    '<meta name="wkhealth_pdf_url" content="/4">',
    f'<meta name="DC.identifier" content="{SITE}/5.pdf">',
    '<link rel="alternate" type="application/pdf" href="/6">',
)


def test_tags_speak_in_the_order_of_their_strength() -> None:
    """Wherever they stand on the page."""
    assert [url.removeprefix(SITE) for url, _ in links("".join(reversed(EVIDENCE)))] == [
        "/1", "/2", "/3.pdf", "/4", "/5.pdf", "/6",
    ]  # fmt: skip


@pytest.mark.parametrize("stronger", range(4))
def test_weaker_evidence_is_asked_only_when_stronger_is_silent(stronger: int) -> None:
    steps = [
        json_ld(associatedMedia=[{"encodingFormat": "application/pdf", "contentUrl": "/ld"}]),
        '<embed type="application/pdf" src="/viewer">',
        '<a class="ep_document_link" href="/rule.pdf">Text</a>',
        '<a href="/anchor.pdf">PDF</a>',
    ]
    expected = ["/ld", "/viewer", "/rule.pdf", "/anchor.pdf"]
    body = "".join(reversed(steps[stronger:]))
    found = [url.removeprefix(SITE) for url, _ in links(body)]
    assert found == ([expected[stronger]] if stronger < 3 else ["/anchor.pdf"])


def test_of_several_pdf_tags_those_of_the_own_site_come_first() -> None:
    body = (
        '<meta name="citation_pdf_url" content="https://elsewhere.example.net/a">'
        '<meta name="citation_pdf_url" content="https://cdn.example.org/b"><meta name="citation_pdf_url" content="/c">'
    )
    assert [url for url, _ in links(body)] == [
        "https://cdn.example.org/b",
        SITE + "/c",
        "https://elsewhere.example.net/a",
    ]


@pytest.mark.parametrize(
    ("node", "free", "kind"),
    [
        ({"isAccessibleForFree": False}, False, PageKind.PAYWALL),
        ({"isAccessibleForFree": "False"}, False, PageKind.PAYWALL),
        ({"isAccessibleForFree": "https://schema.org/False"}, False, PageKind.PAYWALL),
        ({"@graph": [{"isAccessibleForFree": False}]}, False, PageKind.PAYWALL),
        ({"isAccessibleForFree": True}, True, PageKind.ARTICLE),
        ({"isAccessibleForFree": True, "hasPart": {"isAccessibleForFree": False}}, True, PageKind.ARTICLE),
        ({"isAccessibleForFree": 7}, None, PageKind.ARTICLE),
        ({}, None, PageKind.ARTICLE),
    ],
)
def test_a_page_says_whether_the_paper_is_free(node: dict[str, object], free: bool | None, kind: PageKind) -> None:
    found = facts(ARTICLE + json_ld(**node))
    assert (found.is_free, found.kind) == (free, kind)


def test_words_about_buying_do_not_outweigh_what_the_data_says() -> None:
    assert facts(ARTICLE + "Buy this article" + json_ld(isAccessibleForFree=True)).kind == PageKind.ARTICLE
    assert facts(ARTICLE + "Buy this article").kind == PageKind.PAYWALL


def test_a_pdf_tag_on_a_page_that_is_not_free_is_still_a_candidate() -> None:
    found = facts(ARTICLE + '<meta name="citation_pdf_url" content="/a">' + json_ld(isAccessibleForFree=False))
    assert ([link.url for link in found.pdf_links], found.is_free) == ([SITE + "/a"], False)


def test_every_kind_of_page_that_is_not_the_paper_is_a_reason() -> None:
    for kind in set(PageKind) - {PageKind.ARTICLE, PageKind.OTHER}:
        assert kind.value in set(Reason)


@pytest.mark.parametrize(
    ("body", "url"),
    [
        ("<p>words</p>", "https://linkinghub.elsevier.com/retrieve/pii/S1"),
        ("<p>Redirecting you to the publisher.</p>", PAGE),
        ("<p>words</p>", "https://chooser.crossref.org/?doi=10.1/x"),
    ],
)
def test_a_router_that_points_nowhere_is_still_named_a_router(body: str, url: str) -> None:
    found = facts(body, url=url)
    assert (found.kind, found.next_urls) == (PageKind.ROUTER, ())


def test_an_address_that_only_a_rule_knows_is_a_guess_and_not_a_link() -> None:
    url = "https://link.springer.com/article/10.1007/s1"
    body = '<meta name="citation_doi" content="10.1007/s1"><body>words'
    found = facts(body, url=url)
    assert found.pdf_links == ()
    assert found.guess is not None
    assert (found.guess.url, found.guess.evidence) == (
        "https://link.springer.com/content/pdf/10.1007/s1.pdf",
        "address_rule",
    )
    assert facts(body + "<p>Buy this article</p>", url=url).guess is None
    assert facts(body + '<a data-test="pdf-link" href="/p.pdf">PDF</a>', url=url).guess is None


LD_KEYS = ("@graph", "@type", "encoding", "encodingFormat", "contentUrl", "url", "isAccessibleForFree", "article")


def nested(levels: int) -> bytes:
    inner = b'{"encodingFormat":"application/pdf"}'
    return b'<script type="application/ld+json">' + b'{"encoding":' * levels + inner + b"}" * levels + b"</script>"


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        nested(900),
        b'<script type="application/ld+json">[' + b'{"@graph":[{}]},' * 20_000 + b"{}]</script>",
        b'<script type="application/ld+json">{}</script>' * 20_000,
        b'<a class="obj_galley_link pdf" href="/article/view/1/' * 30_000,
        b'<a class="file" href="/article/view/1/2"><b>pdf</b></a>' * 20_000,
        b"<div class=box>" * 200 + b"<a class=x>" * 50_000,
        b'<link rel="alternate" type="text/xml" href="/x">' * 50_000,
        b'<meta name="citation_pdf_url" content="/a?b=1">' * 50_000,
        b'<meta name="citation_doi" content="10.1234/' + b"a" * 4000 + b'">' * 500,
        b'{"pdfPath" : "/' + b"a" * 3_000_000,
        b"<p " + b" ".join(b"a%d=b" % number for number in range(60_000)) + b">",
        b"&amp;" * 700_000,
    ],
)
def test_hostile_data_on_a_page_costs_little(body: bytes) -> None:
    """Depth, size, number of elements and attributes."""
    for url in (PAGE, "https://ieeexplore.ieee.org/document/3"):
        started = time.thread_time()
        found = extract(url, body, {})
        assert time.thread_time() - started < 3
        assert len(found.pdf_links) <= 6
        assert len(found.other_forms) <= 6


@pytest.mark.slow
@examples(80)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(LD_KEYS),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_data_in_a_page_breaks_the_reader(value: object) -> None:
    for kind in ("application/ld+json", "application/json"):
        body = f'<script type="{kind}">{json.dumps(value)}</script>'
        extract("https://www.sciencedirect.com/science/article/pii/S1", body.encode(), {})
