"""Putting jobs on the ledger, many in one step: look up what is known, then write the rest in one go.

Under the write lock nobody else can add a job between the look and the write, so ids are given out
here. Promises: a refusal comes before anything is written.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Any

from DocsToKG.Orchestrator.errors import UnknownJob
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Enqueued
from DocsToKG.Orchestrator.ledger.checks import CheckedJob
from DocsToKG.Orchestrator.ledger.deduplication import Known, admit
from DocsToKG.Orchestrator.ledger.transaction import Transaction


class _Known(Known):
    def __init__(self, tx: Transaction, jobs: Sequence[CheckedJob]) -> None:
        super().__init__()
        self._read_artifacts(tx, jobs)
        self._read_keys(tx, jobs)
        self._read_ids(tx, jobs)

    def _read_artifacts(self, tx: Transaction, jobs: Sequence[CheckedJob]) -> None:
        wanted: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for job in jobs:
            wanted[job.key[:2]].append(job.key[2])
            if job.needs:
                wanted[job.key[:2]] += [need for need in job.needs if isinstance(need, str)]
        for (tenant, job_type), artifacts in wanted.items():
            values = {"tenant": tenant, "job_type": job_type, "artifacts": _json(artifacts)}
            for job_id, artifact_id, state in tx.rows("known_artifacts", values):
                self.by_artifact[tenant, job_type, artifact_id] = (job_id, artifact_id, JobState(state))

    def _read_keys(self, tx: Transaction, jobs: Sequence[CheckedJob]) -> None:
        wanted: defaultdict[str, list[str]] = defaultdict(list)
        for job in jobs:
            if job.idempotency_key is not None:
                wanted[job.key[0]].append(job.idempotency_key)
        for tenant, keys in wanted.items():
            for job_id, artifact_id, state, key in tx.rows("known_keys", {"tenant": tenant, "keys": _json(keys)}):
                self.by_key[tenant, key] = (job_id, artifact_id, JobState(state))

    def _read_ids(self, tx: Transaction, jobs: Sequence[CheckedJob]) -> None:
        wanted = {need for job in jobs for need in job.needs if isinstance(need, int)}
        wanted |= {job.replay_of for job in jobs if job.replay_of is not None}
        if wanted:
            self.states = {job_id: JobState(state) for job_id, state in tx.rows("states_of", (_json(sorted(wanted)),))}
        for missing in sorted(wanted - self.states.keys())[:1]:
            raise UnknownJob(missing)


def enqueue(tx: Transaction, jobs: Sequence[CheckedJob], actor: str) -> list[Enqueued]:
    """One answer per job, in order. Needs come before their dependents, here or on the ledger."""
    first_id = 1 + int(tx.value("SELECT seq FROM sqlite_sequence WHERE name = 'jobs'") or 0)
    admitted, now = admit(_Known(tx, jobs), jobs, count(first_id), actor), tx.now_ms
    rows = [
        (job_id, *job.columns, stored, int(job.delay_ms == 0), now + job.delay_ms, now, now)
        for job_id, job, stored in admitted.new
    ]
    tx.write_rows("enqueue", rows)
    tx.run_many("add_need", admitted.needs)
    tx.turned += admitted.failed
    tx.moved_all("enqueued", admitted.moves)
    return admitted.answers


def _json(values: Sequence[Any]) -> str:
    return json.dumps(values, ensure_ascii=False)
