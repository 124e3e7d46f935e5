"""Files that stand in for the paper: its supplement, its cover, a preview, a form, the volume it is in.

Judges a whole PDF by its first page, its name and its length. Knows the words publishers use for such files. A first
page that cannot be read says nothing. Promises: a doubt is decided for the file; a work that is itself a notice, a
supplement or a table of contents is never judged by what it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.proof.beside import (
    WORK_IS_NOTICE,
    is_in_title,
    longer_stub,
    looks_like_paper,
    stands_beside,
)
from DocsToKG.ContentDownload.proof.facts import PdfFacts
from DocsToKG.ContentDownload.proof.identity import is_part, normal_doi
from DocsToKG.ContentDownload.proof.imprint import find_dois
from DocsToKG.ContentDownload.proof.titles import bears_title, plain_words

_TOP_CHARS = 400
_FIRST_CHARS = 60
_NOTICE_CHARS = 2_500  # a paper of one page has more
_ERROR_CHARS = 600
_BARE_CHARS = 200

_SUPPLEMENT_NAMES = (
    r"(?:electronic |online |web )?supplement(?:ary|al|ing)? (?:online )?"
    r"(?:information|materials?|data|appendix|appendices|figures?|tables?|methods|text|notes?|files?|content|results)"
    r"|supporting (?:online )?(?:information|materials?)|(?:online|web) (?:supplement|appendix)|appendix s\d"
    r"|supplement (?:of|to|for)"
)
# At the top of the page, as a heading: nothing but a journal's name may stand before it on its line.
_HEADING = re.compile(rf"^\W{{0,5}}(?:{_SUPPLEMENT_NAMES})\b", re.IGNORECASE | re.MULTILINE)
# What a part of a supplement calls itself on its first line.
_PART_HEADING = re.compile(
    r"\W{0,5}(?:(?:text|fig(?:ure|\.)?|table|appendix|protocol|methods?|file|data(?:set)?) s\d{1,2}\b"
    r"|s\d{1,2} (?:text|fig(?:ure)?|table|appendix|protocol|methods?|file|data(?:set)?)\b)",
    re.IGNORECASE,
)
_WORK_IS_SUPPLEMENT = re.compile(rf"\W*(?:{_SUPPLEMENT_NAMES}|supplement\b|appendix\b)", re.IGNORECASE)
# Deposits of data are named after the paper they belong to; deposits of papers too, so there the title must say more.
_DATA_DEPOSITS = ("10.6084/", "10.25384/", "10.5061/", "10.17605/", "10.7910/", "10.1594/", "10.17632/", "10.24433/")
_DEPOSITS = ("10.5281/", "10.13140/", "10.17863/", "10.3929/", "10.18452/", "10.6075/", "10.17877/")
_DEPOSITED_PART = re.compile(r"suppl|supporting|append|additional file|\bdata|\bfigures?\b|\btables?\b", re.IGNORECASE)
_COMPONENT_DOI = re.compile(r"[-./](?:s\d{1,3}|suppl?[a-z_]*\d*|sd\d+|mmc\d+)$")
# Names that publishers' systems give to supplements and to nothing else, and words that others choose for them.
_SURE_FILE = re.compile(
    r"(?:^|[-_./])mmc\d{1,3}\.pdf$|_moesm\d{1,3}_esm\.|/suppl_file/|_si_\d{3}\.pdf$|\.s\d{3}\.pdf$", re.IGNORECASE
)
_LIKELY_FILE = re.compile(r"suppl(?:ement|\b|[-_\d])|(?:^|[-_])(?:si|esm)[-_\d.]|supporting[-_]?info", re.IGNORECASE)
# Numbers of a supplement's own: `Figure S1`, or `S1` alone at the foot of the page.
_S_NUMBER = re.compile(
    r"\b(?:fig(?:ure|\.)?|tables?|text|methods?|note|page|eq\.?)\s{0,2}S-?\d{1,2}\b|^S-?1$",
    re.IGNORECASE | re.MULTILINE,
)
_OF_PAPER = re.compile(r"\W*(?:for|to|of|accompan\w+)\b", re.IGNORECASE)
# What servers print into a file instead of an error page.
_REFUSAL = re.compile(
    r"(?:not|no longer|un)[ -]?available (?:for|to) download|access (?:is |has been )?(?:denied|restricted)\b"
    r"|please (?:sign|log) ?in\b|(?:sign|log) ?in to (?:view|read|access|download|continue)"
    r"|you (?:do not|don['’]t) have (?:access|permission)|(?:page|file|document) (?:was |could )?not (?:be )?found"
    r"|(?:under|subject to an?) embargo|subscription (?:is )?required",
    re.IGNORECASE,
)

# A dynamic form that only Adobe's reader fills in.
_FORM = re.compile(r"if this message is not eventually replaced", re.IGNORECASE)
# Pages that were printed into a file instead of the paper.
_WAITING = re.compile(
    r"preparing (?:to|your) download|your download (?:will|should) (?:start|begin)|checking your browser"
    r"|please (?:enable|turn on) (?:javascript|cookies)",
    re.IGNORECASE,
)
_PREVIEW = re.compile(
    r"this is a preview of|preview of subscription content|(?:first|one)[- ]page preview"
    r"|purchase (?:this|the) (?:full )?(?:article|pdf)"
    r"|full text (?:is )?(?:only )?available (?:only )?(?:to|for) subscribers",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    r"^\W{0,5}(?:retraction(?: notice| note| statement)?\b|withdrawn\b|withdrawal notice"
    r"|notice of (?:retraction|withdrawal))"
    r"|this (?:article|paper|manuscript|preprint) has been (?:withdrawn|retracted|removed)",
    re.IGNORECASE | re.MULTILINE,
)
_FRONT = re.compile(
    r"^\W{0,5}(?:front matter|back matter|table of contents|editorial board|cover (?:page|image)|issue information"
    r"|masthead|instructions (?:to|for) authors)\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_COVER = re.compile(
    r"to cite this version|hal is a multi-?disciplinary|citation for published version|take ?down policy", re.IGNORECASE
)


def judge_stand_in(facts: PdfFacts, work: WorkArtifact, *, urls: Sequence[str]) -> None:
    """Raise `CandidateRejected(supplement)` or `(stub)` on strong evidence that the paper itself is not in the file.

    `urls` are the addresses under which the file was asked for and found.
    """
    if facts.pages is None:
        return
    if _is_supplement(facts, work, urls):
        raise CandidateRejected(Reason.SUPPLEMENT, "the file is a supplement to the paper")
    if stands_beside(facts, work):
        raise CandidateRejected(Reason.SUPPLEMENT, "the file is about the making of the paper, or a picture from it")
    what = _stub_kind(facts, work) or longer_stub(facts, work)
    if what is not None:
        raise CandidateRejected(Reason.STUB, what)


def _is_supplement(facts: PdfFacts, work: WorkArtifact, urls: Sequence[str]) -> bool:
    """A heading and a second sign, or a name that nothing else has; never against the looks of a paper."""
    text = facts.first_page
    if _asks_for_supplement(work) or looks_like_paper(text):
        return False
    paths = [unquote(url.partition("?")[0])[-300:] for url in urls]
    if any(map(_SURE_FILE.search, paths)) or _asked_as_part(work, urls):
        return not text.strip() or bool(_HEADING.search(text) or _PART_HEADING.match(text))
    heading = _HEADING.search(text[:_TOP_CHARS])
    if heading is None or facts.partly_read:
        return False
    named = any(_LIKELY_FILE.search(path.rpartition("/")[2]) for path in paths) or _prints_part(facts, work)
    return named or bool(_S_NUMBER.search(text)) or _goes_on_with_title(text, heading, work.title)


def _asks_for_supplement(work: WorkArtifact) -> bool:
    doi, title = normal_doi(work.doi) or "", work.title or ""
    if doi.startswith(_DATA_DEPOSITS) or _COMPONENT_DOI.search(doi):
        return True
    in_deposit = doi.startswith(_DEPOSITS) and (not title or _DEPOSITED_PART.search(title))
    return bool(in_deposit or _WORK_IS_SUPPLEMENT.match(title))


def _asked_as_part(work: WorkArtifact, urls: Sequence[str]) -> bool:
    """The address names a part of the paper by its DOI: `...?id=10.5555/x.s001`."""
    wanted = normal_doi(work.doi)
    named = [doi for url in urls for doi in find_dois(unquote(url[-500:]).replace("&", " "))]
    return wanted is not None and any(is_part(doi.removesuffix(".pdf"), wanted) for doi in named)


def _prints_part(facts: PdfFacts, work: WorkArtifact) -> bool:
    wanted = normal_doi(work.doi)
    return wanted is not None and any(is_part(doi, wanted) for doi in facts.doi_printed)


def _goes_on_with_title(text: str, heading: re.Match[str], title: str | None) -> bool:
    """`Supporting Information for: <the title>`; at the very top of the page the title alone may follow."""
    wanted, rest = plain_words(title or ""), text[heading.end() : heading.end() + _TOP_CHARS]
    leads = heading.start() < _FIRST_CHARS or _OF_PAPER.match(rest)
    return len(wanted) >= 20 and bool(leads) and wanted[:60] in plain_words(rest)


def _stub_kind(facts: PdfFacts, work: WorkArtifact) -> str | None:
    """What the file is instead of the paper. Only short pages of files of one page are doubted at all."""
    text = facts.first_page
    if facts.pages == 1 and _FORM.search(text):
        return "an empty form that asks to wait for its contents"
    if facts.pages != 1 or facts.partly_read or WORK_IS_NOTICE.search(work.title or ""):
        return None
    if work.title is None:
        return _refused(text, work) if len(text) <= _BARE_CHARS else None
    if _PREVIEW.search(text):
        return "a preview of one page"
    if looks_like_paper(text) or len(text) > _NOTICE_CHARS:
        return None
    kinds = (
        (_WAITING, "a page that asks to wait for the paper"),
        (_NOTICE, "a notice in place of the paper"),
        (_FRONT, "front matter, not the paper"),
        (_COVER, "a cover without the paper"),
    )
    found = next((what for pattern, what in kinds if pattern.search(text)), None)
    return found or _refused(text, work)


def _refused(text: str, work: WorkArtifact) -> str | None:
    """A server's refusal is a few words and does not bear the title."""
    refusal = _REFUSAL.search(text) if len(text) <= _ERROR_CHARS else None
    named = work.title is not None and (refusal is not None and is_in_title(refusal[0], work))
    if refusal is None or named or bears_title(text, work.title):
        return None
    return "a page that refuses the paper"
