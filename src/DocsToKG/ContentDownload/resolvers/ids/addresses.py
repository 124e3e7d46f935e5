"""Which paper does an address stand for? By the host: doi.org, arXiv, PMC, PubMed, Europe PMC, OpenAlex, and the
repositories whose addresses hold the DOI or the number it is made of.

Pure. A record of Zenodo, figshare, bioRxiv or medRxiv may have been given another DOI by its authors, so its page stays
worth a visit. Addresses of files, and of HAL and OSF, whose pages carry no DOI, name none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import unquote

from DocsToKG.ContentDownload.resolvers.ids.normal_forms import (
    ARXIV_PATH,
    MAX_IDENTIFIER_CHARS,
    Identifier,
    identifier_of,
    normalize_doi,
    trim_end,
)

ADDRESS = re.compile(r"(?:https?://)?(?P<host>[^/?#\s@]+)(?P<path>[^?#]*)", re.IGNORECASE)
_ZENODO = re.compile(r"/records?/(?P<number>[1-9][0-9]{0,11})/?")
_ZENODO_DOI = re.compile(r"/(?:doi|badge/doi)/(?P<doi>10\.5281/zenodo\.[0-9]+)(?:\.svg)?/?", re.IGNORECASE)
_FIGSHARE = re.compile(
    r"/articles/(?:[a-z_]+/)?(?:[^/]+/)?(?P<number>[1-9][0-9]{3,11})(?:/(?P<version>[1-9][0-9]{0,2}))?/?", re.IGNORECASE
)
_BIORXIV = re.compile(
    r"/(?:cgi/)?content/(?P<doi>10\.(?:1101|64898)/[0-9.]*[0-9])(?:v[0-9]{1,2})?"
    r"(?:\.(?:full|abstract|full-text|article-info|article-metrics|supplementary-material|full\.pdf))*(?:\+html)?/?",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)
def identifier_in_url(url: str) -> Identifier | None:
    """The paper an address of doi.org, arXiv, PMC, PubMed, Europe PMC or OpenAlex stands for, or None."""
    match = ADDRESS.match(url.strip())
    if match is None or len(url) > MAX_IDENTIFIER_CHARS:
        return None
    host = match["host"].lower().rpartition(":")[0] or match["host"].lower()
    reader = _reader_for(host.removeprefix("www."))
    return reader(match["path"]) if reader is not None else None


def doi_of_address(address: str) -> str | None:
    """The DOI that the address of a repository's page carries."""
    match = ADDRESS.match(address)
    return _doi_of_page(match["host"].lower().removeprefix("www."), match["path"]) if match is not None else None


def _doi_of_page(host: str, path: str) -> str | None:
    """`host` without `www.`; a file of a record is more than the record, so its address names no DOI."""
    path = unquote(path)
    if host == "zenodo.org":
        return _doi_of_zenodo(path)
    if host == "figshare.com" and (page := _FIGSHARE.fullmatch(path)) is not None:
        version = f".v{page['version']}" if page["version"] else ""
        return f"10.6084/m9.figshare.{page['number']}{version}"
    if host in ("biorxiv.org", "medrxiv.org") and (page := _BIORXIV.fullmatch(path)) is not None:
        return normalize_doi(page["doi"])
    return None


def _doi_of_zenodo(path: str) -> str | None:
    if (record := _ZENODO.fullmatch(path)) is not None:
        return f"10.5281/zenodo.{record['number']}"
    named = _ZENODO_DOI.fullmatch(path)
    return normalize_doi(named["doi"]) if named is not None else None


def _reader_for(host: str) -> Callable[[str], Identifier | None] | None:
    if host in ("doi.org", "dx.doi.org"):
        return lambda path: identifier_of("doi", unquote(path).lstrip("/"))
    if host == "arxiv.org" or host.endswith(".arxiv.org"):
        return _read_arxiv_path
    if host == "ncbi.nlm.nih.gov" or host.endswith(".ncbi.nlm.nih.gov") or host == "europepmc.org":
        return lambda path: _read_pubmed_path(host, path)
    if host in ("openalex.org", "api.openalex.org"):
        return lambda path: identifier_of("openalex", path.rstrip("/").rpartition("/")[2])
    return None


def _read_arxiv_path(path: str) -> Identifier | None:
    match = ARXIV_PATH.fullmatch(trim_end(unquote(path)))
    return identifier_of("arxiv", match["id"]) if match is not None else None


def _read_pubmed_path(host: str, path: str) -> Identifier | None:
    pmid = re.match(r"/(?:m/)?(?:pubmed|pmc/articles/pmid|article/med|abstract/med)/(\d+)(?:/|$)", path, re.IGNORECASE)
    if pmid is None and host == "pubmed.ncbi.nlm.nih.gov":
        pmid = re.match(r"/(\d+)(?:/|$)", path)
    if pmid is not None:
        return identifier_of("pmid", pmid[1])
    pmcid = re.match(r"(?:/pmc)?/(?:articles?|abstract)/(?:pmc/)?((?:PMC)?\d+)(?:[./]|$)", path, re.IGNORECASE)
    return identifier_of("pmcid", pmcid[1]) if pmcid is not None else None
