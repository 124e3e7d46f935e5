"""NCBI's id converter: which DOI, PMID and PMCID name the same paper.

Proposes no copies; what it learns lets the other sources look the paper up.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import NOT_IN_INDEX, JsonSource, only_note, other_paper
from DocsToKG.ContentDownload.resolvers.record import Record


class IdConverter(JsonSource[str]):
    name = "idconv"
    service = "the id converter"
    base_url = "https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles"
    nothing_to_ask = "no_pmcid"

    def queries(self, work: WorkArtifact) -> Sequence[str]:
        named = work.pmcid or work.pmid or work.doi
        return [named] if named is not None else []

    def applies_to(self, work: WorkArtifact) -> str | None:
        """A work with a DOI alone needs no conversion: the other sources query by DOI."""
        return None if work.pmcid or work.pmid else self.nothing_to_ask

    def address(self, query: str) -> str:
        parameters = {"ids": query, "format": "json", "tool": "docstokg"}
        if self.settings.email:
            parameters["email"] = self.settings.email
        return f"{self.base}/?{urlencode(parameters)}"

    def status_note(self, status: int) -> str:
        return NOT_IN_INDEX

    def read(self, work: WorkArtifact, query: str, record: Record) -> ResolverResult:
        # An unknown id is a record with a status of "error", still with HTTP status 200.
        known = [each for each in record.objects("records", at_most=5) if each.get("status") != "error"]
        if not known:
            return only_note(NOT_IN_INDEX)
        said = known[0]
        learned = WorkArtifact(work.work_id, doi=said.doi("doi"), pmid=said.pmid("pmid"), pmcid=said.pmcid("pmcid"))
        note = other_paper(work, learned, by=("pmcid", "pmid", "doi"))
        return only_note(note) if note is not None else only_note("identified", learned)
