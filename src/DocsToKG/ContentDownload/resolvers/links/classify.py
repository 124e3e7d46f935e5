"""Is the link an index gives a file or a page? Decided by its looks alone, since nothing is fetched here.

Knows how addresses of papers are usually written; the rules from page to file of single sites come from `addresses`.
A link that looks like neither is `UNCLEAR`: whether it is worth a try depends on what the index says about it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from DocsToKG.ContentDownload.api.types import DownloadPlan
from DocsToKG.ContentDownload.resolvers.ids.addresses import identifier_in_url
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_url
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import (
    ARXIV_PROGRAMS_HOST,
    arxiv_pdf,
    file_address,
    is_pmc_page,
    known_file,
)

_FILE_PATH = re.compile(
    r"\.pdf/?$|/(?:e?pdf|pdfdirect|pdfft|full-text-pdf|exportpdf)(?:/|$)|/article-pdf/|/bitstreams?/|/download(?:/|$)"
    r"|/viewcontent\.cgi$",
    re.IGNORECASE,
)
_FILE_QUERY = re.compile(
    r"(?:^|&)(?:type=printable|(?:format|blobtype|type)=(?:application/)?pdf|pdf=render)(?:&|$)", re.I
)
_PAGE_PATH = re.compile(r"\.x?html?$|/abs(?:tract)?/|/handle/|/landing(?:/|$)|/article/view/\d+/?$", re.IGNORECASE)
_PAGE_HOSTS = ("hdl.handle.net", "doaj.org", "core.ac.uk", "www.semanticscholar.org", "pubmed.ncbi.nlm.nih.gov")
# Other forms of a paper or its data, which no proof of a PDF would accept.
_OTHER_FORM = re.compile(r"\.(?:docx?|odt|rtf|tex|epub|zip|gz|tar|csv|xlsx?|pptx?|txt|jpe?g|png|xml)$", re.IGNORECASE)


class LinkKind(StrEnum):
    FILE = "file"
    PAGE = "page"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Link:
    """An address to ask for. `page` is the one given, where the file's was made from it."""

    address: str
    kind: LinkKind
    page: str | None = None


def classify_link(text: str | None) -> Link | None:
    """The link as it should be asked for; None when a program gets nothing there, as on PMC's pages."""
    url = html.unescape(text).strip() if text else ""
    found = identifier_in_url(url)
    if found is not None and found.scheme == "arxiv":
        return Link(arxiv_pdf(found.value), LinkKind.FILE)
    address = normalize_url(url)
    if address is None or is_pmc_page(address) or _OTHER_FORM.search(_path(address)):
        return None
    if (known := known_file(address)) is not None:
        return Link(known.url, LinkKind.FILE, page=address if known.url != address else None)
    kind = LinkKind.PAGE if found is not None and "pdf=render" not in address else _looks(address)
    if kind is LinkKind.PAGE:
        return Link(address, kind)
    file = file_address(address)
    return Link(file, kind) if file is not None else None


def classified(addresses: Iterable[str | None]) -> list[Link]:
    """The links of these addresses that lead somewhere."""
    return [link for link in map(classify_link, addresses) if link is not None]


def pages_of(links: Iterable[Link | None], *, own_doi: str | None) -> tuple[str, ...]:
    """The addresses worth a visit, each once; the work's own DOI is left to the source that follows it."""
    pages = (link.address if link.kind is not LinkKind.FILE else link.page for link in links if link is not None)
    return tuple(dict.fromkeys(page for page in pages if page and (own_doi is None or _doi_in(page) != own_doi)))


def is_on_arxiv(address: str) -> bool:
    found = identifier_in_url(address)
    return found is not None and found.scheme == "arxiv"


def preprint_plan(arxiv_id: str, *, source: str, evidence: str, base: str = ARXIV_PROGRAMS_HOST) -> DownloadPlan:
    """The copy on arXiv that an index told of; arXiv's own source had its turn before the id was known."""
    return DownloadPlan(
        arxiv_pdf(arxiv_id, base), source, version="submittedVersion", host_type="repository", evidence=evidence
    )


def _looks(address: str) -> LinkKind:
    parts = urlsplit(address)
    path = unquote(parts.path)
    if _FILE_PATH.search(path) or _FILE_QUERY.search(unquote(parts.query)):
        return LinkKind.FILE
    is_page = _PAGE_PATH.search(path) or parts.hostname in _PAGE_HOSTS or path in ("", "/")
    return LinkKind.PAGE if is_page else LinkKind.UNCLEAR


def _path(address: str) -> str:
    return unquote(urlsplit(address).path)


def _doi_in(address: str) -> str | None:
    found = identifier_in_url(address)
    return found.value if found is not None and found.scheme == "doi" else None
