"""Titles compared: is the wanted one on the page, is it only spoken of, is another one there instead?

Knows what printing, markup and file writers do to a title: capitals, accents, hyphens, ligatures, letters set apart,
formulas, a missing subtitle. Promises: pure, linear in bounded text; a title in another language or script than the
page, or one too short to tell papers apart, is never judged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_PAGE_CHARS = 20_000
_TITLE_CHARS = 1_000
_BEFORE_CHARS = 60
# A title that many papers could have is no evidence.
_BORNE_LETTERS = 18
_BORNE_WORDS = 4
_TELLING_WORDS = 4
# A paper's own first page has far more of its title's words than this, even where the title itself is not read.
STRANGER_SHARE = 0.3
# So many characters of a first page, with the marks of a paper's, would show its title; a page so full needs no marks.
READABLE_CHARS = 200
FULL_PAGE_CHARS = 2_500

_WORD = re.compile(r"[a-z0-9]+")
_LETTERS = re.compile(r"[a-z]+")
_ANY_LETTERS = re.compile(r"[^\W\d_]+")
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,200}>|&[a-z]{2,8};|&#\d{2,6};|\\[a-zA-Z]{1,30}|\\[^a-zA-Z\s]|[{}$]")
_LIGATURES = re.compile(r"ffi|ffl|ff|fi|fl")
_SUBTITLE = re.compile(r"[:?!]\s|\.\s|\s[-–—]\s")
_FILE_NAME = re.compile(r"^(?:microsoft |untitled)|\.(?:docx?|rtf|tex|dvi|e?ps|pdf|indd|qxd|wpd|odt)\b", re.IGNORECASE)
# Squashed words before a title that give it to the paper spoken of. `Comment` alone is a journal's section.
_ABOUT = re.compile(
    r"(?:(?:errat(?:um|a)|corrigend(?:um|a)|corrections?|addendum|retraction)(?:note|notice|statement)?"
    r"|(?:comments?|commentary|reply|response|rebuttal|discussion|supplement(?:ary|al)?(?:information|materials?|data)?"
    r"|supportinginformation)(?:to|on|of|for))(?:to|on|of|for|the|our|original|article|paper|entitled|titled){0,5}$"
)
_ENGLISH = re.compile(r"the|of|and|with|for|from|by|is|are|that|we|on|to|in|at|as|an|between|through|about")
_FOREIGN = re.compile(
    r"de|la|el|los|las|y|del|una|por|para|con|se|der|die|das|und|des|den|bei|unter|zur|zum|von|im|ein|eine|et|le|les"
    r"|du|dans|une|sur|au|aux|il|di|della|dei|delle|nel|per|da|do|dos|em|uma|na|no|van|het|een|och|av|og|til|w|z"
)
_GENERAL = re.compile(
    r"with|from|using|based|between|through|about|into|their|some|very|paper|stud(?:y|ies)|analys[ei]s|effects?"
    r"|methods?|models?|approach(?:es)?|results?|roles?|cases?|reviews?|evidence|first|novel|towards?|under|over|during"
    r"|after|before|among|within|without|that|this|these|which|when|what|does|data|systems?"
)


def plain_words(text: str) -> str:
    """Lower-case words of plain letters and digits, without accents and punctuation."""
    plain = unicodedata.normalize("NFKD", text[:8000]).encode("ascii", "ignore").decode().lower()
    return " ".join(_WORD.findall(plain))


def is_file_name(title: str | None) -> bool:
    """Word processors leave the name of the manuscript's file where the title should be."""
    return bool(_FILE_NAME.search(title or ""))


def bears_title(page: str, title: str | None) -> bool:
    """The title stands on the page as its own, not as what a correction or a comment is about."""
    return any(not _ABOUT.search(before) for before in _places(page, title))


