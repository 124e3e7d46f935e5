"""The proof of one candidate, from the weakest claim to the strongest: digests, structure, identity, kind.

Knows the order and which proof belongs to which form. Does not fetch, store or decide what comes next.
Promises: what passes is whole, is of the form that was asked for, and nothing in it says that it is not the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.proof.article_page import prove_html
from DocsToKG.ContentDownload.proof.beside import looks_like_cover, looks_like_paper, may_be_volume
from DocsToKG.ContentDownload.proof.blank import shows_nothing
from DocsToKG.ContentDownload.proof.checksum import check_headers, check_published
from DocsToKG.ContentDownload.proof.facts import PdfFacts, TextFacts
from DocsToKG.ContentDownload.proof.forms import HEADER_BYTES, HTML, PDF, XML, Form, has_pdf_header
from DocsToKG.ContentDownload.proof.identity import judge_identity, judge_numbers, judge_title, require_identity
from DocsToKG.ContentDownload.proof.jats import prove_xml
from DocsToKG.ContentDownload.proof.notices import judge_notice, judge_own_title
from DocsToKG.ContentDownload.proof.pdf import prove_pdf
from DocsToKG.ContentDownload.proof.source import Source, head_of
from DocsToKG.ContentDownload.proof.stand_ins import judge_stand_in
from DocsToKG.core.values import lean_dataclass

_VOLUME_NOTE = "may be the whole volume that the paper is in"


@lean_dataclass(frozen=True, slots=True)
class Came:
    """Bytes with their digests, and what the server said of them. Header names are lower case.

    A digest that nobody has made is empty; it is made where somebody states one to compare with."""

    file: Source
    md5: str
    sha256: str
    url: str
    headers: Mapping[str, str]


def check_digests(plan: DownloadPlan, came: Came, inner: Came | None = None) -> None:
    """Raise `checksum-mismatch` when a stated digest differs. `inner` is the file inside, when it came wrapped:
    a server's headers speak of the bytes it sent, a repository's record may mean either."""
    try:
        check_published(plan.checksum, md5=came.md5, sha256=came.sha256, file=came.file)
    except CandidateRejected:
        if inner is None:
            raise
        check_published(plan.checksum, md5=inner.md5, sha256=inner.sha256, file=inner.file)
    check_headers(came.headers, md5=came.md5, sha256=came.sha256, url=came.url, file=came.file)


def actual_form(expected: Form, file: Source, *, formats: Sequence[str]) -> Form:
    """The form of the bytes. A PDF in answer to another form is welcome where PDFs are; other surprises are not."""
    if expected is PDF:
        return expected
    head = head_of(file, HEADER_BYTES)
    if not has_pdf_header(head) or head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return expected
    if PDF.name not in formats:
        raise CandidateRejected(Reason.UNEXPECTED_CT, f"a PDF, where {expected.name} was promised")
    return PDF


def prove(
    form: Form, plan: DownloadPlan, work: WorkArtifact, came: Came, *, min_pdf_bytes: int
) -> PdfFacts | TextFacts:
    """What the file shows of itself; raises `CandidateRejected` with the reason when it is not the paper."""
    if form is XML:
        return _prove_xml(plan, work, came)
    if form is HTML:
        page = prove_html(came.file, url=came.url, headers=came.headers)
        judge_own_title(page, work)
        require_identity(page, work)
        return page
    return _prove_pdf(plan, work, came, min_pdf_bytes)


def _prove_pdf(plan: DownloadPlan, work: WorkArtifact, came: Came, min_bytes: int) -> PdfFacts:
    facts = prove_pdf(came.file, min_bytes=min_bytes, url=came.url, headers=came.headers)
    if facts.pages == 1 and not facts.first_page and not facts.partly_read and shows_nothing(came.file):
        raise CandidateRejected(Reason.STUB, "one empty page")
    judge_identity(facts, work, page_doi=plan.page_doi)
    judge_stand_in(facts, work, urls=(plan.url, came.url))
    judge_notice(facts, work)
    if work.title and not looks_like_cover(facts.first_page):
        judge_title(facts, work, looks_like_paper=looks_like_paper(facts.first_page))
    return replace(facts, warnings=(_VOLUME_NOTE, *facts.warnings)) if may_be_volume(facts, work) else facts


def _prove_xml(plan: DownloadPlan, work: WorkArtifact, came: Came) -> TextFacts:
    article = prove_xml(came.file, url=came.url, headers=came.headers)
    judge_identity(article, work, page_doi=plan.page_doi)
    judge_own_title(article, work)
    judge_numbers(article, work)
    return article
