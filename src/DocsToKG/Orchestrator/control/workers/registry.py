"""The registry of workers: who reported for a tenant, and how many leases each holds.

Knows workers by the names that they report, per tenant. Does not decide whether one is alive: a lease that is not
renewed expires by itself. Promises: a worker may report as often as it likes; it is written a few times a minute, and
removed a month after its last report.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from DocsToKG.Orchestrator.control import paging
from DocsToKG.Orchestrator.control.inputs import plain_name
from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.ledger.control import ControlLedger, ControlTx
from DocsToKG.Orchestrator.views import Timestamp, View

_KIND = "workers"
_WRITE_MS = 10_000
_FORGET_MS = 30 * 86_400_000  # each start of a worker has a name of its own
_MAX_INFO = 16 * 1024
_REMEMBERED = 10_000
_MAX_LEASES = 10_000


@dataclass(frozen=True, slots=True)
class WorkerView(View):
    """A worker and how many leases it holds."""

    worker_id: str
    tenant: str
    node: str | None
    kind: str | None
    version: str | None
    info: Mapping[str, Any]
    started_at: Timestamp
    last_seen_at: Timestamp
    leases: int


@dataclass(frozen=True, slots=True)
class WorkerPage(View):
    """Workers, by name."""

    workers: Sequence[WorkerView]
    next_page_token: str | None


class WorkerService:
    """The workers of one ledger. Safe to share between threads."""

    def __init__(self, ledger: ControlLedger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._written: dict[tuple[str, str], tuple[int, int]] = {}

    def seen(
        self,
        tenant: str,
        worker_id: str,
        *,
        node: str | None = None,
        kind: str | None = None,
        version: str | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        """A worker has reported. What it says of itself replaces what it said before."""
        values = {
            "tenant": plain_name("tenant", tenant),
            "worker": plain_name("worker id", worker_id),
            "node": _short("node", node),
            "kind": _short("kind", kind),
            "version": _short("version", version),
            "info": _info(info),
        }
        said = hash(tuple(values.values()))
        now = self._ledger.read(lambda tx: tx.now_ms)
        with self._lock:
            before = self._written.get((tenant, worker_id))
        if before is not None and before[1] == said and now - before[0] < _WRITE_MS:
            return
        self._ledger.write(lambda tx: _write(tx, values))
        with self._lock:
            if len(self._written) >= _REMEMBERED:
                self._written.clear()
            self._written[tenant, worker_id] = (now, said)

    def forget_old(self) -> None:
        """Remove workers that nobody has heard of for a month."""
        self._ledger.write(
            lambda tx: tx.execute(
                "DELETE FROM workers WHERE last_seen_at < :before", {"before": tx.now_ms - _FORGET_MS}
            )
        )

    def list(
        self,
        tenant: str,
        *,
        seen_within_s: float | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> WorkerPage:
        """The tenant's workers by name; with `seen_within_s` only those that reported lately."""
        size = paging.page_size(page_size)
        after = "" if page_token is None else str(paging.position(_KIND, page_token, (str,))[0])
        return self._ledger.read(lambda tx: _page(tx, tenant, seen_within_s, size, after))


def _short(field: str, value: str | None) -> str | None:
    return None if value is None else plain_name(field, value)


def _info(info: Mapping[str, Any] | None) -> str:
    try:
        text = json.dumps(dict(info or {}), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise BadJob("what a worker says of itself must be JSON") from None
    if len(text) > _MAX_INFO:
        raise BadJob(f"what a worker says of itself is over {_MAX_INFO} characters")
    return text


def _write(tx: ControlTx, values: Mapping[str, Any]) -> None:
    tx.execute(
        "INSERT INTO workers (tenant, worker_id, node, kind, version, info_json, started_at, last_seen_at)"
        " VALUES (:tenant, :worker, :node, :kind, :version, :info, :now, :now)"
        " ON CONFLICT (tenant, worker_id) DO UPDATE SET node = excluded.node, kind = excluded.kind,"
        " version = excluded.version, info_json = excluded.info_json, last_seen_at = excluded.last_seen_at",
        {**values, "now": tx.now_ms},
    )


def _page(tx: ControlTx, tenant: str, within_s: float | None, size: int, after: str) -> WorkerPage:
    since = 0 if within_s is None else tx.now_ms - round(within_s * 1000)
    rows = tx.execute(
        "SELECT worker_id, tenant, node, kind, version, info_json, started_at, last_seen_at FROM workers"
        " WHERE tenant = :tenant AND worker_id > :after AND last_seen_at >= :since ORDER BY worker_id LIMIT :limit",
        {"tenant": tenant, "after": after, "since": since, "limit": size + 1},
    )
    held = _leases(tx, tenant)
    shown = [_worker(row, held) for row in rows[:size]]
    return WorkerPage(shown, paging.token(_KIND, shown[-1].worker_id) if len(rows) > size else None)


def _worker(row: Sequence[Any], held: Mapping[str, int]) -> WorkerView:
    worker_id, tenant, node, kind, version, info, started_at, last_seen_at = row
    told = json.loads(info or "{}")
    times = (started_at / 1000, last_seen_at / 1000)
    return WorkerView(worker_id, tenant, node, kind, version, told, *times, held.get(worker_id, 0))


def _leases(tx: ControlTx, tenant: str) -> dict[str, int]:
    """How many jobs each worker of the tenant holds, as far as a bounded look tells."""
    rows = tx.execute(
        "SELECT worker_id, count(*) FROM (SELECT worker_id FROM jobs WHERE state = 'in_progress' AND tenant = :tenant"
        f" LIMIT {_MAX_LEASES}) AS held GROUP BY worker_id",
        {"tenant": tenant},
    )
    return {worker: int(count) for worker, count in rows}
