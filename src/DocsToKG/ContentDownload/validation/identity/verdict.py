"""Is this document the work? A verdict with its evidence.

Proved or not is the gate: what a file is instead of the paper only names the refusal. Pure functions over what is known
of the work and what was read of the file. Promises: never refused for one sign alone; a document with too little text,
or one that was not read to its middle, is unproved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from DocsToKG.ContentDownload.validation.dois import ONE_DOI_A_PAPER, is_part, may_be_twin, normal_doi, same_doi
from DocsToKG.ContentDownload.validation.identity import thresholds
from DocsToKG.ContentDownload.validation.identity.kinds import (
    Kind,
    address_kind,
    is_cover,
    looks_like_paper,
    opening_kind,
)
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.metadata import declared_dois, declared_title
from DocsToKG.ContentDownload.validation.identity.positions import (
    body_size,
    find_title,
    has_title_lines,
    one_language,
    shown_dois,
    shows_doi,
    stamped_arxiv,
    title_share,
)
from DocsToKG.ContentDownload.validation.identity.signs import (
    NOWHERE,
    Origin,
    Signs,
    authors_agree,
    find_title_page,
    read_signs,
)
from DocsToKG.ContentDownload.validation.identity.wholeness import Whole, Wholeness, has_references, judge_wholeness
from DocsToKG.ContentDownload.validation.normalization import content, content_words, fold, script_of
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText, Page


class Proof(StrEnum):
    """How sure it is that the file is the work."""

    PROVED = "proved"
    PROVED_VARIANT = "proved-variant"  # by its DOI, with another title or script
    PROBABLE = "probable"  # title and authors, without the DOI
    UNPROVED = "unproved"
    REFUSED = "refused"
    NOT_JUDGED = "not-judged"  # nothing is known to compare


@dataclass(frozen=True, slots=True)
class Verdict:
    """`kind` is what a refused file is. `evidence` are named facts, the strongest first."""

    proof: Proof
    kind: Kind | None = None
    evidence: tuple[str, ...] = ()
    wholeness: Whole = Whole.UNKNOWN
    look_through: bool = False  # reading more pages may change the verdict

    @property
    def is_paper(self) -> bool:
        return self.proof in (Proof.PROVED, Proof.PROVED_VARIANT, Proof.PROBABLE)


# What is no paper, whichever was wanted.
_NEVER_A_PAPER = frozenset({Kind.ERROR_PAGE, Kind.LOGIN_PAGE, Kind.PREVIEW})


def judge(known: KnownWork, document: DocumentText, origin: Origin = NOWHERE) -> Verdict:
    """The verdict on the pages that were read."""
    if document.is_blank:
        return Verdict(Proof.REFUSED, Kind.BLANK, ("nothing is on its only page",))
    if not known.is_comparable:
        return _judge_alone(document)
    read_all = len(document.pages) >= min(document.page_count, thresholds.LOOK_THROUGH_PAGES)
    if document.letters < thresholds.MIN_LETTERS:
        return _judge_little(known, document, origin, read_all)
    size = body_size(document)
    page, title, authors = find_title_page(known, document, size)
    signs = read_signs(known, document, Signs(page, title, authors), origin, size)
    whole = judge_wholeness(known, document, title_page=page.number)
    evidence = (*_evidence(known, signs), *whole.evidence)
    proof, why = _proof(known, document, signs, whole)
    if proof is Proof.UNPROVED:
        kind = _refusal(known, document, signs, whole.verdict)
        if kind is not None:
            return Verdict(Proof.REFUSED, kind, (f"kind: {kind}", *evidence), whole.verdict, look_through=not read_all)
    return Verdict(
        proof, None, (*(f"not-proved: {reason}" for reason in why), *evidence), whole.verdict,
        look_through=proof is Proof.UNPROVED and not read_all,
    )  # fmt: skip


def _judge_alone(document: DocumentText) -> Verdict:
    """Nothing is known to compare: only a single page that is surely no paper is refused."""
    kind = opening_kind(document, KnownWork()) if document.page_count == 1 else None
    if kind in _NEVER_A_PAPER and document.letters < thresholds.FOREIGN_LETTERS:
        return Verdict(Proof.REFUSED, kind, (f"kind: {kind}",))
    return Verdict(Proof.NOT_JUDGED, evidence=("nothing-known",))


# Files of few words that are what they call themselves, even where they show the title as a block.
_FIRM = frozenset({Kind.SUPPLEMENT, Kind.REVIEW_REPORT, Kind.FORM, Kind.CONTENTS})
_FEW_PAGES = 4
_FIRM_PAGES = 60
_FRONT_PAGES = 60


def _judge_little(known: KnownWork, document: DocumentText, origin: Origin, read_all: bool) -> Verdict:
    """Too few letters to compare; only a short file that says what it is can be refused."""
    first = next((page for page in document.pages if page.letters), None)
    place = find_title(first, known, body_size(document)) if first is not None and known.has_title else None
    is_shown = first is not None and has_title_lines(first, known)
    kind = opening_kind(document, known, place.first if place else None)
    if kind is None and document.page_count == 1 and first is not None and is_cover(first):
        kind = Kind.COVER
    named = address_kind(origin.urls, known.dois) if kind is None and not is_shown else None
    declared = declared_dois(document)
    is_own = any(same_doi(one, doi) for one in declared for doi in known.dois)
    part = next((one for one in declared if any(is_part(one, doi) for doi in known.dois)), None)
    evidence = ("scan",) if document.is_scan else (f"few-letters: {document.letters}",)
    if part is not None and not is_own and not any(same_doi(part, doi) for doi in known.dois):
        return Verdict(Proof.REFUSED, Kind.PART, (f"DOI of a part: {part}", *evidence))
    is_read = all(page.letters or not page.marks for page in document.pages) or not document.letters
    if not is_own and (other := _other_in_little(known, document, origin, declared)) is not None:
        return Verdict(
            Proof.REFUSED, Kind.ANOTHER_ARTICLE, (f"other doi: {other}", *evidence), look_through=not read_all
        )
    if named is not None and not is_own:
        return Verdict(Proof.REFUSED, named, (f"named as a {named}", *evidence), look_through=not read_all)
    # A stamp over a scan says little, unless it names the paper that the file belongs to.
    is_covered = first is not None and first.images and not (kind in _FIRM and known.content in content(first.text))
    if kind is None or (is_own and kind not in _FIRM) or not is_read or is_covered:
        return Verdict(Proof.UNPROVED, None, evidence, look_through=not read_all)
    most = _FRONT_PAGES if kind in _FRONT else _FIRM_PAGES if kind in _FIRM else _FEW_PAGES
    others = first is not None and any(shown.is_own and _other_work(known, shown.doi) for shown in shown_dois(first))
    is_firm = kind in _FIRM or (
        kind is Kind.NOTICE and document.page_count == 1 and first is not None and not looks_like_paper(first)
    )
    if (document.page_count <= most or others) and (not is_shown or is_firm):
        return Verdict(Proof.REFUSED, kind, (f"kind: {kind}", *evidence), look_through=not read_all)
    return Verdict(Proof.UNPROVED, None, (f"calls itself: {kind}", *evidence), look_through=not read_all)


def _other_in_little(known: KnownWork, document: DocumentText, origin: Origin, declared: tuple[str, ...]) -> str | None:
    """The DOI of another work that a file of few words shows as its own, that it declares over its text, or that the
    page is about which named it; None where anything of the wanted work is in the file."""
    if any(shows_doi(page, doi) for page in document.pages for doi in known.dois):
        return None
    if any(known.content in content(page.text) for page in document.pages) if known.content else False:
        return None
    printed = [shown.doi for page in document.pages for shown in shown_dois(page) if shown.is_own]
    named = declared if document.letters and all(same_doi(doi, declared[0]) for doi in declared) else ()
    printed += [f"10.48550/arxiv.{stamp}" for page in document.pages[:1] if (stamp := stamped_arxiv(page)) is not None]
    linked = normal_doi(origin.page_doi)
    for doi in (*printed, *named, *([linked] if linked else [])):
        is_own = any(same_doi(doi, own) for own in known.dois)
        if not is_own and known.dois and (_other_work(known, doi) or _has_other_title(known, document)):
            return doi
    return None


def _has_other_title(known: KnownWork, document: DocumentText) -> bool:
    """The declared title is a real one, stands on the first page, and shares little with the wanted one."""
    declared, wanted = declared_title(document) or "", set(known.title_words)
    shown = set(content_words(declared))
    if min(len(shown), len(wanted)) < thresholds.MIN_TELLING_WORDS or not document.pages:
        return False
    on_page = content(declared) in content(document.pages[0].text)
    return on_page and len(shown & wanted) < thresholds.OTHER_TITLE * min(len(shown), len(wanted))


_FRONT = frozenset({Kind.COVER, Kind.ABSTRACTS, Kind.SLIDES, Kind.READ_ME, Kind.TERMS})


def _other_work(known: KnownWork, doi: str | None) -> bool:
    """The DOI is of another work: neither a preprint nor a deposit of this one. A work without a DOI is not
    contradicted."""
    if not doi or not known.dois:
        return False
    servers = [server for server in ONE_DOI_A_PAPER if doi.startswith(server)]
    if any(wanted.startswith(server) for wanted in known.dois for server in servers):
        return not any(same_doi(doi, wanted) for wanted in known.dois)
    return not any(may_be_twin(doi, wanted) for wanted in known.dois)


def _proof(known: KnownWork, document: DocumentText, signs: Signs, whole: Wholeness) -> tuple[Proof, list[str]]:
    """The class, and what kept the document from being proved."""
    why: list[str] = []
    authors = authors_agree(known, signs)
    if signs.kind is not None and not _is_excused(signs, authors):
        why.append(f"calls itself {signs.kind}")
    if signs.part_doi is not None:
        why.append(f"DOI of a part: {signs.part_doi}")
    if signs.page.number > 1 and _another_before(document, signs.page.number):
        why.append("another paper stands before it")
    if signs.hides_other:
        why.append("behind its cover is a page with another title")
    if signs.page.number > thresholds.COVER_PAGES:
        why.append(f"begins on page {signs.page.number}")
    if whole.lacks is not None:
        why.append(whole.lacks)
    other = signs.other_doi if _other_work(known, signs.other_doi) and not signs.doi else None
    if other:
        why.append(f"another DOI in its own position: {other}")
    if why:
        return Proof.UNPROVED, why
    if signs.doi:
        return _proof_by_doi(known, signs, authors)
    return _proof_by_title(known, document, signs, authors)


def _is_excused(signs: Signs, authors: bool | None) -> bool:
    """The page on which the paper begins looks like one, and the words are a cover's, or such as papers have."""
    # A cover may call itself what it likes: the paper behind it has its own first page.
    is_behind_cover = signs.page.number > 1 and signs.title is not None
    is_itself = signs.doi and signs.title is not None and authors is True and signs.kind in _NAMED_IN_PAPERS
    return (is_behind_cover or is_itself) and looks_like_paper(signs.page)


