"""Each source has a short name and a long one; both mean the same everywhere.

Short names (`unpaywall`) are the canonical ones: resolvers, clients and limits use them. Long names
(`unpaywall_pdf`) are how tiers and policies are written. One table, both ways.
"""

from __future__ import annotations

from difflib import get_close_matches

LONG_NAMES: dict[str, str] = {
    "index": "index",
    "unpaywall": "unpaywall_pdf",
    "arxiv": "arxiv_pdf",
    "pmc": "pmc_pdf",
    "doi_redirect": "doi_redirect_pdf",
    "landing": "landing_scrape_pdf",
    "europe_pmc": "europe_pmc_pdf",
    "wayback": "wayback_pdf",
    "crossref": "crossref",
    "openalex": "openalex",
    "semantic_scholar": "semantic_scholar",
    "core": "core",
    "doaj": "doaj",
    "datacite": "datacite",
    "zenodo": "zenodo",
    "hal": "hal",
    "osti": "osti",
    "biorxiv": "biorxiv",
    "figshare": "figshare",
    "dspace": "dspace",
    "fatcat": "fatcat",
    "openaire": "openaire",
    "idconv": "idconv",
}
_SHORT_NAMES = {long: short for short, long in LONG_NAMES.items()} | {short: short for short in LONG_NAMES}


class UnknownSource(ValueError):
    """No source has this name. The message offers the nearest one."""


def canonical_source(name: str) -> str:
    """The short name of a source given by either name."""
    short = _SHORT_NAMES.get(name.strip().lower())
    if short is None:
        raise UnknownSource(f"{name[:80]!r} is not a source{_nearest(name)}")
    return short


def long_source(name: str) -> str:
    """The long name of a source given by either name."""
    return LONG_NAMES[canonical_source(name)]


def _nearest(name: str) -> str:
    close = get_close_matches(name.lower()[:80], _SHORT_NAMES, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; the sources are {', '.join(LONG_NAMES)}"
