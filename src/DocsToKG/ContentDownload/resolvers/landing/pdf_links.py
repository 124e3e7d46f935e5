"""Which links of a page lead to the full text of its paper?

Evidence in order of strength: tags for indexes, links declared as files, JSON-LD, embedded viewers, what is known of
the site, and last the anchors a reader would click; weaker evidence is asked only when stronger is silent. A tag is no
proof of access: the bytes are proved after the download.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address
from DocsToKG.ContentDownload.resolvers.landing.html_page import HtmlPage
from DocsToKG.ContentDownload.resolvers.landing.json_ld import media_of
from DocsToKG.ContentDownload.resolvers.landing.link_ranking import (
    NOT_THE_PAPER,
    PDF_PATH,
    last_part,
    own_names,
    pdf_anchors,
    site_of,
)
from DocsToKG.ContentDownload.resolvers.links.deduplicate import link_key, newest_first
from DocsToKG.ContentDownload.resolvers.site_rules.load import shipped_rules
from DocsToKG.ContentDownload.resolvers.site_rules.rules import PDF, SiteRules
from DocsToKG.core.urls import index_url

XML, HTML = "application/xml", "text/html"
_MAX_LINKS = 6
_MOST_TAGS, _MOST_LOOKED_AT = 40, 200
_XML_TYPES = ("application/xml", "text/xml", "application/jats+xml", "application/nlm+xml")
# Declared as XML and not the paper: feeds, records of the catalogue, descriptions for embedding.
_NOT_FULL_TEXT = re.compile(
    r"oai|rss|feed|atom|oembed|opensearch|metadata|export|unixref|sitemap|\bmets\b", re.IGNORECASE
)

_Link = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class FullTextLink:
    """A link, what named it, and the form it is in."""

    url: str
    evidence: str
    mime: str = PDF


def pdf_links(page: HtmlPage, dois: Collection[str], rules: SiteRules | None = None) -> tuple[FullTextLink, ...]:
    """The links to the paper's PDF, strongest first."""
    known = rules or shipped_rules()
    names = own_names(page.url, dois)
    found = _absolute(page, [*_first_tags(page), *_other_tags(page), *_declared_links(page), *_json_ld(page, PDF)])
    weaker: tuple[Callable[[], Iterator[_Link]], ...] = (
        lambda: _viewers(page, known, names),
        lambda: _by_rule(page, known, names, "site", PDF),
        lambda: _by_address(page, known),
        lambda: ((link, "anchor") for link in pdf_anchors(page, names)),
    )
    for look in weaker:
        if found:
            break
        found = _absolute(page, look())
    return tuple(newest_first(list(found.values()), lambda link: link.url))[:_MAX_LINKS]


def guessed_link(page: HtmlPage, rules: SiteRules | None = None) -> FullTextLink | None:
    """Where the site keeps such files, if the page names none; nobody said that this one is there."""
    known = (rules or shipped_rules()).file_of_page(page.url)
    found = _absolute(page, [(known[0], "address_rule")] if known is not None else [])
    return next(iter(found.values()), None)


def other_forms(page: HtmlPage, dois: Collection[str], rules: SiteRules | None = None) -> tuple[FullTextLink, ...]:
    """Full text as XML, then as HTML; the page may itself be the latter."""
    known = rules or shipped_rules()
    names = own_names(page.url, dois)
    xml = [*_xml_links(page), *_json_ld(page, XML), *_by_rule(page, known, names, "site", XML)]
    html = [
        *_tagged(page, "citation_fulltext_html_url", "citation_full_html_url"),
        *_by_rule(page, known, names, "site", HTML),
    ]
    found = [*_absolute(page, xml, XML).values(), *_absolute(page, html, HTML).values()]
    return tuple(found)[:_MAX_LINKS]


