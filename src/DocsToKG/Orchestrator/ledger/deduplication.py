"""Which of the jobs that are put are new, and how they begin.

Knows the jobs that new ones may be, repeat or need, by artifact, by idempotency key and by id, and what counts as the
same job. Reading and writing is done by `enqueue`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from DocsToKG.Orchestrator.errors import BadJob, UnknownJob
from DocsToKG.Orchestrator.jobs.dependencies import wanted_state
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Enqueued
from DocsToKG.Orchestrator.ledger.chain import Move
from DocsToKG.Orchestrator.ledger.checks import CheckedJob

Found = tuple[int, str, JobState]


class Known:
    """Filled with what is on the ledger, and then by each job that is added."""

    def __init__(self) -> None:
        self.by_artifact: dict[tuple[str, str, str], Found] = {}
        self.by_key: dict[tuple[str, str], Found] = {}
        self.states: dict[int, JobState] = {}

    def same(self, job: CheckedJob) -> Found | None:
        """The job that already stands for this one. A replay may share its artifact, never its key."""
        found = self.by_artifact.get(job.key) if job.replay_of is None else None
        if found is None and job.idempotency_key is not None:
            found = self.by_key.get((job.key[0], job.idempotency_key))
        return found

    def count_new(self, jobs: Sequence[CheckedJob]) -> int:
        """How many may be new at the most: of jobs that are one and the same, only the first is."""
        return sum(self.same(job) is None for job in jobs) if self.by_artifact or self.by_key else len(jobs)

    def add(self, job: CheckedJob, job_id: int, state: JobState) -> None:
        found = (job_id, job.key[2], state)
        if job.replay_of is None:
            self.by_artifact[job.key] = found
        if job.idempotency_key is not None:
            self.by_key[job.key[0], job.idempotency_key] = found

    def needs(self, job: CheckedJob) -> dict[int, JobState]:
        """The ids and states of what the job needs."""
        found: dict[int, JobState] = {}
        for need in job.needs:
            if isinstance(need, int):
                found[need] = self.states[need]
            else:
                entry = self.by_artifact.get((job.key[0], job.key[1], need))
                if entry is None:
                    raise BadJob(f"{job.key[2][:80]} depends on {need[:80]}, which is not on this ledger")
                found[entry[0]] = self.states.get(entry[0], entry[2])
        return found


@dataclass(slots=True)
class Admitted:
    """An answer for each job, in order, and what is to be written of those that are new: id, job and first state."""

    answers: list[Enqueued] = field(default_factory=list)
    new: list[tuple[int, CheckedJob, str]] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    needs: list[tuple[int, int]] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)  # needs that then cancel a newcomer, as they do any other dependent


def admit(known: Known, jobs: Sequence[CheckedJob], ids: Iterator[int], actor: str) -> Admitted:
    """Needs come before their dependents, here or on the ledger. Each new job takes the next of `ids`."""
    admitted = Admitted()
    for job in jobs:
        found = known.same(job)
        if found is not None:
            admitted.answers.append(Enqueued(found[0], found[1], False, found[2]))
            continue
        job_id = next(ids)
        state, stored = JobState.QUEUED, JobState.QUEUED
        if job.needs:
            wanted = known.needs(job)
            state = wanted_state(wanted.values())
            stored = JobState.PENDING if state is JobState.CANCELED else state
            admitted.needs += [(job_id, need) for need in wanted]
            if state is JobState.CANCELED:
                admitted.failed += wanted
        known.add(job, job_id, state)
        admitted.new.append((job_id, job, stored.value))
        admitted.moves.append((job_id, job.key[0], job.key[1], None, stored.value, 0, 0, actor, None))
        admitted.answers.append(Enqueued(job_id, job.key[2], True, state))
    return admitted


def refuse_missing_needs(
    jobs: Sequence[CheckedJob], *, has: Callable[[int], object], named: Callable[[str, str, str], object]
) -> None:
    """Raise for a job that waits for one which is neither among the jobs nor on the ledger."""
    here = {job.key for job in jobs}
    for tenant, job_type, need in {(*job.key[:2], need) for job in jobs for need in job.needs}:
        if isinstance(need, int):
            if not has(need):
                raise UnknownJob(need)
        elif (tenant, job_type, need) not in here and not named(need, tenant, job_type):
            raise BadJob(f"a job depends on {need[:80]}, which is not on this ledger")
