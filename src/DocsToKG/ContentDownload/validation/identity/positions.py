"""Where on its pages a document shows a DOI, a title, authors and page numbers, and whose they are there.

A DOI is the file's own when it stands alone, labelled, or in the line of a journal at the edge of a page: not inside a
paragraph, in a list of references, or after words that give it to something else. Pure, and by lines and blocks: no
window of text is compared with every other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from DocsToKG.ContentDownload.validation.dois import find_dois, is_placeholder, same_doi
from DocsToKG.ContentDownload.validation.identity import thresholds
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.normalization import (
    content,
    content_words,
    fold,
    line_content,
    without_mark,
    words,
)
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText, Line, Page

# Words before a DOI which say that it belongs to something else.
_OTHERS = re.compile(
    r"\b(?:data (?:are|is|have|were|can|supporting|for|from|of|availab|reposit|deposit|set|and)|data:|datasets?"
    r"|source code"
    r"|code (?:is|are|avail|for|at)|software (?:is|are|avail|at)|suppl\w*|corrections?\b|corrected|corrigend\w*"
    r"|errat\w*"
    r"|retract\w*|withdraw\w*|comment(?:s|ary|ing)? (?:on|to)|repl(?:y|ies) (?:to|on)|respon\w+ (?:to|on)"
    r"|relat(?:ed (?:\w+ )?(?:article|paper|content|to)|ion to)"
    r"|companion|accompan\w*|earlier|the original|original (?:paper|publication"
    r"|version|work|study)|original article (?:can|is|was|has|at|in|online|doi)|available (?:at|from|in|under|via"
    r"|as)|deposit"
    r"|reference:?$|references\b|refers?\b|see\b|funder|et al|cited|review(?:er|s)? (?:of|for|report)"
    r"|published (?:in|as|at)"
    r"|version of record|final version|preview|presented|poster|slides|based on|discuss(?:ion of|ed in|es)|concerning"
    r"|regarding|archived|thesis|protocol|registered (?:at|as|under|with|in))"
)
# In a list of references or a sentence they stand before a DOI; in a journal's own line the year does too.
_CITED = re.compile(r"\[\d{1,3}\]|\((?:1[6-9]|20)\d\d[a-z]?\)\.? ")
# A citation that a publisher gives of the file itself.
_CITE_AS = re.compile(
    r"^\W{0,3}(?:(?:please |to |how to )?cite (?:this|as|the)|citation:|cite:"
    r"|(?:recommended|suggested|original) citation"
    r"|zitier|\w* ?reference format|citation for published|published in final edited form as|(?:\w+ )?preprint doi)"
)
_LABEL = re.compile(
    r"(?:https?://)?(?:dx\.|www\.)?doi(?:\.org)?\s*[:/.=]?\s*|digital object identifier:?|permalink:?|crossmark"
)
_PROSE = re.compile(
    r"\b(?:we|is|was|are|were|this|that|these|has|have|had|been|be|can|will|which|our|their|its|from|see|found|with)\b"
)
_REFERENCE_HEAD = re.compile(
    r"^\W{0,3}(?:\d{1,2}\.?\s)?(?:references|bibliography|literature cited|literatur|works cited|referencias"
    r"|参考文献)\W{0,3}$"
)
_ABSTRACT = re.compile(
    r"^\W{0,5}(?:\d{1,2}\.?\s)?(?:a\s?b\s?s\s?t\s?r\s?a\s?c\s?t|summary|introduction|zusammenfassung|resume"
    r"|resumen|resumo|要旨|摘要|抄録)\b"
)
_KICKER = re.compile(
    r"\b(?:article|research|review|letter|paper|communication|report|original|open access|doi|issn|vol(?:ume)?|journal"
    r"|proceedings|arxiv|preprint|received|accepted|published|www|http|pp|no)\b|\d{4}"
)
_RANGE = re.compile(r"(?<!\d)(\d{1,6})\s?[-–—]\s?(\d{1,6})(?!\d)")
_STAMP = re.compile(r"arxiv:\s?([a-z-]+(?:\.[a-z]{2})?/\d{7}|\d{4}\.\d{4,5})(?:v\d{1,2})?")
_EDGE = 0.12  # of a page's height, above and below
_SHORT_BLOCK = 3
_LED_CHARS = 60
_HEAD_CHARS = 40
_REFERENCE_LINE = re.compile(r"\W{0,2}\[?\d{1,3}[\].)]\s")
_FURNITURE_CHARS = 140


@dataclass(frozen=True, slots=True)
class ShownDoi:
    doi: str
    page: int
    line: int
    is_own: bool
    is_alone: bool  # in its line, but for a label


@dataclass(frozen=True, slots=True)
class TitlePlace:
    """Where a title stands as a block of its own. `exact`: all its words; else its main part, or with a subtitle."""

    page: int
    first: int  # lines
    last: int
    exact: bool
    is_larger: bool


def shown_dois(page: Page) -> Iterator[ShownDoi]:
    """The DOIs on a page. What stands below the heading of the references is not told."""
    lines = page.lines
    if "10." not in page.text:
        return
    for index in range(len(lines)):
        text = page.folded_lines[index]
        if index > len(lines) // 4 and len(text) <= _HEAD_CHARS and _REFERENCE_HEAD.match(text):
            return
        if "10." not in text:
            continue
        following = page.folded_lines[index + 1] if index + 1 < len(lines) else ""
        for doi in find_dois(text):
            whole = doi
            if (text.rstrip().endswith(doi) and following and doi[-1:] in "./-_(") or (
                doi.count("/") == 1 and doi.endswith("/")
            ):
                whole = next(iter(find_dois(text.rstrip() + following.split(" ")[0])), doi)
            if not is_placeholder(whole):
                rest = _LABEL.sub(" ", text.replace(doi, " "))
                yield ShownDoi(whole, page.number, index, _is_own_position(page, index, doi), _is_alone(rest))


def shows_doi(page: Page, wanted: str) -> bool:
    """The DOI is somewhere on the page, also where a line end divides it."""
    if wanted.partition("/")[0] not in page.text:
        return False
    return any(same_doi(doi, wanted) for doi in find_dois(page.folded)) or wanted in _joined(page)


def own_divided(page: Page, wanted: str) -> bool:
    """The wanted DOI is divided by a line end, and stands in its own position."""
    lines = page.lines
    for index in range(len(lines) - 1):
        one, two = page.folded_lines[index].rstrip(), page.folded_lines[index + 1].lstrip()
        if "10." in one and wanted not in one and wanted not in two and wanted in one + two:
            start = find_dois(one)
            return bool(start) and _is_own_position(page, index, start[-1])
    return False


def _joined(page: Page) -> str:
    return "".join(page.folded_lines)


def _is_own_position(page: Page, index: int, doi: str) -> bool:
    line = page.lines[index]
    text = page.folded_lines[index]
    at = max(0, text.find(doi))
    same_block = _block(page, index)
    if _CITE_AS.match(page.folded_lines[same_block.start]) is not None:
        return len(same_block) <= 8
    before, after = _LABEL.sub(" ", text[:at]), text[at + len(doi) :]
    is_header = page.height > 0 and line.bottom > (1 - _EDGE) * page.height
    at_edge = is_header or (page.height > 0 and line.top < _EDGE * page.height)
    # The line above a header's names the journal.
    above = page.lines[index - 1] if index and not is_header else None
    led = page.folded_lines[index - 1][-_LED_CHARS:] + " " if above is not None and _leads(above, line) else ""
    if _OTHERS.search(before[-140:]) or _OTHERS.search(led + before[:40]):
        return False
    is_paragraph = len(same_block) > _SHORT_BLOCK
    if is_paragraph and not at_edge and _CITED.search(led + before):
        return False
    rest = before + " " + after
    if _is_alone(rest):
        return True
    if _REFERENCE_LINE.match(text) and not at_edge:
        return False
    return len(rest) <= _FURNITURE_CHARS and len(_PROSE.findall(rest)) < 2 and (at_edge or not is_paragraph)


def _leads(above: Line, line: Line) -> bool:
    """Of one block, or a short line directly above, as a label."""
    if above.block == line.block:
        return True
    return len(above.text) <= _LED_CHARS and 0 <= above.bottom - line.bottom <= 2.5 * line.size


def is_cited(page: Page, index: int, known: KnownWork) -> bool:
    """The block of the line runs on from the wanted title, as a citation of the work does. A paper cites itself only
    under a label."""
    if len(known.title_words) < thresholds.MIN_TITLE_WORDS or not known.content:
        return False
    lines = _block(page, index)
    if len(lines) == 1 and len(page.lines[index].text) < len(known.content):
        return False
    text = " ".join(page.folded_lines[lines.start : lines.stop])
    if any(word not in text for word in known.plain_words) or _CITE_AS.match(text):
        return False
    run = content(" ".join(page.lines[at].text for at in lines))
    return known.content in run and not run.startswith(known.content)


def _block(page: Page, index: int) -> range:
    """The lines around this one that are of its block, up to six above and below."""
    first, last = index, index
    while first > max(0, index - 6) and page.lines[first - 1].block == page.lines[index].block:
        first -= 1
    while last < min(len(page.lines) - 1, index + 6) and page.lines[last + 1].block == page.lines[index].block:
        last += 1
    return range(first, last + 1)


def _is_alone(rest: str) -> bool:
    return sum(letter.isalpha() for letter in rest) <= 12


def stamped_arxiv(page: Page) -> str | None:
    """The number of arXiv's stamp, without its version; in running text it names another paper."""
    for text in page.folded_lines:
        found = _STAMP.match(text)
        if found is not None and len(text) <= 60:
            return found[1]
    return None


