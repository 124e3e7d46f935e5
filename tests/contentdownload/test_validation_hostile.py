"""Whatever the bytes, a proof ends in facts or in a reason."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.candidate import ReceivedFile, prove
from DocsToKG.ContentDownload.validation.forms import FORMS
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.signs import Origin
from DocsToKG.ContentDownload.validation.identity.verdict import Proof, judge
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText, Line, Page
from DocsToKG.ContentDownload.validation.report import PdfFacts, TextFacts
from DocsToKG.Sandbox.pdf import Paper, make_pdf

WORK = WorkArtifact("doi:10.5555/a", doi="10.5555/a", title="Of things and their names", pmid="1", pmcid="PMC1")
WHOLE = {
    "pdf": make_pdf(Paper("Of things and their names", ("A. B.",), 2020, "10.5555/a"), size_bytes=5000, key="k"),
    "xml": b"<article><front><article-meta><article-id pub-id-type='doi'>10.5555/a</article-id></article-meta></front>"
    b"<body><p>" + b"Words of it. " * 60 + b"</p></body></article>",
    "html": b"<html><head><meta name='citation_doi' content='10.5555/a'></head><body><h2>Introduction</h2><p>"
    + b"Words of it that go on and on. " * 60 + b"</p><h2>Results</h2><p>"
    + b"Words of it that go on and on. " * 60 + b"</p></body></html>",
}  # fmt: skip


def ended(form: str, data: bytes) -> PdfFacts | TextFacts | str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "candidate"
        path.write_bytes(data)
        came = ReceivedFile(file=path, md5="", sha256="", url="https://example.org/a", headers={})
        try:
            return prove(FORMS[form], DownloadPlan(came.url, "test"), WORK, came, min_pdf_bytes=0)
        except CandidateRejected as error:
            return Reason(error.reason)


def test_the_whole_ones_pass():
    assert all(isinstance(ended(form, data), PdfFacts | TextFacts) for form, data in WHOLE.items())


@examples(60)
@given(form=st.sampled_from(sorted(FORMS)), data=st.binary(max_size=3000))
def test_any_bytes_end_in_a_reason(form, data):
    assert isinstance(ended(form, data), Reason)


@pytest.mark.slow
@examples(120)
@given(
    form=st.sampled_from(sorted(FORMS)),
    at=st.floats(0, 1),
    removed=st.integers(0, 200),
    put=st.binary(max_size=40) | st.sampled_from([b"<", b"&x;", b"]]>", b"endobj", b"\0" * 30, b"<!--", b"%%EOF"]),
)
def test_a_damaged_file_ends_in_facts_or_a_reason(form, at, removed, put):
    whole = WHOLE[form]
    place = int(at * len(whole))
    assert ended(form, whole[:place] + put + whole[place + removed :]) is not None


@examples(100)
@given(
    page=st.text(max_size=300),
    title=st.none() | st.text(max_size=80),
    names=st.lists(st.text(max_size=20), max_size=4),
    url=st.text(max_size=60),
    pages=st.integers(1, 3),
)
def test_the_judge_takes_any_text(page, title, names, url, pages):
    rows = page.split("\n")
    lines = tuple(Line(row, 50, 780 - 14 * at, 500, 790 - 14 * at, 10, at // 3) for at, row in enumerate(rows))
    shown = Page(1, 595, 842, lines, len(page))
    known = KnownWork.of(dois=["10.5555/a"], title=title, authors=names, first_page=title, last_page=url, year=2020)
    assert judge(known, DocumentText(pages, (shown,)), Origin(urls=(url,), page_doi=title)).proof in Proof
