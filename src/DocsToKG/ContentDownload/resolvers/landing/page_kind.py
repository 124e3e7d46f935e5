"""What is this page, if it is not the paper's own? Challenges, walls, and pages that only point on.

The signs are in `api.walls`. Those of a challenge count only where the page has no bibliographic tags, because real
article pages also carry them (a captcha in a comment form).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from urllib.parse import unquote, urlsplit

from DocsToKG.ContentDownload.api.walls import Sight, Wall, first_wall, is_short, says_challenge
from DocsToKG.ContentDownload.resolvers.landing.html_page import HtmlPage


class PageKind(StrEnum):
    ARTICLE = "article"
    ROUTER = "router"
    CHALLENGE = "challenge"
    COOKIE_WALL = "cookie-wall"
    LOGIN_WALL = "login-wall"
    PAYWALL = "paywall"
    INTERSTITIAL = "interstitial"
    OTHER = "other"


_MOST_LINES = 20  # of one box; nested boxes would show the same links again and again
_PLAIN_WALLS = (Wall.COOKIE_WALL, Wall.LOGIN_WALL, Wall.INTERSTITIAL, Wall.ROUTER)
# With fewer visible words a page is only a frame for its scripts; with next to none it is nothing without them.
_BARE_WORDS, _NO_WORDS = 60, 5
_REFRESH = re.compile(r"\s*(\d{1,3})(?:\.\d+)?\s*[;,]\s*url\s*=\s*[\"']?([^\"']+)", re.IGNORECASE)
_OVID = re.compile(r"journalURL\s*=\s*[\"']([^\"']{8,2000})[\"']", re.IGNORECASE)


def kind_of(
    page: HtmlPage,
    *,
    status: int,
    has_pdf: bool,
    points_on: bool,
    is_free: bool | None = None,
    has_own_pdf: bool = False,
) -> PageKind:
    """`is_free` is what the page says of the paper in its data. `has_own_pdf`: not just any PDF."""
    scholarly = any(name.startswith(("citation_", "bepress_citation", "eprints.", "prism.")) for name in page.metas)
    words = len(" ".join(_visible_text(page)).split())
    sight = _sight(page, status, words)
    if _is_challenge(page, sight, scholarly=scholarly):
        return PageKind.CHALLENGE
    if not scholarly and _is_login(sight, has_own_pdf=has_own_pdf):
        return PageKind.LOGIN_WALL
    if scholarly or has_pdf:
        asks_money = is_free is False or (is_free is None and first_wall(sight, of={Wall.PAYWALL}) is not None)
        return PageKind.PAYWALL if asks_money and not has_pdf else PageKind.ARTICLE
    if points_on:
        return PageKind.ROUTER
    return PageKind.PAYWALL if is_free is False else _plain_kind(page, sight, words)


def next_pages(page: HtmlPage) -> tuple[str, ...]:
    """Where a page that only points on points to, at most two addresses."""
    found = [address for link in _pointers(page) if (address := page.absolute(link)) is not None]
    return tuple(dict.fromkeys(address for address in found if address != page.url))[:2]


def _sight(page: HtmlPage, status: int, words: int) -> Sight:
    text = page.text.lower()
    short = is_short(len(text), status)
    return Sight(text=text, url=page.url.lower(), title=page.title.lower(), short=short, bare=words < _BARE_WORDS)


def _is_challenge(page: HtmlPage, sight: Sight, *, scholarly: bool) -> bool:
    if says_challenge(page.headers.get("cf-mitigated", "")):
        return True
    return not scholarly and first_wall(sight, of={Wall.CHALLENGE}) is not None


def _is_login(sight: Sight, *, has_own_pdf: bool) -> bool:
    """Pages of papers have forms for members too: only what is called a login, or shows nothing else, is one."""
    is_only_form = sight.bare and not has_own_pdf
    looked_at = sight if is_only_form else replace(sight, text="")
    return first_wall(looked_at, of={Wall.LOGIN_WALL}) is not None


def _plain_kind(page: HtmlPage, sight: Sight, words: int) -> PageKind:
    wall = first_wall(sight, of=_PLAIN_WALLS)
    if wall is not None:
        return PageKind(wall)
    if words < _NO_WORDS and "<script" in sight.text:
        return PageKind.COOKIE_WALL
    if first_wall(sight, of={Wall.PAYWALL}) is not None:
        return PageKind.PAYWALL
    return PageKind.ARTICLE if any(page.meta("dc.title", "dc.identifier", "og:title")) else PageKind.OTHER


def _visible_text(page: HtmlPage) -> Iterator[str]:
    for number, node in enumerate(page.root.iter()):
        if number > 2_000:
            return
        if (
            isinstance(node.tag, str)
            and node.tag not in ("script", "style", "noscript", "head", "title", "meta")
            and node.text
        ):
            yield node.text[:2_000]


def _pointers(page: HtmlPage) -> Iterator[str]:
    for node in page.each("input"):
        # Elsevier's link hub keeps the target in a hidden field, escaped once more.
        if (node.get("name") or "").lower() == "redirecturl":
            yield re.sub(r"[?&]via(?:=|%3D)[^&]*", "", unquote(node.get("value") or ""))
    for node in page.each("div"):
        # Crossref's page for DOIs with several homes.
        if "resource-line" in (node.get("class") or "").split():
            yield from (link.get("href") or "" for link in islice(node.iter("a"), _MOST_LINES))
    for node in page.each("meta"):
        refresh = (
            _REFRESH.match(node.get("content") or "") if (node.get("http-equiv") or "").lower() == "refresh" else None
        )
        if (
            refresh is not None
            and int(refresh[1]) <= 15
            and not any(up.tag == "noscript" for up in node.iterancestors())
        ):
            yield refresh[2].strip()
    if (urlsplit(page.url).hostname or "").endswith("ovid.com") and (ovid := _OVID.search(page.text)) is not None:
        yield ovid[1]
    if page.title.lower() == "handle redirect":
        yield from (node.get("href") or "" for node in page.each("a"))
