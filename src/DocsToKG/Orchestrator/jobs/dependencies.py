"""Dependencies between jobs. Pure rules.

A job with dependencies is `pending` until all of them succeeded. When one fails, it is canceled; when that one is
retried, it waits again. A dependency once met stays met for a job that left `pending`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from DocsToKG.Orchestrator.jobs.states import GOOD_ENDS, TERMINAL, JobState

DEPENDENCY_FAILED = "dependency_failed"
# What the history calls it that a dependent went to a state.
EVENTS: Mapping[JobState, str] = {
    JobState.QUEUED: "dependencies_met",
    JobState.CANCELED: DEPENDENCY_FAILED,
    JobState.PENDING: "waits_again",
}


def wanted_state(needs: Collection[JobState]) -> JobState:
    """Where a job that has not begun belongs, given the states of the jobs that it needs."""
    if any(is_failed(state) for state in needs):
        return JobState.CANCELED
    return JobState.QUEUED if GOOD_ENDS.issuperset(needs) else JobState.PENDING


def is_failed(state: JobState) -> bool:
    """Whether a job that ended so keeps its dependents from running."""
    return state in TERMINAL and state not in GOOD_ENDS


def next_state(state: JobState, outcome: str | None, needs: Collection[JobState]) -> JobState | None:
    """Where a dependent goes after one of its needs changed; None when it stays.

    Only a job that waits, or that was canceled for the sake of a need, follows; an operator's cancel stands.
    """
    follows = state is JobState.PENDING or (state is JobState.CANCELED and outcome == DEPENDENCY_FAILED)
    wanted = wanted_state(needs) if follows else state
    return None if wanted is state else wanted


def failed_words(need: int, artifact_id: str, state: str) -> str:
    """Why a dependent of a job that ended so is canceled."""
    return f"{DEPENDENCY_FAILED}: job {need} ({artifact_id[:200]}) ended as {state}"
