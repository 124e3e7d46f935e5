"""Full text in XML is proved in its own way: whole, an article, with a body, and the right one."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.articles.jats import prove_xml
from DocsToKG.ContentDownload.validation.candidate import ReceivedFile, prove
from DocsToKG.ContentDownload.validation.forms import XML
from DocsToKG.ContentDownload.validation.report import TextFacts

DOI = "10.5555/nets.2020.5"
TITLE = "On the shape of very deep networks"
BODY = "<sec><title>Introduction</title><p>" + "Deep networks have a shape. " * 40 + "</p></sec>"
DOCTYPE = '<!DOCTYPE article PUBLIC "-//NLM//DTD JATS 1.2//EN" "JATS-archivearticle1.dtd">'
WORK = WorkArtifact(f"doi:{DOI}", doi=DOI, title=TITLE, pmcid="PMC123")


def article(
    body: str | None = BODY, *, doi: str | None = DOI, title: str = TITLE, ids: str = "", lead: str = DOCTYPE
) -> bytes:
    own = f'<article-id pub-id-type="doi">{doi}</article-id>' if doi else ""
    inner = f"<body>{body}</body>" if body is not None else ""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>{lead}<article article-type="research-article">'
        f"<front><journal-meta><journal-id>nets</journal-id></journal-meta><article-meta>{ids}{own}<title-group>"
        f"<article-title>{title}</article-title></title-group><abstract><p>Short. {'Words. ' * 200}</p></abstract>"
        f"</article-meta></front>{inner}<back><ref-list><ref><element-citation>"
        f'<pub-id pub-id-type="doi">10.9999/other</pub-id></element-citation></ref></ref-list></back></article>'
    ).encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "candidate"


def facts_of(path: Path, data: bytes) -> TextFacts:
    path.write_bytes(data)
    return prove_xml(path)


def reason(path: Path, data: bytes) -> str:
    with pytest.raises(CandidateRejected) as caught:
        facts_of(path, data)
    return caught.value.reason


def test_an_article_with_its_text_passes(path):
    facts = facts_of(path, article(title="On the <italic>shape</italic> of very deep networks"))
    assert facts.title == TITLE
    assert facts.doi_declared == (DOI,)
    assert facts.chars > 800
    assert facts.record()["dois_seen"] == [DOI]


def test_a_set_of_one_article_passes(path):
    inner = article(lead="").partition(b"?>")[2]
    assert facts_of(path, b"<pmc-articleset>" + inner + b"</pmc-articleset>").doi_declared == (DOI,)


def test_prefixed_names_and_other_encodings_pass(path):
    prefixed = (
        article(lead="").replace(b"<article ", b'<j:article xmlns:j="x" ').replace(b"</article>", b"</j:article>")
    )
    assert facts_of(path, prefixed).title == TITLE
    wide = article(lead="").decode().replace("UTF-8", "UTF-16").encode("utf-16")
    assert facts_of(path, wide).title == TITLE


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        "<p>Full text is available as a scanned copy of the original print version.</p>",
        "<p>" + " \n" * 5000 + "</p>",
    ],
)
def test_an_abstract_alone_is_no_full_text(path, body):
    assert reason(path, article(body)) == Reason.NO_FULL_TEXT


def test_the_text_of_a_reply_below_the_article_is_not_the_articles(path):
    reply = f"<sub-article><front-stub/><body>{BODY}</body></sub-article></article>".encode()
    assert reason(path, article(None).replace(b"</article>", reply)) == Reason.NO_FULL_TEXT


def test_a_set_without_an_article_is_no_full_text(path):
    assert reason(path, b'<pmc-articleset><Reply Id="1" error="gone"/></pmc-articleset>') == Reason.NO_FULL_TEXT


def test_every_cut_is_missed(path):
    """DL-07 for XML: a file that lost its end never passes."""
    data = article()
    reasons = {reason(path, data[: len(data) * percent // 100]) for percent in range(2, 100)}
    assert reasons == {Reason.TRUNCATED}
    assert reason(path, data[:-1]) == Reason.TRUNCATED


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", Reason.EMPTY_BODY),
        (b"Not found.", Reason.UNEXPECTED_CT),
        (b'{"error": 1}', Reason.UNEXPECTED_CT),
        (b"<Error><Code>NoSuchKey</Code></Error>", Reason.UNEXPECTED_CT),
        (article().replace(b"</sec>", b"</p>", 1), Reason.UNEXPECTED_CT),
        (b"<!DOCTYPE html><title>Just a moment...</title>", Reason.CHALLENGE),
        (b"<html><body>" + b"<article>words</article>" * 3000, Reason.HTML_INSTEAD_OF_PDF),
    ],
)
def test_what_is_no_article_has_its_reason(path, data, expected):
    assert reason(path, data) == expected


def test_entities_of_the_dtd_are_passed_over(path):
    """The DTD that declares them is not fetched, and a paper full of them is still the paper."""
    facts = facts_of(path, article(BODY + "<p>&alpha;-helices &amp; &mdash;</p>"))
    assert facts.chars > 800


def test_entities_of_the_files_own_making_are_not_expanded(path):
    """SEC-07: a laugh of a billion, and a file of this machine."""
    bomb = '<!DOCTYPE article [<!ENTITY a "hahahahaha">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    tracemalloc.start()
    begun = time.thread_time()
    facts = facts_of(path, article(BODY + "<p>&i;</p>", lead=bomb + "]>"))
    assert time.thread_time() - begun < 4
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    assert facts.chars == facts_of(path, article(BODY + "<p></p>")).chars
    outside = '<!DOCTYPE article [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    assert facts_of(path, article(f"{BODY}<p>&x;</p>", lead=outside)).chars == facts.chars


def test_a_laugh_in_an_attribute_is_refused(path):
    bomb = '<!DOCTYPE article [<!ENTITY a "' + "ha" * 5000 + '"><!ENTITY b "' + "&a;" * 5000 + '">]>'
    begun = time.thread_time()
    assert reason(path, article(BODY + '<p id="&b;"/>', lead=bomb)) == Reason.UNEXPECTED_CT
    assert time.thread_time() - begun < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile", [b"<p>" * 5000, b"<p id='" + b"x" * 20_000_000, b"<!--" + b"x" * 20_000_000, b"<p/>" * 1_100_000]
)
def test_what_has_no_bottom_is_left_early(path, hostile):
    """SEC-07: depth, number and length of tags are bounded."""
    begun = time.thread_time()
    assert reason(path, b"<article>" + hostile) == Reason.TOO_LARGE
    assert time.thread_time() - begun < 10


@pytest.mark.slow
def test_a_long_text_is_read_in_one_go(path):
    begun = time.thread_time()
    assert facts_of(path, article("<p>" + "words " * 2_000_000 + "</p>")).chars == 10_000_000
    assert time.thread_time() - begun < 10


def judged(path: Path, data: bytes, work: WorkArtifact = WORK) -> str | None:
    path.write_bytes(data)
    came = ReceivedFile(file=path, md5="", sha256="", url="https://example.org/x.xml", headers={})
    try:
        prove(XML, DownloadPlan(came.url, "test"), work, came, min_pdf_bytes=0)
    except CandidateRejected as error:
        return error.reason
    return None


def number(kind: str, value: str) -> str:
    return f'<article-id pub-id-type="{kind}">{value}</article-id>'


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (article(), None),
        (article(doi=DOI.upper()), None),
        (article(doi="10.9999/other", title="Quite another story about fishes"), Reason.WRONG_ARTICLE),
        (article(doi=None, ids=number("pmc", "123")), None),
        (article(doi=None, ids=number("pmcid", "PMC123"), title="Another wording of the same thing"), None),
        (article(doi=None, ids=number("pmc", "456")), Reason.WRONG_ARTICLE),
        (article(doi=None), None),
        (article(doi=None, title="Quite another story about many fishes"), Reason.WRONG_ARTICLE),
        (article(doi=None, title="Fishes"), None),
    ],
)
def test_the_article_must_be_the_one_that_was_asked_for(path, data, expected):
    assert judged(path, data) == expected


def test_a_pubmed_number_alone_tells_articles_apart(path):
    work = WorkArtifact("pmid:77", pmid="77")
    assert judged(path, article(ids=number("pmid", "77")), work) is None
    assert judged(path, article(ids=number("pmid", "78")), work) == Reason.WRONG_ARTICLE
