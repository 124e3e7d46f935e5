"""The audit trail: operators' decisions of a tenant, newest first.

Knows which rows of the history are decisions and which are a job's own transitions. Promises: every decision of the
tenant and every one for all tenants, with who, when, why, scope and ticket; read by an index of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from DocsToKG.Orchestrator.control import paging
from DocsToKG.Orchestrator.control.records import LedgerService
from DocsToKG.Orchestrator.ledger.control import EVERY, ControlTx
from DocsToKG.Orchestrator.views import Timestamp, View

_KIND = "actions"
# As the index has it, word for word; a job's own course changes its state, and a renewal is nobody's decision.
_DECISIONS = "(event = 'canceled' OR (to_state IS NULL AND event <> 'renewed'))"
_COLUMNS = "seq, tenant, job_id, at, event, actor, reason, ticket, detail_json"


@dataclass(frozen=True, slots=True)
class ActionView(View):
    """One decision. `tenant` is `*` where it was one for all tenants."""

    seq: int
    tenant: str
    job_id: int | None
    at: Timestamp
    action: str
    actor: str
    scope: str | None  # none where no token was needed, as on the command line
    reason: str | None
    ticket: str | None
    detail: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ActionPage(View):
    """Decisions, newest first."""

    actions: Sequence[ActionView]
    next_page_token: str | None


class ActionService(LedgerService):
    """The decisions on one ledger. Safe to share between threads."""

    def list(
        self,
        tenant: str,
        *,
        actor: str | None = None,
        action: str | None = None,
        ticket: str | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> ActionPage:
        """The decisions for a tenant that fit everything given."""
        size = paging.page_size(page_size)
        place = (2**62, 2**62) if page_token is None else paging.position(_KIND, page_token, (int, int))
        wanted = {"actor": actor, "event": action, "ticket": ticket}
        given = {name: value for name, value in wanted.items() if value is not None}
        return self._ledger.read(lambda tx: _page(tx, tenant, given, size, (int(place[0]), int(place[1]))))


def _page(tx: ControlTx, tenant: str, given: Mapping[str, str], size: int, place: tuple[int, int]) -> ActionPage:
    more = "".join(f" AND {name} = :{name}" for name in given)
    at, seq = place
    # One part for each tenant, so that each is read in the order of the index and only as far as the page goes.
    parts = " UNION ALL ".join(
        f"SELECT * FROM (SELECT {_COLUMNS} FROM job_history WHERE tenant = :{name} AND {_DECISIONS}"
        f" AND (at < :at OR (at = :at AND seq < :seq)) AND at <= :at{more}"
        f" ORDER BY at DESC, seq DESC LIMIT :limit) AS {name}"
        for name in ("own", "every")
    )
    values = {**given, "own": tenant, "every": EVERY, "at": at, "seq": seq, "limit": size + 1}
    rows = sorted(tx.execute(parts, values), key=lambda row: (-row[3], -row[0]))
    shown = [_view(row) for row in rows[:size]]
    last = rows[size - 1] if len(rows) > size else None
    return ActionPage(shown, None if last is None else paging.token(_KIND, int(last[3]), int(last[0])))


def _view(row: Sequence[Any]) -> ActionView:
    seq, tenant, job_id, at, event, actor, reason, ticket, detail = row
    told = json.loads(detail) if detail else {}
    scope = told.pop("scope", None)
    return ActionView(seq, tenant, job_id, at / 1000, event, actor, scope, reason, ticket, told or None)
