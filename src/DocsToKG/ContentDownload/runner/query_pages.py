"""Pages of an OpenAlex query through the same gates as every other request.

Works that the user's filters refuse are taken off a page, on what OpenAlex tells of them: year, open-access status,
retraction, and the licences of their copies where it names any.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Self

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.bootstrap import Network
from DocsToKG.ContentDownload.config.filters import Filters
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import CandidateRejected, RunError, TransientFailure
from DocsToKG.ContentDownload.pipeline import ResolverPipeline
from DocsToKG.ContentDownload.resolvers.openalex import DEFAULT_BASE_URL
from DocsToKG.ContentDownload.resolvers.openalex_query import DeadCursor, QueryPage, WorksQuery, page_of_works

log = logging.getLogger(__name__)


class ServiceSilent(RunError):
    """OpenAlex gives no page now. The message says why, and what helps."""


class QueryPages:
    """Asks for one page at a time while the caller waits."""

    def __init__(
        self,
        *,
        pipeline: ResolverPipeline,
        client: Client,
        base_url: str,
        has_key: bool,
        filters: Filters | None = None,
    ) -> None:
        self.matching = 0  # works, as the service counts them
        self._filters = filters or Filters()
        self._pipeline = pipeline
        self._client = client
        self._base_url = base_url
        self._has_key = has_key

    @classmethod
    def of(cls, cfg: ContentDownloadConfig, pipeline: ResolverPipeline, network: Network) -> Self:
        mine = cfg.resolvers.openalex
        return cls(
            pipeline=pipeline,
            client=network.clients["openalex"],
            base_url=mine.base_url or DEFAULT_BASE_URL,
            has_key=mine.api_key is not None,
            filters=Filters.of(cfg.filters),
        )

    def works(self, query: WorksQuery) -> Iterator[WorkArtifact]:
        """All of them, each once, as they are needed."""
        seen: set[str] = set()
        cursors: set[str | None] = set()
        cursor: str | None = None
        while cursor not in cursors:
            cursors.add(cursor)
            page = self.page(query, cursor)
            yield from (work for work in page.works if work.work_id not in seen)
            seen.update(work.work_id for work in page.works)
            if (cursor := page.next_cursor) is None:
                return

    def page(self, query: WorksQuery, cursor: str | None) -> QueryPage:
        """The wanted works of one page. Where the service has forgotten the cursor, of the first one: who lists leaves
        out what it has."""
        try:
            page = self._ask(query, cursor)
        except DeadCursor as dead:
            log.warning("OpenAlex has forgotten how far the list had come (%s); it is begun anew", dead)
            page = self._ask(query, None)
        self.matching = page.total or self.matching
        return replace(page, works=tuple(work for work in page.works if self._is_wanted(work)))

    def _is_wanted(self, work: WorkArtifact) -> bool:
        return self._filters.refuses_work(work) is None and self._filters.refuses_told(told_licences(work)) is None

    def _ask(self, query: WorksQuery, cursor: str | None) -> QueryPage:
        call = Call("query:openalex")
        steps = page_of_works(query, cursor, self._client, call, base_url=self._base_url)
        try:
            return self._pipeline.drive(steps, call.cancel)
        except (TransientFailure, CandidateRejected) as failure:
            raise ServiceSilent(self._explained(failure)) from failure

    def _explained(self, failure: TransientFailure | CandidateRejected) -> str:
        if failure.http_status != 429:
            return f"OpenAlex cannot be asked now ({failure}); try again later"
        spent = "OpenAlex answers 429: its budget for today may be used up, which begins anew at midnight UTC"
        more = "" if self._has_key else "; with a free key in resolvers.openalex.api_key it is ten times larger"
        return spent + more


def told_licences(work: WorkArtifact) -> set[str]:
    """The licences that OpenAlex names of the copies of a work."""
    copies = work.metadata.get("copies:openalex")
    told = copies.values() if isinstance(copies, Mapping) else ()
    return {said for copy in told if isinstance(copy, Mapping) and isinstance(said := copy.get("license"), str)}