def find_title(page: Page, known: KnownWork, body_size: float) -> TitlePlace | None:
    """The wanted title as a block of its own near the top of the page."""
    lines = page.lines[: thresholds.TITLE_LINES]
    squashed = page.contents
    best: TitlePlace | None = None
    for wanted, exact in ((known.content, True), (known.main_content, False)):
        if not wanted or best is not None:
            continue
        for first in range(len(lines)):
            last = _run(squashed, first, wanted)
            if last is None:
                continue
            larger = min(line.size for line in lines[first : last + 1]) >= thresholds.LARGER * body_size
            if not _is_block(page, first, last, known, larger):
                continue
            place = TitlePlace(page.number, first, last, exact, larger)
            if larger:
                return place
            best = best or place
    return best or _with_subtitle(page, known, body_size, squashed) or _cut_title(page, known, body_size, squashed)


_CUT = re.compile(r"(?:\.\.\.|…)\s*$")


def _cut_title(page: Page, known: KnownWork, body_size: float, squashed: tuple[str, ...]) -> TitlePlace | None:
    """A block that begins as the title does which the index cut off."""
    if not _CUT.search(known.title or "") or len(known.title_words) < 2 * thresholds.MIN_TELLING_WORDS:
        return None
    for first, line in enumerate(page.lines[: thresholds.TITLE_LINES]):
        if line.size < thresholds.LARGER * body_size or not squashed[first]:
            continue
        made, last = "", first
        while last < len(squashed) and last < first + 12 and len(made) < len(known.content):
            made += squashed[last]
            last += 1
        if made.startswith(known.content):
            return TitlePlace(page.number, first, last - 1, False, True)
    return None


