"""The log of the control plane: a line for each thing that this instance did to a job, and for every incident.

Knows the names that every line has. Promises: one JSON object a line, on standard error; no payload, token or header is
ever in it; where nobody listens, a line costs a comparison.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from typing import Any

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.api.routing import RequestContext

LOGGER = "DocsToKG.Orchestrator.jobs"
_log = logging.getLogger(LOGGER)
_FIELDS = ("jobId", "jobType", "tenant", "workerId", "leaseId", "status")


def tell(ctx: RequestContext, event: str, job_id: int, **known: Any) -> None:
    """Something was done to a job; what is not `known` of it is read from the ledger."""
    if not _log.isEnabledFor(logging.INFO):
        return
    job = ctx.services.jobs.get(ctx.tenant, job_id)
    found = {"jobId": job_id, "jobType": job.job_type, "workerId": job.worker_id, "status": job.status.value}
    say(event, **{**found, "tenant": ctx.tenant, "actor": ctx.caller.actor, **known})


def say(event: str, **fields: Any) -> None:
    _log.info(event, extra={"fields": fields})


def say_incident(**fields: Any) -> None:
    """For operators: the line is flagged."""
    _log.warning("incident", extra={"fields": {**fields, "incident": True}})


class JsonLines(logging.Formatter):
    """A record as one line: the names of a job always, whatever else it has after them."""

    def format(self, record: logging.LogRecord) -> str:
        given: dict[str, Any] = getattr(record, "fields", {})
        line = {"at": utc_iso(record.created), "level": record.levelname.lower(), "event": record.getMessage()}
        named = {name: given.get(name) for name in _FIELDS}
        return json.dumps({**line, **named, **given}, default=str)


@contextlib.contextmanager
def listening(level: str) -> Iterator[None]:
    """Within it, the log of this process is written to standard error, from this level on."""
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
