"""Ends and leases by one call of the database (`work_v4`), which writes history and counts by itself.

What nearly every transaction of a worker is. The rules are those of `settling` and `leasing`; the hashes those of
`chain`, made in the database, which saves sending every change back to be written down.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from DocsToKG.Orchestrator.ledger.checks import End
from DocsToKG.Orchestrator.ledger.complete import answers_to_ends
from DocsToKG.Orchestrator.ledger.driver import Done, Write
from DocsToKG.Orchestrator.ledger.drivers.postgres.connection import Transactor
from DocsToKG.Orchestrator.ledger.drivers.postgres.leasing import HostChooser, jobs_of
from DocsToKG.Orchestrator.ledger.drivers.postgres.session import END_COLUMNS, as_json
from DocsToKG.Orchestrator.ledger.leasing import LeaseRequest
from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime


class Work(NamedTuple):
    """Ends of different jobs, and requests of one kind."""

    ends: Sequence[End]
    requests: Sequence[LeaseRequest]


def work(
    transactor: Transactor, chooser: HostChooser, ledger_time: LedgerTime, wanted: Work, rules: int | None = None
) -> Done:
    """One transaction. `rules` is the number of rules that are known to limit nothing."""
    ends, requests = wanted
    asked = chooser.asking(requests, ledger_time.now_ms()) if requests else _NOTHING
    with transactor.worked({**asked, "ends": as_json(END_COLUMNS, ends), "rules": rules}) as (tx, rows):
        said = rows[-1]
        owned = set(json.loads(said[8] or "[]"))
        ended = answers_to_ends(tx, ends, owned)
    leased = [row for row in rows if row[0] == "leased"]
    if requests:
        chooser.given(requests, leased, [row for row in rows if row[0] == "turn"], tx.now_ms if said[1] else None)
    return Done(ended, jobs_of(requests, leased, tx.now_ms), set(json.loads(said[7] or "[]")), bool(said[4]))


_NOTHING: dict[str, Any] = {
    "workers": None, "limits": None, "tokens": None, "ttl": 0, "begun": False, "job_type": None, "swept": 0,
    "after_rank": 0, "after_id": 0, "after_host": "", "spare": False, "tenant": None,
}  # fmt: skip


def as_work(batch: Sequence[Write]) -> Work | None:
    """The changes as one call of the database; None where they are not all ends and leases of one kind."""
    ends: list[End] = []
    requests: list[LeaseRequest] = []
    for change in batch:
        if change.make is not None:
            return None
        if change.request is not None:
            if change.request.tenants is not None and change.request.tenant is None:
                return None
            requests.append(change.request)
        for order in change.orders or ():
            if not isinstance(order, End):
                return None
            ends.append(order)
    if len({end.job_id for end in ends}) < len(ends):
        return None
    if len({(request.kind, request.tenant) for request in requests}) > 1:
        return None
    return Work(ends, requests)
