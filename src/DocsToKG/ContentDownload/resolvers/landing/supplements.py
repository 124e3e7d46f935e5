"""Which links of a page lead to files beside its paper: supporting information, data, films?

By the paths that publishers keep them under, and by what a reader would click. Links to pages about such files, and
those of other papers, are none. Promises: a bounded number, each address once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from urllib.parse import parse_qsl, unquote

from lxml import etree

from DocsToKG.ContentDownload.resolvers.landing.html_page import HtmlPage, words_of
from DocsToKG.ContentDownload.resolvers.landing.link_ranking import in_reference_list, last_part
from DocsToKG.ContentDownload.resolvers.links.deduplicate import link_key

_MOST = 50
_MOST_LOOKED_AT = 2_000
_LONGEST_LINK = 2_048
# Springer Nature, Elsevier, Atypon, Silverchair, PLOS, Wiley, MDPI, and what others have in common.
_KEPT_AT = re.compile(
    r"/esm/|moesm\d|[-_/]mmc\d{1,3}\.|/suppl(?:/|_file|_data|_material)|/(?:article-)?supplement(?:s|al|ary)?/"
    r"|/suppdata/|/downloadSupplement|[?&]type=supplementary|sup-\d{4}-|/supp-\d{1,3}$|/s\d{1,2}(?:\?|$)|[-_.]s\d{3}\.[a-z]{2,5}$",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"\W*(?:download\s+)?(?:(?:electronic|online|additional)\s+)?(?:supp(?:lement(?:s|al|ary)?)?|supporting|additional)\b"
    r".{0,30}?\b(?:information|materials?|data(?:set)?s?|files?|tables?|figures?|movies?|videos?|texts?|appendix|methods?|s?\d{1,3})\b",
    re.IGNORECASE | re.DOTALL,
)
_FILE = re.compile(
    r"\.(?:pdf|docx?|xlsx?|pptx?|csv|tsv|txt|zip|gz|tgz|bz2|xz|7z|rar|tar|mp4|m4v|mov|avi|mpe?g|wmv|wav|mp3|json|xml|rtf|odt|ods"
    r"|tex|bib|r|py|m|cif|pdb|fasta|fa|nex|tre|hdf5?|nc|mat|rds|rdata|sav|dta|kmz|kml|shp|png|jpe?g|tiff?|gif|svg|eps|ai|psd)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SupplementLink:
    """A file's address, and a name for it."""

    url: str
    name: str


def supplement_links(page: HtmlPage) -> tuple[SupplementLink, ...]:
    """In the order of the page."""
    boxes: dict[etree._Element, bool] = {}
    found: dict[str, SupplementLink] = {}
    for node in islice(page.each("a"), _MOST_LOOKED_AT):
        link = _link(page, node)
        if link is not None and not in_reference_list(node, boxes):
            found.setdefault(link_key(link.url), link)
        if len(found) >= _MOST:
            break
    return tuple(found.values())


def _link(page: HtmlPage, node: etree._Element) -> SupplementLink | None:
    href = unquote(node.get("href") or "")[:_LONGEST_LINK]
    path, _, query = href.partition("#")[0].partition("?")
    named = (node.get("download"), node.get("data-filename"), last_part(path), *_values(query))
    name = next((each for each in named if each and _FILE.search(each)), None)
    is_kept = _KEPT_AT.search(href) is not None
    if name is None and not (is_kept and "type=supplementary" in query):
        return None
    if not is_kept and _CALLED.match(words_of(node)) is None:
        return None
    address = page.absolute(node.get("href"))
    return SupplementLink(address, name or next(iter(_values(query)), last_part(path))) if address is not None else None


def _values(query: str) -> list[str]:
    """What the query names, without folders."""
    return [last_part(value) for name, value in parse_qsl(query) if name != "type"]
