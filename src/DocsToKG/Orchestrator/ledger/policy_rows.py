"""Rules and lanes as they are stored, for every engine the same: all that a governed lease reads and writes of them.

Knows the tables. The deciding is done by `jobs.fair_share`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from DocsToKG.core.breaker import BreakerState
from DocsToKG.Orchestrator.jobs import quota as quota_rules
from DocsToKG.Orchestrator.jobs.allocation import AllocationPolicy, Strategy
from DocsToKG.Orchestrator.jobs.breakers import JOB_TYPE, StoredBreaker
from DocsToKG.Orchestrator.jobs.fair_share import (
    Gate,
    Held,
    Lane,
    Rules,
    Running,
    TenantRule,
    Usage,
    Waiting,
    held_by,
    share,
)
from DocsToKG.Orchestrator.jobs.quota import Bucket, Key, Quota
from DocsToKG.Orchestrator.jobs.throttling import Throttle
from DocsToKG.Orchestrator.ledger import breaker_rows
from DocsToKG.Orchestrator.ledger.control import ControlTx

MAINTENANCE = "maintenance"


def read_rules(tx: ControlTx) -> Rules:
    """All rules, as they are written now."""
    maintenance = tx.execute("SELECT reason FROM settings WHERE name = :name AND value = '1'", {"name": MAINTENANCE})
    tenants = tx.execute("SELECT tenant, weight, priority, fixed, blocked, blocked_reason FROM tenants")
    quotas = tx.execute("SELECT tenant, job_type, max_active, max_per_hour, burst FROM quotas")
    throttles = tx.execute(
        "SELECT throttle_id, tenant, job_type, source, CASE WHEN mode = 'limit' THEN max_active END, expires_at, reason"
        " FROM throttles WHERE lifted_at IS NULL AND origin = 'operator'"
        " AND (expires_at IS NULL OR expires_at > :now) ORDER BY created_at, throttle_id",
        {"now": tx.now_ms},
    )
    gates = tx.execute("SELECT tenant, key, state, forced, open_until FROM breakers WHERE state <> 'closed'")
    return Rules(
        maintenance=(maintenance[0][0] or "") if maintenance else None,
        tenants={row[0]: TenantRule(row[1], row[2], row[3], bool(row[4]), row[5]) for row in tenants},
        quotas={(row[0], row[1]): Quota(*row[2:]) for row in quotas},
        policies=read_policies(tx),
        throttles=[Throttle(*row) for row in throttles],
        gates={
            (tenant, key.removeprefix(JOB_TYPE)): Gate(BreakerState(state), bool(forced), until)
            for tenant, key, state, forced, until in gates
            if key.startswith(JOB_TYPE)
        },
    )


def read_policies(tx: ControlTx) -> list[AllocationPolicy]:
    """The policies that count."""
    rows = tx.execute(
        "SELECT policy_id, strategy, total_capacity, minimum_per_tenant, maximum_per_tenant, reserved_capacity,"
        " allow_burst, burst_multiplier, priority, job_type FROM quota_policies WHERE enabled = 1 ORDER BY policy_id"
    )
    return [
        AllocationPolicy(row[0], Strategy(row[1]), row[2], row[3], row[4], row[5], bool(row[6]), row[7], row[8], row[9])
        for row in rows
    ]


def read_running(tx: ControlTx, leased: str = "jobs") -> dict[Lane, Running]:
    """What is leased, by lane; read from an index of what is leased."""
    rows = tx.execute(
        f"SELECT tenant, job_type, coalesce(source, ''), count(*), min(lease_until) FROM {leased}"
        " WHERE state = 'in_progress' GROUP BY tenant, job_type, coalesce(source, '')"
    )
    return {Lane(*row[:3]): Running(row[3], row[4]) for row in rows}


def held_lane(tx: ControlTx, lane: Lane) -> Held | None:
    """What keeps the jobs of a lane waiting at this moment, for those who ask why."""
    rules = read_rules(tx)
    held = held_by(rules, lane, tx.now_ms)
    if held is not None or rules.restrict_nothing:
        return held
    keys = [key for key, _ in quota_rules.limits_of(rules.quotas, lane.tenant, lane.job_type)]
    gate = rules.gates.get((lane.tenant, lane.job_type))
    if gate is not None:
        breaker = breaker_rows.read(tx, lane.tenant, f"{JOB_TYPE}{lane.job_type}")
        gates = {(lane.tenant, lane.job_type): gate_of(breaker, tx.now_ms)} if breaker is not None else {}
        rules = replace(rules, gates=gates)
    buckets = {key: bucket for key, bucket in read_lanes(tx, keys).items() if bucket is not None}
    usage = Usage(read_running(tx), buckets)
    return share(1, [Waiting(lane, [(0, 0), (0, 1)], more=True)], rules, usage, tx.now_ms).held.get(lane)


def read_lanes(tx: ControlTx, keys: Sequence[Key], *, lock: bool = False) -> dict[Key, Bucket | None]:
    """The rows that there are of these, with the tokens left; locked, in the order in which everyone takes them."""
    if not keys:
        return {}
    names, values = _pairs(keys)
    words = f"SELECT tenant, job_type, tokens, tokens_at FROM lanes WHERE (tenant, job_type) IN (VALUES {names})"
    rows = tx.execute(f"{words} ORDER BY tenant, job_type{' /* lock */' if lock else ''}", values)
    return {(row[0], row[1]): None if row[2] is None else Bucket(row[2], row[3]) for row in rows}


def lock_lanes(tx: ControlTx, keys: Sequence[Key]) -> dict[Key, Bucket | None]:
    """The rows of these, made where they are missing."""
    found = read_lanes(tx, keys, lock=True)
    if len(found) < len(keys):
        names, values = _pairs([key for key in keys if key not in found])
        tx.execute(
            f"INSERT INTO lanes (tenant, job_type) VALUES {names} ON CONFLICT (tenant, job_type) DO NOTHING", values
        )
        found = read_lanes(tx, keys, lock=True)
    return found


def write_buckets(tx: ControlTx, buckets: Mapping[Key, Bucket]) -> None:
    """Of rows that are locked."""
    values: dict[str, Any] = {}
    rows = []
    for n, ((tenant, job_type), bucket) in enumerate(sorted(buckets.items())):
        values |= {f"t{n}": tenant, f"j{n}": job_type, f"n{n}": bucket.tokens, f"a{n}": bucket.at}
        rows.append(f"(:t{n}, :j{n}, :n{n}, :a{n})")
    if rows:
        tx.execute(
            f"INSERT INTO lanes (tenant, job_type, tokens, tokens_at) VALUES {', '.join(rows)} ON CONFLICT"
            " (tenant, job_type) DO UPDATE SET tokens = excluded.tokens, tokens_at = excluded.tokens_at",
            values,
        )


def _pairs(keys: Sequence[Key]) -> tuple[str, dict[str, Any]]:
    """Pairs of names as a list of SQL, and their values."""
    values: dict[str, Any] = {f"t{n}": key[0] for n, key in enumerate(keys)}
    values |= {f"j{n}": key[1] for n, key in enumerate(keys)}
    return ", ".join(f"(:t{n}, :j{n})" for n in range(len(keys))), values


def gate_of(breaker: StoredBreaker, now: int) -> Gate:
    places = breaker.places(now)
    return Gate(breaker.state, breaker.forced, breaker.open_until or breaker.next_at(now), places)


def write_held(tx: ControlTx, key: Key, now: tuple[str, int | None] | None) -> None:
    by, until = now or (None, None)
    values: dict[str, Any] = {"tenant": key[0], "job_type": key[1], "by": by, "until": until}
    tx.execute(
        "INSERT INTO lanes (tenant, job_type, blocked_by, blocked_until) VALUES (:tenant, :job_type, :by, :until)"
        " ON CONFLICT (tenant, job_type) DO UPDATE SET blocked_by = excluded.blocked_by,"
        " blocked_until = excluded.blocked_until",
        values,
    )
