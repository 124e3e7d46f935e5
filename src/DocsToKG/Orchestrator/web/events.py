"""Rows of the history as events: the envelope `orch.event.v1`, the same wherever an event is shown.

Knows the words of the envelope. Promises: the same row is the same event, byte for byte, with the same id and key,
however often and from whichever instance it is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.domain.states import API_STATUS, JobState
from DocsToKG.Orchestrator.ledger.base import HistoryRow
from DocsToKG.Orchestrator.ledger.control import ControlLedger, ControlTx

SCHEMA = "orch.event.v1"
_COLUMNS = "id, job_type, project, correlation_id, payload_digest, source, artifact_id"
_ENDS = {"succeeded": "job.completed", "failed": "job.failed", "canceled": "job.canceled", "timed_out": "job.timed_out"}


def event_type(row: HistoryRow) -> str:
    """`job.completed`, `job.failed` and so on for ends; otherwise what happened, by its own word."""
    if row.event.startswith("pack_run_"):
        return f"pack_run.{row.event.removeprefix('pack_run_')}"
    if row.job_id is None:
        return f"control.{row.event}"
    ended = None if row.to_state is None or row.to_state == row.from_state else _ENDS.get(_status(row.to_state))
    return ended or f"job.{row.event}"


def envelope(row: HistoryRow, job: Mapping[str, Any] | None) -> dict[str, Any]:
    """The event of one row; `job` is what the ledger knows of the job that it is about."""
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
        "job": None if row.job_id is None else _job(row, known),
        "detail": detail or None,
        "notifier": {"channel": "orch.jobs", "delivery": "sse"},
    }


def jobs_of(ledger: ControlLedger, rows: Sequence[HistoryRow]) -> dict[int, dict[str, Any]]:
    """What the ledger knows of the jobs that rows are about, in one look."""
    wanted = sorted({row.job_id for row in rows if row.job_id is not None})
    return ledger.look(lambda tx: _jobs(tx, wanted)) if wanted else {}


def envelopes(ledger: ControlLedger, rows: Iterable[HistoryRow]) -> list[dict[str, Any]]:
    listed = list(rows)
    jobs = jobs_of(ledger, listed)
    return [envelope(row, jobs.get(row.job_id or 0)) for row in listed]


def _jobs(tx: ControlTx, wanted: Sequence[int]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for start in range(0, len(wanted), 200):
        some = {f"j{place}": job_id for place, job_id in enumerate(wanted[start : start + 200])}
        names = ", ".join(f":{name}" for name in some)
        for row in tx.ask(f"SELECT {_COLUMNS} FROM jobs WHERE id IN ({names})", some):
            known = dict(zip(_COLUMNS.split(", "), row, strict=True))
            found[known["id"]] = known
    return found


def _job(row: HistoryRow, known: Mapping[str, Any]) -> dict[str, Any]:
    digest = known.get("payload_digest")
    return {
        "id": row.job_id,
        "type": known.get("job_type"),
        "artifactId": known.get("artifact_id"),
        "source": known.get("source"),
        "attempt": row.attempts,
        "fence": row.fence,
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
