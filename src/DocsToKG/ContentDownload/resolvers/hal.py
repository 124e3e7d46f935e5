"""HAL: the file deposited for a HAL id or a DOI.

A page of HAL's or an id in the work's own metadata (`hal_id`) names a deposit; else the DOI is looked up, unless the
option `by_doi` is off. A record without a file is a notice about a paper that is elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import AskOnce, ResolverSettings, unique_plans
from DocsToKG.ContentDownload.resolvers.deposits import about_another, named_page, texts_of
from DocsToKG.ContentDownload.resolvers.file_choice import DepositedFile, papers_among
from DocsToKG.ContentDownload.resolvers.ids.identifier import (
    arxiv_base,
    normalize_arxiv,
    normalize_doi,
    normalize_pmcid,
    normalize_pmid,
    normalize_url,
)
from DocsToKG.ContentDownload.resolvers.records.fields import object_of, objects_of, title_of, year_of

DEFAULT_BASE_URL = "https://api.archives-ouvertes.fr"
_HAL_ID, _DOI = "halId_s", "doiId_s"
FIELDS = (
    "halId_s,uri_s,fileMain_s,files_s,openAccess_bool,licence_s,submitType_s,docType_s,doiId_s,title_s,producedDateY_i,"
    "arxivId_s,pubmedId_s,pubmedcentralId_s"
)
_ID = r"(?P<id>[a-z]+(?:[-_][a-z]+){0,4}[-_]\d{6,9})(?:v\d{1,3})?"
_PAGE = re.compile(
    r"(?:(?:[\w-]+\.)*hal\.science|(?:[\w-]+\.)*archives-ouvertes\.fr|hal\.[\w.-]+\.fr|[\w-]+\.ccsd\.cnrs\.fr)"
    rf"/(?:[A-Za-z0-9_-]+/)?{_ID}(?:/.*)?"
)
_VERSIONS = {"UNDEFINED": "submittedVersion", "PREPRINT": "submittedVersion", "THESE": "publishedVersion"}
_VERSIONS |= {"HDR": "publishedVersion", "REPORT": "publishedVersion"}


class HalResolver(AskOnce[tuple[str, str]]):
    name = "hal"
    service = "HAL"
    check = "check resolvers.hal.base_url"
    nothing_to_ask = "not_mine"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._by_doi = bool(settings.options.get("by_doi", True))

    def _named(self, work: WorkArtifact) -> tuple[str, str] | None:
        """The field to ask for, and its value."""
        given = work.metadata.get("hal_id")
        named = re.fullmatch(_ID, given.strip().lower()) if isinstance(given, str) else None
        named = named or named_page(work, _PAGE)
        if named is not None:
            return _HAL_ID, named["id"]
        return (_DOI, work.doi) if work.doi is not None and self._by_doi else None

    def _address(self, named: tuple[str, str]) -> str:
        field, value = named
        phrase = value.replace("\\", "\\\\").replace('"', '\\"')
        query = quote(f'{field}:"{phrase}"', safe="")
        # A paper may have been deposited by one author, and noted without a file by another.
        return f"{self._base}/search/?q={query}&fl={FIELDS}&wt=json&rows={1 if field == _HAL_ID else 5}"

    def _read(self, work: WorkArtifact, named: tuple[str, str], record: Mapping[str, Any]) -> ResolverResult:
        # Solr reports a query that it cannot read as an error object, whatever the status.
        if "error" in record or "response" not in record:
            return ResolverResult(notes=("malformed_answer",))
        deposits = objects_of(object_of(record, "response"), "docs")
        if not deposits:
            return ResolverResult(notes=("not_in_index",))
        deposit = _best(deposits, work)
        if (another := _another(work, named, deposit)) is not None:
            return ResolverResult(notes=(another,))
        plans = self._plans(deposit)
        # A notice has no file at all; an annex has one that is not the paper.
        has_file = "file" in texts_of(deposit, "submitType_s") or "annex" in texts_of(deposit, "submitType_s")
        notes = () if plans else ("no_oa_pdf" if has_file else "no_open_copy",)
        return ResolverResult(plans=plans, notes=notes, work=_learned(work, deposit))

    def _plans(self, deposit: Mapping[str, Any]) -> tuple[DownloadPlan, ...]:
        if "annex" in texts_of(deposit, "submitType_s"):
            return ()
        return unique_plans(
            DownloadPlan(
                url=address,
                resolver_name=self.name,
                version=_VERSIONS.get(_first(deposit, "docType_s") or ""),
                license=_first(deposit, "licence_s"),
                host_type="repository",
                evidence=evidence,
                page_doi=normalize_doi(_first(deposit, "doiId_s") or ""),
            )
            for address, evidence in _addresses(deposit)
        )


def _best(deposits: list[Mapping[str, Any]], work: WorkArtifact) -> Mapping[str, Any]:
    """Of several with our DOI the first with a file."""
    ours = [deposit for deposit in deposits if work.doi in _dois(deposit)] or deposits
    return next((deposit for deposit in ours if texts_of(deposit, "fileMain_s")), ours[0])


def _dois(deposit: Mapping[str, Any]) -> set[str | None]:
    return {normalize_doi(text) for text in texts_of(deposit, _DOI)}


def _another(work: WorkArtifact, named: tuple[str, str], deposit: Mapping[str, Any]) -> str | None:
    field, asked = named
    said = _first(deposit, _HAL_ID)
    if field == _DOI:
        return None if asked in _dois(deposit) else f"wrong-article: the answer is about {(said or 'no DOI')[:80]}"
    if said is not None and said.lower() != asked:
        return f"wrong-article: the answer is about {said[:80]}"
    return about_another(work, dois=texts_of(deposit, "doiId_s"), title=title_of(_first(deposit, "title_s")))


def _addresses(deposit: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The main file; only where none is named, the one among all files that may be the paper."""
    main = [url for text in texts_of(deposit, "fileMain_s") if (url := normalize_url(text)) is not None]
    if main:
        return [(main[0], "fileMain_s")]
    named = (
        DepositedFile(url.rpartition("/")[2], url) for url in map(normalize_url, texts_of(deposit, "files_s")) if url
    )
    return [(file.url, "files_s") for file in papers_among(named, title=title_of(_first(deposit, "title_s")))]


def _first(deposit: Mapping[str, Any], name: str) -> str | None:
    """Fields of Solr are scalar or lists, as the index pleases."""
    return next(iter(texts_of(deposit, name)), None)


def _learned(work: WorkArtifact, deposit: Mapping[str, Any]) -> WorkArtifact:
    page = normalize_url(_first(deposit, "uri_s") or "")
    arxiv_id = normalize_arxiv(_first(deposit, "arxivId_s") or "")
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(_first(deposit, "title_s")),
        publication_year=year_of(deposit.get("producedDateY_i")),
        doi=work.doi or normalize_doi(_first(deposit, "doiId_s") or ""),
        arxiv_id=arxiv_base(arxiv_id) if arxiv_id is not None else None,
        pmid=normalize_pmid(_first(deposit, "pubmedId_s") or ""),
        pmcid=normalize_pmcid(_first(deposit, "pubmedcentralId_s") or ""),
        landing_urls=(page,) if page is not None else (),
        license=_first(deposit, "licence_s"),
    )
