"""A small part of CSS, enough to name an element of a page.

Knows tags, ids, classes, attributes (`[a]`, `[a=b]`, `~=`, `^=`, `$=`, `*=`) and "somewhere inside" (a space).
Promises: a selector is refused when it is read, not when it is used; matching looks at a bounded number of elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lxml import etree

from DocsToKG.ContentDownload.resolvers.landing.html_page import HtmlPage

_COMPOUND = re.compile(
    r"(?P<tag>[a-z][a-z0-9]*)(?P<rest>(?:[.#][\w-]+|\[[\w:-]+(?:[~^$*]?=(?:\"[^\"]*\"|[^\]\"]*))?\])*)"
)
_PART = re.compile(r"([.#])([\w-]+)|\[([\w:-]+)(?:([~^$*]?=)(?:\"([^\"]*)\"|([^\]\"]*)))?\]")
_MOST_ANCESTORS = 40
_TESTS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda held, wanted: held == wanted,
    "~=": lambda held, wanted: wanted in held.split(),
    "^=": lambda held, wanted: held.startswith(wanted),
    "$=": lambda held, wanted: held.endswith(wanted),
    "*=": lambda held, wanted: wanted in held,
}


@dataclass(frozen=True, slots=True)
class _Compound:
    """One element: its tag, and what its attributes must hold."""

    tag: str
    tests: tuple[tuple[str, str, str], ...]

    def fits(self, node: etree._Element) -> bool:
        if node.tag != self.tag:
            return False
        return all(_holds(node.get(name), test, wanted) for name, test, wanted in self.tests)


@dataclass(frozen=True, slots=True)
class Selector:
    """`steps` from the outermost to the element itself."""

    text: str
    steps: tuple[_Compound, ...]

    def find(self, page: HtmlPage) -> Iterator[etree._Element]:
        *around, last = self.steps
        for node in page.each(last.tag):
            if last.fits(node) and _is_inside(node, around):
                yield node


def parse_selector(text: str) -> Selector:
    """Raises `ValueError` for what this part of CSS does not have."""
    pieces = re.findall(r"(?:\[[^\]]*\]|[^\s\[])+", text)
    if not pieces or " ".join(pieces) != " ".join(text.split()):
        raise ValueError(f"not a whole selector: {text!r}")
    return Selector(text, tuple(_compound(piece) for piece in pieces))


def _compound(piece: str) -> _Compound:
    match = _COMPOUND.fullmatch(piece)
    if match is None:
        raise ValueError(f"not a selector of tag, .class, #id and [attribute]: {piece!r}")
    return _Compound(match["tag"], tuple(_test(part) for part in _PART.finditer(match["rest"])))


def _test(part: re.Match[str]) -> tuple[str, str, str]:
    mark, name, attribute, test, quoted, bare = part.groups()
    if mark:
        return ("class", "~=", name) if mark == "." else ("id", "=", name)
    return attribute, test or "", quoted if quoted is not None else bare or ""


def _holds(held: str | None, test: str, wanted: str) -> bool:
    return held is not None and (not test or _TESTS[test](held, wanted))


def _is_inside(node: etree._Element, around: list[_Compound]) -> bool:
    """Whether the elements `around` enclose the node, the last of them nearest."""
    place = node.getparent()
    for _ in range(_MOST_ANCESTORS):
        if not around:
            return True
        if place is None:
            return False
        if around[-1].fits(place):
            around = around[:-1]
        place = place.getparent()
    return not around
