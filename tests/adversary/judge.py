"""The one place where the cases meet the judge of the product."""

from __future__ import annotations

from typing import NamedTuple

from tests.adversary.case import Case
from tests.adversary.works import IndexedWork

from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.verdict import Proof
from DocsToKG.ContentDownload.validation.pdf.worker_pool import TextEngine

_TIMEOUT_S = 60.0


class Outcome(NamedTuple):
    """`accepted`: proved or probable. `evidence` is what the judge gave as its reasons."""

    word: str
    accepted: bool
    refused: bool
    evidence: str


def known_work(work: IndexedWork, *, pages_known: bool = True) -> KnownWork:
    """What the index tells; of many works it has no pages, but the number of an article."""
    return KnownWork.of(
        dois=(work.doi,),
        arxiv_id=work.arxiv_id,
        title=work.title,
        authors=[author.name.strip() for author in work.authors],
        year=work.year,
        first_page=str(work.first_page) if pages_known else None,
        last_page=str(work.last_page) if pages_known else None,
        journal=work.journal,
    )


def judged(engine: TextEngine, case: Case, data: bytes, *, pages_known: bool = True) -> Outcome:
    """What the product would say of these bytes, when it had asked for the work of the case."""
    known = known_work(case.work, pages_known=pages_known)
    verdict = engine.examine(data, known).result(timeout=_TIMEOUT_S).verdict
    word = f"{verdict.proof} ({verdict.kind})" if verdict.kind else str(verdict.proof)
    return Outcome(word, verdict.is_paper, verdict.proof is Proof.REFUSED, "; ".join(verdict.evidence[:6]))


def wrong(case: Case, outcome: Outcome) -> bool:
    """An impostor that is accepted, or a right file that is refused."""
    return outcome.refused if case.right else outcome.accepted
