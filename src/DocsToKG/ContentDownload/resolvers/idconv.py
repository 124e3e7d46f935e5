"""NCBI's id converter: which DOI, PMID and PMCID name the same paper.

Proposes no copies; what it learns lets the other sources look the paper up.
"""

from __future__ import annotations

from urllib.parse import urlencode

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, other_paper
from DocsToKG.ContentDownload.resolvers.ids.identifier import normalize_doi, normalize_pmcid, normalize_pmid
from DocsToKG.ContentDownload.resolvers.records.fields import objects_of, read_object, text_of

DEFAULT_BASE_URL = "https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/"


class IdConverter:
    name = "idconv"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL) + "/"
        self._email = settings.email

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if work.pmcid or work.pmid else "no_pmcid"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        asked = {"ids": work.pmcid or work.pmid or work.doi, "format": "json", "tool": "docstokg"}
        if self._email:
            asked["email"] = self._email
        page = await client.fetch(f"{self._base}?{urlencode(asked)}", Role.METADATA, call)
        return self._read(work, page)

    def _read(self, work: WorkArtifact, page: Page) -> ResolverResult:
        answer = read_object(page) if page.status == 200 else None
        if answer is None:
            return ResolverResult(notes=("not_in_index",))
        # An unknown id is a record with a status of "error", still with HTTP status 200.
        known = [record for record in objects_of(answer, "records", at_most=5) if record.get("status") != "error"]
        if not known:
            return ResolverResult(notes=("not_in_index",))
        ids = {name: text_of(known[0], name) or str(known[0].get(name) or "") for name in ("doi", "pmid", "pmcid")}
        learned = WorkArtifact(
            work.work_id,
            doi=normalize_doi(ids["doi"]),
            pmid=normalize_pmid(ids["pmid"]),
            pmcid=normalize_pmcid(ids["pmcid"]),
        )
        if (note := other_paper(work, learned, by=("pmcid", "pmid", "doi"))) is not None:
            return ResolverResult(notes=(note,))
        return ResolverResult(notes=("identified",), work=learned)
