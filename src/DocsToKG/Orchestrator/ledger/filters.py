"""A `JobFilter` as a condition of SQL. The values are bound, never written in.

Knows the columns of `jobs`. Promises: a filter that asks for nothing fits every job.
"""

from __future__ import annotations

import json
from typing import Any

from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import JobFilter

ANY = JobFilter()


def condition(wanted: JobFilter) -> tuple[str, dict[str, Any]]:
    """The words after WHERE, and their values."""
    parts, values = ["1"], dict[str, Any]()

    def ask(words: str, name: str, value: Any) -> None:
        parts.append(words)
        values[name] = value

    if wanted.states:
        # The sign keeps SQLite from gathering and sorting all jobs of several states for one page by id.
        sign = "+" if len(wanted.states) > 1 else ""
        ask(f"{sign}state IN (SELECT value FROM json_each(:states))", "states", _states(wanted))
    if wanted.host is not None:
        ask("host_key = :host", "host", wanted.host)
    if wanted.reason is not None:
        ask("instr(lower(last_error), lower(:words)) > 0", "words", wanted.reason)
    if wanted.since is not None:
        ask("updated_at >= :since", "since", int(wanted.since * 1000))
    if wanted.tenant is not None:
        ask("tenant = :tenant", "tenant", wanted.tenant)
    if wanted.job_type is not None:
        ask("job_type = :job_type", "job_type", wanted.job_type)
    if wanted.job_ids is not None:
        ids = json.dumps([int(job_id) for job_id in wanted.job_ids])
        ask("id IN (SELECT value FROM json_each(:job_ids))", "job_ids", ids)
    return " AND ".join(parts), values


def _states(wanted: JobFilter) -> str:
    return json.dumps(sorted({JobState(state).value for state in wanted.states}))
