"""The proof of one candidate, from the weakest claim to the strongest: digests, structure, identity, kind.

Knows the order and which proof belongs to which form. Does not fetch, store or decide what comes next.
Promises: what passes is whole, is of the form that was asked for, and nothing in it says that it is not the paper.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, PutOff
from DocsToKG.ContentDownload.validation.articles.full_text_page import prove_html
from DocsToKG.ContentDownload.validation.articles.identity import (
    judge_identity,
    judge_numbers,
    proof_of,
    require_identity,
)
from DocsToKG.ContentDownload.validation.articles.jats import prove_xml
from DocsToKG.ContentDownload.validation.articles.notices import judge_own_title
from DocsToKG.ContentDownload.validation.checksum import check_headers, check_published
from DocsToKG.ContentDownload.validation.forms import HEADER_BYTES, PDF, XML, Form, has_pdf_header
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.signs import Origin
from DocsToKG.ContentDownload.validation.identity.verdict import Proof, Verdict
from DocsToKG.ContentDownload.validation.pdf.document import ReadOptions
from DocsToKG.ContentDownload.validation.pdf.examination import Examination
from DocsToKG.ContentDownload.validation.pdf.structure import prove_pdf
from DocsToKG.ContentDownload.validation.pdf.worker_pool import CLOSED, PoolLimits, TextEngine, shared_engine
from DocsToKG.ContentDownload.validation.policy import Decision, ValidationRules, decide, reason_of
from DocsToKG.ContentDownload.validation.report import PdfFacts, TextFacts
from DocsToKG.ContentDownload.validation.source import Source, head_of
from DocsToKG.core.values import lean_dataclass

_DEFAULT_RULES = ValidationRules()
_NOTHING_KNOWN = KnownWork()
_NOT_JUDGED = Verdict(Proof.NOT_JUDGED)


@lean_dataclass(frozen=True, slots=True)
class ReceivedFile:
    """Bytes with their digests, and what the server said of them. Header names are lower case.

    A digest that nobody has made is empty; it is made where somebody states one to compare with."""

    file: Source
    md5: str
    sha256: str
    url: str
    headers: Mapping[str, str]


def check_digests(plan: DownloadPlan, came: ReceivedFile, inner: ReceivedFile | None = None) -> None:
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
    form: Form,
    plan: DownloadPlan,
    work: WorkArtifact,
    came: ReceivedFile,
    *,
    min_pdf_bytes: int,
    rules: ValidationRules = _DEFAULT_RULES,
    engine: TextEngine | None = None,
) -> PdfFacts | TextFacts:
    """What the file shows of itself; raises `CandidateRejected` with the reason when it is not the paper.

    The thread waits for the text engine where a PDF is to be read."""
    if form is PDF:
        return _prove_pdf(plan, work, came, min_pdf_bytes, rules, engine)
    return _prove_text(form, plan, work, came)


async def proving(
    form: Form,
    plan: DownloadPlan,
    work: WorkArtifact,
    came: ReceivedFile,
    *,
    min_pdf_bytes: int,
    rules: ValidationRules = _DEFAULT_RULES,
    engine: TextEngine | None = None,
) -> PdfFacts | TextFacts:
    """`prove` that leaves the event loop to others while a PDF is read."""
    if form is not PDF or not _has_loop():
        return prove(form, plan, work, came, min_pdf_bytes=min_pdf_bytes, rules=rules, engine=engine)
    begun = _begin_pdf(plan, work, came, min_pdf_bytes, rules, engine)
    read: Future[Examination] | Examination | None = begun.found
    found = read if not isinstance(read, Future) else await _answer_of(read)
    return _end_pdf(begun, found, plan, rules)


async def _answer_of(read: Future[Examination]) -> Examination:
    return await asyncio.wrap_future(read)


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _prove_text(form: Form, plan: DownloadPlan, work: WorkArtifact, came: ReceivedFile) -> TextFacts:
    found = _prove_xml(plan, work, came) if form is XML else _prove_page(work, came)
    return replace(found, proof=proof_of(found, work))


def _prove_page(work: WorkArtifact, came: ReceivedFile) -> TextFacts:
    page = prove_html(came.file, url=came.url, headers=came.headers)
    judge_own_title(page, work)
    require_identity(page, work)
    return page


def known_of(work: WorkArtifact) -> KnownWork:
    """What is known of the work that a file can show."""
    if not (work.title or work.doi or work.arxiv_id or work.authors or work.metadata) and work.work_id.startswith(
        "url:"
    ):
        return _NOTHING_KNOWN
    scheme, _, rest = work.work_id.partition(":")
    others = (work.metadata.get(name) for name in ("preprint_doi", "published_doi"))
    named = [doi for doi in others if isinstance(doi, str)]
    return KnownWork.of(
        dois=[work.doi, rest if scheme == "doi" else None, *named],
        arxiv_id=work.arxiv_id,
        title=work.title,
        authors=work.authors,
        year=work.publication_year,
        first_page=work.first_page,
        last_page=work.last_page,
        journal=work.journal,
    )


@dataclass(frozen=True, slots=True)
class _Begun:
    """A PDF whose structure is sound, and what was found in it, at once or by a worker; None: nobody looked."""

    facts: PdfFacts
    known: KnownWork
    found: Future[Examination] | Examination | None


def _prove_pdf(
    plan: DownloadPlan,
    work: WorkArtifact,
    came: ReceivedFile,
    min_bytes: int,
    rules: ValidationRules,
    engine: TextEngine | None,
) -> PdfFacts:
    begun = _begin_pdf(plan, work, came, min_bytes, rules, engine)
    found = begun.found.result() if isinstance(begun.found, Future) else begun.found
    return _end_pdf(begun, found, plan, rules)


def _begin_pdf(
    plan: DownloadPlan,
    work: WorkArtifact,
    came: ReceivedFile,
    min_bytes: int,
    rules: ValidationRules,
    engine: TextEngine | None,
) -> _Begun:
    known = known_of(work)
    # Where no text is read, the streams of a small file are not worth the way to a worker.
    along = "none" if known.is_comparable else rules.streams
    facts = prove_pdf(came.file, min_bytes=min_bytes, url=came.url, headers=came.headers, streams=along)
    if facts.streams is not None:
        return _Begun(facts, known, Examination(_NOT_JUDGED, streams=facts.streams))
    options = ReadOptions(
        pages=rules.pages,
        last_pages=rules.last_pages,
        max_letters=rules.max_letters,
        streams=rules.streams,
        # One page may be an error's, whatever was wanted.
        text=known.is_comparable or facts.pages == 1,
    )
    if not options.text and options.streams == "none":
        return _Begun(facts, known, None)
    origin = Origin(urls=(plan.url, came.url), page_doi=plan.page_doi)
    return _Begun(facts, known, (engine or _engine(rules)).examine(came.file, known, options, origin=origin))


def _engine(rules: ValidationRules) -> TextEngine:
    return shared_engine(PoolLimits(rules.workers, rules.timeout_s, rules.memory_bytes))


def _end_pdf(begun: _Begun, found: Examination | None, plan: DownloadPlan, rules: ValidationRules) -> PdfFacts:
    if found is None:
        return begun.facts
    if found.failure == CLOSED:
        raise PutOff(Reason.BACKOFF, "the run ends before the file was judged", url=plan.url)
    if found.damage and not rules.keep_damaged:
        raise CandidateRejected(Reason.CORRUPT_PDF, f"damaged: {'; '.join(found.damage[:3])}")
    verdict = found.verdict
    decision = decide(verdict, plan, begun.known, rules.unproved)
    if decision is not Decision.REFUSE:
        return replace(
            begun.facts,
            validation=found.record(),
            doi_seen=found.dois,
            title=found.title,
            producer=found.producer,
            decision=decision,
        )
    why = "; ".join(verdict.evidence[:4])
    if verdict.proof is Proof.REFUSED and verdict.kind is not None:
        raise CandidateRejected(reason_of(verdict.kind), f"{verdict.kind}: {why}")
    raise CandidateRejected(Reason.UNPROVED, f"nothing in the file shows that it is the paper: {why}")


def _prove_xml(plan: DownloadPlan, work: WorkArtifact, came: ReceivedFile) -> TextFacts:
    article = prove_xml(came.file, url=came.url, headers=came.headers)
    judge_identity(article, work, page_doi=plan.page_doi)
    judge_own_title(article, work)
    judge_numbers(article, work)
    return article