def _proof_by_doi(known: KnownWork, signs: Signs, authors: bool | None) -> tuple[Proof, list[str]]:
    if signs.title is not None and authors is not False:
        return Proof.PROVED, []
    if signs.title is not None and signs.title.exact and signs.title.is_larger and signs.authors:
        return Proof.PROVED, []  # a title page may name the first of many, or a group
    is_placed = signs.range is True or signs.page_number
    if signs.title is not None and signs.title.exact and signs.title.is_larger and (is_placed or signs.group):
        return Proof.PROVED, []
    if _other_work(known, signs.other_doi):
        return Proof.UNPROVED, [f"another DOI in its own position: {signs.other_doi}"]
    if signs.other_title and not (is_placed or signs.doi_in_header):
        return Proof.UNPROVED, ["another title stands in its place"]
    if authors:
        return Proof.PROVED_VARIANT, []
    if authors is None and not known.has_title:
        return Proof.PROVED_VARIANT, []
    if authors is None and known.script != script_of(signs.page.text):
        return Proof.PROVED_VARIANT, []
    return Proof.UNPROVED, ["neither title nor authors beside the DOI"]


def _proof_by_title(
    known: KnownWork, document: DocumentText, signs: Signs, authors: bool | None
) -> tuple[Proof, list[str]]:
    why = []
    all_authors = 0 < len(known.families) == signs.authors
    is_placed = signs.range is True and bool(known.year in signs.years)
    if signs.title is None:
        if not (signs.is_translated and is_placed and all_authors):
            why.append("no block has the title's words")
    elif not signs.title.exact and not (is_placed and all_authors):
        why.append("the title has another subtitle")
    elif not signs.title.is_larger and len(known.title_words) < thresholds.MIN_TELLING_WORDS:
        why.append("a short title, set as its text")
    if authors is False or (authors is None and not _is_told_by_journal(known, signs)):
        why.append("authors not found" if authors is False else "authors not known")
    if _prints_other_pages(signs):
        why.append("other pages are printed")
    if _prints_other_year(known, signs):
        why.append("another year is printed")
    if signs.other_declared and _other_work(known, signs.other_declared):
        why.append(f"declares {signs.other_declared}")
    if _is_meeting(known, signs.page):
        why.append("printed for a meeting")
    return (Proof.UNPROVED, why) if why else (Proof.PROBABLE, [])


