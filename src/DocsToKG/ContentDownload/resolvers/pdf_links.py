"""Which links of a page lead to the PDF of its paper?

Evidence in order of strength: meta tags for indexes, links declared as PDF, embedded viewers, data of known sites, and
last the anchors a reader would click. An anchor must look like the paper and not like a supplement, a reference or a
neighbour. A tag is no proof of access: the bytes are proved after the download.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson
from lxml import etree

from DocsToKG.ContentDownload.resolvers.addresses import file_address, page_file
from DocsToKG.ContentDownload.resolvers.html_page import HtmlPage, words_of
from DocsToKG.core.urls import index_url

_MAX_LINKS = 6
_MAX_SCRIPT = 1024 * 1024
# Words around "PDF" on a link that is still about the paper itself.
_PDF_COMPANY = frozenset(
    {
        "pdf",
        "epdf",
        "download",
        "view",
        "open",
        "read",
        "get",
        "see",
        "full",
        "text",
        "fulltext",
        "article",
        "the",
        "as",
    }
    | {"in", "this", "paper", "free", "a", "file", "version", "english", "only", "manuscript", "document", "here"}
    | {"kb", "mb", "kib", "mib", "page", "pages", "pp", "print", "printable"}
)
_PDF_PATH = re.compile(r"\.pdf/?$|/pdf/|/pdfdirect/|/epdf/|/pdf$|/pdfft$", re.IGNORECASE)
_STORED_PATH = re.compile(r"/bitstreams?/|/download/", re.IGNORECASE)
_NOT_THE_PAPER = re.compile(
    r"(?:^|[^a-z])(?:supp|suppl|supplement\w*|supporting|appendix|appendices|figures?|cover|toc|contents|licen[cs]e|guidelines?|"
    r"instructions|template|copyright|checklist|erratum|ris|bibtex|endnote|citation\w*|poster|slides|brochure|flyer)(?:[^a-z]|$)",
    re.IGNORECASE,
)
_NEIGHBOURS = re.compile(
    r"(?:^|[\s_-])(?:x?refs?|references?|bibr|bibliograph\w*|biblio|citations?|cited\w*|footnotes?|related\w*|recommend\w*|"
    r"similar\w*|suggest\w*)(?:$|[\s_-])",
    re.IGNORECASE,
)
_MEDIA_KEYS = ("encoding", "associatedMedia", "distribution", "@graph", "mainEntity")


@dataclass(frozen=True, slots=True)
class Found:
    """A link and what named it."""

    url: str
    evidence: str


def pdf_links(page: HtmlPage, dois: Collection[str]) -> tuple[Found, ...]:
    """The links to the paper's file, strongest first; weaker evidence is asked only when stronger is silent."""
    found = _absolute(page, [*_meta_tags(page), *_declared_links(page), *_json_ld(page)])
    weaker: tuple[Callable[[], Iterator[tuple[str | None, str]]], ...] = (
        lambda: _viewers(page),
        lambda: _site_data(page),
        lambda: _anchors(page, dois),
    )
    for look in weaker:
        if found:
            break
        found = _absolute(page, look())
    return tuple(found.values())[:_MAX_LINKS]


def _absolute(
    page: HtmlPage, links: Iterator[tuple[str | None, str]] | list[tuple[str | None, str]]
) -> dict[str, Found]:
    """By index form, each address once; a link to the page itself is none."""
    found: dict[str, Found] = {}
    own = index_url(page.url)
    for link, evidence in links:
        address = page.absolute(link)
        address = file_address(address) if address is not None else None
        if address is not None and index_url(address) != own:
            found.setdefault(index_url(address), Found(address, evidence))
    return found


def _meta_tags(page: HtmlPage) -> Iterator[tuple[str | None, str]]:
    for name in ("citation_pdf_url", "bepress_citation_pdf_url", "wkhealth_pdf_url"):
        for link in page.meta(name):
            yield link, name
    documents = [link for link in page.meta("eprints.document_url") if not _NOT_THE_PAPER.search(_last_part(link))]
    for link in documents:
        if len(documents) == 1 or link.lower().endswith(".pdf"):
            yield link, "eprints.document_url"
    for link in page.meta("dc.identifier", "dc.identifier.uri", "dcterms.identifier"):
        if link.lower().startswith("http") and link.lower().endswith(".pdf"):
            yield link, "dc.identifier"


def _declared_links(page: HtmlPage) -> Iterator[tuple[str | None, str]]:
    for node in page.each("link"):
        kind = (node.get("type") or "").strip().lower()
        if kind == "application/pdf" and "alternate" in (node.get("rel") or "").lower().split():
            yield node.get("href"), "link_alternate"
    for link in page.links():
        if link.type == "application/pdf" and link.rels & {"item", "alternate"}:
            yield link.target, "link_header"


def _json_ld(page: HtmlPage) -> Iterator[tuple[str | None, str]]:
    for data in _scripts(page, "application/ld+json"):
        queue, seen = [data], 0
        while queue and seen < 500:
            node, seen = queue.pop(0), seen + 1
            if isinstance(node, list):
                queue.extend(node[:100])
            elif isinstance(node, dict):
                if str(node.get("encodingFormat", "")).lower() in ("application/pdf", "pdf", ".pdf"):
                    link = node.get("contentUrl") or node.get("url")
                    yield (link if isinstance(link, str) else None), "json_ld"
                queue.extend(node[key] for key in _MEDIA_KEYS if key in node)


