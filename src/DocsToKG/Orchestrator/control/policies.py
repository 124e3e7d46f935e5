"""Quota policies: how the capacity of a pool is shared among tenants.

Knows their table; the arithmetic and the validity of a policy are in `jobs.allocation`. Promises: an invalid policy is
refused; with a version, only the policy that was read is changed; every change is audited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Annotated, Any, Unpack

from DocsToKG.Orchestrator.control.inputs import AuditFields, Decision, amount, audit_fields, plain_name
from DocsToKG.Orchestrator.control.records import LedgerService, Record, check_version
from DocsToKG.Orchestrator.errors import BadJob, NotFound
from DocsToKG.Orchestrator.jobs.allocation import AllocationPolicy, Strategy
from DocsToKG.Orchestrator.ledger.control import EVERY, ControlTx
from DocsToKG.Orchestrator.views import JsonFormat, Timestamp, View, json_names

_RULED = (
    "name", "strategy", "total_capacity", "minimum_per_tenant", "maximum_per_tenant", "reserved_capacity",
    "allow_burst", "burst_multiplier", "priority", "job_type", "enabled",
)  # fmt: skip
_MAX_POLICIES = 1000


@dataclass(frozen=True, slots=True)
class PolicyView(View):
    """A policy that shares the capacity of a pool among tenants."""

    __pydantic_config__ = json_names(reason="quotaReason", ticket="quotaTicket")

    policy_id: str
    name: str
    strategy: Annotated[str, JsonFormat(enum=[*Strategy])]
    total_capacity: int
    minimum_per_tenant: int
    maximum_per_tenant: int | None
    reserved_capacity: int
    allow_burst: bool
    burst_multiplier: float
    priority: int
    job_type: str | None
    enabled: bool
    version: int
    actor: str
    reason: str | None
    ticket: str | None
    created_at: Timestamp
    updated_at: Timestamp


_POLICY = Record(PolicyView, "quota_policies")


class PolicyService(LedgerService):
    """The policies of one ledger. They count for all tenants."""

    def list(self, enabled: bool | None = None) -> list[PolicyView]:
        """By priority, the highest first."""
        statement = f"{_POLICY.select} WHERE :enabled IS NULL OR enabled = :enabled ORDER BY priority DESC, policy_id"
        wanted = {"enabled": None if enabled is None else int(enabled)}
        return self._ledger.read(lambda tx: [_POLICY.of(row) for row in tx.execute(statement, wanted)])

    def get(self, policy_id: str) -> PolicyView:
        return self._ledger.read(lambda tx: _get(tx, policy_id))

    def create(
        self,
        name: str,
        strategy: str,
        total_capacity: int,
        *,
        minimum_per_tenant: int = 1,
        maximum_per_tenant: int | None = None,
        reserved_capacity: int = 0,
        allow_burst: bool = False,
        burst_multiplier: float = 1.5,
        priority: int = 0,
        job_type: str | None = None,
        enabled: bool = True,
        **by: Unpack[Decision],
    ) -> PolicyView:
        rules = _checked(
            {
                "name": name, "strategy": strategy, "total_capacity": total_capacity,
                "minimum_per_tenant": minimum_per_tenant, "maximum_per_tenant": maximum_per_tenant,
                "reserved_capacity": reserved_capacity, "allow_burst": allow_burst,
                "burst_multiplier": burst_multiplier, "priority": priority, "job_type": job_type, "enabled": enabled,
            }
        )  # fmt: skip
        audit, policy_id = audit_fields(**by), f"pol_{token_hex(8)}"

        def write(tx: ControlTx) -> PolicyView:
            [(count,)] = tx.execute("SELECT count(*) FROM quota_policies")
            if count >= _MAX_POLICIES:
                raise BadJob(f"there are {_MAX_POLICIES} policies already; remove some first")
            names = ", ".join(_RULED)
            values = ", ".join(f":{name}" for name in _RULED)
            tx.execute(
                f"INSERT INTO quota_policies (policy_id, {names}, actor, reason, ticket, created_at, updated_at)"
                f" VALUES (:policy_id, {values}, :actor, :reason, :ticket, :now, :now)",
                {**rules, **audit, "policy_id": policy_id, "now": tx.now_ms},
            )
            return _changed(tx, policy_id, "policy_created", rules, audit)

        return self._ledger.write(write)

    def update(
        self, policy_id: str, changes: Mapping[str, Any], *, if_version: int | None = None, **by: Unpack[Decision]
    ) -> PolicyView:
        """Write some of a policy's properties anew."""
        unknown = sorted(set(changes) - set(_RULED))
        if unknown:
            raise BadJob(f"a policy has no {unknown[0][:80]}")
        audit = audit_fields(**by)

        def write(tx: ControlTx) -> PolicyView:
            now = _locked(tx, policy_id, if_version)
            rules = _checked({name: getattr(now, name) for name in _RULED} | dict(changes))
            statement = ", ".join(f"{name} = :{name}" for name in _RULED)
            tx.execute(
                f"UPDATE quota_policies SET {statement}, actor = :actor, reason = :reason, ticket = :ticket,"
                " updated_at = :now, version = version + 1 WHERE policy_id = :policy_id",
                {**rules, **audit, "policy_id": policy_id, "now": tx.now_ms},
            )
            return _changed(tx, policy_id, "policy_updated", dict(changes), audit)

        return self._ledger.write(write)

    def delete(self, policy_id: str, *, if_version: int | None = None, **by: Unpack[Decision]) -> None:
        """Remove a policy, and with it what was held of its pool."""
        audit = audit_fields(**by)

        def write(tx: ControlTx) -> None:
            _locked(tx, policy_id, if_version)
            tx.execute("DELETE FROM quota_grants WHERE policy_id = :id", {"id": policy_id})
            tx.execute("DELETE FROM quota_policies WHERE policy_id = :id", {"id": policy_id})
            tx.note(EVERY, event="policy_deleted", detail={"policy": policy_id}, **audit)
            tx.rules_changed()

        self._ledger.write(write)


