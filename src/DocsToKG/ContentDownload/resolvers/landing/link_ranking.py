"""The last resort on a page: the link to the PDF that a reader would click.

An anchor must look like the paper and not like a supplement, a reference or a neighbour. Many candidates that do not
carry the paper's own name are a list of other papers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from lxml import etree

from DocsToKG.ContentDownload.resolvers.landing.html_page import HtmlPage, words_of

# Words around "PDF" on a link that is still about the paper itself.
_PDF_COMPANY = frozenset(
    {"pdf", "epdf", "download", "view", "open", "read", "get", "see", "full", "text", "fulltext", "article", "the",
     "as", "in", "this", "paper", "free", "a", "file", "version", "english", "only", "manuscript", "document", "here",
     "kb", "mb", "kib", "mib", "page", "pages", "pp", "print", "printable"}
)  # fmt: skip
PDF_PATH = re.compile(r"\.pdf/?$|/pdf/|/pdfdirect/|/epdf/|/pdf$|/pdfft$", re.IGNORECASE)
_STORED_PATH = re.compile(r"/bitstreams?/|/download/", re.IGNORECASE)
NOT_THE_PAPER = re.compile(
    r"(?:^|[^a-z])(?:supp|suppl|supplement\w*|supporting|appendix|appendices|figures?|cover|toc|contents|licen[cs]e|guidelines?|"
    r"instructions|template|copyright|checklist|erratum|ris|bibtex|endnote|citation\w*|poster|slides|brochure|flyer)(?:[^a-z]|$)",
    re.IGNORECASE,
)
# Not `suppl_1`: papers appear in supplements of journals, too.
_SUPPLEMENT_PATH = re.compile(r"/suppl(?:/|ement(?:s|al|ary)?/|_file|_data|_material)", re.IGNORECASE)
_NEIGHBOURS = re.compile(
    r"(?:^|[\s_-])(?:x?refs?|references?|bibr|bibliograph\w*|biblio|citations?|cited\w*|footnotes?|related\w*|recommend\w*|"
    r"similar\w*|suggest\w*)(?:$|[\s_-])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Anchor:
    url: str
    named: bool
    own_site: bool
    own_name: bool


def pdf_anchors(page: HtmlPage, keys: Collection[str]) -> Iterator[str]:
    """What a reader would click, the likeliest first; `keys` are the paper's own names."""
    boxes: dict[etree._Element, bool] = {}
    found = (_anchor(page, node, keys, boxes) for node in page.each("a"))
    candidates = list({anchor.url: anchor for anchor in found if anchor is not None}.values())
    if len(candidates) > 3:
        candidates = [anchor for anchor in candidates if anchor.own_name][:3]
    for anchor in sorted(candidates, key=lambda each: (not each.own_name, not each.named, not each.own_site)):
        yield anchor.url


def _anchor(
    page: HtmlPage, node: etree._Element, keys: Collection[str], boxes: dict[etree._Element, bool]
) -> _Anchor | None:
    address = page.absolute(node.get("href"))
    if address is None:
        return None
    words, path = words_of(node), unquote(urlsplit(address).path)
    named = _says_pdf(words)
    stored = _STORED_PATH.search(path) is not None and "pdf" in (words + address).lower()
    own_site = site_of(page.url) == site_of(address)
    if not named and not (own_site and (PDF_PATH.search(path) or stored)):
        return None
    if (
        NOT_THE_PAPER.search(words)
        or NOT_THE_PAPER.search(last_part(path))
        or _SUPPLEMENT_PATH.search(path)
        or in_reference_list(node, boxes)
    ):
        return None
    return _Anchor(address, named, own_site, any(key in unquote(address).lower() for key in keys))


def _says_pdf(words: str) -> bool:
    tokens = re.findall(r"[^\W\d_]+", words.lower())
    return ("pdf" in tokens or "epdf" in tokens) and _PDF_COMPANY.issuperset(tokens)


def in_reference_list(node: etree._Element, boxes: dict[etree._Element, bool]) -> bool:
    """Inside a reference list or a box of other papers. `boxes` are those looked at before: thousands of links may lie
    in one, and its class may be as long as the page."""
    place: etree._Element | None = node
    for _ in range(9):
        if place is None or place.tag in ("body", "html"):
            return False
        if place not in boxes:
            boxes[place] = _NEIGHBOURS.search(f"{place.get('class') or ''} {place.get('id') or ''}") is not None
        if boxes[place]:
            return True
        place = place.getparent()
    return False


def own_names(url: str, dois: Collection[str]) -> set[str]:
    """By what a link can carry the paper's name: its DOIs, what follows their prefix, the last part of the address."""
    names = {doi.partition("/")[2].lower() for doi in dois}
    names.add(last_part(urlsplit(url).path).lower().removesuffix(".html").removesuffix(".htm"))
    return {name for name in names if len(name) >= 4} | {doi.lower() for doi in dois}


def last_part(path: str) -> str:
    return path.partition("?")[0].rstrip("/").rpartition("/")[2]


def site_of(url: str) -> str:
    """The registrable part of the host, near enough: two labels, three under suffixes such as `ac.uk`."""
    labels = (urlsplit(url).hostname or "").split(".")
    three = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3
    return ".".join(labels[-3:] if three else labels[-2:])
