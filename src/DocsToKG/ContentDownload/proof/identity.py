"""Is this file the paper that was asked for?

Knows what a file's own DOI looks like, and which differences between two DOIs mean nothing.
Promises: never rejects a PDF or XML on a doubtful sign, nor anything without a wanted id or title to compare with.
"""

from __future__ import annotations

import re
import unicodedata

from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.proof.facts import Named, TextFacts
from DocsToKG.ContentDownload.proof.imprint import find_dois

# Preprint servers: the published paper and its preprint are one work with two DOIs.
PREPRINTS = (
    "10.48550/", "10.1101/", "10.64898/", "10.2139/", "10.21203/", "10.20944/", "10.26434/", "10.31234/", "10.31219/",
    "10.31223/", "10.31235/", "10.35542/", "10.36227/", "10.22541/", "10.1002/essoar.", "10.32942/", "10.33774/",
    "10.51094/", "10.12688/", "10.5194/egusphere",
)  # fmt: skip
# Servers whose DOI stands for all versions of a paper: two of them are two papers.
_ONE_DOI_A_PAPER = ("10.48550/", "10.1101/")
# Repositories of data, code and theses: their DOI on a paper names its data, or a deposited copy of the paper.
DEPOSITS = (
    "10.5281/", "10.5061/", "10.6084/", "10.17605/", "10.7910/", "10.1594/", "10.17632/", "10.24433/", "10.13140/",
    "10.17863/", "10.3929/", "10.25384/", "10.15468/", "10.18452/", "10.6075/", "10.17877/", "10.13039/",
)  # fmt: skip
# Left over from templates: they name nothing.
_PLACEHOLDER = re.compile(r"x{3,}|n{4,}|0{7,}|1122445\.1122456|10\.1000/|yyyy|insert|/doi$")
_VERSION = re.compile(r"(?:[./]v\d{1,2}|\.v\d{1,2}\.\d{1,2}|\.full|\.pdf|\.short|\.abstract)+$")
# Words before a DOI which say that it belongs to something else.
_OTHERS = re.compile(
    r"\b(?:data|code|software|suppl|correct|corrigend|errat|retract|comment|reply|respon|relat|companion|accompan|preprint"
    r"|earlier|available|deposit|reference|refer to|see also|funder|et al)|\[\d{1,3}\]|\(\d{4}\)",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"\b(?:correct|corrigend|errat|retract|comment|reply|respon|addend)[a-z]*"
    r"(?: (?:to|on|of|for|the|a|article|paper|by)){0,4} $"
)
_LABEL = re.compile(r"(?:doi\s?[:=]?\s?|doi\.org/)$", re.IGNORECASE)
_FILE_NAME = re.compile(r"^(?:microsoft |untitled)|\.(?:docx?|rtf|tex|dvi|e?ps|pdf|indd|qxd|wpd|odt)\b", re.IGNORECASE)
_TITLE_WORDS = 4
_TITLE_CHARS = 20


def judge_identity(facts: Named, work: WorkArtifact, *, page_doi: str | None = None) -> None:
    """Raise `CandidateRejected(wrong-article)` when the file carries another paper's DOI and not the wanted one.

    A DOI speaks for the file in three places only: a field that names the file itself (XMP `prism:doi`,
    `dc:identifier`, Info `doi`, `Subject`, `Title`), the landing page that linked to it (`page_doi`), and the
    first page's text when it shows one DOI alone, labelled, with no word before it that gives it to data, a
    reference, a correction or the like. Reference lists therefore never count.

    Nothing is rejected when the wanted DOI stands anywhere in the file; when the fields name two papers; when
    either DOI is a deposit's; when one is a preprint's and the titles do not clearly differ; when they differ only
    in a version or component suffix; when the DOI is a template's; or when the file bears the wanted title as its
    own. A doubt is decided for the file.
    """
    wanted = _wanted(work)
    if wanted is None or any(_same(doi, wanted) for doi in facts.doi_seen):
        return
    others = [doi for doi in (_lone(facts.doi_declared), normal_doi(page_doi), _own_print(facts)) if doi]
    for doi in others:
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


