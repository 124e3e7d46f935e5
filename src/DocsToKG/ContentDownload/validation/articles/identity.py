"""Is this XML or HTML the paper that was asked for, by the DOI, the numbers and the title that it declares?

PDFs are judged by `validation`. Promises: never rejects an article on a doubtful sign, nor anything without a wanted id
or title to compare with.
"""

from __future__ import annotations

from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.articles.titles import is_file_name, plain_words
from DocsToKG.ContentDownload.validation.dois import (
    DEPOSITS,
    ONE_DOI_A_PAPER,
    PREPRINTS,
    is_part,
    is_placeholder,
    normal_doi,
    same_doi,
)
from DocsToKG.ContentDownload.validation.identity.verdict import Proof
from DocsToKG.ContentDownload.validation.report import Named, TextFacts

_TITLE_WORDS = 4
_TITLE_CHARS = 20


def judge_identity(facts: TextFacts, work: WorkArtifact, *, page_doi: str | None = None) -> None:
    """Raise `CandidateRejected(wrong-article)` when the article carries another paper's DOI as its own, by a field that
    names it or by the page that linked to it (`page_doi`). A field that names a part of the wanted paper (`x.s001`)
    makes it a `supplement`.

    Nothing is rejected when a field names the wanted DOI; when the fields name two papers; when either DOI is a
    deposit's; when one is a preprint's and the titles do not clearly differ; when they differ only in a version suffix;
    when the DOI is a template's; or when the article bears the wanted title. A doubt is decided for the file.
    """
    wanted = _wanted(work)
    if wanted is None or owns_doi(facts, work):
        return
    for doi in [doi for doi in (_lone(facts.doi_declared), normal_doi(page_doi)) if doi]:
        if is_part(doi, wanted):
            raise CandidateRejected(Reason.SUPPLEMENT, f"it is {doi}, a part of the paper")
        if _is_another_paper(doi, wanted, facts, work.title) and not _bears_title(facts, work.title):
            raise CandidateRejected(Reason.WRONG_ARTICLE, f"it is {doi}, wanted was {wanted}")


def judge_numbers(facts: TextFacts, work: WorkArtifact) -> None:
    """Raise `wrong-article` when an article without a DOI bears another number, or else another title."""
    if facts.doi_declared and _wanted(work):
        return
    for name, seen, wanted in (("PMC", facts.pmcid, work.pmcid), ("PubMed", facts.pmid, work.pmid)):
        if seen and wanted:
            if seen.upper().removeprefix("PMC") != wanted.upper().removeprefix("PMC"):
                raise CandidateRejected(Reason.WRONG_ARTICLE, f"its {name} number is {seen}, wanted was {wanted}")
            return
    if _titles_differ(facts.title, work.title):
        raise CandidateRejected(Reason.WRONG_ARTICLE, "its title is another one")


def require_identity(facts: TextFacts, work: WorkArtifact) -> None:
    """Raise `wrong-article` unless the file says that it is the work. For web pages: a link to an article that is gone
    often leads to the journal's front page, which is long, whole and names nothing."""
    wanted = _wanted(work)
    if owns_doi(facts, work):
        return
    judge_identity(facts, work)
    title, seen = plain_words(work.title or ""), plain_words(facts.title or "")
    if (wanted or title) and not (title and seen and (title in seen or (len(seen) >= _TITLE_CHARS and seen in title))):
        raise CandidateRejected(Reason.WRONG_ARTICLE, "nothing on the page names the paper")


def doi_in(facts: Named, work: WorkArtifact) -> str | None:
    """The DOI of the paper as the file has it; of several the work's own, else the first, which names the file."""
    if not facts.doi_seen:
        return None
    wanted = _wanted(work)
    own = [doi for doi in facts.doi_seen if wanted and same_doi(doi, wanted)]
    return own[0] if own else facts.doi_seen[0]


def owns_doi(facts: TextFacts, work: WorkArtifact) -> bool:
    """A field of the file says that the wanted DOI is the file's own."""
    wanted = _wanted(work)
    return wanted is not None and any(same_doi(doi, wanted) for doi in facts.doi_declared)


def proof_of(facts: TextFacts, work: WorkArtifact) -> Proof:
    """How sure it is that text is the work which nothing speaks against: its own DOI or number prove it, its title
    alone makes it probable."""
    numbers = ((facts.pmcid, work.pmcid), (facts.pmid, work.pmid))
    if owns_doi(facts, work) or any(seen is not None and seen == wanted for seen, wanted in numbers):
        return Proof.PROVED
    if _bears_title(facts, work.title):
        return Proof.PROBABLE
    is_known = _wanted(work) is not None or work.title is not None or any(wanted for _, wanted in numbers)
    return Proof.UNPROVED if is_known else Proof.NOT_JUDGED


def _wanted(work: WorkArtifact) -> str | None:
    scheme, _, rest = work.work_id.partition(":")
    preprint = f"10.48550/arxiv.{work.arxiv_id}" if work.arxiv_id else None
    return normal_doi(work.doi) or normal_doi(rest if scheme == "doi" else preprint)


def _lone(dois: tuple[str, ...]) -> str | None:
    """The one DOI named; two different papers named leave a doubt."""
    real = [doi for doi in dois if not is_placeholder(doi)]
    return real[0] if real and all(same_doi(doi, real[0]) for doi in real) else None


def _is_another_paper(doi: str, wanted: str, facts: TextFacts, title: str | None) -> bool:
    names = (doi, wanted)
    if same_doi(doi, wanted) or any(name.startswith(DEPOSITS) for name in names):
        return False
    if any(all(name.startswith(server) for name in names) for server in ONE_DOI_A_PAPER):
        return True
    # A preprint and its published paper have two DOIs; then the titles decide, where both are known.
    if any(name.startswith(PREPRINTS) for name in names):
        return _titles_differ(facts.title, title)
    return True


def _titles_differ(one: str | None, other: str | None) -> bool:
    """Two real titles that share less than half of their words. File names and fragments are no titles."""
    if is_file_name(one):
        return False
    first, second = set(plain_words(one or "").split()), set(plain_words(other or "").split())
    if min(len(first), len(second)) < _TITLE_WORDS:
        return False
    return len(first & second) < 0.5 * min(len(first), len(second))


def _bears_title(facts: TextFacts, title: str | None) -> bool:
    """The wanted title is the file's own."""
    wanted = plain_words(title or "")
    if len(wanted) < _TITLE_CHARS or wanted.count(" ") < _TITLE_WORDS - 1:
        return False
    return plain_words(facts.title or "") == wanted
