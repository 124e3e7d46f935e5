"""A `JobFilter` as a condition of SQL. The values are bound, never written in.

Promises: a filter that asks for nothing fits every job.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import JobFilter

ANY = JobFilter()


def condition(wanted: JobFilter, filters: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The words after WHERE in a dialect, and their values."""
    states = sorted({JobState(state).value for state in wanted.states}) or None
    asked = {
        "many_states" if states and len(states) > 1 else "states": ("states", states),
        "host": ("host", wanted.host),
        "reason": ("words", wanted.reason),
        "since": ("since", None if wanted.since is None else int(wanted.since * 1000)),
        "tenant": ("of_tenant", wanted.tenant),
        "job_type": ("of_type", wanted.job_type),
        "job_ids": ("wanted_ids", None if wanted.job_ids is None else [int(job_id) for job_id in wanted.job_ids]),
    }
    given = {name: value for name, value in asked.items() if value[1] is not None}
    words = " AND ".join(["true", *(filters[name] for name in given)])
    return words, dict(given.values())
