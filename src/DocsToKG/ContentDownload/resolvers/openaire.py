"""OpenAIRE Graph: the copies of a paper that repositories and journals report, by DOI.

A record joins all forms of one paper, so its DOI stands in a list. Most of its links are pages; those that look like
files are plans. Copies reported as closed, restricted or under embargo are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    NO_PDF,
    NOT_IN_INDEX,
    DoiSource,
    in_order,
    only_note,
    result_of,
    unique_plans,
)
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import (
    arxiv_base,
    normalize_arxiv,
    normalize_doi,
    normalize_pmcid,
    normalize_pmid,
)
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.links.classify import (
    LinkKind,
    classified,
    is_on_arxiv,
    pages_of,
    preprint_plan,
)
from DocsToKG.ContentDownload.resolvers.links.copy_facts import CopyFacts, copies_metadata
from DocsToKG.ContentDownload.resolvers.record import Record

_CLOSED = ("closed", "restricted", "embargo")
_COLOURS = frozenset({"gold", "hybrid", "bronze", "diamond", "green"})
_HOSTS = {"issn": "publisher", "opendoar": "repository"}
_MOST_COPIES = 50
_MAX_PLANS = 8


class OpenAireResolver(DoiSource):
    name = "openaire"
    service = "OpenAIRE"
    base_url = "https://api.openaire.eu/graph/v3"
    check = "it does so when asked too fast; lower resolvers.openaire.rate_limit"

    def address(self, query: str) -> str:
        return f"{self.base}/research-products?pid={quote(query, safe='/')}"

    def read(self, work: WorkArtifact, query: str, record: Record) -> ResolverResult:
        results = record.objects("results", at_most=10)
        ours = next((each for each in results if work.doi in _identifiers(each, normalize_doi, "doi")), None)
        if ours is None:
            return only_note("wrong-article: no record has this DOI" if results else NOT_IN_INDEX)
        copies = _open_copies(ours)
        learned = _learned(work, ours, copies)
        return result_of(self._plans(copies, learned.arxiv_id), learned, NO_PDF if copies else _why_closed(ours))

    def _plans(self, copies: list[Record], arxiv_id: str | None) -> tuple[DownloadPlan, ...]:
        plans = in_order(
            _facts(copy, link.address).plan(link.address, self.name, "instance_url")
            for copy in copies
            for link in classified(_urls(copy))
            if link.kind is LinkKind.FILE
        )
        if arxiv_id is not None:
            # Last, since a copy of unknown version may well be the published one.
            plans.append(preprint_plan(arxiv_id, source=self.name, evidence="pids"))
        return unique_plans(plans)[:_MAX_PLANS]


def _facts(copy: Record, address: str) -> CopyFacts:
    on_arxiv = is_on_arxiv(address)
    is_preprint = on_arxiv or copy.lower("type") == "preprint"
    host = (copy.object("hostedBy").text("key") or "").partition("_")[0]
    return CopyFacts(
        version="submittedVersion" if is_preprint else None,
        license=copy.text("license"),
        host_type="repository" if on_arxiv else _HOSTS.get(host),
    )


def _open_copies(record: Record) -> list[Record]:
    """The copies reported as open, and those without a report."""
    copies = record.objects("instances", at_most=_MOST_COPIES)
    return [copy for copy in copies if not _access(copy).startswith(_CLOSED)]


def _why_closed(record: Record) -> str:
    access = {_access(copy).partition(" ")[0] for copy in record.objects("instances", at_most=_MOST_COPIES)}
    return Reason.EMBARGO if access & {"embargo", "embargoed"} else Reason.NO_OPEN_COPY


def _access(copy: Record) -> str:
    return copy.object("accessRight").lower("label") or copy.lower("accessRight")


def _urls(copy: Record) -> list[str]:
    return copy.texts("urls", at_most=10)


def _identifiers(record: Record, normalize: Callable[[str], str | None], *schemes: str) -> list[str]:
    """Identifiers of the record and of its copies, the record's first."""
    return list(filter(None, map(normalize, _values(record, schemes))))


def _values(record: Record, schemes: tuple[str, ...]) -> Iterator[str]:
    for holder in (record, *record.objects("instances", at_most=_MOST_COPIES)):
        for entry in (*holder.objects("pids"), *holder.objects("alternateIdentifiers")):
            if entry.lower("scheme") in schemes:
                yield entry.text("value") or ""


def _learned(work: WorkArtifact, record: Record, copies: list[Record]) -> WorkArtifact:
    addresses = [url for copy in copies for url in _urls(copy)]
    named_arxiv, named_pmcid = copies_named_by(addresses)
    preprints = _identifiers(record, normalize_arxiv, "arxiv")
    pmids = _identifiers(record, normalize_pmid, "pmid")
    pmcids = _identifiers(record, normalize_pmcid, "pmc", "pmcid")
    facts = ((url, _facts(copy, url)) for copy in copies for url in _urls(copy))
    return WorkArtifact(
        work_id=work.work_id,
        title=record.title("mainTitle"),
        publication_year=record.year("publicationDate"),
        doi=work.doi,
        arxiv_id=arxiv_base(preprints[0]) if preprints else named_arxiv,
        pmid=pmids[0] if pmids else None,
        pmcid=pmcids[0] if pmcids else named_pmcid,
        landing_urls=pages_of(classified(addresses), own_doi=work.doi),
        license=next(filter(None, (copy.text("license") for copy in copies)), None),
        oa_status=_oa_status(record),
        metadata=copies_metadata("openaire", facts),
    )


def _oa_status(record: Record) -> str | None:
    colour = record.lower("openAccessColor")
    if colour in _COLOURS:
        return colour
    return "green" if record.is_true("isGreen") else None
