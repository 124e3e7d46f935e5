"""What is this page, if it is not the paper's own? Challenges, walls, and pages that only point on.

Markers that real article pages also carry (a captcha in a comment form, a login link) count only where the page has
no bibliographic tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from DocsToKG.ContentDownload.resolvers.html_page import HtmlPage


class PageKind(StrEnum):
    ARTICLE = "article"
    ROUTER = "router"
    CHALLENGE = "challenge"
    COOKIE_WALL = "cookie-wall"
    LOGIN_WALL = "login-wall"
    PAYWALL = "paywall"
    INTERSTITIAL = "interstitial"
    OTHER = "other"


_CHALLENGE_TITLE = re.compile(
    r"just a moment|attention required|access denied|are you a robot|robot check|security check|"
    r"verify(?:ing)? (?:that )?you are (?:a )?human|pardon our interruption|"
    r"making sure you.re not a bot|human verification|ddos-guard|captcha",
    re.IGNORECASE,
)
_CHALLENGE_MARKS = re.compile(
    r"__cf_chl_|_cf_chl_opt|errors\.edgesuite\.net|shieldsquare|perfdrive|within\.website/x/cmd/anubis|anubis_challenge|"
    r"awswafintegration|gokuprops|are you a robot",
    re.IGNORECASE,
)
_CAPTCHA = re.compile(r"challenges\.cloudflare\.com|hcaptcha|g-recaptcha|geo\.captcha-delivery", re.IGNORECASE)
_COOKIE_URL = re.compile(r"/cookieabsent|cookieset=1|error=cookies_not_supported", re.IGNORECASE)
_LOGIN_URL = re.compile(
    r"samlrequest=|/login(?:[/?]|$)|/password-login|/signin(?:[/?]|$)|/idp/|[/.]shibboleth", re.IGNORECASE
)
_PAYWALL = re.compile(
    r"get access|(?:purchase|buy|rent)\s+(?:this\s+|the\s+)?(?:article|pdf|access|instant access|chapter)|"
    r"access through your institution|log in to (?:view|read) the full",
    re.IGNORECASE,
)
_PREPARING = re.compile(r"preparing to download|your download (?:will|should) (?:start|begin)", re.IGNORECASE)
_SCRIPT_ONLY = re.compile(r"enable javascript|javascript is (?:disabled|required)|requires javascript", re.IGNORECASE)
_REFRESH = re.compile(r"\s*(\d{1,3})(?:\.\d+)?\s*[;,]\s*url\s*=\s*[\"']?([^\"']+)", re.IGNORECASE)
_OVID = re.compile(r"journalURL\s*=\s*[\"']([^\"']{8,2000})[\"']", re.IGNORECASE)


def kind_of(page: HtmlPage, *, status: int, has_pdf: bool, points_on: bool) -> PageKind:
    scholarly = any(name.startswith(("citation_", "bepress_citation", "eprints.", "prism.")) for name in page.metas)
    if _is_challenge(page, status=status, scholarly=scholarly):
        return PageKind.CHALLENGE
    if scholarly or has_pdf:
        return PageKind.PAYWALL if not has_pdf and _PAYWALL.search(page.text) else PageKind.ARTICLE
    if points_on:
        return PageKind.ROUTER
    return _plain_kind(page)


def next_pages(page: HtmlPage) -> tuple[str, ...]:
    """Where a page that only points on points to, at most two addresses."""
    found = [address for link in _pointers(page) if (address := page.absolute(link)) is not None]
    return tuple(dict.fromkeys(address for address in found if address != page.url))[:2]


def _is_challenge(page: HtmlPage, *, status: int, scholarly: bool) -> bool:
    if "challenge" in page.headers.get("cf-mitigated", "").lower():
        return True
    if scholarly:
        return False
    if _CHALLENGE_TITLE.search(page.title) or _CHALLENGE_MARKS.search(page.text):
        return True
    # An honest error page may carry a captcha for its report form; a short page that claims success may not.
    small = status == 200 and len(page.text) < 20_000
    return (small or status in (202, 403, 429, 503)) and _CAPTCHA.search(page.text) is not None


def _plain_kind(page: HtmlPage) -> PageKind:
    if _COOKIE_URL.search(page.url):
        return PageKind.COOKIE_WALL
    host = urlsplit(page.url).hostname or ""
    if _LOGIN_URL.search(page.url) or host.startswith(("idp.", "login.", "sso.", "auth.")) or _asks_password(page):
        return PageKind.LOGIN_WALL
    if _PREPARING.search(page.title) or (len(page.text) < 20_000 and _PREPARING.search(page.text)):
        return PageKind.INTERSTITIAL
    shown = len(" ".join(_visible_text(page)).split())
    if shown < 60 and (_SCRIPT_ONLY.search(page.text) or (shown < 5 and "<script" in page.text.lower())):
        return PageKind.COOKIE_WALL
    if _PAYWALL.search(page.text):
        return PageKind.PAYWALL
    return PageKind.ARTICLE if any(page.meta("dc.title", "dc.identifier", "og:title")) else PageKind.OTHER


def _asks_password(page: HtmlPage) -> bool:
    return any((node.get("type") or "").lower() == "password" for node in page.each("input"))


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
            yield from (link.get("href") or "" for link in node.iter("a"))
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
