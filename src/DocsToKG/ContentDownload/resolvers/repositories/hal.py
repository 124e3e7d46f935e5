"""HAL: the file deposited for a HAL id or a DOI.

A page of HAL's or an id in the work's own metadata (`hal_id`) names a deposit; else the DOI is looked up, unless the
option `by_doi` is off. A record without a file is a notice about a paper that is elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    MALFORMED,
    NO_PDF,
    NOT_IN_INDEX,
    JsonSource,
    only_note,
    phrase,
    result_of,
    unique_plans,
    wrong_article,
)
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi, normalize_url
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.ContentDownload.resolvers.repositories.deposits import about_another, named_page
from DocsToKG.ContentDownload.resolvers.repositories.file_choice import DepositedFile, papers_among

_HAL_ID, _DOI = "halId_s", "doiId_s"
_LISTS = (_DOI, "fileMain_s", "files_s", "submitType_s")
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


class HalResolver(JsonSource[tuple[str, str]]):
    """A query is the field to ask for, and its value."""

    name = "hal"
    service = "HAL"
    base_url = "https://api.archives-ouvertes.fr"
    nothing_to_ask = "not_mine"

    def queries(self, work: WorkArtifact) -> Sequence[tuple[str, str]]:
        given = work.metadata.get("hal_id")
        named = re.fullmatch(_ID, given.strip().lower()) if isinstance(given, str) else None
        named = named or named_page(work, _PAGE)
        if named is not None:
            return [(_HAL_ID, named["id"])]
        return [(_DOI, work.doi)] if work.doi is not None and self.settings.options.get("by_doi", True) else []

    def address(self, query: tuple[str, str]) -> str:
        field, value = query
        wanted = quote(f"{field}:{phrase(value)}", safe="")
        # A paper may have been deposited by one author, and noted without a file by another.
        return f"{self.base}/search/?q={wanted}&fl={FIELDS}&wt=json&rows={1 if field == _HAL_ID else 5}"

    def read(self, work: WorkArtifact, query: tuple[str, str], record: Record) -> ResolverResult:
        # Solr reports a query that it cannot read as an error object, whatever the status.
        if "error" in record or "response" not in record:
            return only_note(MALFORMED)
        deposits = [_flat(each) for each in record.object("response").objects("docs")]
        if not deposits:
            return only_note(NOT_IN_INDEX)
        deposit = _best(deposits, work)
        if (another := _another(work, query, deposit)) is not None:
            return only_note(another)
        kinds = deposit.texts("submitType_s")
        plans = unique_plans(
            DownloadPlan(
                address,
                self.name,
                version=_VERSIONS.get(deposit.text("docType_s") or ""),
                license=deposit.text("licence_s"),
                host_type="repository",
                evidence=evidence,
                page_doi=next(iter(_dois(deposit)), None),
            )
            for address, evidence in (_addresses(deposit) if "annex" not in kinds else ())
        )
        # A notice has no file at all; an annex has one that is not the paper.
        has_file = not {"file", "annex"}.isdisjoint(kinds)
        return result_of(plans, _learned(work, deposit), NO_PDF if has_file else "no_open_copy")


def _flat(deposit: Record) -> Record:
    """Fields of Solr are scalar or lists, as the index pleases; of most the first value is of use."""
    lists = (name for name in deposit.fields if name not in _LISTS and isinstance(deposit.get(name), list))
    return Record({**deposit.fields, **{name: next(iter(deposit.texts(name)), None) for name in lists}})


def _best(deposits: list[Record], work: WorkArtifact) -> Record:
    """Of several with our DOI the first with a file."""
    ours = [deposit for deposit in deposits if work.doi in _dois(deposit)] or deposits
    return next((deposit for deposit in ours if deposit.texts("fileMain_s")), ours[0])


def _dois(deposit: Record) -> list[str]:
    return list(filter(None, map(normalize_doi, deposit.texts(_DOI))))


def _another(work: WorkArtifact, query: tuple[str, str], deposit: Record) -> str | None:
    field, wanted = query
    said = deposit.text(_HAL_ID)
    if field == _DOI:
        return None if wanted in _dois(deposit) else wrong_article((said or "no DOI")[:80])
    if said is not None and said.lower() != wanted:
        return wrong_article(said[:80])
    return about_another(work, dois=_dois(deposit), title=deposit.title("title_s"))


def _addresses(deposit: Record) -> list[tuple[str, str]]:
    """The main file; only where none is named, the one among all files that may be the paper."""
    main = next(filter(None, map(normalize_url, deposit.texts("fileMain_s"))), None)
    if main is not None:
        return [(main, "fileMain_s")]
    urls = filter(None, map(normalize_url, deposit.texts("files_s")))
    named = (DepositedFile(url.rpartition("/")[2], url) for url in urls)
    return [(file.url, "files_s") for file in papers_among(named, title=deposit.title("title_s"))]


def _learned(work: WorkArtifact, deposit: Record) -> WorkArtifact:
    page = deposit.url("uri_s")
    return WorkArtifact(
        work_id=work.work_id,
        title=deposit.title("title_s"),
        publication_year=deposit.year("producedDateY_i"),
        doi=work.doi or next(iter(_dois(deposit)), None),
        arxiv_id=deposit.arxiv_id("arxivId_s"),
        pmid=deposit.pmid("pubmedId_s"),
        pmcid=deposit.pmcid("pubmedcentralId_s"),
        landing_urls=(page,) if page is not None else (),
        license=deposit.text("licence_s"),
    )
