"""Is this file the paper that was asked for?

Knows what a file's own DOI looks like, which differences between two DOIs mean nothing, and when titles decide.
Promises: never rejects a PDF or XML on a doubtful sign, nor anything without a wanted id or title to compare with.
"""

from __future__ import annotations

import functools
import re

from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.proof.facts import Named, PdfFacts, TextFacts
from DocsToKG.ContentDownload.proof.imprint import find_dois
from DocsToKG.ContentDownload.proof.titles import bears_title, is_file_name, is_strangers, plain_words

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
    r"\b(?:data|code|software|suppl|correct|corrigend|errat|retract|comment|reply|respon|relat|companion|accompan"
    r"|preprint|earlier|original (?:article|paper)|available|deposit|reference|refer to|see also|funder"
    r"|et al)|\[\d{1,3}\]|\(\d{4}\)",
    re.IGNORECASE,
)
# Words before the wanted DOI which say that the file only speaks of that paper.
_SPOKEN_OF = re.compile(
    r"\b(?:correction|corrigend|errat|retraction|comment|reply|respon|addend|suppl"
    r"|original (?:article|paper|version|public))",
    re.IGNORECASE,
)
# The parts of a paper that have DOIs of their own, made from the paper's.
_COMPONENT = re.compile(r"[-./_](?:supplement|suppl?[-_]?\d{0,3}|s\d{3}|sd\d{1,3}|mmc\d{1,3}|esm\d{0,3})$")
_LABEL = re.compile(r"(?:doi\s?[:=]?\s?|doi\.org/)$", re.IGNORECASE)
_TITLE_WORDS = 4
_TITLE_CHARS = 20


def judge_identity(facts: Named, work: WorkArtifact, *, page_doi: str | None = None) -> None:
    """Raise `CandidateRejected(wrong-article)` when the file carries another paper's DOI as its own.

    A DOI speaks for the file in three places only: a field that names the file itself (XMP `prism:doi`,
    `dc:identifier`, Info `doi`, `Subject`, `Title`), the landing page that linked to it (`page_doi`), and the
    first page's text when it shows one DOI alone, labelled, with no word before it that gives it to data, a
    reference, a correction or the like; or shows the wanted one only as a paper that it speaks of. Reference lists
    therefore never count. A field that names a part of the wanted paper (`x.s001`) makes the file a `supplement`.

    Nothing is rejected when a field names the wanted DOI, or the pages show it as the file's own; when the fields
    name two papers; when either DOI is a deposit's; when one is a preprint's and the titles do not clearly differ;
    when they differ only in a version suffix; when the DOI is a template's; or when the file bears the wanted title
    as its own. A doubt is decided for the file.
    """
    wanted = _wanted(work)
    if wanted is None or _names_itself(facts, wanted, work.title):
        return
    others = [doi for doi in (_lone(facts.doi_declared), normal_doi(page_doi), _own_print(facts, wanted)) if doi]
    for doi in others:
        if is_part(doi, wanted):
            raise CandidateRejected(Reason.SUPPLEMENT, f"it is {doi}, a part of the paper")
        if _is_another_paper(doi, wanted, facts, work.title) and not _bears_title(facts, work.title):
            raise CandidateRejected(Reason.WRONG_ARTICLE, f"it is {doi}, wanted was {wanted}")


def judge_title(facts: PdfFacts, work: WorkArtifact, *, looks_like_paper: bool) -> None:
    """Raise `wrong-article` when the file's first page is that of a paper with quite another title.

    Silent when the page was read in part, or when it names the work by a DOI or an arXiv number: titles change, and
    indexes have them wrong.
    """
    if facts.partly_read or not work.title:
        return
    wanted = _wanted(work)
    if wanted and any(_same(doi, wanted) for doi in facts.doi_seen):
        return
    if work.arxiv_id and work.arxiv_id.lower() in facts.first_page.lower():
        return
    if is_strangers(facts.first_page, facts.title, work.title, looks_like_paper=looks_like_paper):
        raise CandidateRejected(Reason.WRONG_ARTICLE, "its title is another one")


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
    if not facts.doi_seen:
        return None
    wanted = _wanted(work)
    own = [doi for doi in facts.doi_seen if wanted and _same(doi, wanted)]
    return own[0] if own else facts.doi_seen[0]


