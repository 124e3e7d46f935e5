"""Reports of workers about hosts: counts, limits, pauses and breakers; and what operators want of workers.

There is one row for each host of a source, and one without a host for the source itself. A worker reports what has
changed since its last report; the response names paused sources and forced breakers. Promises: counts of several
workers add up; the last report gives the state of a host; every change of a breaker is a row, however soon the next one
comes; the number of rows of a report is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from DocsToKG.Orchestrator.control.inputs import plain_name
from DocsToKG.Orchestrator.control.records import LedgerService, Record
from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.ledger import breaker_rows
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.views import Timestamp, View

MOST_ROWS = 500
SHOWN_HOSTS = 50
FORGET_S = 30 * 86_400.0
_MAX_LIMITS = 4096
_COUNTS = ("requests", "answered", "refused", "failed", "works", "bytes")
_STATE = ("last_status", "next_allowed_at", "held_by", "breaker", "breaker_until", "limits_json", "worker_id")
_ADD = (
    f"INSERT INTO source_hosts (tenant, source, host, {', '.join(_COUNTS)}, {', '.join(_STATE)}, updated_at)"
    f" VALUES (:tenant, :source, :host, {', '.join(f':{name}' for name in _COUNTS)}, :last_status, :next, :held_by,"
    " :breaker, :until, :limits, :worker, :now) ON CONFLICT (tenant, source, host) DO UPDATE SET "
    + ", ".join(
        [
            *(f"{name} = source_hosts.{name} + excluded.{name}" for name in _COUNTS),
            *(f"{name} = excluded.{name}" for name in _STATE if name != "last_status"),
        ]
    )
    + ", last_status = coalesce(excluded.last_status, source_hosts.last_status), updated_at = excluded.updated_at"
)
_FORCED_KINDS = ("host:", "resolver:", "service:")
_WORKER_KINDS = ("host:", "resolver:")
_MAX_KEY = 300


@dataclass(frozen=True, slots=True)
class HostReport:
    """What a worker reports of one host: counts since its last report, and the state of the host now. `refused` are
    responses 429; waits are seconds from now."""

    source: str
    host: str = ""
    requests: int = 0
    answered: int = 0
    refused: int = 0
    failed: int = 0
    works: int = 0
    bytes: int = 0
    last_status: int | None = None
    next_allowed_in_s: float | None = None
    held_by: str | None = None
    breaker: str | None = None
    breaker_for_s: float | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BreakerReport:
    """A breaker of a worker became `state`, so many seconds ago; an open one for so long from then on."""

    key: str
    state: str
    ago_s: float = 0.0
    for_s: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class HostView(View):
    """A host as workers know it. `refused` counts responses 429, `works` the works that were obtained; `nextAllowedAt`
    is when it may be asked again, where it may not now."""

    source: str
    host: str
    requests: int
    answered: int
    refused: int
    failed: int
    works: int
    bytes: int
    last_status: int | None
    next_allowed_at: Timestamp | None
    held_by: str | None
    breaker: str | None
    breaker_until: Timestamp | None
    limits: Mapping[str, Any]
    worker_id: str | None
    updated_at: Timestamp


_HOST = Record(HostView, "source_hosts")


@dataclass(frozen=True, slots=True)
class Orders(View):
    """What operators want of every worker, each with the reason: paused sources, and breakers that are forced open or
    closed."""

    paused: Mapping[str, str] = field(default_factory=dict)
    forced_open: Mapping[str, str] = field(default_factory=dict)
    forced_closed: Mapping[str, str] = field(default_factory=dict)


class SourceHostService(LedgerService):
    """The hosts of one ledger. Safe to share between threads."""

    def report(
        self, tenant: str, worker_id: str, words: Sequence[HostReport], steps: Sequence[BreakerReport] = ()
    ) -> Orders:
        """Add up a worker's counts; returns what operators want. `steps` are the changes of its breakers in order."""
        if max(len(words), len(steps)) > MOST_ROWS:
            raise BadJob(f"report at most {MOST_ROWS} hosts and as many changes of breakers at once")
        rows = [_row(plain_name("tenant", tenant), plain_name("worker id", worker_id), word) for word in words]
        if not rows and not steps:
            return self._ledger.read(lambda tx: _orders(tx, tenant))

        def write(tx: ControlTx) -> Orders:
            for row in sorted(rows, key=lambda row: (row["source"], row["host"])):
                _add(tx, row)
            breaker_rows.record_changes(tx, tenant, worker_id, _steps(steps, tx.now_ms))
            breaker_rows.record_report(tx, tenant, worker_id, _breakers(words))
            return _orders(tx, tenant)

        return self._ledger.write(write)

    def of_sources(self, tenant: str) -> dict[str, list[HostView]]:
        """The hosts of every source, those asked last first; of each source as many as a list shows."""
        found: dict[str, list[HostView]] = {}
        for view in self._read(tenant, None, 40 * SHOWN_HOSTS):
            hosts = found.setdefault(view.source, [])
            if len(hosts) < SHOWN_HOSTS or not view.host:
                hosts.append(view)
        return found

    def of_source(self, tenant: str, source: str) -> list[HostView]:
        """The hosts of one source, those asked last first."""
        return self._read(tenant, source, MOST_ROWS)

    def _read(self, tenant: str, source: str | None, most: int) -> list[HostView]:
        only = "" if source is None else " AND source = :source"
        statement = f"{_HOST.select} WHERE tenant = :tenant{only} ORDER BY updated_at DESC, source, host LIMIT {most}"
        values = {"tenant": tenant} | ({} if source is None else {"source": source})
        return self._ledger.read(lambda tx: [_HOST.of(row) for row in tx.execute(statement, values)])

    def forget_old(self) -> None:
        """Remove hosts that nobody has asked for a month, and their breakers where nobody decided anything of them."""

        def remove(tx: ControlTx) -> None:
            values = {"before": tx.now_ms - round(FORGET_S * 1000)}
            tx.execute("DELETE FROM source_hosts WHERE updated_at < :before", values)
            tx.execute(
                "DELETE FROM breakers WHERE updated_at < :before AND forced = 0 AND settings_json IS NULL"
                " AND substr(key, 1, 5) = 'host:'",
                values,
            )

        self._ledger.write(remove)


