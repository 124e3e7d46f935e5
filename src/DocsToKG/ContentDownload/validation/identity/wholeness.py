"""Is all of the paper in the file? References after the title page, section headings, the pages of its range.

Pure. Previews, abstracts and notices carry the right DOI, title and authors; what they lack stands after that.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from enum import StrEnum

from DocsToKG.ContentDownload.validation.identity import thresholds
from DocsToKG.ContentDownload.validation.identity.kinds import is_cover
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.positions import prints_page_number
from DocsToKG.ContentDownload.validation.normalization import fold, script_of
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText, Page


class Whole(StrEnum):
    WHOLE = "whole"
    UNKNOWN = "unknown"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Wholeness:
    """`lacks`: what keeps the file from being whole."""

    verdict: Whole
    evidence: tuple[str, ...] = ()
    lacks: str | None = None


_REFERENCES = re.compile(
    r"^\W{0,5}(?:(?:\d{1,2}|[ivx]{1,4}|appendix|[a-z])[.)\s]\s?)?(?:r\s?e\s?f\s?e\s?r\s?e\s?n\s?c\s?e\s?s?"
    r"(?: and notes| cited| list|s list)?|bibliograph\w{1,4}|literature(?: cited)?|works cited|cited (?:literature"
    r"|works)"
    r"|notes and references|endnotes|notes|literatur(?:verzeichnis)?|quellen(?:verzeichnis)?|referenzen|referencias"
    r"(?: bibliograficas)?|referências|referencias|bibliografia|riferimenti(?: bibliografici)?|referenser|referenties"
    r"|literatura(?: cytowana)?|literatura a prameny|kaynaklar|kaynakca"
    r"|tai lieu tham khao|daftar pustaka|rujukan"
    r"|irodalom(?:jegyzek)?|lahteet|kirjallisuus|literatuur(?:lijst)?|litteratur"
    r"|bibliografie|viitteet|seznam literatury"
    r"|βιβλιογραφια|literatūra|reference list|notes and references|sources"
    r"|список (?:использованнои )?литературы|литература|библиография"
    r"|список источников|参考文献|引用文献|参考资料|文献|참고문헌|المراجع|المصادر|מקורות)\W{0,4}$",
    re.MULTILINE,
)
_ENTRY = re.compile(
    r"^\W{0,3}(?:\[\d{1,3}\]|\d{1,3}[.)]?)\s+[^\W\d_].{10,}|^\W{0,3}\[[A-Za-z+]{2,8}\d{2}[a-z]?\]"
    r"|^[^\W\d_][\w'’-]+,?\s(?:[A-Z]\.?[\s,-]*){1,3}.{0,80}\b(?:19|20)\d{2}\b",
    re.MULTILINE,
)
_YEAR = re.compile(r"\b(?:1[6-9]|20)\d{2}[a-z]?\b")
_SECTIONS = re.compile(
    r"^\W{0,5}(?:(?:\d{1,2}|[ivx]{1,4})(?:\.\d)?[.)]?\s+)?(?:introduction|background|(?:materials? and |patients and )?"
    r"methods?(?: and materials)?|methodology|results(?: and discussion)?|discussion|conclusions?|acknowledge?ments?|"
    r"related work|experiments?|case (?:report|presentation)|einleitung|ergebnisse|diskussion|introducci[oó]n"
    r"|resultados|"
    r"conclusiones|introduction et|resultats)\b.{0,60}$",
    re.MULTILINE,
)


def judge_wholeness(known: KnownWork, document: DocumentText, *, title_page: int = 1) -> Wholeness:
    """Whether the file holds the paper to its end. `title_page` is the page on which it begins."""
    evidence: list[str] = []
    expected = known.page_range
    if expected is not None:
        count, pages = expected[1] - expected[0] + 1, document.page_count - title_page + 1
        if count >= thresholds.MIN_RANGE:
            if pages < thresholds.WHOLE_SHARE * count:
                evidence.append(f"pages-missing: {pages} of {count}")
                return Wholeness(Whole.CUT, tuple(evidence), "pages are missing")
            evidence.append(f"pages: {pages}, printed range {count}")
    if (page := references_page(document, title_page)) is not None:
        evidence.append(f"references: page {page}")
    shown = [*(page.folded for page in document.pages), fold("\n".join(document.outline))]
    headings = {found[0].strip() for text in shown for found in _SECTIONS.finditer(text)}
    if headings:
        evidence.append(f"sections: {len(headings)}")
    if page is None:
        if (numbered := _ends_by_pages(known, document, title_page)) is not None:
            return Wholeness(Whole.WHOLE, (*evidence, numbered))
        return Wholeness(Whole.UNKNOWN, tuple(evidence), "no references found")
    if expected is None and not known.is_about_another and not _has_body(document, title_page, len(headings)):
        return Wholeness(Whole.UNKNOWN, tuple(evidence), "little between title and references")
    return Wholeness(Whole.WHOLE, tuple(evidence))


# What browsers print around a page, and publishers around an article on it.
_WEB_PAGE = re.compile(
    r"skip to (?:main )?(?:content|navigation)|\bcookies?\b|sign in|log ?in\b|download (?:pdf|citation|full)"
    r"|view (?:pdf|article)"
    r"|get access|purchase|cited by|recommended articles|privacy policy|add to cart"
    r"|export citation|share this|full text"
    r"|request permissions|article metrics|subscribe|preview"
)


def _ends_by_pages(known: KnownWork, document: DocumentText, title_page: int) -> str | None:
    """A paper without references is whole when its pages bear the numbers of its range, or when it is short by its own
    title and not a page of the web."""
    if (cover := document.page(title_page)) is not None and is_cover(cover):
        title_page += 1
    count = document.page_count - title_page + 1
    first, last = document.page(title_page), document.page(document.page_count)
    before = [page for page in document.pages if page.number < title_page]
    if first is None or last is None or any(page.letters and not is_cover(page) for page in before):
        return None
    if len(_WEB_PAGE.findall(first.folded)) >= 2:
        return None
    if known.page_range is not None:
        begin, end = known.page_range
        expected = end - begin + 1
        # The number of an article may stand for both pages.
        is_numbered = end <= thresholds.LARGEST_PAGE and (expected > 1 or begin > 1)
        is_numbered = is_numbered and prints_page_number(first, str(begin))
        if expected > 1:
            is_numbered = is_numbered and prints_page_number(last, str(end))
        if is_numbered and expected <= count <= expected + 1:
            return f"pages: numbered {begin} to {end}"
    if known.is_about_another and count <= thresholds.NOTICE_PAGES:
        return "short by its own title"
    return None


def _has_body(document: DocumentText, title_page: int, sections: int) -> bool:
    """Where no page range is known, sections or a page of text tell a paper from a page about it, which may list its
    references too."""
    if script_of("\n".join(page.text for page in document.pages[:2])) != "latin":
        return True
    if document.page_count - title_page + 1 < thresholds.FEW_PAGES:
        return sections >= thresholds.SECTIONS_OF_FEW_PAGES
    later = (page for page in document.pages if page.number > title_page)
    return sections > 0 or any(page.letters >= thresholds.BODY_LETTERS and not has_references(page) for page in later)


def references_page(document: DocumentText, title_page: int = 1) -> int | None:
    """The page that shows references: a later one than the title page, or the same one below its text."""
    for page in reversed(document.pages):
        if page.number < title_page:
            continue
        if page.number > title_page and has_references(page):
            return page.number
        if page.number == title_page and _ends_with_references(page):
            return page.number
    return None


def has_references(page: Page) -> bool:
    if _REFERENCES.search(page.folded):
        return True
    found = list(_ENTRY.finditer(page.text))
    entries = [
        page.text[one.start() : two.start()] for one, two in itertools.pairwise([*found, *found[-1:]]) if one is not two
    ] + [one[0] for one in found[-1:]]
    return (
        len(entries) >= thresholds.REFERENCE_ENTRIES
        and sum(_YEAR.search(entry) is not None for entry in entries) * 2 >= len(entries)
        and len(_YEAR.findall(page.text)) >= 2 * thresholds.REFERENCE_ENTRIES
    )


def _ends_with_references(page: Page) -> bool:
    """On the title page itself they come after the text; a list of contents names them too."""
    text = page.folded
    found = _REFERENCES.search(text)
    if found is None or found.start() < len(text) // 3:
        return False
    return len(_ENTRY.findall(page.text[found.start() - 20 :])) >= 2 or len(_YEAR.findall(text[found.end() :])) >= 3
