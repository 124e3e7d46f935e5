"""The API status of a job. Pure rules.

Knows the words of the public contract and the lanes that are held back. Promises: every job has exactly one status; a
queued job whose lane is held back shows as `pending`, with the moment at which the lane opens.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from DocsToKG.Orchestrator.jobs.states import API_STATUS, JobState


class JobStatus(StrEnum):
    PENDING = "pending"
    QUEUED = "queued"
    LEASED = "leased"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    TIMED_OUT = "timed_out"


OVER = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELED, JobStatus.TIMED_OUT})

# What a worker may say at the end, and what a status that it says means for the job.
ENDS: Mapping[str, JobState] = {
    "succeeded": JobState.DONE,
    "failed": JobState.ERROR,
    "canceled": JobState.CANCELED,
    "timed_out": JobState.TIMED_OUT,
}


@dataclass(frozen=True, slots=True)
class HeldLanes:
    """The job types of one tenant that are held back, each until a moment (milliseconds of ledger time), or 0 where
    nobody knows until when."""

    until: Mapping[str, int]

    def holds(self, state: JobState, job_type: str) -> bool:
        return state is JobState.QUEUED and job_type in self.until


NONE_HELD = HeldLanes({})


def status_of(state: JobState, job_type: str, held: HeldLanes = NONE_HELD) -> JobStatus:
    """The one word that the API has for a job."""
    return JobStatus.PENDING if held.holds(state, job_type) else JobStatus(API_STATUS[state])


def eligible_ms(state: JobState, job_type: str, next_eligible_ms: int, held: HeldLanes = NONE_HELD) -> int:
    """The earliest moment at which the job may run, as far as is known."""
    return max(next_eligible_ms, held.until[job_type]) if held.holds(state, job_type) else next_eligible_ms


@dataclass(frozen=True, slots=True)
class StateChoice:
    """Jobs of one state that are meant: of these types only, or of all but these; None asks for nothing."""

    state: JobState
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()


def states_for(statuses: Collection[JobStatus], held: HeldLanes = NONE_HELD) -> list[StateChoice]:
    """Which jobs have one of these statuses; no status asked for means all of them."""
    if not statuses:
        return [StateChoice(state) for state in JobState]
    choices = [StateChoice(state) for state in JobState if state is not JobState.QUEUED and _word(state) in statuses]
    return choices + _queued(JobStatus.QUEUED in statuses, JobStatus.PENDING in statuses, frozenset(held.until))


def _queued(queued: bool, pending: bool, held: frozenset[str]) -> list[StateChoice]:
    """The queued jobs of held lanes go with the pending ones, the others with the queued."""
    if queued and pending:
        return [StateChoice(JobState.QUEUED)]
    if queued:
        return [StateChoice(JobState.QUEUED, without=held)]
    return [StateChoice(JobState.QUEUED, only=held)] if pending and held else []


def by_status(counts: Mapping[tuple[str, str], int], held: HeldLanes = NONE_HELD) -> dict[str, int]:
    """How many jobs have each status, given how many there are by job type and state."""
    totals = {status.value: 0 for status in JobStatus}
    for (job_type, state), count in counts.items():
        totals[status_of(JobState(state), job_type, held)] += count
    return totals


def _word(state: JobState) -> JobStatus:
    return JobStatus(API_STATUS[state])
