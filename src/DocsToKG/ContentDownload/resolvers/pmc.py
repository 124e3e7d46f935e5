"""PubMed Central: the files of an open article in PMC's bucket, by PMCID.

Asks which versions there are, then for the metadata of the newest, and of older ones while the newer is an author's
manuscript, retracted or another paper's. A page address at PMC is as good as its PMCID. The retired OA service and
the article pages, which give programs nothing, are never asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, Supplement, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, in_order, unique_plans
from DocsToKG.ContentDownload.resolvers.idconv import IdConverter
from DocsToKG.ContentDownload.resolvers.ids.identifier import normalize_pmcid
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import is_pmc_page
from DocsToKG.ContentDownload.resolvers.records.fields import read_object
from DocsToKG.ContentDownload.resolvers.records.pmc_bucket import BucketFile, BucketRecord, record_of, versions_in

DEFAULT_BASE_URL = "https://pmc-oa-opendata.s3.amazonaws.com"
# Nearly every article has one version; a few journals with open review have several.
_MOST_VERSIONS = 3


class _Version(NamedTuple):
    """What came of asking for one version: its record, or why there is none."""

    record: BucketRecord | None
    note: str


class PmcResolver:
    name = "pmc"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._converter = IdConverter(settings=ResolverSettings(email=settings.email))

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if _pmcid_of(work) is not None or _can_be_converted(work) else "no_pmcid"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        if (why_not := self.applies_to(work)) is not None:
            return ResolverResult(notes=(why_not,))
        pmcid = _pmcid_of(work)
        if pmcid is None:
            pmcid = await self._convert(work, client, call)
        if pmcid is None:
            return ResolverResult(notes=("not_in_index",))
        address = f"{self._base}/?list-type=2&prefix={pmcid}.&delimiter=/"
        page = await client.fetch(address, Role.METADATA, call)
        versions, note = _listed(page, pmcid)
        if not versions:
            return ResolverResult(notes=(note,), work=WorkArtifact(work.work_id, pmcid=pmcid))
        found = await self._look(versions, pmcid, work, client, call)
        return self._result(found, pmcid, work)

    async def _convert(self, work: WorkArtifact, client: Client, call: Call) -> str | None:
        result = await self._converter.resolve(work, client, call)
        said = result.work
        if said is None or (work.doi is not None and said.doi not in (None, work.doi)):
            return None
        return said.pmcid

    async def _look(
        self, versions: list[int], pmcid: str, work: WorkArtifact, client: Client, call: Call
    ) -> list[_Version]:
        """The versions from the newest on, up to the first that is the publisher's and stands."""
        found: list[_Version] = []
        for number in versions[:_MOST_VERSIONS]:
            address = f"{self._base}/metadata/{pmcid}.{number}.json"
            try:
                page = await client.fetch(address, Role.METADATA, call)
                found.append(_read(page, pmcid, number, work))
            except (CandidateRejected, TransientFailure):
                if not any(version.record for version in found):
                    raise
                break
            record = found[-1].record
            if record is not None and record.pdf and not (record.is_manuscript or record.is_retracted):
                break
        return found

    def _result(self, found: list[_Version], pmcid: str, work: WorkArtifact) -> ResolverResult:
        records = [version.record for version in found if version.record is not None]
        if not records:
            return ResolverResult(notes=tuple(dict.fromkeys(version.note for version in found)))
        standing = sorted(records, key=lambda record: record.is_retracted is True)
        plans = unique_plans(in_order(plan for record in standing for plan in self._plans(record)))
        notes = () if plans else ("no_oa_pdf",)
        media = standing[0].media if plans else ()
        others = tuple(
            Supplement(f"{self._base}/{file.path}", file.path.rpartition("/")[2], self.name, checksum=file.checksum)
            for file in media
        )
        return ResolverResult(plans, notes, _learned(records, pmcid, work), others)

    def _plans(self, record: BucketRecord) -> Iterator[DownloadPlan]:
        if record.pdf is not None:
            yield self._plan(record, record.pdf, "application/pdf", "pdf_url")
        if record.xml is not None:
            yield self._plan(record, record.xml, "application/xml", "xml_url")

    def _plan(self, record: BucketRecord, file: BucketFile, mime: str, evidence: str) -> DownloadPlan:
        return DownloadPlan(
            url=f"{self._base}/{file.path}",
            resolver_name=self.name,
            expected_mime=mime,
            version="acceptedVersion" if record.is_manuscript else "publishedVersion",
            license=record.license,
            host_type="repository",
            evidence=evidence,
            checksum=file.checksum,
        )


def _pmcid_of(work: WorkArtifact) -> str | None:
    known = normalize_pmcid(work.pmcid) if work.pmcid is not None else None
    return known or copies_named_by((*work.landing_urls, *work.pdf_urls))[1]


def _can_be_converted(work: WorkArtifact) -> bool:
    """A page at PMC that names no PMCID says that there is one; only then a look-up is worth its request."""
    has_page = any(is_pmc_page(url) for url in (*work.landing_urls, *work.pdf_urls))
    return has_page and (work.doi is not None or work.pmid is not None)


def _listed(page: Page, pmcid: str) -> tuple[list[int], str]:
    # The bucket says 403 for some names that it does not hold.
    if page.status in (403, 404):
        return [], "not_in_index"
    if page.status != 200:
        return [], f"http-status: {page.status}"
    versions = versions_in(page.body, pmcid)
    return versions or [], "malformed_answer" if versions is None else "not_in_index"


def _read(page: Page, pmcid: str, number: int, work: WorkArtifact) -> _Version:
    if page.status != 200:
        return _Version(None, "not_in_index" if page.status in (403, 404) else f"http-status: {page.status}")
    answer = read_object(page)
    if answer is None:
        return _Version(None, "malformed_answer")
    record = record_of(answer, f"{pmcid}.{number}/")
    if record.pmcid not in (None, pmcid):
        return _Version(None, f"wrong-article: the answer is about {record.pmcid}")
    if work.doi is not None and record.doi not in (None, work.doi):
        return _Version(None, f"wrong-article: {pmcid}.{number} is {record.doi}")
    return _Version(record, "")


def _learned(records: list[BucketRecord], pmcid: str, work: WorkArtifact) -> WorkArtifact:
    """The newest version speaks first; a retraction of any counts."""
    learned = WorkArtifact(work.work_id, pmcid=pmcid)
    if any(record.is_retracted for record in records):
        learned = WorkArtifact(work.work_id, pmcid=pmcid, is_retracted=True)
    for record in records:
        learned = learned.learn(
            WorkArtifact(
                work.work_id,
                title=record.title,
                publication_year=record.year,
                doi=record.doi,
                pmid=record.pmid,
                license=record.license,
                is_retracted=record.is_retracted,
            )
        )
    return learned
