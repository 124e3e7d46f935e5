"""Ends and leases by one call of the database (`work_v4`), which writes history and counts by itself.

What nearly every transaction of a worker is. The rules are those of `settling` and `leasing`; the hashes those of
`chain`, made in the database, which saves sending every change back to be written down.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from DocsToKG.Orchestrator.ledger.base import LeasedJob
from DocsToKG.Orchestrator.ledger.checks import End
from DocsToKG.Orchestrator.ledger.drivers.postgres.complete import Answer, answers_to_ends
from DocsToKG.Orchestrator.ledger.drivers.postgres.connection import Transactor
from DocsToKG.Orchestrator.ledger.drivers.postgres.leasing import LeaseRequest, Turns, jobs_of
from DocsToKG.Orchestrator.ledger.drivers.postgres.ledger_time import DatabaseTime
from DocsToKG.Orchestrator.ledger.drivers.postgres.transaction import as_json


class Work(NamedTuple):
    """Ends of different jobs, and requests of one kind."""

    ends: Sequence[End]
    requests: Sequence[LeaseRequest]


class Done(NamedTuple):
    """An answer for each end and each request, the job types that have work again, and whether others wait."""

    ended: list[Answer]
    leased: list[list[LeasedJob]]
    lanes: set[str]
    turned: bool


def work(
    transactor: Transactor, turns: Turns, ledger_time: DatabaseTime, wanted: Work, rules: int | None = None
) -> Done:
    """One transaction. `rules` is the number of rules that are known to limit nothing."""
    ends, requests = wanted
    asked = turns.asking(requests, ledger_time.now_ms()) if requests else _NOTHING
    with transactor.worked({**asked, "ends": as_json("iflsoer", ends), "rules": rules}) as (tx, rows):
        said = rows[-1]
        owned = set(json.loads(said[8] or "[]"))
        ended = answers_to_ends(tx, ends, owned)
    leased = [row for row in rows if row[0] == "leased"]
    if requests:
        turns.given(requests, leased, [row for row in rows if row[0] == "turn"], tx.now_ms if said[1] else None)
    return Done(ended, jobs_of(requests, leased, tx.now_ms), set(json.loads(said[7] or "[]")), bool(said[4]))


_NOTHING: dict[str, Any] = {
    "workers": None, "limits": None, "tokens": None, "ttl": 0, "begun": False, "job_type": None, "swept": 0,
    "after_rank": 0, "after_id": 0, "after_host": "", "spare": False, "tenant": None,
}  # fmt: skip
