"""Replay manifests: the inputs and results of jobs, so that repeating them can be compared.

Knows jobs, their payloads, outcomes and notes; the program that repeats a job knows its payload. Promises: equal
ledgers give equal manifests; a manifest whose inputs do not match their digests is refused.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from DocsToKG.core.digest import canonical_json, sha256_hex
from DocsToKG.Orchestrator.audit import layout, range_reader
from DocsToKG.Orchestrator.audit.export import producer
from DocsToKG.Orchestrator.audit.saved_responses import REPLAY_SCHEMA
from DocsToKG.Orchestrator.control.jobs.views import job_digest
from DocsToKG.Orchestrator.errors import BadBundle, BadRange
from DocsToKG.Orchestrator.ledger.control import ControlLedger, ControlTx
from DocsToKG.Orchestrator.signing.keys import Signer
from DocsToKG.Orchestrator.signing.statements import REPLAY, signed

MAX_JOBS = 100_000
_PAGE = 500
_NOTES = 100  # of a job, the last ones
_COLUMNS = "id, artifact_json, state, outcome, attempts, last_error, result_json, finished_at"
RESULT = ("outcome", "reason", "sha256", "size_bytes", "resolver", "tier", "license", "version")


def manifest_of(
    ledger: ControlLedger,
    signers: Sequence[Signer],
    *,
    job_ids: Sequence[int] | None = None,
    tenant: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The manifest of the jobs named, or of all, signed where there are signers; `about` tells of the whole run."""
    jobs = ledger.read(lambda tx: list(_jobs(tx, job_ids, tenant)))
    missing = sorted(set(job_ids or ()) - {job["jobId"] for job in jobs})
    if missing:
        raise BadRange(f"there is no job {missing[0]} {'in this ledger' if tenant is None else 'of this tenant'}")
    if not jobs:
        raise BadRange("there is no such job in this ledger")
    versions = {"producer": producer(), "python": platform.python_version()}
    document = {"schema": REPLAY_SCHEMA, "versions": versions, "about": dict(about or {}), "jobs": jobs}
    return signed(document, REPLAY, signers) if signers else document


def checked(document: Any, where: str) -> list[Mapping[str, Any]]:
    """The jobs of a manifest, once each input is the one that its digest names."""
    try:
        jobs: list[Mapping[str, Any]] = document["jobs"]
        if document["schema"] != REPLAY_SCHEMA or len(jobs) > MAX_JOBS:
            raise ValueError
        for job in jobs:
            if _digest(job["input"]) != job["payloadDigest"]:
                raise BadBundle(where, f"the input of job {job['jobId']} is not the one that was digested")
            if job_digest(job) != job["jobDigest"]:
                raise BadBundle(where, f"job {job['jobId']} was changed: its jobDigest is another")
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadBundle(where, "is no replay manifest") from None
    return jobs


def _jobs(tx: ControlTx, job_ids: Sequence[int] | None, tenant: str | None) -> Iterator[dict[str, Any]]:
    after, found = 0, 0
    only = "" if job_ids is None else f" AND id IN ({', '.join(f'{job_id:d}' for job_id in job_ids)})"
    words = (
        f"SELECT {_COLUMNS} FROM jobs WHERE id > :after{only} AND (:tenant IS NULL OR tenant = :tenant)"
        f" ORDER BY id LIMIT {_PAGE}"
    )
    while page := tx.execute(words, {"after": after, "tenant": tenant}):
        found += len(page)
        if found > MAX_JOBS:
            raise BadRange(f"a manifest holds at most {MAX_JOBS} jobs; name the jobs, or a tenant")
        fixed = range_reader.jobs(tx, [row[0] for row in page])
        yield from (_job(tx, row, fixed[row[0]]) for row in page)
        after = page[-1][0]


def _job(tx: ControlTx, row: tuple[Any, ...], fixed: Mapping[str, Any]) -> dict[str, Any]:
    job_id, payload, state, outcome, attempts, error, result, finished_at = row
    known = {name: value for name, value in fixed.items() if name != "now"}
    told = json.loads(result) if result else {}
    ended = None if finished_at is None else layout.moment(finished_at)
    return {
        **known, "jobDigest": job_digest(known), "input": json.loads(payload), "state": state,
        "outcome": outcome, "attempts": attempts, "finishedAt": ended,
        "result": {name: told[name] for name in RESULT if told.get(name) is not None},
        "notes": _notes(tx, job_id, error),
    }  # fmt: skip


def _notes(tx: ControlTx, job_id: int, error: str | None) -> list[str]:
    """What its history says in words, first to last, and the last error."""
    words = (
        "SELECT event, reason FROM job_history WHERE job_id = :job_id AND reason IS NOT NULL"
        f" ORDER BY seq DESC LIMIT {_NOTES}"
    )
    said = [f"{event}: {reason}" for event, reason in reversed(tx.execute(words, {"job_id": job_id}))]
    return [*said, *([f"last error: {error}"] if error else [])]


def _digest(payload: Any) -> str:
    return f"sha256:{sha256_hex(canonical_json(payload))}"
