"""Corrections, retractions, comments and replies: papers about the paper.

Judges by what a file calls itself: its own title, the heading of its first page, the words before the wanted title.
Promises: a notice that was asked for, a file that bears the wanted DOI as its own, and a paper with a notice bound
before it are kept.
"""

from __future__ import annotations

import re

from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.proof.facts import Named, PdfFacts
from DocsToKG.ContentDownload.proof.identity import owns_doi
from DocsToKG.ContentDownload.proof.titles import bears_title, is_file_name, only_speaks_of, plain_words

# A file of more pages may hold the paper behind its notice.
_CORRECTION_PAGES = 3
_NOTICE_PAGES = 10
_TOP_CHARS = 3_000
_LEAD_CHARS = 300
_LEAD_LINES = 6

_CORRECTION = r"(?:author |publisher )?(?:errat(?:um|a)|corrigend(?:um|a)|correction|addendum|retraction)"
# `Correction for attenuation` is a method; nothing else is called an erratum.
_SURE = rf"(?:errat(?:um|a)|corrigend(?:um|a))\b|{_CORRECTION}(?: (?:note|notice|statement)\b|\s?:|\W{{0,5}}$)"
_OWN_TITLE = re.compile(rf"\W{{0,5}}(?:{_SURE})", re.IGNORECASE)
_HEADING = re.compile(rf"^\W{{0,5}}(?:{_SURE})", re.IGNORECASE | re.MULTILINE)
_COMMENT = re.compile(r"comment|reply|response|rebuttal|discussion")
# Works that are such papers themselves, or whose titles speak of such things.
_WORK_IS_ONE = re.compile(
    r"\b(?:errat|corrig|correct|addend|retract|withdraw|comments? on\b|repl(?:y|ies) to\b|responses? to\b|rebuttal"
    r"|discussion of\b|expression of concern)",
    re.IGNORECASE,
)


def judge_notice(facts: PdfFacts, work: WorkArtifact) -> None:
    """Raise `wrong-article` when the PDF is a notice about the wanted paper."""
    if work.title is None or facts.pages is None or facts.pages > _NOTICE_PAGES or owns_doi(facts, work):
        return
    judge_own_title(facts, work)
    if facts.partly_read or _WORK_IS_ONE.search(work.title):
        return
    said = only_speaks_of(facts.first_page[:_TOP_CHARS], work.title) or ""
    if _COMMENT.match(said) or (said and _is_short(facts)) or _is_bare_correction(facts, work.title):
        raise CandidateRejected(Reason.WRONG_ARTICLE, "a notice about the paper")


def judge_own_title(facts: Named, work: WorkArtifact) -> None:
    """Raise `wrong-article` when the file's own title is a notice's and the wanted one is not."""
    title, wanted = facts.title or "", work.title
    if wanted is None or _WORK_IS_ONE.search(wanted) or is_file_name(title) or owns_doi(facts, work):
        return
    if plain_words(title) != plain_words(wanted) and (_OWN_TITLE.match(title) or only_speaks_of(title, wanted)):
        raise CandidateRejected(Reason.WRONG_ARTICLE, "by its own title a notice about a paper")


def lead(text: str) -> str:
    """The first lines of a page: its journal, its kind, its title."""
    return "\n".join(text[:_LEAD_CHARS].split("\n")[:_LEAD_LINES])


def _is_short(facts: PdfFacts) -> bool:
    return (facts.pages or 0) <= _CORRECTION_PAGES


def _is_bare_correction(facts: PdfFacts, title: str) -> bool:
    """`Erratum` over a page that does not even bear the title. On a shared page the paper may begin below it."""
    headed = _HEADING.search(lead(facts.first_page)) is not None
    return _is_short(facts) and headed and not bears_title(facts.first_page, title)
