"""What sources are built from: settings, queries to a service, notes and plans.

A source implements `api.ports.Resolver`: it proposes plans and notes, and never downloads a paper. A `JsonSource`
defines its queries, their addresses, and how an answer is read; the rest is data. Promises: a missing or malformed
answer is a note; the only exceptions are the client's, which raises `TransientFailure` for a busy service.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import quote

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.api.versions import version_rank
from DocsToKG.ContentDownload.resolvers.links.deduplicate import unique_links
from DocsToKG.ContentDownload.resolvers.record import Record, read_record

NOT_IN_INDEX = "not_in_index"
MALFORMED = "malformed_answer"
NO_PDF = "no_oa_pdf"
# The strongest first: where both sides know one of these, it decides.
_IDENTIFIERS = ("doi", "arxiv_id", "pmid", "pmcid")
_DAY = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", re.ASCII)
Query = TypeVar("Query")


@dataclass(frozen=True, slots=True)
class ResolverSettings:
    """One source's own settings. The key is never part of a URL here; see `registry.credentials`."""

    base_url: str | None = None
    email: str | None = None
    api_key: str | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)

    def base(self, default: str) -> str:
        return (self.base_url or default).rstrip("/")

    @property
    def has_key(self) -> bool:
        return bool((self.api_key or "").strip())

    def contact(self, parameter: str = "mailto") -> str:
        """The query parameter with our contact address."""
        return f"?{parameter}={quote(self.email, safe='@')}" if self.email else ""


class JsonSource(ABC, Generic[Query]):
    """A service that answers queries about a work with a JSON object.

    `Query` is what the service knows a work by: a DOI, a record's number. `service` is its name in notes, `check` tells
    a user what to check when it refuses access, `nothing_to_ask` is the note for works without a query.
    """

    name: ClassVar[str]
    service: ClassVar[str]
    base_url: ClassVar[str]
    check: ClassVar[str] = ""  # by default its address
    nothing_to_ask: ClassVar[str] = "no_doi"
    most_queries: ClassVar[int] = 1
    headers: ClassVar[Mapping[str, str] | None] = None

    def __init__(self, *, settings: ResolverSettings) -> None:
        self.settings = settings
        self.base = settings.base(self.base_url)

    @abstractmethod
    def queries(self, work: WorkArtifact) -> Sequence[Query]:
        """The queries for a work, best first; the next is used when the service does not know the one before."""

    @abstractmethod
    def address(self, query: Query) -> str: ...

    @abstractmethod
    def read(self, work: WorkArtifact, query: Query, record: Record) -> ResolverResult: ...

    def missing(self) -> str | None:
        """Why the source cannot be used at all: a key or a contact address is missing."""
        return None

    def applies_to(self, work: WorkArtifact) -> str | None:
        return self.missing() if self.queries(work) else self.nothing_to_ask

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        queries = self.queries(work)
        if (why_not := self.missing() if queries else self.nothing_to_ask) is not None:
            return only_note(why_not)
        result = only_note(NOT_IN_INDEX)
        for query in queries[: self.most_queries]:
            page = await client.fetch(self.address(query), Role.METADATA, call, headers=self.headers)
            result = self.read_page(work, query, page)
            if result.notes != (NOT_IN_INDEX,):
                break
        return result

    def read_page(self, work: WorkArtifact, query: Query, page: Page) -> ResolverResult:
        if page.status != 200:
            return only_note(self.status_note(page.status))
        record = self.parse(page)
        return self.read(work, query, record) if record is not None else only_note(MALFORMED)

    def parse(self, page: Page) -> Record | None:
        return read_record(page)

    def status_note(self, status: int) -> str:
        return status_note(status, self.service, self.check or f"check resolvers.{self.name}.base_url")


class DoiSource(JsonSource[str]):
    """A service that knows works by their DOI."""

    def queries(self, work: WorkArtifact) -> Sequence[str]:
        return [work.doi] if work.doi is not None else []


def only_note(note: str, work: WorkArtifact | None = None) -> ResolverResult:
    """A result without plans."""
    return ResolverResult(notes=(note,), work=work)


def result_of(
    plans: tuple[DownloadPlan, ...], work: WorkArtifact | None, otherwise: str = NO_PDF, **more: Any
) -> ResolverResult:
    """The plans, or the note that says why there are none."""
    return ResolverResult(plans, () if plans else (otherwise,), work, **more)


def status_note(status: int, service: str, check: str) -> str:
    """The note for a status other than 200; `check` tells the user what to check when access is refused."""
    if status == 404:
        return NOT_IN_INDEX
    if status == 410:
        return f"{Reason.GONE}: {service} has deleted the record"
    if status in (401, 403):
        return f"refused: {service} answered {status}; {check}"
    return f"http-status: {status}"


def embargo_note(until: str | None) -> str:
    """The note for a copy that opens on a day: `embargo: until 2027-05-01`, or `embargo` where no day is told."""
    day = _DAY.match(until or "")
    return f"{Reason.EMBARGO}: until {day[0]}" if day is not None else Reason.EMBARGO


def wrong_article(said: object) -> str:
    return f"wrong-article: the answer is about {said}"


def other_paper(work: WorkArtifact, said: WorkArtifact, *, by: Sequence[str] = _IDENTIFIERS) -> str | None:
    """A note when the answer is about another paper than `work`; a missing identifier is no contradiction.

    `by` are the identifiers that decide, the strongest first.
    """
    for name in by:
        ours, theirs = getattr(work, name), getattr(said, name)
        if ours is not None and theirs is not None:
            return None if ours == theirs else wrong_article(theirs)
    return None


def records_about(work: WorkArtifact, records: Iterable[Record], name: str = "doi") -> list[Record]:
    """Those that bear the DOI of the work."""
    return [record for record in records if record.doi(name) == work.doi]


def encode_segment(text: str) -> str:
    """An identifier as part of a path: everything escaped but unreserved characters and the slash."""
    return quote(text, safe="/")


def phrase(text: str) -> str:
    """The text as one phrase of a query, in which quotes and backslashes would end it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def unique_plans(plans: Iterable[DownloadPlan]) -> tuple[DownloadPlan, ...]:
    """In order, each address once, whatever its spelling and session; of versions the newest first. Unusable
    addresses are left out."""
    return tuple(unique_links(plans, lambda plan: plan.url))


def in_order(plans: Iterable[DownloadPlan]) -> list[DownloadPlan]:
    """PDFs before other forms, evidence before guesses, then published, accepted, submitted, unknown version."""

    def rank(plan: DownloadPlan) -> tuple[bool, bool, int]:
        return plan.expected_mime != "application/pdf", plan.is_guess, version_rank(plan.version)

    return sorted(plans, key=rank)
