"""What every source is built from: its settings, the one question it asks of an index, and what answers have in common.

A source implements `api.ports.Resolver`: it proposes plans and notes, and never downloads a paper. Endpoints are data:
each file carries its default, `ResolverSettings.base_url` replaces it. Knows the statuses that all indexes share and
the identifiers a paper goes by; does not know any service's fields.
Promises: an answer that is none is a note; the only exceptions are the client's, which raises `TransientFailure` for a
service that is busy before anyone gets to read.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import quote

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.api.versions import version_rank
from DocsToKG.ContentDownload.resolvers.records.fields import read_object
from DocsToKG.ContentDownload.resolvers.same_links import unique_links

# The strongest first: where both sides know one of these, it decides.
_IDENTIFIERS = ("doi", "arxiv_id", "pmid", "pmcid")
_DAY = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", re.ASCII)
Named = TypeVar("Named")


@dataclass(frozen=True, slots=True)
class ResolverSettings:
    """One source's own settings. The key is never part of a URL here; see `registry.credentials`."""

    base_url: str | None = None
    email: str | None = None
    api_key: str | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)

    def base(self, default: str) -> str:
        return (self.base_url or default).rstrip("/")


def encode_segment(text: str) -> str:
    """An identifier as part of a path: everything escaped but unreserved characters and the slash."""
    return quote(text, safe="/")


def unique_plans(plans: Iterable[DownloadPlan]) -> tuple[DownloadPlan, ...]:
    """In order, each address once, whatever its spelling and session; of versions the newest first. Addresses that
    cannot be asked for are left out."""
    return tuple(unique_links(plans, lambda plan: plan.url))


def in_order(plans: Iterable[DownloadPlan]) -> list[DownloadPlan]:
    """PDFs before other forms, evidence before guesses, then published, accepted, submitted, unknown version."""

    def rank(plan: DownloadPlan) -> tuple[bool, bool, int]:
        return plan.expected_mime != "application/pdf", plan.is_guess, version_rank(plan.version)

    given = list(plans)
    return sorted(given, key=rank) if len(given) > 1 else given


def no_record_note(status: int, service: str, check: str) -> str:
    """The note for an answer that is no record; `check` tells the user of a refused call what to look at."""
    if status == 404:
        return "not_in_index"
    if status == 410:
        return f"{Reason.GONE}: {service} has deleted the record"
    if status in (401, 403):
        return f"refused: {service} answered {status}; {check}"
    return f"http-status: {status}"


def embargo_note(until: str | None) -> str:
    """The note for a copy that opens on a day: `embargo: until 2027-05-01`, or `embargo` where no day is told."""
    day = _DAY.match(until or "")
    return f"{Reason.EMBARGO}: until {day[0]}" if day is not None else Reason.EMBARGO


def other_paper(work: WorkArtifact, said: WorkArtifact, *, by: Sequence[str] = _IDENTIFIERS) -> str | None:
    """A note when the answer is about another paper than `work`; silence on both sides is no contradiction.

    `by` are the identifiers that decide, the strongest first.
    """
    for name in by:
        ours, theirs = getattr(work, name), getattr(said, name)
        if ours is not None and theirs is not None:
            return None if ours == theirs else f"wrong-article: the answer is about {theirs}"
    return None


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
        return no_record_note(status, self.service, self.check)


class AskByDoi(AskOnce[str]):
    """One that knows works by their DOI."""

    def _named(self, work: WorkArtifact) -> str | None:
        return work.doi
