"""Estimate what a list would cost, from an index alone and without any request.

Counts works, copies, requests, bytes, and hours at the limits of each host. Assumes that the first copy of each work is
the one that is fetched; failures add requests that cannot be known before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from DocsToKG.ContentDownload.index.engine import Limits
from DocsToKG.ContentDownload.index.lists import ListCounts, read_list
from DocsToKG.ContentDownload.index.reader import Access, Index

TYPICAL_BYTES = 1_500_000  # of a paper as PDF, where no source announces a size
# Requests to each service for a work that the index does not know, at most.
SERVICES: Mapping[str, int] = {
    "api.unpaywall.org": 1,
    "doi.org": 1,
    "api.openalex.org": 1,
    "api.crossref.org": 1,
    "api.archives-ouvertes.fr": 1,
    "www.osti.gov": 1,
    "api.semanticscholar.org": 1,
    "doaj.org": 1,
    "api.openaire.eu": 1,
    "api.fatcat.wiki": 1,
    "www.ebi.ac.uk": 1,
    "web.archive.org": 1,
}


@dataclass(frozen=True, slots=True)
class HostPlan:
    """The requests to one host, and how long they take at its rate."""

    host: str
    requests: int
    per_second: float

    @property
    def hours(self) -> float:
        return self.requests / self.per_second / 3600


@dataclass(slots=True)
class ListPlan:
    """A list as the index sees it. `closed` and `unknown` works cannot be had from it."""

    built_at: str
    lines: ListCounts
    open: int = 0
    closed: int = 0
    unknown: int = 0
    copies: int = 0
    by_source: Counter[str] = field(default_factory=Counter)
    by_host: Counter[str] = field(default_factory=Counter)
    by_license: Counter[str] = field(default_factory=Counter)
    by_version: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)

    @property
    def size_bytes(self) -> int:
        return self.open * TYPICAL_BYTES

    def hosts(self, per_second: Callable[[str], float]) -> list[HostPlan]:
        """Every host that gets requests, the one that takes longest first."""
        plans = [HostPlan(host, count, per_second(host)) for host, count in self.requests.items()]
        return sorted(plans, key=lambda plan: -plan.hours)


def plan_list(root: Path, sources: Sequence[str], *, limits: Limits, spill: Path, asks_services: bool) -> ListPlan:
    """The plan of all the works that the sources name. `asks_services`: for works that the index does not know."""
    with Index(root, limits=limits) as index:
        lines = read_list(index.database, sources, spill)
        plan = ListPlan(index.manifest.built_at, lines)
        for access, source, host, kind, license_, version, works, copies in index.count_requested():
            _add(plan, access, source, host, kind, license_, version, works, copies or 0)
    plan.unknown = lines.works - plan.open - plan.closed
    if asks_services:
        plan.requests.update({host: times * plan.unknown for host, times in SERVICES.items() if plan.unknown})
    return plan


def _add(
    plan: ListPlan,
    access: str,
    source: str,
    host: str,
    kind: str,
    license_: str,
    version: str,
    works: int,
    copies: int,
) -> None:
    if access == Access.CLOSED:
        plan.closed += works
    if access != Access.OPEN:
        return
    plan.open += works
    plan.copies += copies
    plan.by_source[source] += works
    plan.by_host[host] += works
    plan.by_license[license_] += works
    plan.by_version[version] += works
    plan.requests[_request_host(host)] += works * (2 if kind == "page" else 1)  # the page, then the file it names


def _request_host(host: str) -> str:
    """The host that gets the requests: arXiv's host for programs, and the bucket for PMC's pages."""
    if host == "arxiv.org":
        return "export.arxiv.org"
    return "pmc-oa-opendata.s3.amazonaws.com" if host.endswith("ncbi.nlm.nih.gov") else host