def _row(tenant: str, worker_id: str, word: HostReport) -> dict[str, Any]:
    limits = json.dumps(dict(word.limits), sort_keys=True, allow_nan=False)
    if len(limits) > _MAX_LIMITS:
        raise BadJob(f"the limits of a host are over {_MAX_LIMITS} bytes")
    counts = {name: max(0, int(getattr(word, name))) for name in _COUNTS}
    return {
        **counts,
        "tenant": tenant,
        "source": plain_name("source", word.source),
        "host": word.host if not word.host else plain_name("host", word.host),
        "last_status": word.last_status,
        "wait_ms": _ms(word.next_allowed_in_s),
        "held_by": None if word.held_by is None else word.held_by[:200],
        "breaker": word.breaker,
        "breaker_ms": _ms(word.breaker_for_s),
        "limits": limits,
        "worker": worker_id,
    }


def _breakers(words: Sequence[HostReport]) -> dict[str, tuple[str | None, float | None]]:
    """The reported states of breakers, by key; a host has one breaker whichever source named it."""
    return {
        f"host:{word.host}" if word.host else f"resolver:{word.source}": (word.breaker, word.breaker_for_s)
        for word in words
    }


def _steps(steps: Sequence[BreakerReport], now_ms: int) -> dict[str, list[breaker_rows.Step]]:
    """By key, in the order they came; times of one key never step back."""
    found: dict[str, list[breaker_rows.Step]] = {}
    for step in steps:
        if step.key.startswith(_WORKER_KINDS) and len(step.key) <= _MAX_KEY:
            told = found.setdefault(step.key, [])
            at = max(now_ms - (_ms(step.ago_s) or 0), told[-1].at if told else 0)
            told.append(breaker_rows.Step(step.state, at, step.for_s, step.why[:200]))
    return found


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else min(round(max(0.0, seconds) * 1000), 366 * 86_400_000)


def _add(tx: ControlTx, row: Mapping[str, Any]) -> None:
    values, now = dict(row), tx.now_ms
    for name, key in (("next", "wait_ms"), ("until", "breaker_ms")):
        wait_ms = values.pop(key)
        values[name] = None if wait_ms is None else now + int(wait_ms)
    tx.execute(_ADD, {**values, "now": now})


def _orders(tx: ControlTx, tenant: str) -> Orders:
    pauses = tx.execute(
        "SELECT source, coalesce(reason, actor) FROM throttles WHERE tenant = :tenant AND source IS NOT NULL"
        " AND job_type IS NULL AND mode = 'pause' AND lifted_at IS NULL"
        f" AND (expires_at IS NULL OR expires_at > :now) LIMIT {MOST_ROWS}",
        {"tenant": tenant, "now": tx.now_ms},
    )
    forced = tx.execute(
        f"SELECT key, state FROM breakers WHERE tenant = :tenant AND forced = 1 ORDER BY key LIMIT {MOST_ROWS}",
        {"tenant": tenant},
    )
    wanted = {state: {key: "by an operator" for key, is_ in forced if is_ == state} for state in ("open", "closed")}
    mine = {state: {k: v for k, v in found.items() if k.startswith(_FORCED_KINDS)} for state, found in wanted.items()}
    return Orders(dict(pauses), mine["open"], mine["closed"])