def other_title(page: Page, known: KnownWork, body_size: float) -> bool:
    """The page's largest lines are a title that shares few words with the wanted one, in its language."""
    wanted = {word[:6] for word in known.title_words}
    if len(wanted) < thresholds.MIN_TELLING_WORDS:
        return False
    larger = _larger_lines(page, body_size)
    shares = []
    for block in dict.fromkeys((line.block, line.size) for line in larger):
        text = " ".join(line.text for line in larger if (line.block, line.size) == block)
        shown = {word[:6] for word in content_words(text)}
        is_journal = known.journal and content(known.journal) in content(text)
        if len(shown) >= thresholds.MIN_TELLING_WORDS and not is_journal and one_language(known.title or "", text):
            shares.append(len(shown & wanted) / min(len(shown), len(wanted)))
    return bool(shares) and max(shares) < thresholds.OTHER_TITLE


def _larger_lines(page: Page, body_size: float) -> list[Line]:
    return [line for line in page.lines[: thresholds.TITLE_LINES] if line.size >= thresholds.LARGER * body_size]


def shares_language(page: Page, known: KnownWork, body_size: float) -> bool:
    """The page's largest lines are in the language of the wanted title, as far as that can be told."""
    return one_language(known.title or "", " ".join(line.text for line in _larger_lines(page, body_size)))


