"""A source that is asked one question per work: one address, one JSON object, plans.

Knows the way from a work to the answer and what every index means by its statuses; does not know any service's fields.
Promises: an answer that is none is a note; the only exceptions are the client's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.resolvers.answers import read_object
from DocsToKG.ContentDownload.resolvers.index_reply import why_nothing

Named = TypeVar("Named")


class AskOnce(ABC, Generic[Named]):
    """`Named` is what the service knows a work by: a DOI, a record's number, a query.

    `service` is its name in notes, `check` what a user whom it refuses should look at, `nothing_to_ask` the reason
    why a work without a name is not asked about.
    """

    name: ClassVar[str]
    service: ClassVar[str]
    check: ClassVar[str]
    nothing_to_ask: ClassVar[str] = "no_doi"

    @abstractmethod
    def _named(self, work: WorkArtifact) -> Named | None:
        """What to ask about."""

    @abstractmethod
    def _address(self, named: Named) -> str: ...

    @abstractmethod
    def _read(self, work: WorkArtifact, named: Named, record: Mapping[str, Any]) -> ResolverResult: ...

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if self._named(work) is not None else self.nothing_to_ask

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        why_not, named = self.applies_to(work), self._named(work)
        if why_not is not None or named is None:
            return ResolverResult(notes=(why_not or self.nothing_to_ask,))
        page = await client.fetch(self._address(named), Role.METADATA, call)
        if page.status != 200:
            return ResolverResult(notes=(self._why_nothing(page.status),))
        record = read_object(page)
        return ResolverResult(notes=("malformed_answer",)) if record is None else self._read(work, named, record)

    def _why_nothing(self, status: int) -> str:
        return why_nothing(status, self.service, self.check)


class AskByDoi(AskOnce[str]):
    """One that knows works by their DOI."""

    def _named(self, work: WorkArtifact) -> str | None:
        return work.doi