def _is_told_by_journal(known: KnownWork, signs: Signs) -> bool:
    """Without known authors: a long title of its own, the journal's name and the year."""
    title = signs.title
    if known.families or title is None or not (title.exact and title.is_larger) or not known.journal:
        return False
    is_long = len(known.title_words) > thresholds.MIN_TELLING_WORDS
    return is_long and known.year in signs.years and content(known.journal) in content(signs.page.text)


_MEETING = re.compile(
    r"\b(?:proceedings of|conference|workshop|symposium|congress|annual meeting|registered report stage)\b"
)


def _is_meeting(known: KnownWork, page: Page) -> bool:
    """The header names a meeting, and the work's journal is none: a twin of the paper, with its title and authors."""
    if not known.journal or _MEETING.search(fold(known.journal)):
        return False
    lines = (*page.folded_lines[:6], *page.folded_lines[-5:])
    edge = "\n".join(line for line in lines if len(line) <= 140)
    return _MEETING.search(edge) is not None and content(known.journal) not in content(page.text)


def _another_before(document: DocumentText, number: int) -> bool:
    """References, or another paper's abstract, stand on an earlier page."""
    for page in document.pages:
        if page.number >= number:
            return False
        if has_references(page):
            return True
    return False


def _refusal(known: KnownWork, document: DocumentText, signs: Signs, whole: Whole) -> Kind | None:
    """What the document is instead, when it surely is not the paper."""
    authors = authors_agree(known, signs)
    is_found = signs.title is not None and (signs.page.number > 1 or authors is not False)
    if signs.part_doi is not None and not signs.doi and signs.part_doi not in known.dois:
        return Kind.PART
    if signs.kind is not None and _kind_is_sure(known, signs, is_found, whole):
        return signs.kind
    share = title_share(document.pages, known) or 0.0
    is_silent = not signs.doi_mentioned or share < thresholds.SHARED_TITLE
    own = signs.other_doi or (signs.other_declared if is_silent else None)
    has_other_title = _has_other_title(known, document) or _is_contradicted(known, signs)
    is_foreign = _other_work(known, own) or (own is not None and bool(known.dois) and has_other_title)
    is_other = is_foreign and not signs.doi and not signs.doi_declared
    # One family name in common says little against another DOI and another title; a group's papers share some.
    are_theirs = bool(authors) and (signs.authors >= 2 or signs.range is True or signs.page_number)
    if _is_contradicted(known, signs):
        are_theirs = signs.authors == len(known.families) > 0
    if is_other and signs.title is None and not are_theirs:
        return Kind.ANOTHER_ARTICLE
    if _is_stranger(known, document, signs, authors):
        return Kind.ANOTHER_ARTICLE
    return None