def _absolute(page: HtmlPage, links: Iterable[_Link], mime: str = PDF) -> dict[str, FullTextLink]:
    """By index form, each address once; a link to the page itself is no PDF and no XML."""
    found: dict[str, FullTextLink] = {}
    own = index_url(page.url)
    for link, evidence in islice(links, _MOST_LOOKED_AT):
        address = page.absolute(link)
        address = file_address(address) if address is not None else None
        if address is not None and (mime == HTML or index_url(address) != own):
            found.setdefault(link_key(address), FullTextLink(address, evidence, mime))
    return found


def _tagged(page: HtmlPage, *names: str) -> Iterator[_Link]:
    for name in names:
        for link in islice(dict.fromkeys(page.meta(name)), _MOST_TAGS):
            yield link, name


def _first_tags(page: HtmlPage) -> list[_Link]:
    """As the page orders them, those on its own site first: sites that name several put foreign copies among them."""
    links = list(_tagged(page, "citation_pdf_url"))
    return sorted(links, key=lambda link: site_of(page.absolute(link[0]) or "") != site_of(page.url))


def _other_tags(page: HtmlPage) -> Iterator[_Link]:
    yield from _tagged(page, "bepress_citation_pdf_url")
    documents = [link for link in page.meta("eprints.document_url") if not NOT_THE_PAPER.search(last_part(link))]
    for link in documents:
        if len(documents) == 1 or link.lower().endswith(".pdf"):
            yield link, "eprints.document_url"
    yield from _tagged(page, "wkhealth_pdf_url")
    for link in page.meta("dc.identifier", "dc.identifier.uri", "dcterms.identifier", "dcterms.uri"):
        if link.lower().startswith("http") and link.lower().endswith(".pdf"):
            yield link, "dc.identifier"


def _declared_links(page: HtmlPage) -> Iterator[_Link]:
    for node in page.each("link"):
        kind = (node.get("type") or "").strip().lower()
        if kind == PDF and "alternate" in (node.get("rel") or "").lower().split():
            yield node.get("href"), "link_alternate"
    for link in page.links():
        if link.type == PDF and link.rels & {"item", "alternate"}:
            yield link.target, "link_header"


def _xml_links(page: HtmlPage) -> Iterator[_Link]:
    yield from _tagged(page, "citation_xml_url", "citation_fulltext_xml_url", "fulltext_xml")
    for node in page.each("link"):
        kind = (node.get("type") or "").strip().lower()
        href = node.get("href") or ""
        is_alternate = "alternate" in (node.get("rel") or "").lower().split()
        if is_alternate and kind in _XML_TYPES and not _NOT_FULL_TEXT.search(f"{href} {node.get('title') or ''}"):
            yield href, "link_alternate"
    for link in page.links():
        if link.type in _XML_TYPES and "item" in link.rels and not _NOT_FULL_TEXT.search(link.target):
            yield link.target, "link_header"


def _json_ld(page: HtmlPage, mime: str) -> Iterator[_Link]:
    return ((link, "json_ld") for link, kind in media_of(page) if kind == mime)


def _viewers(page: HtmlPage, rules: SiteRules, names: Collection[str]) -> Iterator[_Link]:
    for tag, source in (("embed", "src"), ("object", "data"), ("iframe", "src")):
        for node in page.each(tag):
            link = node.get(source) or ""
            is_pdf = (node.get("type") or "").lower() == PDF or PDF_PATH.search(link.partition("?")[0])
            if is_pdf or ("viewer" in link.lower() and "file=" in link):
                yield link, "viewer"
    yield from _by_rule(page, rules, names, "viewer", PDF)


def _by_address(page: HtmlPage, rules: SiteRules) -> Iterator[_Link]:
    if (known := rules.file_of_page(page.url, only_sure=True)) is not None:
        yield known[0], known[1].name


def _by_rule(
    page: HtmlPage, rules: SiteRules, names: Collection[str], stage: Literal["viewer", "site"], mime: str
) -> Iterator[_Link]:
    for rule in rules.pages:
        if rule.stage == stage and rule.mime == mime:
            yield from ((link, rule.name) for link in rule.links(page, names))
