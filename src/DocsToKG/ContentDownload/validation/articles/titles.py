"""Titles of XML and HTML compared: does one only speak of the other?

Knows what markup and file writers do to a title: capitals, accents, formulas, a missing subtitle. Promises: pure, and
linear in bounded text; a title too short to tell papers apart is never judged.
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

_WORD = re.compile(r"[a-z0-9]+")
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,200}>|&[a-z]{2,8};|&#\d{2,6};|\\[a-zA-Z]{1,30}|\\[^a-zA-Z\s]|[{}$]")
_SUBTITLE = re.compile(r"[:?!]\s|\.\s|\s[-–—]\s")
_FILE_NAME = re.compile(r"^(?:microsoft |untitled)|\.(?:docx?|rtf|tex|dvi|e?ps|pdf|indd|qxd|wpd|odt)\b", re.IGNORECASE)
# Squashed words before a title that give it to the paper spoken of. `Comment` alone is a journal's section.
_ABOUT = re.compile(
    r"(?:(?:errat(?:um|a)|corrigend(?:um|a)|corrections?|addendum|retraction)(?:note|notice|statement)?"
    r"|(?:comments?|commentary|reply|response|rebuttal|discussion|supplement(?:ary|al)?(?:information|materials?|data)?"
    r"|supportinginformation)(?:to|on|of|for))(?:to|on|of|for|the|our|original|article|paper|entitled|titled){0,5}$"
)


def plain_words(text: str) -> str:
    """Lower-case words of plain letters and digits, without accents and punctuation."""
    plain = unicodedata.normalize("NFKD", text[:8000]).encode("ascii", "ignore").decode().lower()
    return " ".join(_WORD.findall(plain))


def is_file_name(title: str | None) -> bool:
    """Word processors leave the name of the manuscript's file where the title should be."""
    return bool(_FILE_NAME.search(title or ""))


def only_speaks_of(page: str, title: str | None) -> str | None:
    """What the page calls itself (`erratumto`) when the title stands on it only as what it is about."""
    found = [_ABOUT.search(before) for before in _places(page, title)]
    named = [match[0] for match in found if match]
    return named[0] if named and len(named) == len(found) else None


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
