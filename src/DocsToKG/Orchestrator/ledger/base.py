"""What a ledger promises, whatever database holds it.

Knows the values that go in and come out. Promises of every ledger: at most one owner per job,
proved by `fence` and `lease_id`; a write that names a lost lease raises `LeaseLost` and changes
nothing; an answer is handed over only after its transaction is committed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypedDict, Unpack

from DocsToKG.Orchestrator.errors import LeaseLost
from DocsToKG.Orchestrator.jobs.eligibility import Why
from DocsToKG.Orchestrator.jobs.retry import DEFAULT_MAX_ATTEMPTS
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.views import JsonFormat, Timestamp, View, json_names

DEFAULT_TENANT = "default"
DEFAULT_JOB_TYPE = "content.download"

__all__ = [
    "DEFAULT_JOB_TYPE", "DEFAULT_TENANT", "Callback", "Enqueued", "Fail", "Finish", "FinishResult", "HistoryRow",
    "JobFilter", "JobRecord", "JobState", "LeaseLost", "LeaseTerms", "LeasedJob", "Ledger", "NewJob", "Progress",
    "Release", "TracedJob", "Why", "WorkerEnd",
]  # fmt: skip

FinishResult = Literal["applied", "already"]
# Hears once that a change is committed: what was refused, or None. It waits for nothing and raises nothing.
Callback = Callable[[BaseException | None], None]


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to enqueue. `payload` is a JSON object, as a mapping or as text; a digest given is checked against it.

    `depends_on` names jobs by id, or by artifact id within the same tenant and job type, on the ledger or in the
    same call. The job waits as `pending` until all of them are done or skipped.
    """

    artifact_id: str
    payload: Mapping[str, Any] | str
    resolver_hint: str | None = None
    priority: int = 0
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    delay_s: float = 0.0
    tenant: str = DEFAULT_TENANT
    project: str | None = None
    job_type: str = DEFAULT_JOB_TYPE
    source: str | None = None
    host_key: str | None = None
    payload_digest: str | None = None
    idempotency_key: str | None = None
    correlation_id: str | None = None
    trace_context: str | None = None
    replay_of: int | None = None
    depends_on: Sequence[int | str] = ()


class Enqueued(NamedTuple):
    """The job that now stands for the artifact; `created` is False when it was known before."""

    job_id: int
    artifact_id: str
    created: bool
    state: JobState


class LeasedJob(NamedTuple):
    """A job with its right to be worked on. Every later write names `job_id`, `fence` and `lease_id`.

    `eligible_at` is when the job could first have run: when it was enqueued, freed by the jobs it needs, or given back,
    or the end of its delay. `leased_at` is when it was leased. Both are ledger time, so that their difference is the
    wait in the queue, whatever clock the reader has. `trace_context` is what the producer gave, or a
    service that leased it for us.

    A tuple, as `Finish` is, because they are made for every job and a frozen dataclass takes many times as long.
    """

    job_id: int
    fence: int
    lease_id: str
    lease_until: float
    artifact_id: str
    artifact_json: str
    payload_digest: str
    resolver_hint: str | None
    host_key: str | None
    priority: int
    attempts: int
    max_attempts: int
    tenant: str
    project: str | None
    job_type: str
    source: str | None
    idempotency_key: str | None
    correlation_id: str | None
    trace_context: str | None
    replay_of: int | None
    eligible_at: float = 0.0
    leased_at: float = 0.0

    @property
    def payload(self) -> dict[str, Any]:
        return dict(json.loads(self.artifact_json))

    @property
    def waited_s(self) -> float:
        """How long it waited although it could have run."""
        return max(0.0, self.leased_at - self.eligible_at)


class TracedJob(LeasedJob):
    """The same, from a service that has made the spans of its wait itself."""

    __slots__ = ()


class LeaseTerms(TypedDict, total=False):
    """Which jobs a lease may give, and whether work `begun` with it. What is left out narrows nothing."""

    job_type: str | None
    begun: bool
    tenants: Collection[str] | None


