"""Better addresses for the file an address stands for. Pure rules on URLs.

Viewers become files, and copies on arXiv are asked for where programs are welcome. PMC's pages serve
no files to programs, so an address there is worth its PMCID and nothing else.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from DocsToKG.ContentDownload.resolvers.ids import identifier_in_url
from DocsToKG.core.urls import BadUrl, join_url, request_url

# arXiv's robots.txt asks for 15 s between requests on its main host; this one is set aside for programs.
ARXIV_PROGRAMS_HOST = "https://export.arxiv.org"
_HAL_PAGE = re.compile(r"/[a-z]+-\d{6,9}(?:v\d+)?/?")
_OSF_PAGE = re.compile(r"(?:/preprints/\w+)?/[a-z0-9]{5}(?:_v\d+)?/?")


def file_address(url: str) -> str | None:
    """The address to ask for the file that `url` shows; None when no program gets a file there."""
    found = identifier_in_url(url)
    if found is not None and found.scheme == "arxiv":
        return arxiv_pdf(found.value)
    if is_pmc_page(url):
        return None
    try:
        return request_url(_unwrap_viewer(url))
    except BadUrl:
        return None


def arxiv_pdf(arxiv_id: str, base: str = ARXIV_PROGRAMS_HOST) -> str:
    return f"{base}/pdf/{arxiv_id}"


def is_pmc_page(url: str) -> bool:
    """PMC answers programs with 403 or a page that prepares a download; its files are in the cloud bucket."""
    host, path = _parts(url)
    return host == "pmc.ncbi.nlm.nih.gov" or (host.endswith("ncbi.nlm.nih.gov") and path.startswith("/pmc/"))


def page_file(url: str) -> str | None:
    """The file of a page whose address alone tells it (HAL, OSF), or None."""
    host, path = _parts(url)
    if (host == "hal.science" or host.endswith((".hal.science", "archives-ouvertes.fr"))) and _HAL_PAGE.fullmatch(path):
        return request_url(url.partition("?")[0].rstrip("/") + "/document")
    if host == "osf.io" and _OSF_PAGE.fullmatch(path):
        return request_url(url.partition("?")[0].rstrip("/") + "/download")
    return None


def _unwrap_viewer(url: str) -> str:
    host, path = _parts(url)
    shown = parse_qs(urlsplit(url).query).get("file", [""])[0] if "viewer" in path.lower() else ""
    if shown:
        return join_url(url, shown)
    for viewer in ("/doi/epdf/", "/doi/reader/"):
        url = url.replace(viewer, "/doi/pdf/", 1)
    if host.endswith("onlinelibrary.wiley.com"):
        url = url.replace("/doi/pdf/", "/doi/pdfdirect/", 1)
    return url


def _parts(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        return (parts.hostname or "").lower(), parts.path
    except ValueError:
        return "", ""
