"""The DOI that the page address of a repository carries.

Pure. Knows Zenodo, figshare, bioRxiv and medRxiv, whose addresses hold the DOI or the number it is made of. A record
there may have been given another DOI by its authors, so the page stays worth a visit. Addresses of files, and of HAL
and OSF, whose pages carry no DOI, name none.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from DocsToKG.ContentDownload.resolvers.id_forms import normalize_doi

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


def doi_of_page(host: str, path: str) -> str | None:
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
