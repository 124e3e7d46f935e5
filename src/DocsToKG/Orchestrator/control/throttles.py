"""Throttles: operators hold back a tenant's jobs, those of a type or of a source, and lift it again.

Knows the tables of throttles and sources. What a throttle holds back is in `jobs.throttling`. Promises: a throttle acts
on every instance from the next lease on, without a restart; lifting one that a breaker set closes the breaker; every
change is audited.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Annotated, Any, Unpack

from DocsToKG.Orchestrator.control.inputs import AuditFields, Decision, amount, audit_fields, plain_name
from DocsToKG.Orchestrator.control.records import LedgerService, Record
from DocsToKG.Orchestrator.control.workers.hosts import HostView
from DocsToKG.Orchestrator.errors import BadJob, NotFound
from DocsToKG.Orchestrator.jobs.breakers import JOB_TYPE
from DocsToKG.Orchestrator.ledger import breaker_rows
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.views import JsonFormat, Timestamp, View

_SHOWN = 1000
_LONGEST_S = 366 * 24 * 3600.0
_MAX_STATE = 64 * 1024
_HOLDS = "lifted_at IS NULL AND (expires_at IS NULL OR expires_at > :now)"


@dataclass(frozen=True, slots=True)
class ThrottleView(View):
    """What holds jobs back: wholly (`pause`), or beyond `maxActive` at once (`limit`)."""

    throttle_id: str
    tenant: str
    job_type: str | None
    source: str | None
    mode: Annotated[str, JsonFormat(enum=["pause", "limit"])]
    max_active: int | None
    origin: Annotated[str, JsonFormat(enum=["operator", "breaker"])]
    actor: str
    reason: str | None
    ticket: str | None
    created_at: Timestamp
    expires_at: Timestamp | None
    lifted_at: Timestamp | None
    lifted_by: str | None


_THROTTLE = Record(ThrottleView, "throttles")


@dataclass(frozen=True, slots=True)
class SourceView(View):
    """A source, what workers know of its hosts (those asked last first; the source itself has no host name), and the
    throttles that hold it now."""

    name: str
    state: Mapping[str, Any]
    paused: bool
    throttles: Sequence[ThrottleView]
    updated_at: Timestamp | None
    hosts: Sequence[HostView] = ()
    requests: int = 0
    refused: int = 0
    works: int = 0


class ThrottleService(LedgerService):
    """The throttles and sources of one ledger."""

    def apply(
        self,
        tenant: str,
        *,
        job_type: str | None = None,
        source: str | None = None,
        pause: bool = False,
        max_active: int | None = None,
        expires_in_s: float | None = None,
        **by: Unpack[Decision],
    ) -> ThrottleView:
        """Hold back what fits: wholly (`pause`), or beyond `max_active` at once."""
        if pause == (max_active is not None):
            raise BadJob("a throttle either pauses or has max_active")
        values = {
            "tenant": plain_name("tenant", tenant),
            "job_type": None if job_type is None else plain_name("job_type", job_type),
            "source": None if source is None else plain_name("source", source),
            "mode": "pause" if pause else "limit",
            "max_active": None if max_active is None else amount("max_active", max_active),
        }
        audit, lasts_ms = audit_fields(**by), _lasting_ms(expires_in_s)
        return self._ledger.write(lambda tx: _apply(tx, values, lasts_ms, audit))

    def lift(self, tenant: str, throttle_id: str, **by: Unpack[Decision]) -> ThrottleView:
        """Let go what a throttle held. Lifting it twice is no harm."""
        audit = audit_fields(**by)
        return self._ledger.write(lambda tx: _lift(tx, _get(tx, tenant, throttle_id, lock=True), audit))

    def get(self, tenant: str, throttle_id: str) -> ThrottleView:
        return self._ledger.read(lambda tx: _get(tx, tenant, throttle_id))

    def list(self, tenant: str, active: bool = True) -> list[ThrottleView]:
        """The tenant's throttles, the last one first; `active` leaves out those that are over."""
        statement = _HOLDS if active else ":now = :now"
        statement = (
            f"{_THROTTLE.select} WHERE tenant = :tenant AND {statement}"
            f" ORDER BY created_at DESC, throttle_id LIMIT {_SHOWN}"
        )
        return self._ledger.read(
            lambda tx: [_THROTTLE.of(row) for row in tx.execute(statement, {"tenant": tenant, "now": tx.now_ms})]
        )

    def sources(self, tenant: str) -> Sequence[SourceView]:
        """The sources that are known, by name."""

        def read(tx: ControlTx) -> Sequence[SourceView]:
            values = {"tenant": tenant, "now": tx.now_ms}
            statement = (
                f"SELECT name, state_json, updated_at FROM sources WHERE tenant = :tenant ORDER BY name LIMIT {_SHOWN}"
            )
            kept = {name: (state, at) for name, state, at in tx.execute(statement, values)}
            holding = f"{_THROTTLE.select} WHERE tenant = :tenant AND source IS NOT NULL AND {_HOLDS}"
            held = [_THROTTLE.of(row) for row in tx.execute(holding, values)]
            names = sorted(set(kept) | {str(throttle.source) for throttle in held})
            return [_source(name, *kept.get(name, (None, None)), held) for name in names]

        return self._ledger.read(read)

    def pause_source(self, tenant: str, name: str, **by: Unpack[Decision]) -> ThrottleView:
        """Stop leasing for one source. Pausing it twice is one pause."""
        audit, source = audit_fields(**by), plain_name("source", name)

        def write(tx: ControlTx) -> ThrottleView:
            _remember(tx, plain_name("tenant", tenant), source, None)
            found = _pauses(tx, tenant, source)
            values = {"tenant": tenant, "job_type": None, "source": source, "mode": "pause", "max_active": None}
            return found[0] if found else _apply(tx, values, None, audit)

        return self._ledger.write(write)

    def resume_source(self, tenant: str, name: str, **by: Unpack[Decision]) -> Sequence[ThrottleView]:
        """Lift every pause of the source; those that were lifted."""
        audit = audit_fields(**by)
        return self._ledger.write(lambda tx: [_lift(tx, held, audit) for held in _pauses(tx, tenant, name)])

    def source_seen(self, tenant: str, name: str, state: Mapping[str, Any]) -> None:
        """Keep what is known of a source: its hosts, as a worker has seen them."""
        text = json.dumps(dict(state), sort_keys=True)
        if len(text) > _MAX_STATE:
            raise BadJob(f"the state of a source is over {_MAX_STATE} bytes")
        self._ledger.write(lambda tx: _remember(tx, plain_name("tenant", tenant), plain_name("source", name), text))