def _prints_other_pages(signs: Signs) -> bool:
    return signs.range is False and not signs.page_number


def _prints_other_year(known: KnownWork, signs: Signs) -> bool:
    if not known.year or not signs.years:
        return False
    if signs.is_series and 0 <= known.year - max(signs.years) <= thresholds.SERIES_YEARS:
        return False
    return min(abs(year - known.year) for year in signs.years) > thresholds.YEARS_APART


def _is_contradicted(known: KnownWork, signs: Signs) -> bool:
    """The title page has few of the title's words, and other pages, another year or none of the authors."""
    share = title_share((signs.page,), known)
    if share is None or share >= thresholds.OTHER_TITLE:
        return False
    has_no_author = authors_agree(known, signs) is False and not signs.authors
    return has_no_author or _prints_other_pages(signs) or _prints_other_year(known, signs)


# Words that begin so many papers' own pages that only a file without the looks of a paper is refused for them.
_WEAK_KINDS = frozenset(
    {Kind.THESIS, Kind.SLIDES, Kind.POSTER, Kind.PROTOCOL, Kind.TERMS, Kind.COVER, Kind.LETTER, Kind.ABSTRACTS}
)
# A paper's first page may have their words in a sentence.
_NAMED_IN_PAPERS = _WEAK_KINDS - {Kind.SLIDES, Kind.POSTER} | {Kind.ERROR_PAGE, Kind.LOGIN_PAGE}
# They bear the paper's own DOI, title and authors.
_OF_THE_PAPER = frozenset(
    {Kind.SUPPLEMENT, Kind.REVIEW_REPORT, Kind.CORRECTION, Kind.NOTICE, Kind.PREVIEW, Kind.REPLY, Kind.READ_ME}
)


