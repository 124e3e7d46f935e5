"""The signs by which a page that stands in front of a paper is known, as data, for everyone who meets such pages.

Knows what challenges, cookie and script walls, logins, paywalls and way stations look like in a title, an address or
markup. Does not know where a page came from or what follows from its kind. Pure; every pattern is linear in the page.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Wall(StrEnum):
    CHALLENGE = "challenge"
    COOKIE_WALL = "cookie-wall"
    LOGIN_WALL = "login-wall"
    PAYWALL = "paywall"
    INTERSTITIAL = "interstitial"
    ROUTER = "router"


# Answers that guards give instead of the page; an honest error page has another status.
WALL_STATUSES = frozenset({202, 403, 429, 503})
SHORT_PAGE_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Sight:
    """What there is to see of a page, all in lower case.

    `short`: the page is no longer than a wall usually is. `bare`: it shows next to nothing.
    """

    text: str
    url: str
    title: str
    short: bool
    bare: bool


@dataclass(frozen=True, slots=True)
class Sign:
    """One piece of evidence. `counts`: signs that ordinary pages also carry count on short or bare pages only.
    `unless`: a sight that takes the sign's meaning away."""

    wall: Wall
    where: Literal["text", "url", "title"]
    pattern: str
    counts: Literal["always", "if short", "if bare"] = "always"
    unless: str | None = None


_HUMAN = r"verify(?:ing)? (?:that )?you are (?:a )?human"

# Read from the top: a wall in front of a login is a wall.
SIGNS: tuple[Sign, ...] = (
    Sign(Wall.CHALLENGE, "title", r"just a moment|attention required|access denied|are you a robot|robot check"),
    Sign(Wall.CHALLENGE, "title", r"not a bot|security check|client challenge|pardon our interruption|ddos[- ]guard"),
    Sign(Wall.CHALLENGE, "title", rf"human verification|{_HUMAN}"),
    Sign(Wall.CHALLENGE, "title", r"captcha|ddos", "if short"),
    Sign(Wall.CHALLENGE, "text", r"__cf_chl_|_cf_chl_opt|cf-browser-verification|orchestrate/chl_page|gokuprops"),
    Sign(Wall.CHALLENGE, "text", r"errors\.edgesuite\.net|shieldsquare|perfdrive|px-captcha|are you a robot"),
    Sign(Wall.CHALLENGE, "text", r"anubis_challenge|\.within\.website/|techaro"),
    # Guarded sites load these on every page; ordinary forms have captchas.
    Sign(Wall.CHALLENGE, "text", r"challenges\.cloudflare\.com|cdn-cgi/challenge|_incapsula_resource", "if short"),
    Sign(Wall.CHALLENGE, "text", r"datadome|captcha-delivery|awswaf|hcaptcha|g-recaptcha|recaptcha/api", "if short"),
    Sign(Wall.CHALLENGE, "text", rf"{_HUMAN}|unusual traffic", "if short"),
    Sign(Wall.COOKIE_WALL, "url", r"/cookieabsent|cookieset=1|error=cookies_not_supported"),
    Sign(Wall.COOKIE_WALL, "text", r"/cookieabsent|error=cookies_not_supported|cookies are (?:disabled|required)"),
    Sign(
        Wall.COOKIE_WALL, "text",
        r"enable (?:javascript|cookies)|javascript is (?:disabled|required)|requires javascript", "if bare",
    ),
    Sign(Wall.COOKIE_WALL, "text", r"<div id=[\"']?(?:root|app|__next)[\"']?>\s*</div>", "if bare"),
    Sign(
        Wall.LOGIN_WALL, "url",
        r"samlrequest=|/login(?:[/?]|$)|/password-login|/signin(?:[/?]|$)|/idp/|[/.]shibboleth"
        r"|//(?:idp|login|sso|auth)\.",
    ),
    Sign(
        Wall.LOGIN_WALL, "title",
        r"(?:^|[|/:>–—-]\s?)(?:please |your |institutional |member |user |account |secure ){0,2}"
        r"(?:sign[ -]?in|log[ -]?in|anmeldung|anmelden|einloggen|connexion|se connecter|iniciar sesi[oó]n|accedi"
        r"|openathens|access through your institution|(?:choose|find|select) your (?:institution|organi[sz]ation))"
        r"(?: page| required| form| here| to (?:continue|your account))?(?:\s?[|/:<–—-]|$)",
    ),
    Sign(Wall.LOGIN_WALL, "text", r"name=[\"']samlrequest[\"']|samlrequest="),
    Sign(Wall.LOGIN_WALL, "text", r"type=[\"']?password\b", "if short"),
    Sign(Wall.INTERSTITIAL, "title", r"preparing to download"),
    Sign(
        Wall.INTERSTITIAL, "text", r"preparing to download|your download (?:will|should) (?:start|begin)", "if short"
    ),
    Sign(Wall.ROUTER, "url", r"//linkinghub\.|//chooser\.crossref\."),
    Sign(Wall.INTERSTITIAL, "url", r"/doi/epdf/|/doi/reader/"),
    Sign(Wall.INTERSTITIAL, "text", r"<(?:iframe|embed|object)[^>]{0,500}(?:/pdfdirect/|/pdf\b)", "if bare"),
    Sign(Wall.ROUTER, "text", r"<meta[^>]{0,100}http-equiv=[\"']?refresh", "if bare"),
    Sign(Wall.ROUTER, "text", r"linkinghub|doi\.org chooser|multiple resolution|redirecting", "if bare"),
    Sign(
        Wall.PAYWALL, "text",
        r"get access|(?:purchase|buy|rent)\s{1,20}(?:this\s{1,20}|the\s{1,20})?"
        r"(?:article|pdf|access|instant access|chapter|now\b)"
        r"|access through your institution|log in to (?:view|read|access)", unless=r"citation_pdf_url",
    ),
)  # fmt: skip

_COMPILED = tuple((sign, re.compile(sign.pattern), re.compile(sign.unless) if sign.unless else None) for sign in SIGNS)


# Who does not tell routers apart meets them as way stations.
WALLS = frozenset(Wall) - {Wall.ROUTER}


def first_wall(sight: Sight, *, of: Collection[Wall] = WALLS) -> Wall | None:
    """The first of the walls `of` that a sign points to. Where routers are not asked for, they are interstitials."""
    counting = {"always": True, "if short": sight.short, "if bare": sight.bare}
    seen = {"text": sight.text, "url": sight.url, "title": sight.title}
    for sign, pattern, unless in _COMPILED:
        wall = Wall.INTERSTITIAL if sign.wall == Wall.ROUTER and Wall.ROUTER not in of else sign.wall
        if wall not in of or not counting[sign.counts]:
            continue
        if pattern.search(seen[sign.where]) and not (unless and unless.search(sight.text)):
            return wall
    return None


def is_short(length: int, status: int) -> bool:
    """Whether doubtful signs count: on a short page that claims success, and with the status of a guard."""
    return status in WALL_STATUSES or (status == 200 and length < SHORT_PAGE_CHARS)


def says_challenge(cf_mitigated: str) -> bool:
    """The header in which Cloudflare says so itself."""
    return "challenge" in cf_mitigated.lower()
