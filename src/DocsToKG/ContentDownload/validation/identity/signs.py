"""What a document shows of a work: the page on which the paper begins, and the signs on it and around it.

Knows where to look. Does not know what the signs prove.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from DocsToKG.ContentDownload.validation.dois import is_part, normal_doi, same_doi
from DocsToKG.ContentDownload.validation.identity import thresholds
from DocsToKG.ContentDownload.validation.identity.kinds import (
    Kind,
    address_kind,
    is_cover,
    looks_like_paper,
    opening_kind,
)
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.metadata import declared_dois
from DocsToKG.ContentDownload.validation.identity.positions import (
    TitlePlace,
    authors_at_end,
    authors_shown,
    find_title,
    has_title_lines,
    header_years,
    is_at_edge,
    is_cited,
    names_group,
    other_title,
    own_divided,
    printed_range,
    prints_page_number,
    shares_language,
    shown_dois,
    shows_doi,
    stamped_arxiv,
)
from DocsToKG.ContentDownload.validation.identity.wholeness import has_references
from DocsToKG.ContentDownload.validation.normalization import script_of
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText, Page


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the file came from: `urls` under which it was asked for and found, the DOI of the page that named it."""

    urls: tuple[str, ...] = ()
    page_doi: str | None = None


NOWHERE = Origin()


@dataclass
class Signs:
    """What the title page and its neighbours show."""

    page: Page
    title: TitlePlace | None
    authors: int
    doi: bool = False
    doi_in_header: bool = False
    doi_mentioned: bool = False
    doi_declared: bool = False
    other_doi: str | None = None
    other_declared: str | None = None
    part_doi: str | None = None
    kind: Kind | None = None
    range: bool | None = None
    page_number: bool = False
    other_title: bool = False  # in the title's place
    is_series: bool = False  # a working paper or a manuscript, by its own words
    signed: int = 0  # authors at the end
    group: bool = False
    is_translated: bool = False  # the title stands below one in another language
    hides_other: bool = False  # title and authors are on a cover, and the page behind it has others
    years: set[int] = field(default_factory=set)


_COVERS = 3


def _bears_doi(known: KnownWork, page: Page) -> bool:
    return any(
        shown.is_own and not is_cited(page, shown.line, known) and any(same_doi(shown.doi, doi) for doi in known.dois)
        for shown in shown_dois(page)
    )


def find_title_page(known: KnownWork, document: DocumentText, size: float) -> tuple[Page, TitlePlace | None, int]:
    """The page on which the paper begins: the first with its title as a block and an author beside it; else the first
    with its title; else the first with text. With it the number of authors there."""
    first = next(page for page in document.pages if page.letters)
    if not known.has_title:
        return first, None, authors_shown(first, known, None)
    found: tuple[Page, TitlePlace, int] | None = None
    for page in document.pages:
        if page is not first and found is None and not is_cover(first) and _bears_doi(known, first):
            break  # what follows is a title in translation, or in a list
        place = find_title(page, known, size)
        if place is None:
            continue
        shown = page, place, authors_shown(page, known, place)
        if (shown[2] or not known.families) and (page is first or looks_like_paper(page)):
            return shown
        found = found or shown
    if found is not None:
        return found
    # Behind a cover the paper may have another title.
    behind = (
        page for page in document.pages[:_COVERS] if page.letters >= thresholds.MIN_LETTERS and not is_cover(page)
    )
    page = next(behind, first) if is_cover(first) else first
    return page, None, authors_shown(page, known, None)


_SERIES = re.compile(
    r"\b(?:working|discussion|staff|research) papers?\b|\bpre-?print\b|\barxiv\b|author(?:'s)? (?:accepted )?manuscript"
    r"|accepted (?:manuscript|version)|this version|technical report"
)