def _get(tx: ControlTx, policy_id: str, lock: bool = False) -> PolicyView:
    found = _POLICY.find(tx, lock=lock, policy_id=policy_id)
    if found is None:
        raise NotFound(f"no policy {policy_id[:80]}")
    return found


def _locked(tx: ControlTx, policy_id: str, if_version: int | None) -> PolicyView:
    now = _get(tx, policy_id, lock=True)
    check_version("policy", now.version, if_version)
    return now


def _changed(tx: ControlTx, policy_id: str, event: str, detail: Mapping[str, Any], audit: AuditFields) -> PolicyView:
    tx.note(EVERY, event=event, detail={"policy": policy_id, **detail}, **audit)
    tx.rules_changed()
    return _get(tx, policy_id)


def _checked(rules: Mapping[str, Any]) -> dict[str, Any]:
    """The properties as they are stored; one that makes no sense is refused."""
    try:
        strategy = Strategy(rules["strategy"])
    except ValueError:
        raise BadJob(f"strategy must be one of {', '.join(Strategy)}") from None
    for name in ("total_capacity", "minimum_per_tenant", "reserved_capacity"):
        amount(name, rules[name])
    if rules["maximum_per_tenant"] is not None:
        amount("maximum_per_tenant", rules["maximum_per_tenant"])
    amount("priority", rules["priority"], least=-(10**9))
    if not isinstance(rules["burst_multiplier"], int | float) or not 1.0 <= rules["burst_multiplier"] <= 1000.0:
        raise BadJob("burst_multiplier must be between 1 and 1000")
    job_type = None if rules["job_type"] in (None, EVERY) else plain_name("job_type", rules["job_type"])
    checked = {
        **rules,
        "name": plain_name("name", rules["name"]),
        "strategy": strategy.value,
        "burst_multiplier": float(rules["burst_multiplier"]),
        "job_type": job_type,
        "allow_burst": int(bool(rules["allow_burst"])),
        "enabled": int(bool(rules["enabled"])),
    }
    _as_policy("-", checked)
    return checked


def _as_policy(policy_id: str, checked: Mapping[str, Any]) -> AllocationPolicy:
    rules = {name: checked[name] for name in _RULED if name not in ("name", "strategy")}
    rules |= {name: bool(checked[name]) for name in ("allow_burst", "enabled")}
    try:
        return AllocationPolicy(policy_id, Strategy(checked["strategy"]), **rules)
    except ValueError as error:
        raise BadJob(str(error)) from None


def proposed_policy(policy_id: str, rules: Mapping[str, Any]) -> AllocationPolicy:
    """A policy that is not stored, to see what it would do; one that makes no sense is refused as ever."""
    return _as_policy(policy_id, _checked(rules))