_ENGLISH = re.compile(r"\b(?:the|of|and|with|for|from|by|is|are|that|we|on|to|in|at|as|an|between|through|about)\b")
_FOREIGN = re.compile(
    r"\b(?:de|la|el|los|las|del|una|por|para|con|der|die|das|und|des|den|bei|zur|zum|von|im|ein|eine|et|le|les"
    r"|du|dans|une|sur|aux|il|di|della|dei|delle|nel|per|da|dos|em|uma|van|het|een|och|av|og|til|ao|dem|e|y)\b"
)


def one_language(title: str, text: str) -> bool:
    """Both English, as far as small words tell; a translated title shares no words with its paper."""
    title, text = fold(title), fold(text[:20_000])
    english, foreign = len(_ENGLISH.findall(text)), len(_FOREIGN.findall(text))
    enough = min(10, 1 + len(text) // 120)
    return bool(_ENGLISH.search(title)) and not _FOREIGN.search(title) and english >= enough and foreign * 3 <= english


def has_title_lines(page: Page, known: KnownWork) -> bool:
    """Some lines of the page are the wanted title and nothing else, whatever stands around them."""
    squashed = page.contents
    return bool(known.content) and any(
        _run(squashed, first, known.content) is not None for first in range(len(squashed))
    )


def _with_subtitle(page: Page, known: KnownWork, body_size: float, squashed: tuple[str, ...]) -> TitlePlace | None:
    """The wanted title, and a subtitle after a colon that the index does not have."""
    if len(known.title_words) < thresholds.MIN_TELLING_WORDS or known.main_content:
        return None
    lines = page.lines[: thresholds.TITLE_LINES]
    for first in range(len(lines)):
        if not squashed[first] or not known.content.startswith(squashed[first][: len(known.content)]):
            continue
        last = first
        text = lines[first].text
        while last + 1 < len(lines) and lines[last + 1].block == lines[first].block and last - first < 5:
            last += 1
            text += " " + lines[last].text
        head, colon, tail = text.partition(":")
        larger = lines[first].size >= thresholds.LARGER * body_size
        if colon and larger and content(head) == known.content and not turns_title(tail):
            return TitlePlace(page.number, first, last, False, larger)
    return None


_TURNS = re.compile(
    r"\b(?:part|revisited|repl(?:y|ies)|response|comments?|correction|erratum|corrigendum|supplement\w*|supporting"
    r"|appendix"
    r"|protocol|poster|abstract|summary|review|retract\w*|update\w*|ii|iii|iv|v|vi|[2-9]|reconsidered|again"
    r"|reprise|sequel"
    r"|rejoinder|discussion|addendum|preview|highlights?|commentary|editorial|thesis|slides|extended)\b"
)


def turns_title(extra: str) -> bool:
    """Words after a title which make it another work's."""
    return _TURNS.search(fold(extra)) is not None


def _run(squashed: tuple[str, ...], first: int, wanted: str) -> int | None:
    """The last line of those that make up the wanted title from `first` on."""
    if not squashed[first] or not (wanted.startswith(squashed[first]) or squashed[first].startswith(wanted)):
        return None
    made = ""
    for last in range(first, min(first + 12, len(squashed))):
        made += squashed[last]
        if made == wanted or without_mark(made, wanted) == wanted:
            return last
        if not wanted.startswith(made):
            return None
    return None


def _is_block(page: Page, first: int, last: int, known: KnownWork, larger: bool) -> bool:
    """Nothing of the same size belongs to the title that the wanted one has not."""
    lines = page.lines
    before = lines[first - 1] if first else None
    after = lines[last + 1] if last + 1 < len(lines) else None
    if before is not None and _belongs(lines[first], before, larger) and not _is_kicker(before.text, known):
        return False
    return after is None or not _belongs(lines[last], after, larger) or _is_below_title(after.text, known)


def _belongs(line: Line, other: Line, larger: bool) -> bool:
    """A neighbour of about the same size: of one block, or, where titles are set larger, the next one."""
    small, large = sorted((line.size, other.size))
    is_same = small > 0 and large <= small * thresholds.SAME_SIZE
    return is_same and (line.block == other.block or larger)


# Kinds of paper that stand above a title; what is about another paper is not among them.
_COLUMN = re.compile(
    r"(?:editorials?|guest editorial|obituar(?:y|ies)|in memoriam|essays?|viewpoints?|perspectives?|opinion"
    r"|news|interview"
    r"|foreword|preface|introduction|case reports?"
    r"|correspondence|(?:brief|short|rapid) (?:communication|report)s?"
    r"|(?:technical |research )?notes?|features?|tutorial|profile|poem|lecture|(?:conference|meeting)"
    r" (?:abstract|report)s?)"
)


def _is_kicker(text: str, known: KnownWork) -> bool:
    """A line above a title that is not of it: the kind of article, the journal, a number, or how the title begins."""
    folded = fold(text)
    if _COLUMN.fullmatch(folded.strip(" .:|-")) or (
        line_content(text) and known.content.startswith(line_content(text))
    ):
        return True
    if turns_title(text) and not _KICKER.search(folded):
        return False
    if known.journal and content(known.journal) and content(text).startswith(content(known.journal)[:12]):
        return True
    return bool(_KICKER.search(folded)) or sum(letter.isalpha() for letter in text) <= 3


def _is_below_title(text: str, known: KnownWork) -> bool:
    """Authors, an abstract's heading, a date or a DOI follow: the title is over."""
    folded = fold(text)
    if _ABSTRACT.match(folded) or "doi" in folded or "10." in folded or "@" in folded:
        return True
    joined = f" {' '.join(words(text))} "
    return any(_has_name(name, joined) for name in known.families) or (not known.families and _looks_like_names(text))


def _looks_like_names(text: str) -> bool:
    parts = [part for part in re.split(r",|;| and | & |\d", text) if part.strip()]
    return bool(parts) and all(1 <= len(part.split()) <= 5 and part.strip()[:1].isupper() for part in parts)


def authors_shown(page: Page, known: KnownWork, place: TitlePlace | None) -> int:
    """How many of the compared family names stand beside the title, or, where it is not found, on the page's first
    lines."""
    if place is not None:
        first, last = place.first - thresholds.LINES_ABOVE_TITLE, place.last + 1 + thresholds.LINES_BELOW_TITLE
    else:
        first, last = 0, thresholds.TITLE_LINES
    shown = words("\n".join(page.folded_lines[max(0, first) : last]))
    joined = f" {' '.join(shown)} "
    run = "" if joined.isascii() else "".join(shown)
    found = sum(_has_name(name, joined) or (not name.isascii() and name in run) for name in known.families)
    if found or not known.families:
        return found
    plain = {_without_umlauts(word) for word in shown}
    return sum(_without_umlauts(name) in plain for name in known.families)


def _without_umlauts(name: str) -> str:
    """`Mueller` and `Müller` alike."""
    return name.replace("ue", "u").replace("oe", "o").replace("ae", "a").replace("aa", "a")


_GROUP = re.compile(
    r"\b(?:collaborations?|consortium|(?:study|working|research|writing) group|investigators|task force|on behalf of)\b"
)


def names_group(page: Page, place: TitlePlace) -> bool:
    """A group signs, in place of its people."""
    return any(_GROUP.search(text) for text in page.folded_lines[place.last + 1 : place.last + 4])


_SIGNED_LINES = 16


def authors_at_end(page: Page, known: KnownWork) -> int:
    """How many of the compared names sign the paper at its end, outside its references."""
    lines = [
        text
        for text in page.folded_lines[-_SIGNED_LINES:]
        if not _REFERENCE_LINE.match(text) and not _YEAR.search(text)
    ]
    joined = f" {' '.join(words(chr(10).join(lines)))} "
    return sum(_has_name(name, joined) for name in known.families)


_NUMBER = re.compile(r"\d\d")
_YEAR = re.compile(r"(?:1[6-9]|20)\d\d")


def _has_name(name: str, joined: str) -> bool:
    """The name among words between blanks, with the marks of affiliations that are glued to it: `Smith1`, `Smitha`."""
    if " " in name:
        return all(_has_name(part, joined) for part in name.split())
    at = joined.find(f" {name}")
    while at >= 0:
        end = joined.index(" ", at + 1)
        glued = joined[at + 1 + len(name) : end]
        if not glued or glued.isdecimal() or (len(name) >= 4 and len(glued) <= 2):
            return True
        at = joined.find(f" {name}", end)
    return False


def printed_range(page: Page, known: KnownWork) -> bool | None:
    """Whether the header or footer prints the known pages: None when it prints none.

    Only lines of a citation count, those with a year or a volume beside the range."""
    if known.page_range is None:
        return None
    first, last = known.page_range
    seen: list[tuple[int, int]] = []
    for text in _furniture(page, known):
        cites = re.search(r"\b(?:1[89]|20)\d\d\b|\bvol|\bpp?\b|\(\d{1,3}\)", text) is not None
        for found in _RANGE.finditer(text):
            one, two = int(found[1]), int(found[2])
            if two < one:
                digits = len(found[2])
                two = int(str(one)[:-digits] + found[2]) if digits < len(found[1]) else two
            if cites and two >= one and not (1800 <= one <= 2100 and 1800 <= two <= 2100):
                seen.append((one, two))
    if (first, last) in seen:
        return True
    if any(one == first for one, _ in seen):
        return True
    return False if seen else None


def prints_page_number(page: Page, number: str | None) -> bool:
    """The number stands alone in a line at the edge of the page, begins or ends its header, or is its label."""
    if not number:
        return False
    alone = [line.text.strip() for line in page.lines[:3] + page.lines[-3:]]
    if page.label == number or any(re.fullmatch(rf"\W*{re.escape(number)}\W*", text) for text in alone):
        return True
    around = re.compile(
        rf"^{re.escape(number)}\s|(?<!article)(?<!no\.)(?<!no)(?<!art\.)(?<![:;,])\s{re.escape(number)}$"
    )
    edges = (text for at, text in enumerate(page.folded_lines) if at == 0 or is_at_edge(page, at))
    return len(number) > 1 and any(len(text) <= _FURNITURE_CHARS and around.search(text.strip()) for text in edges)


def is_at_edge(page: Page, index: int) -> bool:
    """In the header or the footer."""
    line = page.lines[index]
    return page.height > 0 and (line.bottom > 0.92 * page.height or line.top < 0.08 * page.height)


def _furniture(page: Page, known: KnownWork) -> Iterator[str]:
    """The short lines at both ends of a page, folded, without those that cite the work."""
    count = len(page.lines)
    for index in dict.fromkeys([*range(min(8, count)), *range(max(0, count - 6), count)]):
        text = page.folded_lines[index]
        if len(text) <= _FURNITURE_CHARS and _NUMBER.search(text) and not is_cited(page, index, known):
            yield text


def header_years(page: Page, known: KnownWork) -> set[int]:
    """Years in the lines of a citation; not those of `Received` and `Accepted`, nor of a sentence."""
    years: set[int] = set()
    for text in _furniture(page, known):
        if not re.search(r"received|accepted|revised|available|downloaded|access", text):
            years.update(int(year) for year in re.findall(r"(?<![\d.])(?:19|20)\d\d(?![\d])", text.split("10.")[0]))
    return years


def title_share(pages: Sequence[Page], known: KnownWork) -> float | None:
    """How much of the title's telling words the pages have; None when they are too few."""
    telling = [word for word in dict.fromkeys(known.title_words) if len(word) >= 4 and not _GENERAL.fullmatch(word)]
    if len(telling) < thresholds.MIN_TELLING_WORDS:
        return None
    seen = {word[:6] for page in pages for line in page.lines for word in content_words(line.text)}
    return sum(word[:6] in seen for word in telling) / len(telling)


_GENERAL = re.compile(
    r"with|from|using|based|between|through|about|into|their|some|very|paper|stud(?:y|ies)|analys[ei]s|effects?"
    r"|methods?|models?|approach(?:es)?|results?|roles?|cases?|reviews?|evidence|first|novel|towards?|under|over|during"
    r"|after|before|among|within|without|that|this|these|which|when|what|does|data|systems?"
)


def body_size(document: DocumentText) -> float:
    """The size of most of the text."""
    letters: dict[float, int] = {}
    for page in document.pages[:4]:
        for line in page.lines:
            size = round(line.size * 2) / 2
            letters[size] = letters.get(size, 0) + len(line.text)
    return max(letters, key=lambda size: letters[size]) if letters else 0.0
