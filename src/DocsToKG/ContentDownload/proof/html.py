"""Pages that came where a paper was asked for, told apart.

Knows the signs of challenges, cookie and script walls, logins and way stations, as data. Looks at the
first 64 KiB only and parses nothing, so hostile nesting costs nothing. Promises: a PDF is never a page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from DocsToKG.ContentDownload.api.types import Reason

HEAD_BYTES = 64 * 1024

_PDF_WITHIN = 1024
_SMALL_PAGE_BYTES = 16 * 1024
_WALL_STATUSES = frozenset({202, 403, 429, 503})
_GUARDED_SERVERS = ("cloudflare", "akamaighost", "ddos-guard", "imperva")
_MARKUP = re.compile(
    rb"\s*(?:(?><\?xml[^>]{0,200}>|<!--.{0,2000}?-->)\s*)*+"  # atomic: a row of comments is read in one way only
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|link|style|div|center|form|p|h[1-6]|iframe|table)\b",
    re.IGNORECASE | re.DOTALL,
)
_HTML_TYPES = ("text/html", "application/xhtml")


@dataclass(frozen=True, slots=True)
class Sign:
    """One piece of evidence. `small`: it also occurs on ordinary pages, so it counts on short ones only.
    `unless`: a sight that takes the sign's meaning away."""

    reason: Reason
    where: Literal["text", "url", "title"]
    pattern: str
    small: bool = False
    unless: str | None = None


# Read from the top: a wall in front of a login is a wall.
SIGNS: tuple[Sign, ...] = (
    Sign(Reason.CHALLENGE, "title", r"just a moment|attention required|access denied|are you a robot|ddos"),
    Sign(Reason.CHALLENGE, "title", r"not a bot|security check|client challenge|pardon our interruption"),
    Sign(Reason.CHALLENGE, "text", r"challenges\.cloudflare\.com|__cf_chl_|cf-browser-verification|cdn-cgi/challenge"),
    Sign(Reason.CHALLENGE, "text", r"errors\.edgesuite\.net|shieldsquare|perfdrive|_incapsula_resource|px-captcha"),
    Sign(Reason.CHALLENGE, "text", r"anubis_challenge|/\.within\.website/|techaro|datadome|awswaf"),
    Sign(Reason.CHALLENGE, "text", r"are you a robot|verify (?:that )?you are (?:a )?human|unusual traffic"),
    Sign(Reason.CHALLENGE, "text", r"hcaptcha|g-recaptcha|recaptcha/api", small=True),
    Sign(Reason.COOKIE_WALL, "url", r"/cookieabsent|cookieset=1|error=cookies_not_supported"),
    Sign(Reason.COOKIE_WALL, "text", r"/cookieabsent|error=cookies_not_supported|cookies are (?:disabled|required)"),
    Sign(Reason.COOKIE_WALL, "text", r"enable (?:javascript|cookies)|javascript is (?:disabled|required)", small=True),
    Sign(Reason.COOKIE_WALL, "text", r"<div id=[\"']?(?:root|app|__next)[\"']?>\s*</div>", small=True),
    Sign(Reason.LOGIN_WALL, "url", r"samlrequest=|/login(?:\?|$)|/password-login|/signin\b|//(?:idp|login|sso)\."),
    Sign(Reason.LOGIN_WALL, "text", r"name=[\"']samlrequest[\"']|samlrequest="),
    Sign(Reason.LOGIN_WALL, "text", r"type=[\"']password[\"']", small=True),
    Sign(Reason.INTERSTITIAL, "text", r"preparing to download"),
    Sign(Reason.INTERSTITIAL, "url", r"/doi/epdf/|/doi/reader/|//linkinghub\."),
    Sign(Reason.INTERSTITIAL, "text", r"<(?:iframe|embed|object)[^>]{0,500}(?:/pdfdirect/|/pdf\b)", small=True),
    Sign(Reason.INTERSTITIAL, "text", r"<meta[^>]{0,100}http-equiv=[\"']?refresh", small=True),
    Sign(Reason.INTERSTITIAL, "text", r"linkinghub|doi\.org chooser|multiple resolution|redirecting", small=True),
    Sign(
        Reason.LOGIN_WALL, "text", r"get access|purchase (?:article|pdf|access)|buy (?:article|now)|rent this article"
        r"|access through your institution|log in to (?:view|read|access)", unless=r"citation_pdf_url"
    ),
)  # fmt: skip

_COMPILED = tuple((sign, re.compile(sign.pattern), re.compile(sign.unless) if sign.unless else None) for sign in SIGNS)
_TITLE = re.compile(r"<title[^>]{0,200}>(.{0,300}?)</title", re.DOTALL)


def classify_body(
    head: bytes,
    *,
    content_type: str | None = None,
    url: str | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Reason | None:
    """What kind of page the body is, from its first bytes; None when it is not a page. Header names are lower case."""
    head = head[:HEAD_BYTES]
    if not looks_like_page(head, content_type=content_type):
        return None
    said = {name.lower(): value.lower() for name, value in (headers or {}).items()}
    if "challenge" in said.get("cf-mitigated", ""):
        return Reason.CHALLENGE
    reason = _first_sign(_text(head), url or "", small=len(head) < _SMALL_PAGE_BYTES)
    if reason is not None:
        return reason
    guarded = any(name in said.get("server", "") for name in _GUARDED_SERVERS)
    if status == 202 or (status in _WALL_STATUSES and guarded):
        return Reason.CHALLENGE
    return Reason.HTML_INSTEAD_OF_PDF


def looks_like_page(head: bytes, *, content_type: str | None = None) -> bool:
    """Markup where a file should begin. The header is believed only when the bytes do not speak for themselves."""
    start = _text(head[:4096]).encode("utf-8", "replace")
    if _MARKUP.match(start):
        return True
    if b"%PDF-" in head[:_PDF_WITHIN]:
        return False
    is_html = (content_type or "").strip().lower().startswith(_HTML_TYPES)
    return is_html and bool(start.strip()) and b"\x00" not in head[:1024]


def _first_sign(text: str, url: str, *, small: bool) -> Reason | None:
    title = _TITLE.search(text)
    seen = {"text": text, "url": url.lower(), "title": title[1] if title else ""}
    for sign, pattern, unless in _COMPILED:
        if sign.small and not small:
            continue
        if pattern.search(seen[sign.where]) and not (unless and unless.search(text)):
            return sign.reason
    return None


def _text(head: bytes) -> str:
    """Lower-case text; a wrong guess at the encoding only costs a sign."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head.decode("utf-16", "replace").lower()
    return head.removeprefix(b"\xef\xbb\xbf").decode("latin-1").lower()
