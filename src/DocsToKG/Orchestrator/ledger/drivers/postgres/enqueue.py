"""Putting jobs on the ledger, many in one step: look up what is known, then write the rest in one go.

Another process may add the same job between the look and the write. The unique index then refuses the whole
transaction, which is run again and finds the job. What new jobs need is held as it is until they are written, so that
the end of a need cannot pass unseen. Promises: a refusal comes before anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from DocsToKG.Orchestrator.errors import UnknownJob
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Enqueued
from DocsToKG.Orchestrator.ledger.checks import CheckedJob
from DocsToKG.Orchestrator.ledger.deduplication import Known, admit
from DocsToKG.Orchestrator.ledger.drivers.postgres.transaction import Transaction, as_json

_COPY_FROM = 50  # for fewer, its round trips cost more than they save
_TYPES = ["int8", *["text"] * 9, *["int4"] * 2, *["text"] * 3, "int8", "text", "bool", *["int8"] * 3]


class _Known(Known):
    def __init__(self, tx: Transaction, jobs: Sequence[CheckedJob]) -> None:
        super().__init__()
        self._read_artifacts(tx, jobs)
        self._read_keys(tx, jobs)
        self._read_needs(tx, jobs)

    def _read_artifacts(self, tx: Transaction, jobs: Sequence[CheckedJob]) -> None:
        wanted = {job.key for job in jobs if job.replay_of is None}
        wanted |= {(*job.key[:2], need) for job in jobs for need in job.needs if isinstance(need, str)}
        values = {"wanted": as_json("tka", wanted)}
        for job_id, tenant, job_type, artifact_id, state in tx.rows("known_artifacts", values) if wanted else ():
            self.by_artifact[tenant, job_type, artifact_id] = (job_id, artifact_id, JobState(state))

    def _read_keys(self, tx: Transaction, jobs: Sequence[CheckedJob]) -> None:
        wanted = [(job.key[0], job.idempotency_key) for job in jobs if job.idempotency_key is not None]
        values = {"tenants": [tenant for tenant, _ in wanted], "keys": [key for _, key in wanted]}
        for job_id, tenant, key, artifact_id, state in tx.rows("known_keys", values) if wanted else ():
            self.by_key[tenant, key] = (job_id, artifact_id, JobState(state))

    def _read_needs(self, tx: Transaction, jobs: Sequence[CheckedJob]) -> None:
        asked = {need for job in jobs for need in job.needs if isinstance(need, int)}
        asked |= {job.replay_of for job in jobs if job.replay_of is not None}
        named = {(*job.key[:2], need) for job in jobs for need in job.needs if isinstance(need, str)}
        wanted = asked | {self.by_artifact[key][0] for key in named if key in self.by_artifact}
        if wanted:
            rows = tx.rows("states_of", {"job_ids": sorted(wanted)})
            self.states = {job_id: JobState(state) for job_id, state in rows}
        for missing in sorted(asked - self.states.keys())[:1]:
            raise UnknownJob(missing)


def enqueue(tx: Transaction, jobs: Sequence[CheckedJob], actor: str) -> list[Enqueued]:
    """One answer per job, in order. Needs come before their dependents, here or on the ledger."""
    known = _Known(tx, jobs)
    new = _distinct(known, jobs)
    ids = (row[0] for row in tx.rows("new_ids", {"count": new})) if new else iter(())
    admitted, now = admit(known, jobs, ids, actor), tx.now_ms
    rows = [
        (job_id, *job.columns, stored, job.delay_ms == 0, now + job.delay_ms) for job_id, job, stored in admitted.new
    ]
    _write(tx, rows, admitted.needs)
    tx.turned += admitted.failed
    tx.moved_all("enqueued", admitted.moves)
    return admitted.answers


def _distinct(known: _Known, jobs: Sequence[CheckedJob]) -> int:
    """How many ids are needed: of jobs that are one and the same, only the first is new."""
    artifacts, keys, count = set[tuple[str, str, str]](), set[tuple[str, str]](), 0
    for job in jobs:
        key = None if job.idempotency_key is None else (job.key[0], job.idempotency_key)
        repeated = (job.replay_of is None and job.key in artifacts) or (key is not None and key in keys)
        if repeated or known.same(job) is not None:
            continue
        count += 1
        if job.replay_of is None:
            artifacts.add(job.key)
        if key is not None:
            keys.add(key)
    return count


def _write(tx: Transaction, rows: Sequence[tuple[Any, ...]], needs: Sequence[tuple[int, int]]) -> None:
    if rows:
        # In the order of the unique index, so that two who add the same jobs do not wait for each other in a circle.
        ordered = sorted(rows, key=lambda row: (row[4], row[6], row[1]))
        if len(ordered) >= _COPY_FROM:
            tx.copy("enqueue_many", _TYPES, ((*row, tx.now_ms, tx.now_ms) for row in ordered))
        else:
            tx.rows("enqueue", {"jobs": as_json("abcdefghijklmnopqrs", ordered), "now": tx.now_ms})
    if needs:
        job_ids, wanted = zip(*needs, strict=True)
        tx.rows("add_needs", {"job_ids": list(job_ids), "needs": list(wanted)})
