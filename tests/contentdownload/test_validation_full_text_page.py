"""Full text as a web page is proved in its own way: the text is there, the page is whole, and it is the right one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.articles.full_text_page import prove_html
from DocsToKG.ContentDownload.validation.candidate import ReceivedFile, prove
from DocsToKG.ContentDownload.validation.forms import HTML
from DocsToKG.ContentDownload.validation.report import TextFacts

DOI = "10.5555/nets.2020.5"
TITLE = "On the shape of very deep networks"
URL = "https://example.org/nets/5/full"
WORK = WorkArtifact(f"doi:{DOI}", doi=DOI, title=TITLE)
PARAGRAPH = "<p>" + "A network that is deep has a shape, and the shape of it is what we look at here. " * 6 + "</p>"
SECTIONS = "".join(f"<h2>{name}</h2>{PARAGRAPH * 4}" for name in ("Introduction", "Methods", "Results", "Discussion"))
ABSTRACT = (
    f"<h2>Abstract</h2><h3>Background</h3>{PARAGRAPH * 2}<h3>Methods</h3>{PARAGRAPH * 2}<h3>Results</h3>{PARAGRAPH}"
)
REFERENCES = "<h2>References</h2>" + "".join(
    f"<p>{number}. A. Author, B. Author. A long title of a paper that somebody wrote. Journal of Nets, 2019.</p>"
    for number in range(80)
)
FURNITURE = (
    "<nav>" + PARAGRAPH * 3 + "</nav><ul>" + "<li>Another article with a long enough title to be read as prose, "
    "which it is not, because it is in a list of links.</li>" * 60 + "</ul><footer>" + PARAGRAPH * 3 + "</footer>"
    '<div class="related-articles">' + PARAGRAPH * 9 + '</div><div class="cookie-banner">' + PARAGRAPH * 5 + "</div>"
)
META = f'<meta name="citation_doi" content="{DOI}"><meta name="citation_title" content="{TITLE}">'


def page(body: str, *, meta: str = META, end: str = "</body></html>") -> bytes:
    return f"<!DOCTYPE html><html><head><title>{TITLE} | Nets</title>{meta}</head><body>{body}{end}".encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "candidate"


def facts_of(path: Path, data: bytes, url: str = URL) -> TextFacts:
    path.write_bytes(data)
    return prove_html(path, url=url, headers={"content-type": "text/html; charset=utf-8"})


def reason(path: Path, data: bytes, url: str = URL) -> str:
    with pytest.raises(CandidateRejected) as caught:
        facts_of(path, data, url)
    return caught.value.reason


def test_an_article_with_its_sections_passes(path):
    facts = facts_of(path, page(FURNITURE + ABSTRACT + SECTIONS + REFERENCES))
    assert facts.doi_declared == (DOI,)
    assert facts.title == TITLE
    assert facts.chars == facts_of(path, page(SECTIONS)).chars, "furniture, abstract and references are not counted"


def test_a_letter_of_one_page_passes(path):
    letter = f"<h2>Introduction</h2>{PARAGRAPH * 9}<h2>References</h2>"
    assert 3_000 < facts_of(path, page(letter)).chars < 5_000


def test_an_old_article_without_headings_passes_when_it_is_long(path):
    assert facts_of(path, page(PARAGRAPH * 30)).chars > 10_000
    assert reason(path, page(PARAGRAPH * 9)) == Reason.NO_FULL_TEXT


def test_paragraphs_may_be_divisions_with_words_set_off(path):
    lines = PARAGRAPH.replace("<p>", '<div class="NLM_p">').replace("</p>", "</div>").replace("shape", "<i>shape</i>")
    assert facts_of(path, page("<h2>Methods</h2>" + lines * 8 + "<h2>Results</h2>" + lines * 8)).chars > 6_000


@pytest.mark.parametrize(
    "body",
    [
        ABSTRACT,
        ABSTRACT + REFERENCES + FURNITURE,
        f'<section class="abstract">{PARAGRAPH * 12}</section>' + REFERENCES,
        "<h2>Abstract</h2>" + PARAGRAPH + "<h2>Introduction</h2><p>Read on in the PDF.</p><h2>References</h2>",
        FURNITURE,
        "<p>Nothing here.</p>",
    ],
)
def test_an_abstract_page_is_no_full_text(path, body):
    assert reason(path, page(body)) == Reason.NO_FULL_TEXT


@pytest.mark.parametrize(
    ("data", "url", "expected"),
    [
        (b"<title>Just a moment...</title>", URL, Reason.CHALLENGE),
        (page('<form><input type="password"></form>'), URL, Reason.LOGIN_WALL),
        (page(ABSTRACT + "Purchase this article"), URL, Reason.PAYWALL),
        (page("words"), "https://example.org/action/cookieAbsent", Reason.COOKIE_WALL),
        (b"", URL, Reason.EMPTY_BODY),
        (b" \n ", URL, Reason.EMPTY_BODY),
    ],
)
def test_a_wall_keeps_its_own_reason(path, data, url, expected):
    assert reason(path, data, url) == expected


def test_an_article_that_also_sells_something_is_the_article(path):
    assert facts_of(path, page(SECTIONS + "<p>Get access to more. Purchase this article in print.</p>")).chars


def test_a_page_whose_end_is_missing_is_truncated(path):
    whole = page(SECTIONS + REFERENCES)
    assert reason(path, page(SECTIONS, end="")) == Reason.TRUNCATED
    for percent in range(1, 100):
        assert reason(path, whole[: len(whole) * percent // 100]) in (Reason.TRUNCATED, Reason.NO_FULL_TEXT)


@pytest.mark.parametrize(
    "hostile",
    [
        b"<div>" * 200_000 + b"</html>",
        b"<p>" + b"<b>" * 100_000 + b"</html>",
        b"<p class='" + b"abstract " * 200_000 + b"'>x</p></html>",
        b"<h2>" + b"References " * 100_000 + b"</h2></html>",
    ],
)
def test_hostile_markup_costs_little(path, hostile):
    begun = time.thread_time()
    assert reason(path, b"<html><body>" + hostile) == Reason.NO_FULL_TEXT
    assert time.thread_time() - begun < 3


def judged(path: Path, data: bytes, work: WorkArtifact = WORK) -> str | None:
    path.write_bytes(data)
    came = ReceivedFile(file=path, md5="", sha256="", url=URL, headers={})
    try:
        prove(HTML, DownloadPlan(URL, "test", expected_mime="text/html"), work, came, min_pdf_bytes=0)
    except CandidateRejected as error:
        return error.reason
    return None


OTHER = (
    '<meta name="citation_doi" content="10.9999/other"><meta name="citation_title" content="A story of many fishes">'
)


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (META, None),
        (f'<meta name="dc.identifier" content="doi:{DOI.upper()}">', None),
        (f'<meta name="citation_title" content="{TITLE.upper()}.">', None),
        (OTHER, Reason.WRONG_ARTICLE),
        ('<meta name="citation_title" content="A story of many fishes">', Reason.WRONG_ARTICLE),
    ],
)
def test_the_page_must_say_that_it_is_the_paper(path, meta, expected):
    assert judged(path, page(SECTIONS, meta=meta)) == expected


def test_the_front_page_of_a_journal_names_no_paper(path):
    """A link to an article that is gone often leads there."""
    front = page(SECTIONS, meta="").replace(TITLE.encode(), b"Welcome to the journal of all things")
    assert judged(path, front) == Reason.WRONG_ARTICLE
    assert judged(path, front, WorkArtifact("url:x")) is None, "there is nothing to compare with"
