"""What publishers keep around a paper: its reviews, its forms, its picture, the issue and the volume it is in.

Judges a PDF by the first lines of its first page. Knows the marks of a paper's own first page, against which nothing is
decided. Promises: a paper that has such words in its title is never taken for one of these.
"""

from __future__ import annotations

import functools
import re

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.proof.facts import PdfFacts
from DocsToKG.ContentDownload.proof.notices import lead
from DocsToKG.ContentDownload.proof.titles import bears_title, plain_words, shares_title

_FORM_PAGES = 6
_CONTENTS_PAGES = 10
_FRONT_PAGES = 60
_VOLUME_PAGES = 50
_PICTURE_CHARS = 600
_ENTRY_CHARS = 40

# A paper's first page has at least one of these, a supplement's cover none.
_PAPER = re.compile(
    r"\ba\s?b\s?s\s?t\s?r\s?a\s?c\s?t\b|\bkey\s?words?\b|\bintroduction\b"
    r"|^\W{0,5}summary\b(?! (?:of|for|statistics|data|tables?)\b)"
    r"|\b(?:received|accepted)\b\W{0,3}(?:\d|in |[a-z]{3,9}\W{1,2}\d)"
    r"|\barticle (?:info|history)\b|\bcite this\b(?! version)",
    re.IGNORECASE | re.MULTILINE,
)

# Headings of what publishers keep beside a paper. The page may quote the paper, so its looks do not count.
_BESIDE = re.compile(
    r"^\W{0,5}(?:(?:transparent |open )?peer[- ]review (?:file|reports?|history|record)\b"
    r"|(?:reviewer|referee)s?['’]? (?:comments|reports?)\b|review(?:er)? report\b|decision letter\b"
    r"|response to (?:the )?(?:reviewer|referee)s?\b"
    r"|(?:nature [a-z]{1,20} )?(?:life sciences )?reporting summary\W{0,5}$)",
    re.IGNORECASE | re.MULTILINE,
)
_COPYRIGHT_FORM = re.compile(
    r"^\W{0,5}(?:copyright (?:transfer|release|assignment)\b|(?:transfer|assignment) of copyright\b"
    r"|(?:licen[cs]e|agreement) to publish\b|(?:author|publishing|publication) agreement\b"
    r"|(?:icmje )?(?:form for )?disclosure of (?:potential )?conflicts? of interest\b|conflicts? of interest form\b)",
    re.IGNORECASE | re.MULTILINE,
)
_PICTURE = re.compile(
    r"^\W{0,5}(?:graphical abstract|toc graphic|table of contents graphic|visual abstract)\W{0,5}$",
    re.IGNORECASE | re.MULTILINE,
)
_BOOK_FRONT = re.compile(r"^\W{0,5}(?:front|back) ?matter\W{0,5}$", re.IGNORECASE | re.MULTILINE)
_CONTENTS = re.compile(r"^\W{0,5}(?:table of )?contents\W{0,5}$", re.IGNORECASE | re.MULTILINE)
_ENTRY = re.compile(r"(?:\. ?){3}\d{1,4}$")
_ISSUE = re.compile(r"\bvol(?:ume|\.) ?\d{1,4}\W{1,3}(?:issue|no\.?|number) ?\d{1,3}\b", re.IGNORECASE)
_VOLUME = re.compile(
    r"^\W{0,5}(?:proceedings of|book of abstracts|abstracts (?:of|from)|programme? and abstracts)\b",
    re.IGNORECASE | re.MULTILINE,
)
_EDITED = re.compile(
    r"^\W{0,5}(?:editors?\b|edited by\b|\(eds\.?\)|(?:table of )?contents\W{0,5}$)", re.IGNORECASE | re.MULTILINE
)
_COVER_SHEET = re.compile(
    r"accepted (?:manuscript|version)|author(?:['’]s|s['’])? (?:accepted |final )?(?:manuscript|version)|repository"
    r"|post-?print|pre-?proof|to cite this|citation for published|downloaded (?:from|on|by)|open access archive"
    r"|terms of use|cover ?(?:sheet|page)|research (?:online|portal|explorer)|working paper|technical report|thesis",
    re.IGNORECASE,
)
# Titles of works which are what the patterns above describe.
WORK_IS_NOTICE = re.compile(
    r"\b(?:retract|withdraw|errat|corrig|correct|addend|expression of concern|front ?matter|back ?matter|contents\b"
    r"|editorial board|covers?\b|issue information|masthead|instructions|preview|proceedings|abstracts\b)",
    re.IGNORECASE,
)


