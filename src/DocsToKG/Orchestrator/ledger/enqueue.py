"""Putting jobs on the ledger, many in one step: look up what is known, then write the rest in one go.

Where writers run beside each other, another may add the same job between the look and the write. The unique index then
refuses the whole transaction, which is run again and finds the job. What new jobs need is held as it is until they are
written, so that the end of a need cannot pass unseen. Promises: a refusal comes before anything is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import orjson

from DocsToKG.Orchestrator.errors import UnknownJob
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Enqueued
from DocsToKG.Orchestrator.ledger.checks import CheckedJob
from DocsToKG.Orchestrator.ledger.deduplication import Known, admit
from DocsToKG.Orchestrator.ledger.transaction import Transaction


def enqueue(tx: Transaction, jobs: Sequence[CheckedJob], actor: str) -> list[Enqueued]:
    """One answer per job, in order. Needs come before their dependents, here or on the ledger."""
    known = Known()
    _read_artifacts(tx, known, jobs)
    _read_keys(tx, known, jobs)
    _read_needs(tx, known, jobs)
    ids = iter(tx.session.new_ids(known.count_new(jobs)))
    admitted, now = admit(known, jobs, ids, actor), tx.now_ms
    tx.session.write_jobs(
        [
            (job_id, *job.columns, stored, job.delay_ms == 0, now + job.delay_ms, now, now)
            for job_id, job, stored in admitted.new
        ]
    )
    tx.write_rows("add_needs", admitted.needs)
    tx.turned += admitted.failed
    tx.moved_all("enqueued", admitted.moves)
    return admitted.answers


def _read_artifacts(tx: Transaction, known: Known, jobs: Sequence[CheckedJob]) -> None:
    wanted: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for job in jobs:
        tenant, job_type, artifact_id = job.key
        wanted[tenant, job_type].append(artifact_id)
        if job.needs:
            wanted[tenant, job_type] += [need for need in job.needs if isinstance(need, str)]
    for (tenant, job_type), artifacts in wanted.items():
        values = {"tenant": tenant, "job_type": job_type, "artifacts": _json(artifacts)}
        for job_id, artifact_id, state in tx.rows("known_artifacts", values):
            known.by_artifact[tenant, job_type, artifact_id] = (job_id, artifact_id, JobState(state))


def _read_keys(tx: Transaction, known: Known, jobs: Sequence[CheckedJob]) -> None:
    wanted: defaultdict[str, list[str]] = defaultdict(list)
    for job in jobs:
        if job.idempotency_key is not None:
            wanted[job.key[0]].append(job.idempotency_key)
    for tenant, keys in wanted.items():
        for job_id, artifact_id, state, key in tx.rows("known_keys", {"tenant": tenant, "keys": _json(keys)}):
            known.by_key[tenant, key] = (job_id, artifact_id, JobState(state))


def _read_needs(tx: Transaction, known: Known, jobs: Sequence[CheckedJob]) -> None:
    asked = {job.replay_of for job in jobs if job.replay_of is not None}
    named: set[int] = set()
    for job in (job for job in jobs if job.needs):
        asked |= {need for need in job.needs if isinstance(need, int)}
        found = (known.by_artifact.get((*job.key[:2], need)) for need in job.needs if isinstance(need, str))
        named |= {each[0] for each in found if each is not None}
    if asked or named:
        rows = tx.rows("states_of", {"job_ids": sorted(asked | named)})
        known.states = {job_id: JobState(state) for job_id, state in rows}
    for missing in sorted(asked - known.states.keys())[:1]:
        raise UnknownJob(missing)


def _json(texts: Sequence[str]) -> str:
    return orjson.dumps(texts).decode()
