"""Breakers as they are kept on the ledger: read one locked, write back what became of it.

Knows the tables of breakers, their transitions, throttles and incidents, and no rule of them. Promises: all that a
change of state brings with it is in the same transaction: the transition, the incident that tells of it, and for a job
type the throttle that shows the pause.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from secrets import token_hex
from typing import NamedTuple

from DocsToKG.core.breaker import BreakerSettings, BreakerState
from DocsToKG.Orchestrator.jobs.breakers import JOB_TYPE, Change, StoredBreaker, default_settings
from DocsToKG.Orchestrator.ledger.control import ControlTx

LEDGER = "ledger"
_COLUMNS = "state, forced, open_until, state_json, settings_json"


class Step(NamedTuple):
    """A worker's breaker became `state` at a moment of ledger time; an open one for so many seconds."""

    state: str
    at: int
    for_s: float | None
    why: str


Verdict = tuple[str, str, int, bool | None]  # tenant, job type, job id, whether it went well (None says nothing)


def settings_of(key: str, text: str | None) -> BreakerSettings:
    """The settings of a breaker: its own, or those of its kind where it has none that can be read."""
    try:
        return BreakerSettings(**(asdict(default_settings(key)) | json.loads(text))) if text else default_settings(key)
    except (TypeError, ValueError):
        return default_settings(key)


def read(tx: ControlTx, tenant: str, key: str, *, lock: bool = False) -> StoredBreaker | None:
    """The breaker, if there is one. Locked, it is ours until the transaction is over."""
    mark = " /* lock */" if lock else ""
    values = {"tenant": tenant, "key": key}
    found = tx.execute(f"SELECT {_COLUMNS} FROM breakers WHERE tenant = :tenant AND key = :key{mark}", values)
    if not found:
        return None
    state, forced, open_until, kept, own = found[0]
    return StoredBreaker.read(settings_of(key, own), state, bool(forced), open_until, kept)


def locked(tx: ControlTx, tenant: str, key: str) -> StoredBreaker:
    """The breaker, made where it is missing, and ours until the transaction is over."""
    found = read(tx, tenant, key, lock=True)
    if found is None:
        tx.execute(
            "INSERT INTO breakers (tenant, key, state, state_json, updated_at)"
            " VALUES (:tenant, :key, 'closed', '{}', :now) ON CONFLICT (tenant, key) DO NOTHING",
            {"tenant": tenant, "key": key, "now": tx.now_ms},
        )
        found = read(tx, tenant, key, lock=True)
    return found or StoredBreaker(default_settings(key))


def write(
    tx: ControlTx,
    tenant: str,
    key: str,
    breaker: StoredBreaker,
    *,
    actor: str = LEDGER,
    alarms: bool = True,
    moments: Sequence[int] = (),
) -> None:
    """Keep what became of a breaker that was locked. Where it `alarms`, opening raises an incident. `moments` are when
    the changes were, where that was not now."""
    tx.execute(
        "UPDATE breakers SET state = :state, forced = :forced, open_until = :until, state_json = :kept,"
        " version = version + :moved, updated_at = :now WHERE tenant = :tenant AND key = :key",
        {
            "state": breaker.state.value, "forced": breaker.forced, "until": breaker.open_until,
            "kept": breaker.kept(), "moved": int(bool(breaker.changes)), "now": tx.now_ms, "tenant": tenant,
            "key": key,
        },
    )  # fmt: skip
    for number, change in enumerate(breaker.changes):
        _transition(tx, tenant, key, change, actor, number, moments[number] if moments else tx.now_ms)
    if breaker.changes:
        if key.startswith(JOB_TYPE):
            _show_pause(tx, tenant, key, breaker, actor)
            tx.rules_changed()
        if alarms and any(change.new is BreakerState.OPEN for change in breaker.changes):
            why = [change.why for change in breaker.changes if change.new is BreakerState.OPEN][-1]
            raise_incident(tx, tenant, f"breaker:{key}", "warning" if breaker.forced else "error", why)
        breaker.changes = []


def _transition(tx: ControlTx, tenant: str, key: str, change: Change, actor: str, number: int, at: int) -> None:
    """The id begins with the number, so that changes of one moment keep their order."""
    tx.execute(
        "INSERT INTO breaker_transitions (transition_id, tenant, key, at, old_state, new_state, why, actor, reset_s)"
        " VALUES (:id, :tenant, :key, :at, :old, :new, :why, :actor, :reset)",
        {
            "id": f"btr_{min(number, 255):02x}{token_hex(11)}", "tenant": tenant, "key": key, "at": at,
            "old": change.old.value,
            "new": change.new.value, "why": change.why[:500], "actor": actor, "reset": change.reset_s,
        },
    )  # fmt: skip
    detail = {"key": key, "from": change.old.value, "to": change.new.value} | ({} if at == tx.now_ms else {"at": at})
    tx.note(tenant, event=f"breaker_{change.new.value}", actor=actor, reason=change.why[:500], detail=detail)


