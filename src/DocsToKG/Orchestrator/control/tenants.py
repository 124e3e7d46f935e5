"""Tenants: blocked or not, and their weight when a pool is shared.

Knows their table; a tenant without a row has the defaults. Promises: a blocked tenant's jobs are not leased from the
next lease on, on every instance; every change is audited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

from DocsToKG.Orchestrator.control.inputs import (
    AuditFields,
    Decision,
    ReasonedDecision,
    amount,
    audit_fields,
    plain_name,
)
from DocsToKG.Orchestrator.control.records import LedgerService, Record, check_version
from DocsToKG.Orchestrator.errors import Refused
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.views import Timestamp, View

_SHOWN = 10_000


@dataclass(frozen=True, slots=True)
class TenantView(View):
    """A tenant as the sharing sees it. Version 0 means that nothing was ever written of it."""

    tenant: str
    weight: int = 1
    priority: int = 0
    fixed: int | None = None
    blocked: bool = False
    blocked_reason: str | None = None
    version: int = 0
    updated_at: Timestamp | None = None


_TENANT = Record(TenantView, "tenants")


class TenantService(LedgerService):
    """The tenants of one ledger."""

    def get(self, tenant: str) -> TenantView:
        return self._ledger.read(lambda tx: _get(tx, tenant))

    def list(self, blocked: bool | None = None) -> list[TenantView]:
        """The tenants of which something was written, by name."""
        statement = f"{_TENANT.select} WHERE :blocked IS NULL OR blocked = :blocked ORDER BY tenant LIMIT {_SHOWN}"
        wanted = {"blocked": None if blocked is None else int(blocked)}
        return self._ledger.read(lambda tx: [_TENANT.of(row) for row in tx.execute(statement, wanted)])

    def block(self, tenant: str, **by: Unpack[ReasonedDecision]) -> TenantView:
        """Lease none of its jobs, and take no new ones."""
        audit = audit_fields(**by)
        return self._ledger.write(lambda tx: _set_blocked(tx, plain_name("tenant", tenant), True, audit))

    def unblock(self, tenant: str, **by: Unpack[Decision]) -> TenantView:
        audit = audit_fields(**by)
        return self._ledger.write(lambda tx: _set_blocked(tx, plain_name("tenant", tenant), False, audit))

    def weigh(
        self,
        tenant: str,
        *,
        weight: int = 1,
        priority: int = 0,
        fixed: int | None = None,
        if_version: int | None = None,
        **by: Unpack[Decision],
    ) -> TenantView:
        """How much a tenant counts for: its weight, its priority among tenants, and its fixed amount where one is."""
        values: dict[str, Any] = {
            "tenant": plain_name("tenant", tenant),
            "weight": amount("weight", weight, least=1),
            "priority": amount("priority", priority, least=-(10**9)),
            "fixed": None if fixed is None else amount("fixed", fixed),
        }
        audit = audit_fields(**by)

        def write(tx: ControlTx) -> TenantView:
            now = _locked(tx, tenant)
            check_version("tenant", now.version, if_version)
            tx.execute(
                "INSERT INTO tenants (tenant, weight, priority, fixed, updated_at)"
                " VALUES (:tenant, :weight, :priority, :fixed, :now) ON CONFLICT (tenant) DO UPDATE SET"
                " weight = excluded.weight, priority = excluded.priority, fixed = excluded.fixed,"
                " updated_at = excluded.updated_at, version = tenants.version + 1",
                {**values, "now": tx.now_ms},
            )
            tx.note(tenant, event="tenant_weighed", detail=values, **audit)
            tx.rules_changed()
            return _get(tx, tenant)

        return self._ledger.write(write)


def refuse_blocked(tx: ControlTx, tenant: str) -> None:
    """Raise `Refused` for a tenant that is blocked, for those who would take jobs of it."""
    found = _get(tx, tenant)
    if found.blocked:
        statement = f": {found.blocked_reason}" if found.blocked_reason else ""
        raise Refused(f"tenant {tenant[:80]} is blocked{statement}", "tenant_blocked")


def _set_blocked(tx: ControlTx, tenant: str, blocked: bool, audit: AuditFields) -> TenantView:
    tx.execute(
        "INSERT INTO tenants (tenant, blocked, blocked_reason, updated_at) VALUES (:tenant, :blocked, :reason, :now)"
        " ON CONFLICT (tenant) DO UPDATE SET blocked = excluded.blocked, blocked_reason = excluded.blocked_reason,"
        " updated_at = excluded.updated_at, version = tenants.version + 1",
        {"tenant": tenant, "blocked": blocked, "reason": audit["reason"] if blocked else None, "now": tx.now_ms},
    )
    tx.note(tenant, event="tenant_blocked" if blocked else "tenant_unblocked", **audit)
    tx.rules_changed()
    return _get(tx, tenant)


def _locked(tx: ControlTx, tenant: str) -> TenantView:
    tx.execute("SELECT tenant FROM tenants WHERE tenant = :tenant /* lock */", {"tenant": tenant})
    return _get(tx, tenant)


def _get(tx: ControlTx, tenant: str) -> TenantView:
    return _TENANT.find(tx, tenant=tenant) or TenantView(tenant)