def _lasting_ms(expires_in_s: float | None) -> int | None:
    if expires_in_s is None:
        return None
    if math.isnan(expires_in_s) or not 0 < expires_in_s <= _LONGEST_S:
        raise BadJob("a throttle must last longer than no time and at most a year")
    return math.ceil(expires_in_s * 1000)


def _apply(tx: ControlTx, values: Mapping[str, Any], lasts_ms: int | None, audit: AuditFields) -> ThrottleView:
    throttle_id = f"thr_{token_hex(8)}"
    tx.execute(
        "INSERT INTO throttles (throttle_id, tenant, job_type, source, mode, max_active, origin, actor, reason, ticket,"
        " created_at, expires_at) VALUES (:id, :tenant, :job_type, :source, :mode, :max_active, 'operator', :actor,"
        " :reason, :ticket, :now, :expires)",
        {
            **values, **audit, "id": throttle_id, "now": tx.now_ms,
            "expires": None if lasts_ms is None else tx.now_ms + lasts_ms,
        },
    )  # fmt: skip
    tx.note(values["tenant"], event="throttle_applied", detail={"throttle": throttle_id, **values}, **audit)
    tx.rules_changed()
    return _get(tx, values["tenant"], throttle_id)


def _lift(tx: ControlTx, held: ThrottleView, audit: AuditFields) -> ThrottleView:
    if held.lifted_at is not None:
        return held
    values = {"id": held.throttle_id, "now": tx.now_ms, "actor": audit["actor"]}
    tx.execute("UPDATE throttles SET lifted_at = :now, lifted_by = :actor WHERE throttle_id = :id", values)
    tx.note(held.tenant, event="throttle_lifted", detail={"throttle": held.throttle_id}, **audit)
    if held.origin == "breaker" and held.job_type is not None:
        key = f"{JOB_TYPE}{held.job_type}"
        breaker = breaker_rows.locked(tx, held.tenant, key)
        breaker.close(f"the pause was lifted: {audit['reason'] or audit['actor']}")
        breaker_rows.write(tx, held.tenant, key, breaker, actor=audit["actor"])
    tx.rules_changed()
    return _get(tx, held.tenant, held.throttle_id)


def _get(tx: ControlTx, tenant: str, throttle_id: str, lock: bool = False) -> ThrottleView:
    found = _THROTTLE.find(tx, lock=lock, throttle_id=throttle_id, tenant=tenant)
    if found is None:
        raise NotFound(f"no throttle {throttle_id[:80]} of this tenant")
    return found


def _pauses(tx: ControlTx, tenant: str, source: str) -> list[ThrottleView]:
    statement = (
        f"{_THROTTLE.select} WHERE tenant = :tenant AND source = :source AND job_type IS NULL"
        f" AND mode = 'pause' AND {_HOLDS} ORDER BY created_at"
    )
    return [_THROTTLE.of(row) for row in tx.execute(statement, {"tenant": tenant, "source": source, "now": tx.now_ms})]


def _remember(tx: ControlTx, tenant: str, name: str, state: str | None) -> None:
    tx.execute(
        "INSERT INTO sources (tenant, name, state_json, created_at, updated_at)"
        " VALUES (:tenant, :name, coalesce(:state, '{}'), :now, :now) ON CONFLICT (tenant, name) DO UPDATE SET"
        " state_json = coalesce(:state, sources.state_json), updated_at = excluded.updated_at",
        {"tenant": tenant, "name": name, "state": state, "now": tx.now_ms},
    )


def _source(name: str, state: str | None, at: int | None, held: Sequence[ThrottleView]) -> SourceView:
    mine = [throttle for throttle in held if throttle.source == name]
    paused = any(throttle.mode == "pause" and throttle.job_type is None for throttle in mine)
    return SourceView(name, json.loads(state or "{}"), paused, mine, None if at is None else at / 1000)