class Finish(NamedTuple):
    """The job is over. `state` is terminal; `result` is kept as JSON; `last_error` is dropped for a `done` job.

    An `error` with the outcome `unavailable` says nothing against the job type: all was done right, the answer is no.
    """

    job_id: int
    fence: int
    lease_id: str
    state: JobState
    last_error: str | None = None
    result: Mapping[str, Any] | None = None
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """This try failed. The job comes back after `delay_s` while it has attempts left, and ends in `error` otherwise."""

    job_id: int
    fence: int
    lease_id: str
    delay_s: float
    max_attempts: int
    last_error: str
    result: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """Give the job back, to be leased again after `delay_s` (at most 24 h). Counts no attempt unless asked."""

    job_id: int
    fence: int
    lease_id: str
    delay_s: float = 0.0
    host_key: str | None = None
    why: str | None = None
    count_attempt: bool = False


class Progress(NamedTuple):
    """Where the running job is. The first one of a lease that has `begun` marks the job as started.

    `host_key` is the host that the job asks there; without one the ledger keeps what it knows.
    """

    job_id: int
    fence: int
    lease_id: str
    stage: str
    begun: bool = True
    host_key: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How a process ended that was at work on one suspect alone, told by the process that had started it and went on.

    `reason` is for `last_error`; `result` is kept as JSON when this ends the job.
    """

    reason: str
    result: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One row of the ledger, for reading. Times are Unix seconds of ledger time."""

    job_id: int
    artifact_id: str
    artifact_json: str
    payload_digest: str
    tenant: str
    project: str | None
    job_type: str
    source: str | None
    resolver_hint: str | None
    host_key: str | None
    priority: int
    state: JobState
    stage: str | None
    attempts: int
    max_attempts: int
    crashes: int
    fence: int
    lease_id: str | None
    lease_until: float | None
    worker_id: str | None
    next_eligible_at: float
    last_error: str | None
    result_json: str | None
    outcome: str | None
    idempotency_key: str | None
    correlation_id: str | None
    trace_context: str | None
    replay_of: int | None
    created_at: float
    updated_at: float
    started_at: float | None
    finished_at: float | None


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are meant: those that fit everything given. What is left out asks for nothing.

    `states` any of these; `host` the job's `host_key`; `reason` words within `last_error`, whatever the case of their
    ASCII letters; `since` the earliest last change (`updated_at`), Unix seconds of ledger time; `job_ids` any of these
    (an empty collection means none).
    """

    states: Collection[JobState] = ()
    host: str | None = None
    reason: str | None = None
    since: float | None = None
    tenant: str | None = None
    job_type: str | None = None
    job_ids: Collection[int] | None = None


def _detail(text: str | None) -> Any:
    return None if text is None else json.loads(text)


@dataclass(frozen=True, slots=True)
class HistoryRow(View):
    """One link of a tenant's hash-chained history: what happened, when, by whom, and why where that was given."""

    __pydantic_config__ = json_names(detail_json="detail")

    seq: int
    tenant: str
    shard: int
    link: int
    job_id: int | None
    at: Timestamp
    event: str
    from_state: str | None
    to_state: str | None
    fence: int | None
    attempts: int | None
    actor: str
    reason: str | None
    ticket: str | None
    detail_json: Annotated[str | None, JsonFormat(_detail, type=["object", "null"])]
    prev_hash: str
    hash: str