def _show_pause(tx: ControlTx, tenant: str, key: str, breaker: StoredBreaker, actor: str) -> None:
    """An open breaker of a job type shows as a throttle; leasing itself goes by the breaker."""
    values = {"tenant": tenant, "type": key.removeprefix(JOB_TYPE), "now": tx.now_ms, "actor": actor}
    mine = "tenant = :tenant AND job_type = :type AND origin = 'breaker' AND lifted_at IS NULL"
    if breaker.state is BreakerState.CLOSED:
        tx.execute(f"UPDATE throttles SET lifted_at = :now, lifted_by = :actor WHERE {mine}", values)
        return
    if breaker.state is not BreakerState.OPEN:
        return
    values |= {"until": breaker.open_until, "why": breaker.changes[-1].why[:500], "id": f"thr_{token_hex(8)}"}
    shown = f"UPDATE throttles SET expires_at = :until, reason = :why WHERE {mine} RETURNING throttle_id"
    if not tx.execute(shown, values):
        tx.execute(
            "INSERT INTO throttles (throttle_id, tenant, job_type, mode, origin, actor, reason, created_at, expires_at)"
            " VALUES (:id, :tenant, :type, 'pause', 'breaker', :actor, :why, :now, :until)",
            values,
        )


def raise_incident(tx: ControlTx, tenant: str, source: str, severity: str, cause: str) -> str:
    """Tell operators; what happens again joins the incident that is not resolved yet. Its id."""
    [(incident_id, count)] = tx.execute(
        "INSERT INTO incidents (incident_id, tenant, source, severity, cause, state, count, first_at, last_at,"
        " updated_at) VALUES (:id, :tenant, :source, :severity, :cause, 'open', 1, :now, :now, :now)"
        " ON CONFLICT (tenant, source) WHERE state <> 'resolved' DO UPDATE SET count = incidents.count + 1,"
        " severity = excluded.severity, cause = excluded.cause, last_at = excluded.last_at,"
        " updated_at = excluded.updated_at, version = incidents.version + 1 RETURNING incident_id, count",
        {
            "id": f"inc_{token_hex(12)}", "tenant": tenant, "source": source[:500], "severity": severity,
            "cause": cause[:500], "now": tx.now_ms,
        },
    )  # fmt: skip
    detail = {"incident": incident_id, "source": source[:500], "severity": severity, "count": count}
    tx.note(tenant, event="incident_raised", actor=LEDGER, reason=cause[:500], detail=detail)
    return str(incident_id)


def record_report(
    tx: ControlTx, tenant: str, worker: str, stands: Mapping[str, tuple[str | None, float | None]]
) -> None:
    """Record the states of a worker's own breakers, and for how long, by key. One that never opened has no row."""
    shut = tx.execute(
        "SELECT key FROM breakers WHERE tenant = :tenant AND forced = 0 AND state <> 'closed'",
        {"tenant": tenant},
    )
    known, states = {key for (key,) in shut}, frozenset(BreakerState)
    for key, (state, for_s) in sorted(stands.items()):
        if state not in states or (state == BreakerState.CLOSED and key not in known):
            continue
        breaker = locked(tx, tenant, key)
        breaker.told(tx.now_ms, BreakerState(state), for_s, f"seen by worker {worker}")
        if breaker.changes or breaker.state is BreakerState.OPEN:
            # Hosts fail all the time, and the worker is careful with them by itself: nobody need be called.
            write(tx, tenant, key, breaker, actor=worker, alarms=False)


def record_changes(tx: ControlTx, tenant: str, worker: str, steps: Mapping[str, Sequence[Step]]) -> None:
    """A worker tells each change of its own breakers, by key and in order, with the moments at which they were."""
    states = frozenset(BreakerState)
    for key, told in sorted(steps.items()):
        breaker, moments = locked(tx, tenant, key), list[int]()
        for step in told:
            if step.state in states:
                breaker.told(step.at, BreakerState(step.state), step.for_s, f"{step.why}; seen by worker {worker}")
                moments += [step.at] * (len(breaker.changes) - len(moments))
        if breaker.changes:
            write(tx, tenant, key, breaker, actor=worker, alarms=False, moments=moments)


def judge(tx: ControlTx, verdicts: Iterable[Verdict]) -> bool:
    """Feed the ends of jobs to the breakers of their types, in one order, so that nobody waits in a ring.

    Whether one of them has opened, closed or is being tested because of it.
    """
    by_key: dict[tuple[str, str], dict[int, bool | None]] = {}
    for tenant, job_type, job_id, good in verdicts:
        by_key.setdefault((tenant, f"{JOB_TYPE}{job_type}"), {})[job_id] = good
    changed = False
    for (tenant, key), ends in sorted(by_key.items()):
        changed |= _judge_one(tx, tenant, key, ends)
    return changed


def _judge_one(tx: ControlTx, tenant: str, key: str, ends: Mapping[int, bool | None]) -> bool:
    breaker = locked(tx, tenant, key)
    said = {str(job_id): good for job_id, good in ends.items() if good is not None}
    breaker.give_back([str(job_id) for job_id, good in ends.items() if good is None])
    if said:
        passed = sum(said.values())
        breaker.judge(tx.now_ms, passed=passed, failed=len(said) - passed, names=said)
    changed = bool(breaker.changes)
    write(tx, tenant, key, breaker)
    return changed
