"""Why a job does not run, and when it may. Pure rules over what is known of the job.

Knows states, times and the jobs ahead. Does not know tables. Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.jobs.dependencies import is_failed
from DocsToKG.Orchestrator.jobs.states import GOOD_ENDS, TERMINAL, JobState
from DocsToKG.Orchestrator.views import Timestamp, View

WhyReason = Literal[
    "paused", "waits_for", "delayed", "leased", "queued", "ended", "unknown",
    "maintenance", "tenant", "throttle", "breaker", "quota", "suspect",
]  # fmt: skip
HeldReason = Literal["maintenance", "tenant", "throttle", "breaker", "quota"]

AHEAD_CAP = 10_000
_NAMED_NEEDS = 5


@dataclass(frozen=True, slots=True)
class Why(View):
    """What keeps a job from running, in a token and in words; `at` is when it may, if known; `host` is the host that
    the job needs next, where the ledger knows it."""

    job_id: int
    state: str
    reason: WhyReason
    detail: str
    at: Timestamp | None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """A job that another one waits for."""

    job_id: int
    artifact_id: str
    state: JobState


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is known of a job at one moment. `ahead` counts the due jobs that come before it, up to `AHEAD_CAP`.

    `given_back` is what the worker said that gave the job back last, if nothing has happened since. `held_by` is the
    rule that keeps all jobs of its kind waiting. `suspect`: two workers in a row ended while they were at work on it.
    """

    job_id: int
    state: JobState
    now: float
    paused: bool = False
    pause_reason: str | None = None
    eligible_at: float = 0.0
    lease_until: float | None = None
    worker_id: str | None = None
    stage: str | None = None
    last_error: str | None = None
    outcome: str | None = None
    finished_at: float | None = None
    needs: Sequence[Need] = ()
    ahead: int = 0
    host: str | None = None
    given_back: str | None = None
    held_by: HeldReason | None = None
    held_words: str = ""
    held_until: float | None = None
    suspect: bool = False


def why(job: JobFacts) -> Why:
    """The nearest thing in the way; the ones behind it show when it is gone."""
    reason, detail, at = _reason(job)
    return Why(job.job_id, job.state.value, reason, detail, at, None if job.state in TERMINAL else job.host)


def unknown(job_id: int) -> Why:
    return Why(job_id, "unknown", "unknown", f"no job {job_id} in this ledger", None)


def _reason(job: JobFacts) -> tuple[WhyReason, str, float | None]:
    if job.state in TERMINAL:
        return "ended", _ended(job), None
    if job.state is JobState.IN_PROGRESS:
        return "leased", _leased(job), job.lease_until
    if job.state is JobState.PENDING and job.suspect:
        return "suspect", _suspected(job), job.eligible_at
    if job.state is JobState.PENDING:
        return "waits_for", _waits_for(job.needs), None
    if job.paused:
        said = f": {job.pause_reason}" if job.pause_reason else ""
        return "paused", f"the queue is paused{said}; `queue resume` lets it go on", None
    if job.eligible_at > job.now:
        return "delayed", _delayed(job), job.eligible_at
    if job.held_by is not None:
        until = "" if job.held_until is None else f", until {utc_iso(job.held_until)} as far as is known"
        return job.held_by, f"{job.held_words}{until}", job.held_until
    return "queued", _queued(job.ahead), job.now


def _ended(job: JobFacts) -> str:
    when = "" if job.finished_at is None else f" at {utc_iso(job.finished_at)}"
    words = job.last_error or (job.outcome if job.outcome != job.state.value else None)
    return f"ended as {job.state.value}{when}" + (f": {words}" if words else "")


def _leased(job: JobFacts) -> str:
    stage = f" ({job.stage})" if job.stage else ""
    if job.lease_until is not None and job.lease_until <= job.now:
        return f"the lease of {job.worker_id}{stage} has run out; the next worker that asks takes the job over"
    until = "" if job.lease_until is None else f" until {utc_iso(job.lease_until)}, unless renewed"
    host = f", for {job.host}" if job.host else ""
    return f"leased by {job.worker_id}{stage}{host}{until}"


def _waits_for(needs: Sequence[Need]) -> str:
    open_needs = [need for need in needs if need.state not in GOOD_ENDS]
    if any(is_failed(need.state) for need in open_needs) or not open_needs:
        return "the jobs it waits for have just ended; the next change of the ledger moves it on"
    named = ", ".join(
        f"job {need.job_id} ({need.artifact_id[:80]}, {need.state.value})" for need in open_needs[:_NAMED_NEEDS]
    )
    more = len(open_needs) - _NAMED_NEEDS
    return f"waits for {named}" + (f" and {more} more" if more > 0 else "")


def _suspected(job: JobFacts) -> str:
    said = f" ({job.last_error})" if job.last_error else ""
    return f"two processes in a row ended at work on it{said}; a run tries it alone, in a process of its own"


def _delayed(job: JobFacts) -> str:
    """A worker that gave the job back has said why; otherwise the last error is what it waits after."""
    host = f" for {job.host}" if job.host else ""
    said = f": {job.given_back}" if job.given_back else f" after: {job.last_error}" if job.last_error else ""
    return f"waits{host} until {utc_iso(job.eligible_at)}{said}"


def _queued(ahead: int) -> str:
    if ahead == 0:
        return "due now, and next in line"
    count = f"{AHEAD_CAP} or more" if ahead >= AHEAD_CAP else str(ahead)
    return f"due now, behind {count} other{'' if ahead == 1 else 's'}"
