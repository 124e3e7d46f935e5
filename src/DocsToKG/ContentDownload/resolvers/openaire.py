"""OpenAIRE Graph: the copies of a paper that repositories and journals report, by DOI.

A record joins all forms of one paper, so its DOI stands in a list. Most of its links are pages; those that look like
files are plans. Copies reported as closed, restricted or under embargo are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import AskByDoi, ResolverSettings, in_order, unique_plans
from DocsToKG.ContentDownload.resolvers.copy_facts import CopyFacts, copies_metadata, with_facts
from DocsToKG.ContentDownload.resolvers.ids.identifier import identifier_in_url
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import (
    arxiv_base,
    normalize_arxiv,
    normalize_doi,
    normalize_pmcid,
    normalize_pmid,
)
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.index_links import Link, LinkKind, classify_link, pages_of, preprint_plan
from DocsToKG.ContentDownload.resolvers.records.fields import object_of, objects_of, text_of, title_of, year_of

DEFAULT_BASE_URL = "https://api.openaire.eu/graph/v3"
_CLOSED = ("closed", "restricted", "embargo")
_COLOURS = frozenset({"gold", "hybrid", "bronze", "diamond", "green"})
_HOSTS = {"issn": "publisher", "opendoar": "repository"}
_MAX_PLANS = 8


class OpenAireResolver(AskByDoi):
    name = "openaire"
    service = "OpenAIRE"
    check = "it does so when asked too fast; lower resolvers.openaire.rate_limit"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def _address(self, named: str) -> str:
        return f"{self._base}/research-products?pid={quote(named, safe='/')}"

    def _read(self, work: WorkArtifact, named: str, record: Mapping[str, Any]) -> ResolverResult:
        results = objects_of(record, "results", at_most=10)
        ours = next((each for each in results if work.doi in _dois(each)), None)
        if ours is None:
            return ResolverResult(notes=("wrong-article: no record has this DOI" if results else "not_in_index",))
        learned = _learned(work, ours)
        plans = self._plans(ours, learned)
        notes = () if plans else ("no_oa_pdf" if _open_instances(ours) else _why_closed(ours),)
        return ResolverResult(plans=plans, notes=notes, work=learned)

    def _plans(self, record: Mapping[str, Any], learned: WorkArtifact) -> tuple[DownloadPlan, ...]:
        plans = [
            self._plan(instance, link)
            for instance in _open_instances(record)
            for link in _links(instance)
            if link.kind is LinkKind.FILE
        ]
        plans = in_order(plans)
        if learned.arxiv_id is not None:
            # Last, since a copy of unknown version may well be the published one.
            plans.append(preprint_plan(learned.arxiv_id, source=self.name, evidence="pids"))
        return unique_plans(plans)[:_MAX_PLANS]

    def _plan(self, instance: Mapping[str, Any], link: Link) -> DownloadPlan:
        plan = DownloadPlan(url=link.address, resolver_name=self.name, evidence="instance_url")
        return with_facts(plan, _facts(instance, link.address))


def _facts(instance: Mapping[str, Any], address: str) -> CopyFacts:
    found = identifier_in_url(address)
    on_arxiv = found is not None and found.scheme == "arxiv"
    is_preprint = on_arxiv or (text_of(instance, "type") or "").lower() == "preprint"
    house = (text_of(object_of(instance, "hostedBy"), "key") or "").partition("_")[0]
    return CopyFacts(
        version="submittedVersion" if is_preprint else None,
        license=text_of(instance, "license"),
        host_type="repository" if on_arxiv else _HOSTS.get(house),
    )


def _open_instances(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Those open by their own word, and those that say nothing about it."""
    return [each for each in objects_of(record, "instances", at_most=50) if not _right(each).startswith(_CLOSED)]


def _why_closed(record: Mapping[str, Any]) -> str:
    rights = {_right(each).partition(" ")[0] for each in objects_of(record, "instances", at_most=50)}
    return Reason.EMBARGO if rights & {"embargo", "embargoed"} else Reason.NO_OPEN_COPY


def _right(instance: Mapping[str, Any]) -> str:
    return (text_of(object_of(instance, "accessRight"), "label") or text_of(instance, "accessRight") or "").lower()


def _urls(instance: Mapping[str, Any]) -> list[str]:
    urls = instance.get("urls")
    return [url for url in urls[:10] if isinstance(url, str)] if isinstance(urls, list) else []


def _links(instance: Mapping[str, Any]) -> list[Link]:
    return [link for link in map(classify_link, _urls(instance)) if link is not None]


def _pids(record: Mapping[str, Any], *schemes: str) -> Iterator[str]:
    """Identifiers of the record and of its copies, the record's first."""
    for holder in (record, *objects_of(record, "instances", at_most=50)):
        for name in ("pids", "alternateIdentifiers"):
            for entry in objects_of(holder, name):
                if (text_of(entry, "scheme") or "").lower() in schemes:
                    yield text_of(entry, "value") or ""


def _dois(record: Mapping[str, Any]) -> set[str | None]:
    return {normalize_doi(value) for value in _pids(record, "doi")}


def _learned(work: WorkArtifact, record: Mapping[str, Any]) -> WorkArtifact:
    instances = _open_instances(record)
    named_arxiv, named_pmcid = copies_named_by(url for each in instances for url in _urls(each))
    preprint = next(filter(None, map(normalize_arxiv, _pids(record, "arxiv"))), None)
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(record.get("mainTitle")),
        publication_year=year_of(record.get("publicationDate")),
        doi=work.doi,
        arxiv_id=arxiv_base(preprint) if preprint is not None else named_arxiv,
        pmid=next(filter(None, map(normalize_pmid, _pids(record, "pmid"))), None),
        pmcid=next(filter(None, map(normalize_pmcid, _pids(record, "pmc", "pmcid"))), None) or named_pmcid,
        landing_urls=pages_of((link for each in instances for link in _links(each)), own_doi=work.doi),
        license=next((found for each in instances if (found := text_of(each, "license"))), None),
        oa_status=_oa_status(record),
        metadata=copies_metadata("openaire", ((url, _facts(each, url)) for each in instances for url in _urls(each))),
    )


def _oa_status(record: Mapping[str, Any]) -> str | None:
    colour = (text_of(record, "openAccessColor") or "").lower()
    if colour in _COLOURS:
        return colour
    return "green" if record.get("isGreen") is True else None
