"""Which addresses name one and the same copy, and in which order the copies of one source are tried. Pure rules.

Besides canonical spelling: http equals https, arXiv serves one file on several hosts, a DOI has several resolvers and
no case, Zenodo and figshare have old and new paths, and session tokens are ignored. Addresses are equal only where the
file is known to be the same: another server, another version, a page beside its file, or a parameter that may turn a
viewer into a file makes another copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from DocsToKG.ContentDownload.api.types import DownloadPlan
from DocsToKG.ContentDownload.api.versions import VERSIONS, version_rank
from DocsToKG.ContentDownload.resolvers.links.deduplicate import link_key
from DocsToKG.core.urls import BadUrl

_ARXIV = re.compile(
    r"(?:www\.|export\.)?arxiv\.org/(?P<kind>abs|pdf)/(?P<id>(?:[a-z-]+(?:\.[a-z-]+)?/\d{7}|\d{4}\.\d{4,5})(?:v\d+)?)"
    r"(?:\.pdf)?/?",
    re.IGNORECASE,
)
_DOI = re.compile(r"(?:dx\.|www\.)?doi\.org/(?P<doi>10\.\d{4,9}/.+)", re.IGNORECASE)
_ZENODO = re.compile(r"(?:www\.)?zenodo\.org/(?:api/)?records?/(?P<record>\d+)/files/(?P<file>[^/?]+)(?:/content)?/?")
_FIGSHARE = re.compile(r"(?:ndownloader\.figshare\.com|(?:www\.)?figshare\.com/ndownloader)/files/(?P<file>\d+)/?")
_PMCID = re.compile(r"(?<=/)pmc(?=\d+)")
_PMC_HOSTS = ("europepmc.org/", "www.europepmc.org/", "www.ncbi.nlm.nih.gov/", "pmc.ncbi.nlm.nih.gov/")


def copy_keys(url: str) -> tuple[str, str]:
    """`copy_key` and `address_key`. An address that cannot be read is its own key."""
    try:
        place = link_key(url).partition("://")[2]
    except BadUrl:
        return url, url
    path, _, query = place.partition("?")
    copy = _known_copy(path)
    if copy is None:
        if path.startswith(_PMC_HOSTS):
            path = _PMCID.sub("PMC", path)
        copy = f"{path}?{query}" if query else path
    return copy, f"at {place}"


def copy_key(url: str) -> str:
    """Equal for two addresses of one copy."""
    return copy_keys(url)[0]


def address_key(url: str) -> str:
    """Equal for two spellings of one address, and no more: other hosts of the same copy are other addresses."""
    return copy_keys(url)[1]


def _known_copy(path: str) -> str | None:
    """The copy at a path of a host whose spellings are known; queries are ignored there."""
    if match := _ARXIV.fullmatch(path):
        return f"arxiv:{match['kind']}:{match['id']}".lower()
    if match := _DOI.fullmatch(path):
        return f"doi:{unquote(match['doi'])}".lower()
    if match := _ZENODO.fullmatch(path):
        return f"zenodo:{match['record']}/{match['file']}"
    if match := _FIGSHARE.fullmatch(path):
        return f"figshare:{match['file']}"
    return None


def ranked(plans: Iterable[DownloadPlan]) -> list[DownloadPlan]:
    """Evidence before guesses; published before accepted before submitted; otherwise as the source has them.

    Copies of unknown version keep the position that the source gave them.
    """
    given = list(plans)
    if len(given) < 2:
        return given
    evidence, guesses = [plan for plan in given if not plan.is_guess], [plan for plan in given if plan.is_guess]
    return [*_best_version_first(evidence), *_best_version_first(guesses)]


def _best_version_first(plans: Sequence[DownloadPlan]) -> list[DownloadPlan]:
    known = sorted((plan for plan in plans if plan.version in VERSIONS), key=lambda plan: version_rank(plan.version))
    ordered = iter(known)
    return [next(ordered) if plan.version in VERSIONS else plan for plan in plans]
