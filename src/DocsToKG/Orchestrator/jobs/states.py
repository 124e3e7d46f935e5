"""The states of a job and their transitions.

Knows the words of the public contract (state, API status). Does not know tables. The ledger's schema repeats the
transitions as a trigger, and a test keeps the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class JobState(StrEnum):
    PENDING = "pending"
    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    SKIPPED = "skipped"
    ERROR = "error"
    CANCELED = "canceled"
    TIMED_OUT = "timed_out"


TERMINAL = frozenset({JobState.DONE, JobState.SKIPPED, JobState.ERROR, JobState.CANCELED, JobState.TIMED_OUT})

# The outcome of a job that ended in `error` although all was done right: what it asked for is not to be had. It says
# nothing against its job type.
UNAVAILABLE = "unavailable"

GOOD_ENDS = frozenset({JobState.DONE, JobState.SKIPPED})

# A finished job moves again only by an explicit retry, of itself or of a job that it waits for.
TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    JobState.PENDING: frozenset({JobState.QUEUED, JobState.ERROR, JobState.CANCELED}),
    JobState.QUEUED: frozenset({JobState.PENDING, JobState.IN_PROGRESS, JobState.CANCELED}),
    JobState.IN_PROGRESS: frozenset({JobState.PENDING, JobState.QUEUED}) | TERMINAL,
    **{state: frozenset({JobState.QUEUED, JobState.PENDING}) for state in TERMINAL},
}

API_STATUS: Mapping[JobState, str] = {
    JobState.PENDING: "pending",
    JobState.QUEUED: "queued",
    JobState.IN_PROGRESS: "leased",
    JobState.DONE: "succeeded",
    JobState.SKIPPED: "succeeded",
    JobState.ERROR: "failed",
    JobState.CANCELED: "canceled",
    JobState.TIMED_OUT: "timed_out",
}


def may_become(before: JobState, after: JobState) -> bool:
    """Whether a job in `before` may go to `after`."""
    return after in TRANSITIONS[before]