@functools.lru_cache(maxsize=16)
def looks_like_paper(text: str) -> bool:
    """The page has at least one of the marks of a paper's first page. Several judges ask it of the same page."""
    return _PAPER.search(text) is not None


def looks_like_cover(text: str) -> bool:
    """A repository's or a publisher's sheet before the paper, which need not bear the title."""
    return not looks_like_paper(text) and _COVER_SHEET.search(text) is not None


def stands_beside(facts: PdfFacts, work: WorkArtifact) -> bool:
    """Reviews, forms about the study, the picture for the contents page: not the paper, nor in its place."""
    text = facts.first_page
    if facts.partly_read:
        return False
    top = lead(text)
    heading = _BESIDE.search(top)
    if heading is None and facts.pages == 1 and len(text) <= _PICTURE_CHARS:
        heading = _PICTURE.search(top)
    if heading is None or is_in_title(heading[0], work):
        return False
    return len({mark.lower() for mark in _PAPER.findall(text)}) <= 1


def longer_stub(facts: PdfFacts, work: WorkArtifact) -> str | None:
    """A form, front matter, a table of contents or a whole volume; it may have many pages, never a paper's looks."""
    text = facts.first_page
    if facts.partly_read or work.title is None or looks_like_paper(text):
        return None
    top = lead(text)
    form = _COPYRIGHT_FORM.search(top) if (facts.pages or 0) <= _FORM_PAGES else None
    if form is not None and not is_in_title(form[0], work):
        return "a form that authors sign"
    if WORK_IS_NOTICE.search(work.title):
        return None
    if (facts.pages or 0) <= _CONTENTS_PAGES and _CONTENTS.search(top) and _lists_papers(text, work.title):
        return "a table of contents, not the paper"
    return None if bears_title(top, work.title) else _collection(facts, work.title)


def _collection(facts: PdfFacts, title: str) -> str | None:
    text, pages = facts.first_page, facts.pages or 0
    top = lead(text)
    if pages <= _FRONT_PAGES and _BOOK_FRONT.search(top):
        return "front matter, not the paper"
    named = pages >= _VOLUME_PAGES and _VOLUME.search(top) and _EDITED.search(text)
    return "the whole volume, not the paper" if named and shares_title(text, title) == 0 else None


def _lists_papers(text: str, title: str) -> bool:
    """Entries with their pages, or the masthead of an issue; the title at most as an entry."""
    lines = text.split("\n")
    others = [line for line in lines if not _ENTRY.search(line[-_ENTRY_CHARS:])]
    is_listing = len(lines) - len(others) > 1 or _ISSUE.search(lead(text)) is not None
    return is_listing and not bears_title("\n".join(others), title)


def may_be_volume(facts: PdfFacts, work: WorkArtifact) -> bool:
    """Many pages under a collection's name, where one paper was asked for: kept, but worth a note."""
    if (facts.pages or 0) < _VOLUME_PAGES or not work.title or WORK_IS_NOTICE.search(work.title):
        return False
    return _VOLUME.search(lead(facts.first_page)) is not None and not bears_title(facts.first_page, work.title)


def is_in_title(heading: str, work: WorkArtifact) -> bool:
    """A paper on peer review has the words of such a heading in its own title."""
    return work.title is None or plain_words(heading) in plain_words(work.title)