def read_signs(known: KnownWork, document: DocumentText, signs: Signs, origin: Origin, size: float) -> Signs:
    page, title = signs.page, signs.title
    last = document.pages[-1]
    near = [one for one in document.pages if one.number <= page.number]
    for one in dict.fromkeys([page.number, *(other.number for other in near), last.number]):
        shown = document.page(one)
        if shown is not None:
            _read_dois(known, shown, signs, is_title_page=one == page.number)
    _read_declared(known, declared_dois(document), signs)
    page_doi = normal_doi(origin.page_doi)
    if page_doi is not None and signs.other_doi is not None and any(same_doi(page_doi, doi) for doi in known.dois):
        page_doi = None  # what a page says of its link never stands against the DOI that the file prints
    if page_doi is not None and not signs.doi_declared and signs.other_declared is None:
        _read_declared(known, (page_doi,), signs)
    stamp = stamped_arxiv(page)
    if stamp is not None and known.arxiv_id:
        signs.doi = signs.doi or stamp == known.arxiv_id
        if stamp != known.arxiv_id and not signs.doi:
            signs.other_doi = f"10.48550/arxiv.{stamp}"
    first = document.pages[0]
    place = title if page is first else None
    signs.kind = opening_kind(document, known, place.first if place else None) or address_kind(origin.urls, known.dois)
    signs.range = printed_range(page, known)
    signs.page_number = prints_page_number(page, known.first_page)
    signs.years = header_years(page, known)
    signs.other_title = title is None and other_title(page, known, size)
    signs.is_translated = title is None and has_title_lines(page, known) and not shares_language(page, known, size)
    signs.hides_other = title is not None and _hides_other(known, document, page, size)
    # Only without a DOI do the years count.
    signs.is_series = not signs.doi and any(_SERIES.search(one.folded) for one in near)
    signs.group = title is not None and names_group(page, title)
    if title is not None and (signs.group or document.page_count - page.number < thresholds.NOTICE_PAGES):
        signs.signed = max(authors_at_end(one, known) for one in dict.fromkeys((page, last)))
    return signs


def _hides_other(known: KnownWork, document: DocumentText, cover: Page, size: float) -> bool:
    behind = document.page(cover.number + 1)
    if behind is None or behind.letters < thresholds.MIN_LETTERS or not is_cover(cover):
        return False
    return other_title(behind, known, size) and not authors_shown(behind, known, None)


def _read_dois(known: KnownWork, page: Page, signs: Signs, *, is_title_page: bool) -> None:
    # A list of references may begin on the page before.
    if not is_title_page and has_references(page):
        signs.doi_mentioned = signs.doi_mentioned or any(shows_doi(page, doi) for doi in known.dois)
        return
    for shown in shown_dois(page):
        if any(same_doi(shown.doi, doi) for doi in known.dois):
            # A cover names the paper behind it, also in running text.
            is_covering = not is_title_page and is_cover(page)
            is_own = is_covering or (shown.is_own and not is_cited(page, shown.line, known))
            signs.doi = signs.doi or is_own
            signs.doi_in_header = signs.doi_in_header or (is_own and is_title_page and is_at_edge(page, shown.line))
            signs.doi_mentioned = True
        elif any(is_part(shown.doi, doi) for doi in known.dois):
            signs.part_doi = signs.part_doi or (shown.doi if shown.is_alone and is_title_page else None)
        elif shown.is_own and is_title_page and signs.other_doi is None:
            signs.other_doi = shown.doi
    for doi in known.dois:
        if not signs.doi_mentioned and shows_doi(page, doi):
            signs.doi_mentioned = True
            signs.doi = signs.doi or own_divided(page, doi)


def _read_declared(known: KnownWork, declared: tuple[str, ...], signs: Signs) -> None:
    signs.doi_declared = any(same_doi(one, doi) for one in declared for doi in known.dois)
    parts = [one for one in declared if any(is_part(one, doi) for doi in known.dois)]
    signs.part_doi = signs.part_doi or next(iter(parts), None)
    others = [one for one in declared if not any(same_doi(one, doi) for doi in known.dois) and one not in parts]
    if others and not signs.doi_declared and all(same_doi(one, others[0]) for one in others):
        signs.other_declared = others[0]


def authors_agree(known: KnownWork, signs: Signs) -> bool | None:
    """At least half of the compared names; None when none are known."""
    if not known.families:
        return None
    needed = max(1, math.ceil(thresholds.AUTHORS_SHARE * len(known.families)))
    if max(signs.authors, signs.signed) >= needed:
        return True
    # Names in the letters of an index cannot be compared with a page in another script.
    if not signs.authors and script_of(" ".join(known.authors)) != script_of(signs.page.text):
        return None
    return False