class Ledger(Protocol):
    """Jobs, leases and their history. `submit_*` return at once; their future is done after the commit."""

    def enqueue_many(self, jobs: Sequence[NewJob], *, actor: str = "producer") -> list[Enqueued]: ...

    def lease(self, worker_id: str, limit: int, ttl_s: float, **terms: Unpack[LeaseTerms]) -> list[LeasedJob]:
        """Jobs that are due, by priority, host and age; with `tenants` those of the ones named only."""
        ...

    def finish_and_lease(
        self, finishes: Sequence[Finish], worker_id: str, limit: int, ttl_s: float, **terms: Unpack[LeaseTerms]
    ) -> tuple[list[FinishResult | LeaseLost], list[LeasedJob]]:
        """End jobs and lease the next ones in one transaction: what a worker with one job at a time does for each.

        A lost lease is an answer in its place and takes nothing from the leases that are given.
        """
        ...

    def heartbeat(self, worker_id: str, ttl_s: float) -> set[str]: ...

    def submit_finish(self, finish: Finish) -> Future[FinishResult]: ...

    def submit_finishes(
        self, finishes: Sequence[Finish], *, patient: bool = True
    ) -> Future[list[FinishResult | LeaseLost]]:
        """Without `patient` they wait for no company."""
        ...

    def submit_fail(self, fail: Fail) -> Future[JobState]: ...

    def submit_release(self, release: Release) -> Future[JobState]: ...

    def submit_progress(self, progress: Progress) -> Future[None]: ...

    def tell_progress(self, progress: Progress, told: Callback) -> None:
        """The same without a future, for those who say a word of every job and wait for none."""
        ...

    def lease_suspect(
        self, worker_id: str, ttl_s: float, *, job_type: str | None = None, begun: bool = False
    ) -> list[LeasedJob]:
        """One suspect that is due, for a process that works on nothing else meanwhile. `lease` gives none of them."""
        ...

    def next_suspect_at(self, job_type: str | None = None) -> float | None:
        """When the next suspect may be leased; None when there is none."""
        ...

    def release_worker(
        self, worker_id: str, in_hand: Collection[int] | None = (), *, end: WorkerEnd | None = None
    ) -> int:
        """Free all leases of a worker known to be dead; how many there were. None of them costs an attempt.

        A job that was `in_hand` in two deaths in a row is a suspect; where it is not known what was (None), all that
        had begun were. A suspect whose worker came to an `end` alone, twice, ends in `error`.
        """
        ...

    def retry_failed(
        self,
        *,
        job_ids: Collection[int] | None = None,
        job_type: str | None = None,
        states: Collection[JobState] = (JobState.ERROR,),
        actor: str = "operator",
        reason: str | None = None,
    ) -> int: ...

    def cancel(self, job_id: int, reason: str, *, actor: str = "operator", ticket: str | None = None) -> bool: ...

    def cancel_many(self, wanted: JobFilter, reason: str, *, actor: str = "operator", ticket: str | None = None) -> int:
        """Call off every job that fits and is not over; how many there were. Page by page, so not all in one step."""
        ...

    def pause(self, *, actor: str = "operator", reason: str | None = None) -> None: ...

    def resume(self, *, actor: str = "operator", reason: str | None = None) -> None: ...

    def is_paused(self) -> bool: ...

    def job(self, job_id: int) -> JobRecord: ...

    def find(
        self, artifact_id: str, *, tenant: str = DEFAULT_TENANT, job_type: str = DEFAULT_JOB_TYPE
    ) -> JobRecord | None: ...

    def list_jobs(
        self,
        state: JobState | None = None,
        limit: int = 100,
        after_id: int = 0,
        *,
        wanted: JobFilter | None = None,
    ) -> list[JobRecord]:
        """Jobs by id after `after_id`, at most 10,000 at once; `state` and `wanted` must both fit."""
        ...

    def stats(self, job_type: str | None = None) -> dict[str, int]:
        """How many jobs are in each state, of one type where it is named."""
        ...

    def depths(self) -> dict[tuple[str, str], int]:
        """How many jobs wait, by job type and tenant; those of which none waits may be left out."""
        ...

    def next_eligible_at(self, job_type: str | None = None) -> float | None:
        """When the next queued job may be leased, of one type where it is named; None when there is none."""
        ...

    def why(self, job_id: int) -> Why: ...

    def history(self, job_id: int) -> list[HistoryRow]: ...

    def verify_history(self) -> bool: ...

    def wake(self) -> None: ...

    def wait_for_work(
        self, timeout_s: float, *, unless: Callable[[], bool] = ..., job_type: str | None = None
    ) -> bool: ...

    def close(self) -> None: ...