def _kind_is_sure(known: KnownWork, signs: Signs, is_found: bool, whole: Whole) -> bool:
    if signs.page.number > 1 and is_found:
        return False  # the paper may be bound behind
    authors = authors_agree(known, signs)
    is_placed = signs.range is True or signs.page_number
    if signs.kind in _WEAK_KINDS and (signs.doi or is_found or authors or is_placed or looks_like_paper(signs.page)):
        return False
    if signs.kind not in _OF_THE_PAPER and (signs.doi or (is_found and looks_like_paper(signs.page))):
        return False
    agrees = signs.title is not None and (signs.doi or bool(authors))
    if whole is Whole.WHOLE and agrees and signs.kind not in (Kind.SUPPLEMENT, Kind.REVIEW_REPORT):
        return False
    if not (signs.doi and signs.title is not None):
        return True
    # With its own DOI and title it may be the paper, under a banner.
    return signs.kind is not Kind.REPLY


def _is_stranger(known: KnownWork, document: DocumentText, signs: Signs, authors: bool | None) -> bool:
    """Enough text of the title's script, and nothing of the work in it."""
    if signs.doi or signs.doi_mentioned or signs.doi_declared or signs.title is not None or authors or signs.authors:
        return False
    letters = sum(page.letters for page in document.pages if not is_cover(page))
    if letters < thresholds.FOREIGN_LETTERS or not known.has_title:
        return False
    text = "\n".join(page.text for page in document.pages[:3])
    if known.script != script_of(text) or (known.script == "latin" and not one_language(known.title or "", text)):
        return False
    if known.script != "latin":
        return False
    share = title_share(document.pages, known)
    return share is not None and share < thresholds.STRANGER_SHARE


def _evidence(known: KnownWork, signs: Signs) -> Iterator[str]:
    if signs.doi:
        yield "doi: own position"
    elif signs.doi_mentioned:
        yield "doi: mentioned"
    if signs.doi_declared:
        yield "doi: declared"
    if signs.other_doi:
        yield f"other doi: {signs.other_doi[:100]}"
    if signs.other_declared:
        yield f"declares doi: {signs.other_declared[:100]}"
    if signs.title is not None:
        how = "equal" if signs.title.exact else "up to a subtitle"
        yield f"title: {how}{', larger' if signs.title.is_larger else ''}, page {signs.title.page}"
    if known.families:
        yield f"authors: {signs.authors} of {len(known.families)}"
    if known.year and known.year in signs.years:
        yield f"year: {known.year}"
    if signs.range is not None:
        yield "pages printed: as known" if signs.range else "pages printed: others"
    elif signs.page_number:
        yield "first page: printed"
    if signs.kind is not None:
        yield f"calls itself: {signs.kind}"