def only_speaks_of(page: str, title: str | None) -> str | None:
    """What the page calls itself (`erratumto`) when the title stands on it only as what it is about."""
    found = [_ABOUT.search(before) for before in _places(page, title)]
    named = [match[0] for match in found if match]
    return named[0] if named and len(named) == len(found) else None


def shares_title(text: str, title: str | None) -> float | None:
    """How much of the title's telling words the text has; None when they are too few to tell anything."""
    telling = _telling_words(title) if title else []
    if len(telling) < _TELLING_WORDS:
        return None
    words, letters = _page_words(text), squashed(text)
    return sum(_has(word, words, letters) for word in telling) / len(telling)


def is_strangers(page: str, own_title: str | None, title: str | None, *, looks_like_paper: bool) -> bool:
    """The page is the first of a paper with quite another title, all of it in the wanted title's language.

    Either the file's own title is known and is on the page, or the page is one that shows a title; and next to
    nothing of the wanted title is on it.
    """
    share = shares_title(f"{own_title or ''}\n{page}", title)
    if share is None or share >= STRANGER_SHARE or not _is_english(title or "", least=1):
        return False
    if not page.strip() or not _is_english(f"{own_title or ''}\n{page}", least=2):
        return False
    if own_title and not is_file_name(own_title) and (shares_title(page, own_title) or 0) >= 2 * STRANGER_SHARE:
        return True
    return len(page) >= (READABLE_CHARS if looks_like_paper else FULL_PAGE_CHARS)


def squashed(text: str) -> str:
    """Letters and digits alone: what hyphens, line ends and letters set apart do to words is gone."""
    plain = unicodedata.normalize("NFKD", text[:_PAGE_CHARS]).encode("ascii", "ignore").decode().lower()
    return "".join(_WORD.findall(plain))


def _places(page: str, title: str | None) -> Iterator[str]:
    """The squashed text before each place where the title, or else its main part, stands."""
    letters = squashed(page)
    for name in _names(title or ""):
        at = letters.find(name)
        if at < 0:
            continue
        while at >= 0:
            yield letters[max(0, at - _BEFORE_CHARS) : at]
            at = letters.find(name, at + len(name))
        return


def _names(title: str) -> list[str]:
    """The whole title, then its part before the subtitle, as far as they are telling."""
    plain = _without_markup(title)
    parts = dict.fromkeys((plain, _SUBTITLE.split(plain, maxsplit=1)[0]))
    telling = [part for part in parts if plain_words(part).count(" ") >= _BORNE_WORDS - 1]
    return [name for name in map(squashed, telling) if len(name) >= _BORNE_LETTERS]


def _without_markup(title: str) -> str:
    return _MARKUP.sub("", title[:_TITLE_CHARS])


def _telling_words(title: str) -> list[str]:
    words = dict.fromkeys(plain_words(_without_markup(title)).split())
    return [word for word in words if len(word) >= _TELLING_WORDS and word.isalpha() and not _GENERAL.fullmatch(word)]


def _page_words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text[:_PAGE_CHARS].replace("-\n", "")).encode("ascii", "ignore").decode()
    return list(dict.fromkeys(_LETTERS.findall(plain.lower())))


def _has(word: str, words: list[str], letters: str) -> bool:
    """The word or another form of it. A font may lose its ligatures: `efficient` is then read as `ecient`."""
    stem = word.rstrip("s")[:6]
    bare = _LIGATURES.sub("", word)[:6]
    if any(seen.startswith(stem) for seen in words) or (len(stem) == 6 and stem in letters):
        return True
    return bare != word[:6] and len(bare) >= 4 and bare in letters


def _is_english(text: str, *, least: int) -> bool:
    """Small words tell languages apart; a text that mixes two is none."""
    words = _ANY_LETTERS.findall(text[:_PAGE_CHARS].lower())
    english = sum(_ENGLISH.fullmatch(word) is not None for word in words)
    foreign = sum(_FOREIGN.fullmatch(word) is not None for word in words)
    return english >= least and 3 * foreign <= english