def _viewers(page: HtmlPage) -> Iterator[tuple[str | None, str]]:
    for tag, source in (("embed", "src"), ("object", "data"), ("iframe", "src")):
        for node in page.each(tag):
            link = node.get(source) or ""
            is_pdf = (node.get("type") or "").lower() == "application/pdf" or _PDF_PATH.search(link.partition("?")[0])
            if is_pdf or ("viewer" in link.lower() and "file=" in link):
                yield link, "viewer"
    for node in page.each("a"):
        classes = (node.get("class") or "").lower().split()
        if "obj_galley_link" in classes and "pdf" in classes:
            yield (node.get("href") or "").replace("/article/view/", "/article/download/", 1), "ojs_galley"


def _site_data(page: HtmlPage) -> Iterator[tuple[str | None, str]]:
    yield page_file(page.url), "page_address"
    host = urlsplit(page.url).hostname or ""
    if host.endswith("sciencedirect.com"):
        for data in _scripts(page, "application/json"):
            yield _sciencedirect(data), "sciencedirect_json"
    if host.endswith("ieeexplore.ieee.org"):
        path = re.search(r'"pdfPath"\s*:\s*"(/[^"\\]{1,300}\.pdf)"', page.text)
        yield (path[1] if path is not None else None), "ieee_json"


def _sciencedirect(data: Any) -> str | None:
    for key in ("article", "pdfDownload", "urlMetadata"):
        data = data.get(key) if isinstance(data, dict) else None
    if not isinstance(data, dict):
        return None
    query = data.get("queryParams")
    parts = [data.get("path"), data.get("pii"), data.get("pdfExtension")]
    if not isinstance(query, dict) or not all(
        isinstance(part, str) for part in [*parts, query.get("md5"), query.get("pid")]
    ):
        return None
    return f"/{parts[0]}/{parts[1]}{parts[2]}?md5={query['md5']}&pid={query['pid']}"


def _scripts(page: HtmlPage, kind: str) -> Iterator[Any]:
    for node in page.each("script"):
        if (node.get("type") or "").strip().lower() == kind and node.text and len(node.text) <= _MAX_SCRIPT:
            try:
                yield orjson.loads(node.text)
            except orjson.JSONDecodeError:
                continue


@dataclass(frozen=True, slots=True)
class _Anchor:
    url: str
    named: bool
    own_site: bool
    own_name: bool


def _anchors(page: HtmlPage, dois: Collection[str]) -> Iterator[tuple[str | None, str]]:
    """What a reader would click. Many candidates that do not carry the paper's own name are a list of other papers."""
    keys = _own_names(page.url, dois)
    anchors = {anchor.url: anchor for node in page.each("a") if (anchor := _anchor(page, node, keys)) is not None}
    candidates = list(anchors.values())
    if len(candidates) > 3:
        candidates = [anchor for anchor in candidates if anchor.own_name][:3]
    for anchor in sorted(candidates, key=lambda each: (not each.own_name, not each.named, not each.own_site)):
        yield anchor.url, "anchor"


def _anchor(page: HtmlPage, node: etree._Element, keys: Collection[str]) -> _Anchor | None:
    address = page.absolute(node.get("href"))
    if address is None:
        return None
    words, path = words_of(node), unquote(urlsplit(address).path)
    named = _says_pdf(words)
    stored = _STORED_PATH.search(path) is not None and "pdf" in (words + address).lower()
    own_site = _site(page.url) == _site(address)
    if not named and not (own_site and (_PDF_PATH.search(path) or stored)):
        return None
    if (
        _NOT_THE_PAPER.search(words)
        or _NOT_THE_PAPER.search(_last_part(path))
        or "/suppl" in path
        or _among_others(node)
    ):
        return None
    return _Anchor(address, named, own_site, any(key in unquote(address).lower() for key in keys))


def _says_pdf(words: str) -> bool:
    tokens = re.findall(r"[^\W\d_]+", words.lower())
    return ("pdf" in tokens or "epdf" in tokens) and _PDF_COMPANY.issuperset(tokens)


def _among_others(node: etree._Element) -> bool:
    """Inside a reference list or a box of other papers."""
    place: etree._Element | None = node
    for _ in range(9):
        if place is None or place.tag in ("body", "html"):
            return False
        if _NEIGHBOURS.search(f"{place.get('class') or ''} {place.get('id') or ''}"):
            return True
        place = place.getparent()
    return False


def _own_names(url: str, dois: Collection[str]) -> set[str]:
    names = {doi.partition("/")[2].lower() for doi in dois}
    names.add(_last_part(urlsplit(url).path).lower().removesuffix(".html").removesuffix(".htm"))
    return {name for name in names if len(name) >= 4} | {doi.lower() for doi in dois}


def _last_part(path: str) -> str:
    return path.partition("?")[0].rstrip("/").rpartition("/")[2]


def _site(url: str) -> str:
    """The registrable part of the host, near enough: two labels, three under suffixes such as `ac.uk`."""
    labels = (urlsplit(url).hostname or "").split(".")
    three = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3
    return ".".join(labels[-3:] if three else labels[-2:])
