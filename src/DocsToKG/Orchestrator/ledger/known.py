"""The jobs that new ones may be, repeat or need: by artifact, by idempotency key and by id. For every engine the same.

Knows what counts as the same job. The reading is done by the engine.
"""

from __future__ import annotations

from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.ledger.checks import CheckedJob

Found = tuple[int, str, JobState]


class Known:
    """Filled by an engine with what is on the ledger, and then by each job that is added."""

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
