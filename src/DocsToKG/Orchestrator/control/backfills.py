"""Backfills: a historical range of time, cut into steps, one job for each.

Knows ranges and steps. Does not know what a job does with its part of the range. Promises: a backfill needs a reason
and a ticket, which are stored; an interrupted backfill can be continued, and makes no job twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.control import paging
from DocsToKG.Orchestrator.control.inputs import plain_name
from DocsToKG.Orchestrator.control.jobs.service import JobService, ServedLedger
from DocsToKG.Orchestrator.control.records import Record
from DocsToKG.Orchestrator.errors import BadJob, NotFound
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.views import Timestamp, View

MAX_JOBS = 100_000
MAX_REASON = 256
MAX_TICKET = 128
BACKFILL_PRIORITY = -100
PAGE = 500


@dataclass(frozen=True, slots=True)
class Backfill(View):
    """A historical range that was enqueued; `jobs` is how many there are so far."""

    backfill_id: str
    tenant: str
    job_type: str
    from_at: Timestamp
    to_at: Timestamp
    jobs: int
    actor: str
    reason: str
    ticket: str
    created_at: Timestamp


_BACKFILL = Record(Backfill, "backfills")


@dataclass(frozen=True, slots=True)
class BackfillPage(View):
    """Backfills, newest first."""

    backfills: Sequence[Backfill]
    next_page_token: str | None


class BackfillService:
    """The backfills of one ledger. Safe to share between threads."""

    def __init__(self, ledger: ServedLedger) -> None:
        self._ledger = ledger
        self._jobs = JobService(ledger)

    def start(
        self,
        tenant: str,
        *,
        job_type: str,
        from_at: float,
        to_at: float,
        step_s: float,
        actor: str,
        reason: str,
        ticket: str,
        payload: Mapping[str, Any] | None = None,
        priority: int = BACKFILL_PRIORITY,
        source: str | None = None,
        project: str | None = None,
        backfill_id: str | None = None,
        operator: Mapping[str, str | None] | None = None,
    ) -> Backfill:
        """Enqueue the range from `from_at` up to, not with, `to_at`, in steps, oldest first and behind other work.

        Each job has the payload given, with `from` and `to` of its own step. With the id of a backfill that was cut
        short, and all else the same, it is gone on with. `operator` is what the operator says beside the backfill's own
        reason and ticket; the audit row keeps it.
        """
        steps = _steps(from_at, to_at, step_s)
        name = backfill_id or f"bf_{uuid4().hex}"
        row = {
            "id": plain_name("backfill id", name, 64),
            "tenant": plain_name("tenant", tenant),
            "job_type": plain_name("job type", job_type),
            "from_at": round(from_at * 1000),
            "to_at": round(to_at * 1000),
            "actor": plain_name("actor", actor),
            "reason": plain_name("backfill_reason", reason, MAX_REASON),
            "ticket": plain_name("backfill_ticket", ticket, MAX_TICKET),
        }
        self._ledger.write(lambda tx: _begin(tx, row, operator or {}))
        more = {"priority": priority, "source": source, "project": project, "job_type": job_type}
        done = 0
        while page := list(islice(steps, PAGE)):
            jobs = [_job(name, tenant, step, payload or {}, more) for step in page]
            self._jobs.submit(tenant, jobs, actor=actor)
            done += len(page)
            self._ledger.write(partial(_count, name=name, tenant=tenant, done=done))
        return self.get(tenant, name)

    def get(self, tenant: str, backfill_id: str) -> Backfill:
        found = self._ledger.read(lambda tx: _BACKFILL.find(tx, backfill_id=backfill_id, tenant=tenant))
        if found is None:
            raise NotFound(f"no backfill {backfill_id[:64]}")
        return found

    def list(self, tenant: str, *, page_size: int | None = None, page_token: str | None = None) -> BackfillPage:
        """The tenant's backfills, newest first."""
        size = paging.page_size(page_size)
        where, values = "tenant = :tenant", {"tenant": tenant}
        return self._ledger.read(
            lambda tx: BackfillPage(*_BACKFILL.page(tx, where, values, by="created_at", size=size, token=page_token))
        )


def _steps(from_at: float, to_at: float, step_s: float) -> Iterator[tuple[int, int]]:
    """The steps of a range, in milliseconds; refused before the first is made when there are too many."""
    if not (0 <= from_at < to_at < 2**40 and 0.001 <= step_s < 2**40):
        raise BadJob("a backfill needs a range that ends after it begins, and a step")
    first, last, step = round(from_at * 1000), round(to_at * 1000), round(step_s * 1000)
    if -(-(last - first) // step) > MAX_JOBS:
        raise BadJob(f"a backfill has at most {MAX_JOBS} jobs; take longer steps or a shorter range")
    return ((start, min(start + step, last)) for start in range(first, last, step))


def _job(name: str, tenant: str, step: tuple[int, int], payload: Mapping[str, Any], more: Mapping[str, Any]) -> NewJob:
    start, end = utc_iso(step[0] / 1000), utc_iso(step[1] / 1000)
    return NewJob(f"{name}:{start}", {**payload, "from": start, "to": end}, tenant=tenant, correlation_id=name, **more)


def _begin(tx: ControlTx, row: Mapping[str, Any], operator: Mapping[str, str | None]) -> None:
    added = tx.execute(
        f"INSERT INTO backfills ({_BACKFILL.columns})"
        " VALUES (:id, :tenant, :job_type, :from_at, :to_at, 0, :actor, :reason, :ticket, :now)"
        " ON CONFLICT (backfill_id) DO NOTHING RETURNING backfill_id",
        {**row, "now": tx.now_ms},
    )
    if not added:
        known = _BACKFILL.find(tx, backfill_id=row["id"], tenant=row["tenant"])
        same = (round((known.from_at) * 1000), round(known.to_at * 1000), known.job_type) if known else None
        if same != (row["from_at"], row["to_at"], row["job_type"]):
            raise BadJob("this backfill id was used for another range; choose a new one")
        return
    range_ = {"backfillId": row["id"], "jobType": row["job_type"], "from": row["from_at"], "to": row["to_at"]}
    tx.note(
        row["tenant"], event="backfill_started", actor=row["actor"], reason=row["reason"], ticket=row["ticket"],
        detail={**range_, **operator},
    )  # fmt: skip


def _count(tx: ControlTx, name: str, tenant: str, done: int) -> None:
    """So many jobs of the range are there, from its beginning."""
    values = {"id": name, "tenant": tenant, "done": done}
    tx.execute(
        "UPDATE backfills SET jobs = :done WHERE backfill_id = :id AND tenant = :tenant AND jobs < :done", values
    )
