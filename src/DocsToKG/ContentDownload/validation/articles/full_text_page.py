"""Is this web page the full text of an article?

Knows how running text differs from abstracts, reference lists and the furniture of a site. The page is parsed by
`resolvers.landing`, within bounds. Promises: a wall keeps its own reason; an abstract page never passes for the
paper; a page whose end is missing never passes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import BinaryIO

from lxml import etree

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.resolvers.landing.html_page import MAX_PAGE_BYTES, HtmlPage, parse_html, words_of
from DocsToKG.ContentDownload.validation.dois import find_dois
from DocsToKG.ContentDownload.validation.page_kinds import HEAD_BYTES, classify_body
from DocsToKG.ContentDownload.validation.report import TextFacts
from DocsToKG.ContentDownload.validation.source import Source, open_source

# Beside the abstract, which is not counted, an abstract page shows a few hundred characters of prose (a plain-language
# summary, a notice about rights); a letter of one printed page has about 4,000.
MIN_TEXT_CHARS = 3_000
# From here on the text speaks for itself; shorter ones must also be laid out as an article.
AMPLE_TEXT_CHARS = 10_000

_PROSE_CHARS = 80
_TAIL_BYTES = 16 * 1024
_MAX_EVENTS = 600_000
_DOI_METAS = (
    "citation_doi", "dc.identifier.doi", "dc.doi", "prism.doi", "bepress_citation_doi", "doi", "dc.identifier",
)  # fmt: skip
_TITLE_METAS = ("citation_title", "dc.title", "bepress_citation_title", "og:title")
_BLOCKS = frozenset(["html", "body", "main", "article", "section", "div", "p", "td", "blockquote", "figcaption"])
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
# Lists hold references and links; a paper's own lists are a small part of it.
_FURNITURE = frozenset(
    [
        "head",
        "script",
        "style",
        "noscript",
        "nav",
        "header",
        "footer",
        "aside",
        "form",
        "ul",
        "ol",
        "dl",
        "select",
        "template",
        "svg",
    ]
)
_APART = re.compile(
    r"(?:^|\s)(?:abstract|references?|ref-?list|bibliograph|footnote|related|recommend|cited-?by|citations?|cookie|"
    r"nav|footer|sidebar|promo|advert|comments?(?![a-z])|metrics|license|copyright)",
    re.IGNORECASE,
)
_APART_HEADING = re.compile(
    r"\W*(?:abstract|(?:lay |plain language )?summary|references|bibliography|literature cited|cited by|notes|related|"
    r"recommended|similar|most read|more from|about|rights|copyright|metrics|comments|login|sign in|subscribe)\b",
    re.IGNORECASE,
)
_SECTION = re.compile(
    r"[\W\d]*(?:introduction|background|(?:materials?|patients|subjects) and methods|methods?\b|methodology|results|"
    r"experimental|findings|discussion|conclusions?|case (?:report|presentation)|references|bibliography|acknowl)",
    re.IGNORECASE,
)


def prove_html(source: Source, *, url: str, headers: Mapping[str, str]) -> TextFacts:
    """Raise `CandidateRejected` with the reason unless the page shows an article's whole text."""
    with open_source(source) as file:
        body = file.read(MAX_PAGE_BYTES)
        if not body.strip():
            raise CandidateRejected(Reason.EMPTY_BODY, "no bytes came")
        whole = _has_end(file)
    page = parse_html(url, body, headers)
    if page is None:
        raise CandidateRejected(Reason.NO_FULL_TEXT, "the page cannot be read")
    chars = _text_length(page)
    if chars == 0:
        raise _refusal(body, url, headers)
    if not whole:
        raise CandidateRejected(Reason.TRUNCATED, "the page has no end")
    return TextFacts(
        form="html", chars=chars, title=_title(page), doi_declared=find_dois("\n".join(page.meta(*_DOI_METAS))[:4000])
    )


def _refusal(body: bytes, url: str, headers: Mapping[str, str]) -> CandidateRejected:
    kind = classify_body(body[:HEAD_BYTES], content_type="text/html", url=url, headers=headers)
    if kind in (None, Reason.HTML_INSTEAD_OF_PDF):
        return CandidateRejected(Reason.NO_FULL_TEXT, "the page does not show the article's text")
    return CandidateRejected(kind or Reason.NO_FULL_TEXT, "the page stands before the article")


def _has_end(file: BinaryIO) -> bool:
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL_BYTES))
    return b"</html" in file.read(_TAIL_BYTES).lower().replace(b"\0", b"")


def _title(page: HtmlPage) -> str | None:
    named = next(iter(page.meta(*_TITLE_METAS)), "") or next((words_of(node) for node in page.each("h1")), "")
    return named or page.title or None


def _text_length(page: HtmlPage) -> int:
    """Characters of running text; 0 when they are too few for an article, or not laid out as one."""
    reading = _Reading()
    reading.read(page.root)
    article = reading.chars >= AMPLE_TEXT_CHARS or (reading.chars >= MIN_TEXT_CHARS and len(reading.sections) >= 2)
    return reading.chars if article else 0


class _Reading:
    """Adds up the prose of a page, block by block, without what stands apart from the article."""

    def __init__(self) -> None:
        self.chars = 0
        self.sections: set[str] = set()
        self._open = [0]  # characters of the blocks that are open, innermost last
        self._apart: str | None = None  # the rank of the heading that began something beside the article

    def read(self, root: etree._Element) -> None:
        walk = etree.iterwalk(root, events=("start", "end"))
        for event, node in islice(walk, _MAX_EVENTS):
            tag = node.tag if isinstance(node.tag, str) else ""
            if event == "end":
                self._leave(tag, node)
            elif tag in _FURNITURE or _stands_apart(tag, node):
                # Its end is still told, and with it the text that follows.
                walk.skip_subtree()
                self._open.append(0)
            else:
                self._enter(tag, node)

    def _enter(self, tag: str, node: etree._Element) -> None:
        if tag in _HEADINGS:
            self._turn_to(tag, words_of(node))
        self._open.append(0)
        self._add(node.text)

    def _turn_to(self, rank: str, words: str) -> None:
        """A heading below that of the abstract is still the abstract's."""
        if self._apart is None or rank <= self._apart:
            self._apart = rank if _APART_HEADING.match(words) else None
        if self._apart in (None, rank) and (found := _SECTION.match(words)):
            self.sections.add(found[0].strip().lower())

    def _leave(self, tag: str, node: etree._Element) -> None:
        inner = self._open.pop()
        if tag in _BLOCKS:
            self.chars += inner if inner >= _PROSE_CHARS and self._apart is None else 0
        elif tag not in _FURNITURE and tag not in _HEADINGS:
            self._open[-1] += inner
        self._add(node.tail)

    def _add(self, text: str | None) -> None:
        self._open[-1] += len(" ".join(text.split())) if text else 0


def _stands_apart(tag: str, node: etree._Element) -> bool:
    # A site may name its whole page after a part of it; only parts of the article are named after themselves.
    if tag not in ("div", "section", "p", "table"):
        return False
    return bool(_APART.search(f"{node.get('class') or ''} {node.get('id') or ''}"[:500]))
