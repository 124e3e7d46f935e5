"""A web page as evidence: its elements, meta tags, base address and headers.

Bounded whatever comes: four MiB are looked at, the parser stops at its own depth limit, charsets come from a
short list. Promises: a page or None, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson
from lxml import etree

from DocsToKG.core.urls import BadUrl, join_url

MAX_PAGE_BYTES = 4 * 1024 * 1024
_MAX_ELEMENTS = 5_000
_MAX_HEADER = 16 * 1024
_MAX_LINK = 4096
_MAX_WALK = 400
_MAX_ATTRIBUTES = 1_000
_MAX_SCRIPT = 1024 * 1024
# On a page of this size even the most crowded tag is read in a fraction of a second.
_SMALL_PAGE_BYTES = 32 * 1024
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{2,40})", re.IGNORECASE)
# Text encodings of the web. Others that Python knows (punycode, idna) take quadratic time on hostile input.
_ENCODINGS = re.compile(
    r"utf-?8|us-ascii|ascii|iso-?8859-?\d{1,2}|latin-?1|windows-?125\d|cp125\d|gb2312|gbk|gb18030|big5|euc-?(jp|kr|cn)|"
    r"shift[_-]?jis|koi8-?[ru]|utf-16(le|be)?|macintosh",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LinkHeader:
    """One link of an RFC 8288 header."""

    target: str
    rels: frozenset[str]
    type: str


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """`metas` has names in lower case and all values in page order; `text` is the decoded markup."""

    url: str
    base: str
    root: etree._Element
    metas: Mapping[str, tuple[str, ...]]
    title: str
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def meta(self, *names: str) -> Iterator[str]:
        for name in names:
            yield from self.metas.get(name, ())

    def each(self, tag: str) -> Iterator[etree._Element]:
        return islice(self.root.iter(tag), _MAX_ELEMENTS)

    def absolute(self, link: str | None) -> str | None:
        """An address for `link` on this page, or None when it leads nowhere we can go."""
        link = (link or "").strip()
        if not link or len(link) > _MAX_LINK or link.startswith("#"):
            return None
        try:
            return join_url(self.base, link)
        except BadUrl:
            return None

    def links(self) -> Iterator[LinkHeader]:
        return link_headers(self.headers.get("link", ""))


def parse_html(url: str, body: bytes, headers: Mapping[str, str]) -> HtmlPage | None:
    """The page, or None when there is nothing to parse."""
    text = _decode(body[:MAX_PAGE_BYTES], headers.get("content-type", ""))
    markup = text.encode("utf-8", "replace")
    parser = etree.HTMLParser(encoding="utf-8", recover=True, huge_tree=False, remove_comments=True, remove_pis=True)
    try:
        if len(markup) > _SMALL_PAGE_BYTES:
            # lxml calls only the methods it finds on a target.
            counter = etree.HTMLParser(encoding="utf-8", recover=True, target=_Attributes())  # type: ignore[arg-type]
            etree.fromstring(markup, counter)
        root = etree.fromstring(markup, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if root is None:
        return None
    title = next((_text_in(node)[:500] for node in root.iter("title")), "")
    return HtmlPage(url, _base_of(url, root), root, _metas(root), title, text, headers)


class _Attributes:
    """Refuses a page with a crowded tag: the parser's tree takes quadratic time over them, its events do not."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if len(attributes) > _MAX_ATTRIBUTES:
            raise ValueError("too many attributes")

    def close(self) -> None:
        return None


def link_headers(value: str) -> Iterator[LinkHeader]:
    for match in re.finditer(
        r"<([^<>]{1,4096})>((?:\s*;\s*[\w*-]+\s*=\s*(?:\"[^\"]*\"|[^\s;,\"]+))*)", value[:_MAX_HEADER]
    ):
        pairs = re.findall(r"([\w*-]+)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", match[2])
        params = {name.lower(): quoted or bare for name, quoted, bare in pairs}
        yield LinkHeader(match[1], frozenset(params.get("rel", "").lower().split()), params.get("type", "").lower())


def scripts_of(page: HtmlPage, kind: str) -> Iterator[Any]:
    """The values of the page's JSON scripts of one media type; broken and huge ones are left out."""
    for node in page.each("script"):
        if (node.get("type") or "").strip().lower() == kind and node.text and len(node.text) <= _MAX_SCRIPT:
            try:
                yield orjson.loads(node.text)
            except orjson.JSONDecodeError:
                continue


def words_of(element: etree._Element) -> str:
    """What a person reads on an element: its text, else its title or label."""
    return _text_in(element)[:200] or (element.get("title") or element.get("aria-label") or "").strip()[:200]


def _text_in(element: etree._Element) -> str:
    return " ".join("".join(islice(_pieces(element), 50)).split())


def _pieces(element: etree._Element) -> Iterator[str]:
    """The text in reading order. Counts elements too, since a link may hold any number of them without a word."""
    for event, node in islice(etree.iterwalk(element, events=("start", "end")), _MAX_WALK):
        text = node.text if event == "start" else node.tail
        if text and (event == "start" or node is not element):
            yield str(text)[:1000]


def _decode(body: bytes, content_type: str) -> str:
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", "replace")
    declared = _CHARSET.search(content_type[:200].encode("ascii", "replace")) or _CHARSET.search(body[:4096])
    name = declared[1].decode("ascii") if declared is not None else ""
    if _ENCODINGS.fullmatch(name) and not name.lower().startswith("utf"):
        return body.decode(name, "replace") if _known(name) else body.decode("cp1252", "replace")
    try:
        return body.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError:
        # A page that says UTF-8 may end in half a character where it was cut; one that does not is usually Western.
        return body.decode("utf-8" if name else "cp1252", "replace")


def _known(name: str) -> bool:
    try:
        b"".decode(name)
    except LookupError:
        return False
    return True


def _base_of(url: str, root: etree._Element) -> str:
    for node in islice(root.iter("base"), 3):
        link = node.get("href") or ""
        if 0 < len(link) <= _MAX_LINK:  # every link of the page is joined to it
            try:
                return join_url(url, link)
            except BadUrl:
                continue
    return url


def _metas(root: etree._Element) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for node in islice(root.iter("meta"), _MAX_ELEMENTS):
        name = (node.get("name") or node.get("property") or node.get("id") or "").strip().lower()
        content = (node.get("content") or "").strip()
        if name and content and len(content) <= _MAX_LINK:
            found.setdefault(name, []).append(content)
    return {name: tuple(values) for name, values in found.items()}
