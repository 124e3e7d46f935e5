"""doi.org: follow the DOI to the publisher and take the PDF, or the PDF link of the page reached.

The client follows the redirects, each on its own host's terms; pages that only point on (link hubs, choosers,
refreshing stubs) are followed here, at most two.
"""

from __future__ import annotations

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.steps import Steps
from DocsToKG.ContentDownload.api.types import Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, encode_segment, unique_plans
from DocsToKG.ContentDownload.resolvers.landing_walk import Walk

DEFAULT_BASE_URL = "https://doi.org"


class DoiRedirectResolver:
    name = "doi_redirect"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if work.doi is not None else "no_doi"

    def resolve(self, work: WorkArtifact, client: Client, call: Call) -> Steps[ResolverResult]:
        if work.doi is None:
            return ResolverResult(notes=("no_doi",))
        start = f"{self._base}/{encode_segment(work.doi)}"
        walk = Walk(work=work, source=self.name, client=client, call=call, host_type="publisher", pages_left=3)
        result = yield from walk.visit(start)
        return ResolverResult(
            plans=unique_plans(result.plans),
            notes=tuple(self._plainer(note) for note in result.notes),
            work=result.work,
        )

    def _plainer(self, note: str) -> str:
        """doi.org itself answers 404 for a DOI that nobody registered, and 400 for one that cannot be."""
        host = self._base.partition("://")[2]
        if note in (f"http-status: 404 from {host}", f"http-status: 400 from {host}"):
            return f"{Reason.UNKNOWN_IDENTIFIER}: doi.org does not know this DOI"
        return note
