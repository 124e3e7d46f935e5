"""Text made comparable: what fonts, typesetters, indexes and markup do to the same words is taken away.

Knows ligatures, hyphens at line ends, accents, letters of other styles, Greek letters and their names, footnote marks
glued to words, HTML and TeX in titles. Promises: pure, linear in bounded text; numbers and roman numerals stay.
"""

from __future__ import annotations

import functools
import html
import re
import unicodedata

TEXT_CHARS = 200_000
TITLE_CHARS = 1_500

_TAGS = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_TEX_ACCENT = re.compile(r"\\[`'^\"~=.uvHcdbkrt]\s?\{?([a-zA-Z])\}?")
_TEX_COMMAND = re.compile(r"\\([a-zA-Z]{1,30})\s?")
_TEX_LETTERS = re.compile(
    r"alpha|beta|gamma|delta|(?:var)?epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|(?:var)?phi"
    r"|chi|psi|omega"
)
# What publishers put before the title of a paper that was retracted, in the index, on the page, or in both.
_RETRACTED = re.compile(r"^\W{0,3}(?:retracted|withdrawn)(?: article| paper)?\s?[:\])-]\s*", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_APOSTROPHES = re.compile(r"['’‘ʼ`´]")
_GLUED = re.compile(r"(?<=[a-z]{3})\d{1,2}$")
_LINE_HYPHEN = re.compile(r"[-\u00ad\u2010]\s*\n\s*(?=[a-z])")
_MARKS = {
    "ß": "ss", "ø": "o", "ł": "l", "æ": "ae", "œ": "oe", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h", "ŋ": "n",
    "\u00ad": "", "\u200b": "", "&": " and ", "−": "-",
}  # fmt: skip
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "ο": "o", "π": "pi", "ρ": "rho",
    "σ": "sigma", "ς": "sigma", "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
}  # fmt: skip
_COMBINING = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a]"
)
# Few letters of a page are among them, and `str.translate` looks each letter up.
_MARK, _GREEK_LETTER = re.compile(f"[{''.join(_MARKS)}]"), re.compile(f"[{''.join(_GREEK)}]")
_ROMAN = {"ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9", "xi": "11", "xii": "12"}
# Words without which a title is the same. Negations and prepositions that turn a meaning stay.
_SMALL = frozenset(
    {
        "the", "a", "an", "of", "and", "in", "on", "for", "to", "by", "at", "as", "its", "is", "der", "die", "das",
        "und", "le", "la", "les", "et", "de", "des", "du", "el", "los", "y",
    }
)  # fmt: skip


def fold(text: str) -> str:
    """Lower-case text without accents, ligatures and styles of letters."""
    if text.isascii():  # most lines: what follows would change nothing else
        return text[:TEXT_CHARS].lower().replace("&", " and ")
    plain = unicodedata.normalize("NFKC", text[:TEXT_CHARS]).casefold()
    plain = _MARK.sub(lambda found: _MARKS[found[0]], plain)
    if plain.isascii():
        return plain
    bare = _COMBINING.sub("", unicodedata.normalize("NFKD", plain))
    return unicodedata.normalize("NFC", bare)


def words(text: str) -> list[str]:
    """The words of a text, folded; a word that a line end divided is one."""
    plain = fold(text)
    if plain.isascii():
        plain = plain.replace("'", "").replace("`", "")
    else:
        plain = _APOSTROPHES.sub("", plain)
        plain = _GREEK_LETTER.sub(lambda found: _GREEK[found[0]], plain)
    return _WORD.findall(_LINE_HYPHEN.sub("", plain) if "\n" in plain else plain)


def content(text: str) -> str:
    """The words that make a title this one and no other, run together: two spellings of a hyphen are equal."""
    return "".join(content_words(text))


def content_words(text: str) -> list[str]:
    return [_ROMAN.get(word, word) for word in words(text) if word not in _SMALL]


def line_content(text: str) -> str:
    """`content` of a line that may begin a title."""
    return content(_RETRACTED.sub("", text) if ":" in text or "]" in text or ")" in text or "-" in text else text)


def without_mark(squashed: str, wanted: str) -> str:
    """A title without the number of a footnote at its end, where the wanted one has none."""
    return squashed if wanted[-1:].isdigit() else _GLUED.sub("", squashed)


@functools.lru_cache(maxsize=512)
def plain_title(title: str) -> str:
    """A title of an index without HTML and TeX."""
    text = html.unescape(html.unescape(title[:TITLE_CHARS]))
    text = _TAGS.sub("", text)
    if "\\" in text or "$" in text:
        text = _TEX_ACCENT.sub(r"\1", text)
        text = _TEX_COMMAND.sub(lambda found: f"{found[1]} " if _TEX_LETTERS.fullmatch(found[1]) else "", text)
        text = re.sub(r"[{}$^_]", "", text)
    return " ".join(text.split())


def family_name(name: str) -> str:
    """The family name of `Family, Given` or `Given Family`, folded, of its last two words at most."""
    before, comma, _ = name.partition(",")
    parts = words(before if comma else name)
    return " ".join(parts) if comma else " ".join(parts[-1:])


def script_of(text: str) -> str:
    """The script of most letters: latin, han, cyrillic, arabic, ...; empty without letters."""
    counts: dict[str, int] = {}
    for letter in text[:2_000]:
        if letter.isalpha():
            name = "latin" if letter < "\u0250" else _script(letter)
            counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: counts[name]) if counts else ""


@functools.lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "").partition(" ")[0].lower()
    return {"cjk": "han", "hiragana": "han", "katakana": "han", "mathematical": "latin"}.get(name, name)
