"""Pages that came where a paper was asked for, told apart.

Knows what makes a body a page; the signs of walls are in `api.walls`. Looks at the first 64 KiB only and
parses nothing, so hostile nesting costs nothing. Promises: a PDF is never a page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.api.walls import WALL_STATUSES, Sight, first_wall, is_short, says_challenge
from DocsToKG.ContentDownload.validation.forms import GZIP_MAGIC, has_pdf_header

HEAD_BYTES = 64 * 1024

_GUARDED_SERVERS = ("cloudflare", "akamaighost", "ddos-guard", "imperva")
_MARKUP = re.compile(
    rb"\s*(?:(?><\?xml[^>]{0,200}>|<!--.{0,2000}?-->)\s*)*+"  # atomic: a row of comments is read in one way only
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|link|style|div|center|form|p|h[1-6]|iframe|table)\b",
    re.IGNORECASE | re.DOTALL,
)
_HTML_TYPES = ("text/html", "application/xhtml")
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
    if says_challenge(said.get("cf-mitigated", "")):
        return Reason.CHALLENGE
    wall = first_wall(_sight(_text(head), url or "", status))
    if wall is not None:
        return Reason(wall.value)
    guarded = any(name in said.get("server", "") for name in _GUARDED_SERVERS)
    if status == 202 or (status in WALL_STATUSES and guarded):
        return Reason.CHALLENGE
    return Reason.HTML_INSTEAD_OF_PDF


def looks_like_page(head: bytes, *, content_type: str | None = None) -> bool:
    """Markup where a file should begin. The header is believed only when the bytes do not speak for themselves."""
    if head.startswith(b"%PDF-"):
        return False  # as nearly all that come do
    start = _text(head[:4096]).encode("utf-8", "replace")
    if _MARKUP.match(start):
        return True
    # A compressed file under a page's name is opened before it is judged.
    if has_pdf_header(head) or head.startswith(GZIP_MAGIC):
        return False
    is_html = (content_type or "").strip().lower().startswith(_HTML_TYPES)
    return is_html and bool(start.strip()) and b"\x00" not in head[:1024]


def _sight(text: str, url: str, status: int) -> Sight:
    title = _TITLE.search(text)
    short = is_short(len(text), status)
    # Nothing is parsed here, so a page that is short is taken to show little.
    return Sight(text=text, url=url.lower(), title=title[1] if title else "", short=short, bare=short)


def _text(head: bytes) -> str:
    """Lower-case text; a wrong guess at the encoding only costs a sign."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head.decode("utf-16", "replace").lower()
    return head.removeprefix(b"\xef\xbb\xbf").decode("latin-1").lower()
