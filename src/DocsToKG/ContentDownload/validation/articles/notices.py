"""Corrections, retractions, comments and replies among XML and HTML: papers about the paper, by their own title.

Promises: a notice that was asked for, and a file that declares the wanted DOI, are kept.
"""

from __future__ import annotations

import re

from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.articles.identity import owns_doi
from DocsToKG.ContentDownload.validation.articles.titles import is_file_name, only_speaks_of, plain_words
from DocsToKG.ContentDownload.validation.report import TextFacts

_CORRECTION = r"(?:author |publisher )?(?:errat(?:um|a)|corrigend(?:um|a)|correction|addendum|retraction)"
# `Correction for attenuation` is a method; nothing else is called an erratum.
_SURE = rf"(?:errat(?:um|a)|corrigend(?:um|a))\b|{_CORRECTION}(?: (?:note|notice|statement)\b|\s?:|\W{{0,5}}$)"
_OWN_TITLE = re.compile(rf"\W{{0,5}}(?:{_SURE})", re.IGNORECASE)
# Works that are such papers themselves, or whose titles speak of such things.
_WORK_IS_ONE = re.compile(
    r"\b(?:errat|corrig|correct|addend|retract|withdraw|comments? on\b|repl(?:y|ies) to\b|responses? to\b|rebuttal"
    r"|discussion of\b|expression of concern)",
    re.IGNORECASE,
)


def judge_own_title(facts: TextFacts, work: WorkArtifact) -> None:
    """Raise `wrong-article` when the file's own title is a notice's and the wanted one is not."""
    title, wanted = facts.title or "", work.title
    if wanted is None or _WORK_IS_ONE.search(wanted) or is_file_name(title) or owns_doi(facts, work):
        return
    if plain_words(title) != plain_words(wanted) and (_OWN_TITLE.match(title) or only_speaks_of(title, wanted)):
        raise CandidateRejected(Reason.WRONG_ARTICLE, "by its own title a notice about a paper")
