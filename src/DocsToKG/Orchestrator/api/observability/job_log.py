"""The log of this instance: a line for each event of a job that it handled, and for every incident.

Knows the fields that every line has. Promises: one JSON object a line, on standard error; no payload, token or header
is ever in it; where the log is off, a line costs a comparison.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from typing import Any

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.api.context import RequestContext

LOGGER = "DocsToKG.Orchestrator.jobs"
_log = logging.getLogger(LOGGER)
_FIELDS = ("jobId", "jobType", "tenant", "workerId", "leaseId", "status")


def log_job(ctx: RequestContext, event: str, job_id: int, **known: Any) -> None:
    """Log an event of a job; what is not `known` of the job is read from the ledger."""
    if not _log.isEnabledFor(logging.INFO):
        return
    job = ctx.services.jobs.get(ctx.tenant, job_id)
    found = {"jobId": job_id, "jobType": job.job_type, "workerId": job.worker_id, "status": job.status.value}
    log(event, **{**found, "tenant": ctx.tenant, "actor": ctx.caller.actor, **known})


def log(event: str, **fields: Any) -> None:
    _log.info(event, extra={"fields": fields})


def log_incident(**fields: Any) -> None:
    """Log an incident; the line is flagged for operators."""
    _log.warning("incident", extra={"fields": {**fields, "incident": True}})


class JsonLines(logging.Formatter):
    """A record as one line: the fields of a job always, its other fields after them."""

    def format(self, record: logging.LogRecord) -> str:
        given: dict[str, Any] = getattr(record, "fields", {})
        line = {"at": utc_iso(record.created), "level": record.levelname.lower(), "event": record.getMessage()}
        named = {name: given.get(name) for name in _FIELDS}
        return json.dumps({**line, **named, **given}, default=str)


@contextlib.contextmanager
def listening(level: str) -> Iterator[None]:
    """Write the log of this process to standard error, from this level on, while the block runs."""
    root = logging.getLogger("DocsToKG.Orchestrator")
    before = root.level, root.propagate
    handler: logging.Handler = logging.NullHandler()
    if level != "off":
        handler = logging.StreamHandler()
        handler.setFormatter(JsonLines())
        root.setLevel(level.upper())
        root.propagate = False
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before[0])
        root.propagate = before[1]