def require_identity(facts: Named, work: WorkArtifact) -> None:
    """Raise `wrong-article` unless the file says that it is the work. For web pages: a link to an article that is gone
    often leads to the journal's front page, which is long, whole and names nothing."""
    wanted = _wanted(work)
    if wanted and any(_same(doi, wanted) for doi in facts.doi_declared):
        return
    judge_identity(facts, work)
    title, seen = plain_words(work.title or ""), plain_words(facts.title or "")
    if (wanted or title) and not (title and seen and (title in seen or (len(seen) >= _TITLE_CHARS and seen in title))):
        raise CandidateRejected(Reason.WRONG_ARTICLE, "nothing on the page names the paper")


def doi_in(facts: Named, work: WorkArtifact) -> str | None:
    """The DOI of the paper as the file has it; of several the work's own, else the first, which names the file."""
    wanted = _wanted(work)
    own = [doi for doi in facts.doi_seen if wanted and _same(doi, wanted)]
    return next(iter((*own, *facts.doi_seen)), None)


def _wanted(work: WorkArtifact) -> str | None:
    scheme, _, rest = work.work_id.partition(":")
    preprint = f"10.48550/arxiv.{work.arxiv_id}" if work.arxiv_id else None
    return normal_doi(work.doi) or normal_doi(rest if scheme == "doi" else preprint)


def normal_doi(doi: str | None) -> str | None:
    found = find_dois(doi[:500]) if doi else ()
    return found[0] if found else None


def _lone(dois: tuple[str, ...]) -> str | None:
    """The one DOI named; two different papers named leave a doubt."""
    real = [doi for doi in dois if not _PLACEHOLDER.search(doi)]
    return real[0] if real and all(_same(doi, real[0]) for doi in real) else None


def _own_print(facts: Named) -> str | None:
    doi = _lone(facts.doi_printed)
    if doi is None:
        return None
    text = facts.first_page.lower()
    at = text.find(doi)
    before = text[max(0, at - 120) : at]
    label = _LABEL.search(before)
    return doi if at >= 0 and label and not _OTHERS.search(before) else None


def _same(one: str, other: str) -> bool:
    """One paper: equal, or one continues the other (a version, a component, the next word run into it)."""
    short, long = sorted((_VERSION.sub("", one), _VERSION.sub("", other)), key=len)
    # A digit that goes on is another number: 10.1/x.12 is not a part of 10.1/x.123.
    return long == short or (long.startswith(short) and not (short[-1].isdigit() and long[len(short)].isdigit()))


def _is_another_paper(doi: str, wanted: str, facts: Named, title: str | None) -> bool:
    names = (doi, wanted)
    if _same(doi, wanted) or any(name.startswith(DEPOSITS) for name in names):
        return False
    if any(all(name.startswith(server) for name in names) for server in _ONE_DOI_A_PAPER):
        return True
    # A preprint and its published paper have two DOIs; then the titles decide, where both are known.
    if any(name.startswith(PREPRINTS) for name in names):
        return _titles_differ(facts.title, title)
    return True


def _titles_differ(one: str | None, other: str | None) -> bool:
    """Two real titles that share less than half of their words. File names and fragments are no titles."""
    if _FILE_NAME.search(one or ""):
        return False
    first, second = set(plain_words(one or "").split()), set(plain_words(other or "").split())
    if min(len(first), len(second)) < _TITLE_WORDS:
        return False
    return len(first & second) < 0.5 * min(len(first), len(second))


def _bears_title(facts: Named, title: str | None) -> bool:
    """The wanted title is the file's own, not the subject of a correction or a comment."""
    wanted = plain_words(title or "")
    if len(wanted) < _TITLE_CHARS or wanted.count(" ") < _TITLE_WORDS - 1:
        return False
    if plain_words(facts.title or "") == wanted:
        return True
    page = plain_words(facts.first_page[:4000])
    at = page.find(wanted)
    return at >= 0 and not _ABOUT.search(page[max(0, at - 60) : at])


def plain_words(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text[:8000]).encode("ascii", "ignore").decode().lower()
    return " ".join(re.findall(r"[a-z0-9]+", plain))
