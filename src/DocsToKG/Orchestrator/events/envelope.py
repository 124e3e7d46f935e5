"""Rows of the history as events: the envelope `orch.event.v1`, the same wherever an event is shown.

Knows the words of the envelope, and makes them of the history and of what never changes of a job. Promises: the same
row is the same event, byte for byte, with the same id and key, however often, from whichever instance and over
whichever channel it is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.jobs.states import API_STATUS, JobState
from DocsToKG.Orchestrator.ledger.base import HistoryRow
from DocsToKG.Orchestrator.ledger.control import ControlLedger, ControlTx

SCHEMA = "orch.event.v1"
CHANNEL = "orch.jobs"
_COLUMNS = "id, job_type, project, correlation_id, payload_digest, source, artifact_id"
_LEASE = "lease_"
_ASKED_AT_ONCE = 200
_ENDS = {"succeeded": "job.completed", "failed": "job.failed", "canceled": "job.canceled", "timed_out": "job.timed_out"}


def event_type(row: HistoryRow) -> str:
    """`job.completed`, `job.failed` and so on for ends; otherwise what happened, by its own word."""
    if row.event.startswith("pack_run_"):
        return f"pack_run.{row.event.removeprefix('pack_run_')}"
    if row.job_id is None:
        return f"control.{row.event}"
    ended = None if row.to_state is None or row.to_state == row.from_state else _ENDS.get(_status(row.to_state))
    return ended or f"job.{row.event}"


class Taken(NamedTuple):
    """When a lease began, and the worker that took it."""

    at: float
    worker: str


def envelope(row: HistoryRow, job: Mapping[str, Any] | None, taken: Taken | None = None) -> dict[str, Any]:
    """The event of one row; `job` is what the ledger knows of the job that it is about, `taken` of its lease."""
    kind, known = event_type(row), job or {}
    detail = _detail(row.detail_json)
    return {
        "schemaVersion": SCHEMA,
        "eventId": f"urn:orch:event:{UUID(hex=row.hash[:32])}",
        "eventType": kind,
        "occurredAt": utc_iso(row.at),
        "idempotencyKey": f"orch-{kind}-{row.job_id or 0}-{row.attempts or 0}-{row.hash[:16]}",
        "correlationId": known.get("correlation_id") or detail.get("correlationId"),
        "tenantId": row.tenant,
        "projectId": known.get("project") or detail.get("project"),
        "actor": {"subject": row.actor, "reason": row.reason, "ticket": row.ticket},
        "job": None if row.job_id is None else _job(row, known, taken),
        "metrics": None if taken is None or kind == "job.leased" else {"durationSeconds": round(row.at - taken.at, 3)},
        "detail": detail or None,
        "notifier": {"channel": CHANNEL, "delivery": "at-least-once"},
    }


def envelopes(ledger: ControlLedger, rows: Iterable[HistoryRow]) -> list[dict[str, Any]]:
    """The events of rows, in their order, with one look at the ledger."""
    listed = list(rows)
    about = [row for row in listed if row.job_id is not None]
    if not about:
        return [envelope(row, None) for row in listed]
    jobs, leases = ledger.read(lambda tx: (_jobs(tx, about), _leases(tx, about)))
    return [envelope(row, jobs.get(row.job_id or 0), leases.get((row.job_id, row.fence))) for row in listed]


def _jobs(tx: ControlTx, rows: Sequence[HistoryRow]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for names, values in _parts({row.job_id for row in rows}):
        for row in tx.execute(f"SELECT {_COLUMNS} FROM jobs WHERE id IN ({names})", values):
            known = dict(zip(_COLUMNS.split(", "), row, strict=True))
            found[known["id"]] = known
    return found


def _leases(tx: ControlTx, rows: Sequence[HistoryRow]) -> dict[tuple[int | None, int | None], Taken]:
    """The leases that rows belong to: a job and a fence name one, and the history says who took it."""
    wanted = {(row.job_id, row.fence) for row in rows if row.fence}
    fences = [fence for _, fence in wanted if fence]
    found: dict[tuple[int | None, int | None], Taken] = {}
    for names, values in _parts({job_id for job_id, _ in wanted}):
        statement = (
            f"SELECT job_id, fence, at, actor FROM job_history WHERE job_id IN ({names}) AND event = 'leased'"
            " AND fence >= :low AND fence <= :high"
        )
        for job_id, fence, at, actor in tx.execute(statement, {**values, "low": min(fences), "high": max(fences)}):
            if (job_id, fence) in wanted:
                found[job_id, fence] = Taken(at / 1000, actor)
    return found


def _parts(wanted: Iterable[int | None]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Numbers as names and values of a statement, not too many at once."""
    listed = sorted(number for number in wanted if number is not None)
    for start in range(0, len(listed), _ASKED_AT_ONCE):
        some = {f"j{place}": number for place, number in enumerate(listed[start : start + _ASKED_AT_ONCE])}
        yield ", ".join(f":{name}" for name in some), some


def _job(row: HistoryRow, known: Mapping[str, Any], taken: Taken | None) -> dict[str, Any]:
    digest = known.get("payload_digest")
    return {
        "id": row.job_id,
        "type": known.get("job_type"),
        "artifactId": known.get("artifact_id"),
        "source": known.get("source"),
        "attempt": row.attempts,
        "fence": row.fence,
        "leaseId": row.actor if row.actor.startswith(_LEASE) else None,
        "taskRunnerId": None if taken is None else taken.worker,
        "status": None if row.to_state is None else _status(row.to_state),
        "reason": row.reason,
        "payloadDigest": None if digest is None else f"sha256:{digest}",
    }


def _status(state: str) -> str:
    try:
        return API_STATUS[JobState(state)]
    except ValueError:
        return state


def _detail(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
