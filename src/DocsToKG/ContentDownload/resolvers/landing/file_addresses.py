"""Rewrite an address to that of the file it shows. Pure rules on URLs; those of single sites are data.

Viewers become files, and copies on arXiv move to the host for programs. PMC's pages serve no files to programs, so an
address there only gives its PMCID.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qs, urlsplit

from DocsToKG.ContentDownload.resolvers.ids.addresses import identifier_in_url
from DocsToKG.ContentDownload.resolvers.site_rules.load import shipped_rules
from DocsToKG.ContentDownload.resolvers.site_rules.rules import SiteRules
from DocsToKG.core.urls import BadUrl, join_url, request_url

# arXiv's robots.txt asks for 15 s between requests on its main host; this one is set aside for programs.
ARXIV_PROGRAMS_HOST = "https://export.arxiv.org"


def file_address(url: str) -> str | None:
    """The address to ask for the file that `url` shows; None when no program gets a file there."""
    found = identifier_in_url(url)
    if found is not None and found.scheme == "arxiv":
        return arxiv_pdf(found.value)
    if is_pmc_page(url):
        return None
    try:
        return request_url(shipped_rules().unwrapped(_unwrap_viewer(url)))
    except BadUrl:
        return None


def arxiv_pdf(arxiv_id: str, base: str = ARXIV_PROGRAMS_HOST) -> str:
    return f"{base}/pdf/{arxiv_id}"


def is_pmc_page(url: str) -> bool:
    """PMC answers programs with 403 or a page that prepares a download; its files are in the cloud bucket."""
    if "ncbi" not in url.lower() and url.isprintable():
        return False  # most are not worth a closer look
    host, path = _parts(url)
    return host == "pmc.ncbi.nlm.nih.gov" or (host.endswith("ncbi.nlm.nih.gov") and path.startswith("/pmc/"))


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file that the address of its page tells, and what tells it."""

    url: str
    evidence: str
    host_type: str | None = None


def page_file(url: str, rules: SiteRules | None = None) -> str | None:
    """The address of the file of an open archive's page, where a rule knows it from the page's own; else None."""
    named = (rules or shipped_rules()).file_of_page(url, only_sure=True)
    try:
        return request_url(named[0]) if named is not None else None
    except BadUrl:
        return None


def known_file(url: str, rules: SiteRules | None = None) -> KnownFile | None:
    """The file of the page at `url` that can be named without a visit.

    For addresses of arXiv, those that end in `.pdf`, and pages of open archives whose files have known addresses.
    """
    found = identifier_in_url(url)
    if found is not None and found.scheme == "arxiv":
        return KnownFile(arxiv_pdf(found.value), "arxiv_page", "repository")
    if found is not None or is_pmc_page(url):
        return None
    named = (rules or shipped_rules()).file_of_page(url, only_sure=True)
    try:
        if named is not None:
            return KnownFile(request_url(named[0]), named[1].name, named[1].host_type)
        return KnownFile(request_url(url), "file_address") if is_file_address(url) else None
    except BadUrl:
        return None


def is_file_address(url: str) -> bool:
    """Whether a page's address is really that of a PDF."""
    return _parts(url)[1].lower().endswith(".pdf")


def _unwrap_viewer(url: str) -> str:
    """The file that a PDF.js viewer is asked to show."""
    is_viewer = "viewer" in url.lower() and "viewer" in _parts(url)[1].lower()
    shown = parse_qs(urlsplit(url).query).get("file", [""])[0] if is_viewer else ""
    return join_url(url, shown) if shown else url


@lru_cache(maxsize=64)
def _parts(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        return (parts.hostname or "").lower(), parts.path
    except ValueError:
        return "", ""
