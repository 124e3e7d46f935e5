"""What the rooms of this package ask of each other, so that a low room can call up without knowing who answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from typing import Protocol, TypedDict, Unpack

from DocsToKG.ContentDownload.api.ranges import Rest
from DocsToKG.ContentDownload.api.stages import WorkStages
from DocsToKG.ContentDownload.api.types import Attempt, Hop, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.api.waits import WorkWaits
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.values import lean_dataclass


class Whose(TypedDict, total=False):
    """Whose request it was that waited."""

    work_id: str | None
    resolver: str | None
    role: str | None


class Change(TypedDict, total=False):
    """Why a circuit breaker changed, and for how long it opens."""

    reason: str | None
    reset_timeout_s: float | None


class AttemptSink(Protocol):
    """Where attempts, waits and breakers' changes go. Nothing in the same run reads them back."""

    def attempt(self, attempt: Attempt) -> None: ...

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **whose: Unpack[Whose]) -> None:
        """A request waited for a rule of ours: `key` is `host:...` or `resolver:...`, `why` rate, interval or hold."""

    def breaker_transition(self, key: str, old_state: str, new_state: str, **change: Unpack[Change]) -> None:
        """A circuit breaker changed its state."""


class NullSink:
    """Forgets everything."""

    def attempt(self, attempt: Attempt) -> None:
        return None

    def rate_wait(self, *_: object, **__: object) -> None:
        return None

    def breaker_transition(self, *_: object, **__: object) -> None:
        return None


@lean_dataclass(frozen=True, slots=True)
class Call:
    """What every request of one work carries: whose it is, how to call it off, how long it may take, who wants to know
    where it is and how long it waits. `branch` tells apart the ways in which the work is looked for side by side;
    `received` are the files that came where a page was asked for, by their addresses: `Client.open` gives them without
    a second request."""

    work_id: str
    cancel: CancelToken = field(default_factory=CancelToken)
    budget: Budget | None = None
    stages: WorkStages | None = None
    waits: WorkWaits | None = None
    branch: object = None
    received: dict[str, ReceivedBody] = field(default_factory=dict)

    def within(self, budget: Budget) -> Call:
        """The same, with another budget."""
        return Call(self.work_id, self.cancel, budget, self.stages, self.waits, self.branch, self.received)

    def of_branch(self, branch: object) -> Call:
        """The same for one of several branches."""
        return Call(self.work_id, self.cancel, self.budget, self.stages, self.waits, branch, self.received)

    async def pause(self, seconds: float, clock: Clock) -> None:
        """Wait before going on. A work that only waits is not waited for when the run stops."""
        if self.waits is not None:
            await self.waits.sleep(seconds)
        else:
            await clock.sleep_until(clock.monotonic() + seconds)

    def at(self, stage: str, url: str | None = None) -> None:
        """The download of this branch has come to a stage."""
        if self.stages is not None:
            self.stages.at(self.branch, stage, url)

    def leave(self) -> None:
        """The download of this branch is over."""
        if self.stages is not None:
            self.stages.leave(self.branch)


class Budget(Protocol):
    """Time and tries left for one work. Parked time does not count."""

    def take_attempt(self, role: str = "artifact") -> None:
        """One more exchange; raises `CandidateRejected(budget_exhausted)` when none is left."""

    def seconds_left(self) -> float: ...

    def spend(self, seconds: float) -> None: ...


@lean_dataclass(frozen=True, slots=True)
class Page:
    """A small answer held in memory: an API's JSON or XML, or a landing page. Header names are lower case.

    `is_pdf` means the bytes turned out to be a PDF; then `body` is empty and the URL is itself a candidate, whose file
    has usually been received already (`Call.received`).
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    hops: tuple[Hop, ...]
    is_pdf: bool = False
    from_cache: bool = False


class OpenBody(Protocol):
    """An answer whose body has not been read yet. Slots are held until `close`."""

    @property
    def url(self) -> str: ...

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def hops(self) -> tuple[Hop, ...]: ...

    @property
    def from_cache(self) -> bool: ...

    @property
    def revalidated(self) -> bool: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Decoded bytes as they come. Raises `TransientFailure` when the stream breaks or ends short
        (reason `size-mismatch`), `CandidateRejected(too-large)` past the cap."""

    async def aclose(self) -> None: ...

    def confirm(self, sha256: str) -> None:
        """The bytes are proved and stored under this digest: the pending cache entry becomes visible."""

    def reject(self) -> None:
        """The bytes are not what they should be: the cache forgets them, whether shown already or pending."""


class ReceivedBody:
    """A file that came where a page was asked for, in memory until somebody asks for its address. `answer` has been
    read to its end and closed, and learns what is found out of the file; `data` are its decoded bytes."""

    def __init__(self, answer: OpenBody, data: bytes) -> None:
        self.url: str = answer.url
        self.status: int = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self.hops: tuple[Hop, ...] = answer.hops
        self.from_cache: bool = answer.from_cache
        self.revalidated: bool = answer.revalidated
        self.size = len(data)
        self._answer = answer
        self._data = data

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._data

    async def aclose(self) -> None:
        self._data = b""

    def confirm(self, sha256: str) -> None:
        self._answer.confirm(sha256)

    def reject(self) -> None:
        self._answer.reject()


class Client(Protocol):
    """Asks the network for one source, politely: URL policy, robots, limits, retries, cache, redirects hop by hop.

    Raises `CandidateRejected` when this URL is no good and `TransientFailure` when it may be later.
    Every hop is gated on its own host.
    """

    async def fetch(self, url: str, role: Role, call: Call, *, headers: Mapping[str, str] | None = None) -> Page:
        """A whole small answer, any final status below 500 (404 is an answer), size capped."""
        ...

    async def head(self, url: str, role: Role, call: Call, *, headers: Mapping[str, str] | None = None) -> Page:
        """Status and headers alone, never from the cache."""
        ...

    async def open(
        self,
        url: str,
        role: Role,
        call: Call,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
        rest: Rest | None = None,
    ) -> OpenBody:
        """The final answer with its body unread; statuses other than 200 are raised. With `rest` it is that of a file
        that broke off, with status 206, or with 200 the file from its first byte."""
        ...

    def interval_s(self, url: str) -> float:
        """The least seconds between two requests to the host of this address, by our limits and its robots.txt."""


class Resolver(Protocol):
    """Proposes where a paper may be. Asks indexes and pages through its client; downloads nothing."""

    @property
    def name(self) -> str: ...

    def applies_to(self, work: WorkArtifact) -> str | None:
        """None when there is something to ask; otherwise why not (`no_doi`, `missing_email`, ...)."""

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult: ...
