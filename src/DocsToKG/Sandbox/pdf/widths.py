"""How wide text is, in thousandths of its size: Helvetica's widths, and fair guesses beyond ASCII."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_ASCII = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
)  # fmt: skip


class _Widths(dict[str, int]):
    def __missing__(self, char: str) -> int:
        self[char] = width = _guessed(char)
        return width


def _guessed(char: str) -> int:
    if unicodedata.east_asian_width(char) in "WF":
        return 1000
    if unicodedata.combining(char):
        return 0
    base = unicodedata.normalize("NFD", char)[0]
    return WIDTHS[base] if base != char else 556


WIDTHS = _Widths({chr(32 + at): width for at, width in enumerate(_ASCII)})


def text_width(text: str, size: float) -> float:
    return sum(map(WIDTHS.__getitem__, text)) * size / 1000


@lru_cache(maxsize=8192)
def wrapped(text: str, size: float, width: float) -> tuple[str, ...]:
    """Lines no wider than `width`; text without spaces between words is cut between any two letters."""
    return tuple(line for part in text.split("\n") for line in _wrapped_line(part, size, width))


def _wrapped_line(text: str, size: float, width: float) -> list[str]:
    room = width * 1000 / size
    joint, parts = ("", list(text)) if _is_wide(text) else (" ", text.split(" "))
    space = WIDTHS[" "] if joint else 0
    lines: list[str] = []
    line: list[str] = []
    used = -float(space)
    for part in parts:
        wide = sum(map(WIDTHS.__getitem__, part))
        if line and used + space + wide > room:
            lines.append(joint.join(line))
            line, used = [], -float(space)
        line.append(part)
        used += space + wide
    return [*lines, joint.join(line)]


def _is_wide(text: str) -> bool:
    return any("\u3000" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in text)
