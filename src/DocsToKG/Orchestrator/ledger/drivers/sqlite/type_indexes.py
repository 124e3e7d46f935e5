"""Statements that read the jobs of one type, made from those that read all; and the indexes they go by.

A ledger with jobs of one type only, as nearly every one on a single machine is, has no need of more indexes, and does
not write them along with every job: they are made when a lease for one type first meets jobs of another that wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

OF_TYPE, AMONG_ALL = "_of_type", "_among_all"
HAS_TYPE_INDEXES = "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = 'jobs_waiting_of_type'"
TYPE_INDEXES = (
    "CREATE INDEX IF NOT EXISTS jobs_due_of_type ON jobs (job_type, priority DESC, id)"
    " WHERE state = 'queued' AND due = 1 AND host_key IS NULL",
    "CREATE INDEX IF NOT EXISTS jobs_due_by_host_of_type ON jobs (job_type, priority DESC, host_key, id)"
    " WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS jobs_waiting_of_type ON jobs (job_type, next_eligible_at)"
    " WHERE state = 'queued' AND due = 0",
)
_OTHERS_WAIT = "SELECT 1 FROM job_counts WHERE state = 'queued' AND n > 0 AND job_type <> :job_type LIMIT 1"
_CHOOSING = (
    "any_due_by_host", "due_by_age", "due_level", "due_ids_by_age", "due_hosts", "due_at_hosts", "due_of_hosts",
    "next_moments",
)  # fmt: skip
_INDEX = re.compile(r"INDEXED BY jobs_(due_by_host|due|waiting)\b")


def with_types(statements: Mapping[str, str]) -> dict[str, str]:
    """The statements, and beside each that chooses jobs its form for one type. When there may be work is also asked
    where the indexes are not made yet: by the others, stepping over jobs of other types."""
    narrowed = {name: _narrowed(statements[name]) for name in _CHOOSING}
    own = {f"{name}{OF_TYPE}": _INDEX.sub(rf"INDEXED BY jobs_\1{OF_TYPE}", text) for name, text in narrowed.items()}
    return {**statements, **own, f"next_moments{AMONG_ALL}": narrowed["next_moments"]}


def _narrowed(statement: str) -> str:
    wide = "(:job_type IS NULL OR job_type = :job_type)"
    return statement.replace("/* of type */", "AND job_type = :job_type").replace(wide, "job_type = :job_type")


def form(ask: Callable[..., list[tuple[Any, ...]]], job_type: str | None) -> str:
    """The ending of the statements for a lease. Which one it is decides what is read on the way, not what is found."""
    if job_type is None or not ask(_OTHERS_WAIT, {"job_type": job_type}):
        return ""
    if not ask(HAS_TYPE_INDEXES):
        for statement in TYPE_INDEXES:
            ask(statement)
    return OF_TYPE


def form_for_reading(ask: Callable[..., list[tuple[Any, ...]]]) -> str:
    """The ending of the statements for a look: leasing makes the indexes once they are needed."""
    return OF_TYPE if ask(HAS_TYPE_INDEXES) else AMONG_ALL