def _wanted(work: WorkArtifact) -> str | None:
    scheme, _, rest = work.work_id.partition(":")
    preprint = f"10.48550/arxiv.{work.arxiv_id}" if work.arxiv_id else None
    return normal_doi(work.doi) or normal_doi(rest if scheme == "doi" else preprint)


@functools.lru_cache(maxsize=256)
def normal_doi(doi: str | None) -> str | None:
    """As DOIs are compared. The one that is wanted is asked for by every judge."""
    found = find_dois(doi[:500]) if doi else ()
    return found[0] if found else None


def _lone(dois: tuple[str, ...]) -> str | None:
    """The one DOI named; two different papers named leave a doubt."""
    real = [doi for doi in dois if not _PLACEHOLDER.search(doi)]
    return real[0] if real and all(_same(doi, real[0]) for doi in real) else None


def owns_doi(facts: Named, work: WorkArtifact) -> bool:
    """A field of the file or its first page says that the wanted DOI is the file's own."""
    wanted = _wanted(work)
    declared = wanted is not None and any(_same(doi, wanted) for doi in facts.doi_declared)
    return wanted is not None and (declared or _shows(facts.first_page, wanted, unless=_SPOKEN_OF))


def is_part(doi: str, wanted: str) -> bool:
    """`x.s001`, `x-supplement`: made from the paper's DOI for one of its parts."""
    part = _COMPONENT.search(doi)
    return part is not None and _VERSION.sub("", doi[: part.start()]) == _VERSION.sub("", wanted) and doi != wanted


def _names_itself(facts: Named, wanted: str, title: str | None) -> bool:
    """The wanted DOI is in a field that names the file, or on its pages with nothing that says otherwise.

    Against a field that names another paper the pages must show the wanted one as their own. On the second page it
    counts as long as the first one cannot be judged.
    """
    if any(_same(doi, wanted) for doi in facts.doi_declared):
        return True
    if not any(_same(doi, wanted) for doi in facts.doi_seen):
        return False
    printed = any(_same(doi, wanted) for doi in facts.doi_printed)
    rivals = _OTHERS if _lone(facts.doi_declared) else _SPOKEN_OF
    if printed:
        return _shows(facts.first_page, wanted, unless=rivals)
    return not (facts.first_page and title and _lone(facts.doi_declared))


def _shows(page: str, doi: str, *, unless: re.Pattern[str]) -> bool:
    """The DOI stands somewhere on the page without such words shortly before it."""
    text = page.lower()
    at = text.find(doi)
    while at >= 0:
        rest = find_dois(text[at : at + 300])
        if rest and _same(rest[0], doi) and not unless.search(text[max(0, at - 120) : at]):
            return True
        at = text.find(doi, at + 1)
    return False


def _own_print(facts: Named, wanted: str) -> str | None:
    """The DOI that the first page gives to the file. Where it speaks of the wanted paper, that is the first one."""
    speaks_of_wanted = any(_same(doi, wanted) for doi in facts.doi_printed)
    doi = next(iter(facts.doi_printed), None) if speaks_of_wanted else _lone(facts.doi_printed)
    if doi is None or _PLACEHOLDER.search(doi) or is_part(doi, wanted):
        return None
    text = facts.first_page.lower()
    at = text.find(doi)
    before = text[max(0, at - 120) : at]
    label = _LABEL.search(before)
    return doi if at >= 0 and label and not _OTHERS.search(before) else None


def _same(one: str, other: str) -> bool:
    """One paper: equal, or one continues the other (a version, the next word run into it), but not one of its parts."""
    if one == other:
        return True
    if is_part(one, other) or is_part(other, one):
        return False
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
    if is_file_name(one):
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
    return plain_words(facts.title or "") == wanted or bears_title(facts.first_page[:4000], title)
