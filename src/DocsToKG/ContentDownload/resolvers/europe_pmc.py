"""Europe PMC: open full text by DOI, PMCID or PMID, preprints included.

One search per identifier until one is known. The links it marks as open PDFs become plans; articles it renders itself
can be asked for in a second way, and as XML. A record about another DOI gives nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, Supplement, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, in_order, unique_plans
from DocsToKG.ContentDownload.resolvers.ids.identifier import normalize_pmcid, normalize_pmid
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address
from DocsToKG.ContentDownload.resolvers.records.europe_pmc import EuropePmcRecord, Link, record_of
from DocsToKG.ContentDownload.resolvers.records.fields import object_of, objects_of, read_object

DEFAULT_BASE_URL = "https://www.ebi.ac.uk/europepmc/webservices/rest"
RENDER_URL = "https://europepmc.org"
_MOST_RESULTS = 5
_MOST_QUERIES = 2


class EuropePmcResolver:
    name = "europe_pmc"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if _queries(work) else "no_doi"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        if (why_not := self.applies_to(work)) is not None:
            return ResolverResult(notes=(why_not,))
        result = ResolverResult(notes=("not_in_index",))
        for query in _queries(work)[:_MOST_QUERIES]:
            page = await client.fetch(self._address(query), Role.METADATA, call)
            result = self._read(work, page)
            if result.notes != ("not_in_index",):
                break
        return result

    def _address(self, query: str) -> str:
        asked = {"query": query, "resultType": "core", "format": "json", "pageSize": _MOST_RESULTS}
        return f"{self._base}/search?{urlencode(asked)}"

    def _read(self, work: WorkArtifact, page: Page) -> ResolverResult:
        if page.status != 200:
            return ResolverResult(notes=(_why_nothing(page.status),))
        answer = read_object(page)
        if answer is None:
            return ResolverResult(notes=("malformed_answer",))
        records = [record_of(found) for found in _results(answer)]
        ours = [record for record in records if _is_about(record, work)]
        if not ours:
            said = records[0].doi if records else None
            return ResolverResult(notes=(f"wrong-article: the answer is about {said}" if records else "not_in_index",))
        return self._result(ours, work)

    def _result(self, records: list[EuropePmcRecord], work: WorkArtifact) -> ResolverResult:
        plans = unique_plans(in_order(plan for record in records for plan in self._plans(record)))
        notes: tuple[str, ...] = ()
        if not any(plan.expected_mime == "application/pdf" for plan in plans):
            notes = ("no_oa_pdf" if any(record.is_open for record in records) else "no_open_copy",)
        learned = WorkArtifact(work.work_id)
        for record in records:
            learned = learned.learn(record.as_work(work.work_id))
        return ResolverResult(plans, notes, learned, tuple(self._supplements(records)))

    def _supplements(self, records: list[EuropePmcRecord]) -> Iterator[Supplement]:
        """All of them in one archive."""
        for record in records:
            if record.has_supplements and record.is_open and record.pmcid is not None:
                address = f"{self._base}/{record.pmcid}/supplementaryFiles"
                yield Supplement(address, f"{record.pmcid}-supplements.zip", self.name)

    def _plans(self, record: EuropePmcRecord) -> Iterator[DownloadPlan]:
        for link in record.pdf_links:
            if (address := file_address(link.url)) is not None:
                yield self._plan(record, address, "full_text_url", link=link)
        if record.pmcid is not None and record.renders_pdf:
            yield self._plan(record, f"{RENDER_URL}/articles/{record.pmcid}?pdf=render", "has_pdf")
            other = f"{RENDER_URL}/backend/ptpmcrender.fcgi?accid={record.pmcid}&blobtype=pdf"
            yield self._plan(record, other, "has_pdf")
        if record.is_open and record.full_text_id is not None:
            address = f"{self._base}/{record.full_text_id}/fullTextXML"
            yield self._plan(record, address, "full_text_xml", mime="application/xml")

    def _plan(
        self,
        record: EuropePmcRecord,
        url: str,
        evidence: str,
        *,
        link: Link | None = None,
        mime: str = "application/pdf",
    ) -> DownloadPlan:
        at_home = link is None or link.is_at_home
        return DownloadPlan(
            url=url,
            resolver_name=self.name,
            expected_mime=mime,
            # What lies on another site may be any version, except that of a preprint.
            version=record.version if at_home or record.is_preprint else None,
            license=record.license,
            host_type="repository" if at_home or record.is_preprint else None,
            evidence=evidence,
        )


def _queries(work: WorkArtifact) -> list[str]:
    """The DOI is the surest name; the others help where the index has the article without its DOI."""
    asked: list[str] = []
    if work.doi is not None:
        asked.append('DOI:"{}"'.format(work.doi.replace("\\", "\\\\").replace('"', '\\"')))
    if (pmcid := normalize_pmcid(work.pmcid or "")) is not None:
        asked.append(f"PMCID:{pmcid}")
    if (pmid := normalize_pmid(work.pmid or "")) is not None:
        asked.append(f"EXT_ID:{pmid} AND SRC:MED")
    return asked


def _results(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return objects_of(object_of(answer, "resultList"), "result", at_most=_MOST_RESULTS)


def _is_about(record: EuropePmcRecord, work: WorkArtifact) -> bool:
    """The same DOI where both have one, else the same PMCID or PMID."""
    if work.doi is not None and record.doi is not None:
        return work.doi == record.doi
    same_pmcid = record.pmcid is not None and record.pmcid == work.pmcid
    return same_pmcid or (record.pmid is not None and record.pmid == work.pmid)


def _why_nothing(status: int) -> str:
    if status == 404:
        return "not_in_index"
    if status in (401, 403):
        return f"refused: Europe PMC answered {status}; check resolvers.europe_pmc.base_url, or ask again later"
    return f"http-status: {status}"
